//! The version of a migration, and how versions follow each other.

/// A version: runs of digits compare as numbers, so that 9 comes before 10; what is between them compares as text.
///
/// `42` and `0042` are the same version.
#[derive(Clone, Debug)]
pub(super) struct Version {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// By length, then by digits, without leading zeros.
    Number(usize, String),
    Text(String),
}

impl Version {
    pub(super) fn of(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_digit = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            parts.push(if is_digit { number(run) } else { Part::Text(run.to_owned()) });
            rest = after;
        }
        Self { text: text.to_owned(), parts }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

fn number(digits: &str) -> Part {
    let digits = digits.trim_start_matches('0');
    Part::Number(digits.len(), digits.to_owned())
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts.cmp(&other.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_versions_compare_as_numbers() {
        let sorted = ["1", "9", "0010", "0042", "100", "2024.1.9", "2024.1.10", "v2", "v10"];
        for (index, low) in sorted.iter().enumerate() {
            for high in &sorted[index + 1..] {
                assert!(Version::of(low) < Version::of(high), "{low} < {high}");
            }
        }
        assert_eq!(Version::of("42"), Version::of("0042"));
        assert_ne!(Version::of("42"), Version::of("v42"));
    }
}

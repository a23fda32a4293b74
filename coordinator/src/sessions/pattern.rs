//! Patterns of names: `*` stands for any run of characters, everything else for itself.

/// Whether the whole name fits. An empty pattern fits nothing.
#[must_use]
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty() && !pattern.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_run_and_the_rest_for_itself() {
        for (pattern, name) in [
            ("*", "shop@prod"),
            ("shop@prod", "shop@prod"),
            ("shop@*", "shop@prod"),
            ("*@prod", "shop@prod"),
            ("s*p@*d", "shop@prod"),
            ("**", "a"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("", "shop"),
            ("shop", "shop@prod"),
            ("*@staging", "shop@prod"),
            ("shop@prod*x", "shop@prod"),
            ("ab*ba", "aba"),
            ("SHOP@*", "shop@prod"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}

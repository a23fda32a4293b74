//! Expected events, written down as data.

use std::fmt::Write as _;

use holdfast_proto::v1::Event;

/// The kinds of the events, in order.
#[must_use]
pub fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// Panics with both lists side by side where they differ.
///
/// An expected kind may be followed by `*` (none, one or more of it) or `?` (none or one of it): for what may or may not come in
/// between, like an attempt that was declined. Everything else must be there exactly.
#[track_caller]
pub fn assert_kinds(events: &[Event], expected: &[&str]) {
    let seen = kinds(events);
    if !fits(&seen, expected) {
        panic!("the events differ\n{}", side_by_side(events, expected));
    }
}

fn fits(seen: &[&str], expected: &[&str]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return seen.is_empty() };
    let next = |name: &str| seen.split_first().filter(|(kind, _)| **kind == name).map(|(_, left)| left);
    if let Some(name) = first.strip_suffix('*') {
        return fits(seen, rest) || next(name).is_some_and(|left| fits(left, expected));
    }
    if let Some(name) = first.strip_suffix('?') {
        return fits(seen, rest) || next(name).is_some_and(|left| fits(left, rest));
    }
    next(first).is_some_and(|left| fits(left, rest))
}

fn side_by_side(events: &[Event], expected: &[&str]) -> String {
    let mut text = format!("{:<4} {:<22} {:<22} sentence\n", "", "expected", "seen");
    for line in 0..events.len().max(expected.len()) {
        let wanted = expected.get(line).copied().unwrap_or("-");
        let seen = events.get(line);
        let kind = seen.map_or("-", |event| event.kind.as_str());
        let mark = if wanted == kind { " " } else { "<" };
        let sentence = seen.map_or("", |event| event.sentence.as_str());
        writeln!(text, "{mark:<4} {wanted:<22} {kind:<22} {sentence}").expect("a string can be written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_fit_exactly_but_for_what_is_marked() {
        let seen = ["submitted", "waits", "waits", "reserved"];
        assert!(fits(&seen, &["submitted", "waits*", "reserved"]));
        assert!(fits(&seen, &["submitted", "waits", "waits", "moved?", "reserved"]));
        assert!(!fits(&seen, &["submitted", "waits?", "reserved"]));
        assert!(!fits(&seen, &["submitted", "waits*"]));
        assert!(!fits(&seen, &["waits*", "reserved"]));
    }
}

//! Names in a repository: objects, and the refs that are ours.

use std::fmt;

use holdfast_common::id::{ResourceName, TargetName};

/// Below it every ledger is.
pub(super) const LEDGERS: &str = "refs/holdfast/";

/// An object's id: 40 or 64 digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Oid(String);

impl Oid {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (is_hex && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the repository counts by SHA-256.
    pub(super) fn is_long(&self) -> bool {
        self.0.len() == 64
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ledger of a resource.
pub(super) fn ledger(target: &TargetName, resource: &ResourceName) -> String {
    format!("{LEDGERS}{}/{}", escaped(target.as_str()), escaped(resource.as_str()))
}

/// A branch.
pub(super) fn branch(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// Who a resource belongs to.
pub(super) fn owner(target: &TargetName, resource: &ResourceName) -> String {
    format!("{target}/{resource}")
}

/// Names may have dots where a ref can't: two in a row, at the end, before a last "lock". No name has a percent sign.
fn escaped(name: &str) -> String {
    let is_lock = name.ends_with(".lock");
    let odd = |at: usize| {
        let rest = &name[at..];
        rest == "." || rest.starts_with("..") || (is_lock && rest == ".lock")
    };
    name.char_indices().map(|(at, c)| if c == '.' && odd(at) { "%2e".to_owned() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_a_ref_and_no_two_the_same() {
        let names = ["shop@prod", "a.b", "a..b", "a...b", "a.", "a.lock", "a.lockx", "a.lock.lock", "a.-"];
        let refs: std::collections::BTreeSet<String> = names.iter().map(|name| escaped(name)).collect();
        assert_eq!(refs.len(), names.len());
        for name in &refs {
            assert!(!name.contains("..") && !name.ends_with('.') && !name.ends_with(".lock"), "{name}");
        }
        assert_eq!(escaped("shop@prod"), "shop@prod");
        assert_eq!(escaped("a..b"), "a%2e.b");
    }

    #[test]
    fn an_id_is_digits_and_nothing_else() {
        assert!(Oid::parse(&"a".repeat(40)).is_some() && Oid::parse(&"0".repeat(64)).is_some());
        for text in ["", "HEAD", "--all", &"A".repeat(40), &"a".repeat(41)] {
            assert!(Oid::parse(text).is_none(), "{text}");
        }
    }
}

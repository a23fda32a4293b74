//! The digest of a content, to tell a repeated message from a changed one.

use std::fmt;

use holdfast_common::spec::hex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of the JSON of plain data: field order is declaration order, maps are sorted.
    #[must_use]
    pub fn of(content: &impl Serialize) -> Self {
        Self::of_bytes(&serde_json::to_vec(content).expect("plain data serializes"))
    }

    /// Of these bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_read_and_print_the_same() {
        let digest = Digest::of_bytes(b"abc");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("ab"), None);
        assert_eq!(Digest::parse(&"ä".repeat(32)), None);
    }
}

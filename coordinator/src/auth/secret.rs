//! The token itself: shown once, then known by its hash only.

use std::fmt;

use holdfast_common::spec::hex;
use rand::TryRngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "hf_";
/// A token that hosts join with.
const JOINING: &str = "hfj_";
const BYTES: usize = 32;

/// A token in the clear. Never stored, never printed by `Debug`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// 32 bytes from the system's random source.
    pub fn generate() -> Result<Self, NoRandomness> {
        Self::beginning(PREFIX)
    }

    /// The same for hosts that join.
    pub fn for_joining() -> Result<Self, NoRandomness> {
        Self::beginning(JOINING)
    }

    fn beginning(prefix: &str) -> Result<Self, NoRandomness> {
        let mut bytes = [0; BYTES];
        OsRng.try_fill_bytes(&mut bytes).map_err(NoRandomness)?;
        Ok(Self(format!("{prefix}{}", hex(&bytes))))
    }

    /// The text that goes into an `authorization` header. To be shown once, to whoever made it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([hidden])")
    }
}

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("could not draw random bytes: {0}")]
pub struct NoRandomness(#[source] rand::rand_core::OsError);

/// SHA-256 of a token's text. A token has 256 random bits, so that no slow hash is needed.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Of whatever a caller presents.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl PartialEq for Hash {
    /// In constant time.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_random_hidden_and_known_by_its_hash() {
        let (one, other) = (Secret::generate().expect("randomness"), Secret::generate().expect("randomness"));
        assert_eq!(one.reveal().len(), PREFIX.len() + 2 * BYTES);
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.hash(), Hash::of(one.reveal()));
        assert_ne!(one.hash(), other.hash());
        assert!(!format!("{one:?}").contains(&one.reveal()[3..]));
    }
}

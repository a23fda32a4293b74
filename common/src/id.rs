//! Identities and names.
//!
//! Identities are random or time-ordered UUIDs made by a shell and passed in; names are short text with a fixed
//! alphabet, so that they can stand in a path, an environment variable, a log line and a terminal unescaped.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Uuid::parse_str(text).map($name).map_err(|_| Error::NotAnId { kind: stringify!($name) })
            }
        }
    };
}

uuid_id!(/// One requested, controlled change of one target. Version 7, so listings sort by age; order never depends on it.
    DeploymentId);
uuid_id!(/// One try at a deployment by one agent under one fence. Never reused.
    AttemptId);
uuid_id!(/// One agent journal. A journal that is lost or copied is another incarnation.
    IncarnationId);
uuid_id!(/// One connection of one agent.
    SessionId);
uuid_id!(/// The client's name for a submission: the same request id is the same deployment.
    RequestId);
uuid_id!(/// One piece of evidence: a late report, a reading, an attestation, a fence-off.
    EvidenceId);
uuid_id!(/// One coordinator database.
    StoreId);

/// How a piece of text failed to be an identity or a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a UUID.
    #[error("not a {kind}: expected a UUID")]
    NotAnId {
        /// Which identity was expected.
        kind: &'static str,
    },
    /// A name that is empty or too long. Lengths are bytes.
    #[error("a {kind} has 1 to {max} characters, this one has {length}")]
    Length {
        /// Which name was expected.
        kind: &'static str,
        /// Longest allowed, in bytes.
        max: usize,
        /// Length found, in bytes.
        length: usize,
    },
    /// A character outside the alphabet of the name.
    #[error("a {kind} starts with a letter or digit and has only letters, digits and {extra:?}: found {found:?}")]
    Character {
        /// Which name was expected.
        kind: &'static str,
        /// The punctuation that is allowed.
        extra: &'static str,
        /// The first character that is not.
        found: char,
    },
}

fn check(kind: &'static str, text: &str, max: usize, extra: &'static str) -> Result<(), Error> {
    if text.is_empty() || text.len() > max {
        return Err(Error::Length { kind, max, length: text.len() });
    }
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let bad = text.chars().find(|c| !c.is_ascii_alphanumeric() && !extra.contains(*c));
    match (bad, starts_plain) {
        (Some(found), _) => Err(Error::Character { kind, extra, found }),
        (None, false) => Err(Error::Character { kind, extra, found: text.chars().next().expect("checked: not empty") }),
        (None, true) => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $extra:literal) => {
        $(#[$doc])*
        ///
        /// Cheap to clone: every state and every message holds some.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks length and alphabet.
            pub fn new(text: impl Into<String>) -> Result<Self, Error> {
                let text = text.into();
                check($kind, &text, $max, $extra)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;
            fn try_from(text: String) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

name!(/// A set of resources that is reserved as one, like `shop@prod`.
    TargetName, "target name", 64, "@._-");
name!(/// One thing that steps change, like `site` or `db`. Belongs to exactly one target.
    ResourceName, "resource name", 64, "._-");
name!(/// A named part of a deployment, unique in it.
    StepName, "step name", 64, "._-");
name!(/// An agent, as its certificate names it.
    AgentName, "agent name", 64, "._-");
name!(/// A person or program with an operator token.
    OperatorName, "operator name", 64, "@._-");
name!(/// A state of a resource by its own name: a version, a commit, a migration.
    Revision, "revision", 128, "+@:._-");

/// The idempotency key of a mutating step, the same in every attempt: `<deployment id>/<step name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId {
    /// The deployment.
    pub deployment: DeploymentId,
    /// The step in it.
    pub step: StepName,
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.deployment, self.step)
    }
}

/// What people call a deployment: `shop@prod#12`. Counts per target from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeploymentLabel {
    /// The target.
    pub target: TargetName,
    /// Counts the target's deployments, from 1.
    pub number: u64,
}

impl fmt::Display for DeploymentLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.target, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_refuse_paths_options_controls_and_length() {
        for bad in ["", "..", "-rf", "a/b", "a b", "a\nb", "\u{1b}[31m", "ä", "$(x)", ".hidden"] {
            assert!(TargetName::new(bad).is_err(), "{bad:?}");
            assert!(StepName::new(bad).is_err(), "{bad:?}");
        }
        assert!(TargetName::new("x".repeat(65)).is_err());
        assert_eq!(TargetName::new("shop@prod").expect("valid").as_str(), "shop@prod");
    }
}

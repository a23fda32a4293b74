//! The only mapping between the wire and the vocabulary.
//!
//! From the wire it is fallible: a missing claim, a zero fence, an unspecified or unknown enum value, a text that is no
//! name are refused with the field named. Nothing is ever given a default.

mod enums;
mod hello;
mod offer;
mod report;
mod time;

pub use hello::{Held, Hello, JournalState, Position, hello_from_wire, position_from_wire, position_to_wire};
pub use offer::{resource_from_wire, resource_to_wire, step_from_wire, step_to_wire};
pub use report::{
    claim_from_wire, claim_of_wire, claim_to_wire, reading_from_wire, reading_to_wire, report_from_wire, report_to_wire,
};
pub use report::{disposition_from_wire, disposition_to_wire, operation_from_wire};
pub use time::{duration_from_wire, duration_to_wire, wall_from_wire, wall_to_wire};

/// Between a wire enum and one of ours. Zero and unknown numbers are refused.
pub trait WireEnum: Sized {
    /// The name of the wire enum, for messages.
    const NAME: &'static str;
    /// From the number on the wire.
    fn from_number(number: i32) -> Option<Self>;
    /// To the number on the wire.
    fn to_number(self) -> i32;

    /// From the wire, naming the field where it is refused.
    fn from_wire(field: &'static str, number: i32) -> Result<Self, Invalid> {
        Self::from_number(number).ok_or(Invalid::Enum { field, kind: Self::NAME, number })
    }
}

/// Why a message is refused. Names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A field that must be there is not.
    #[error("field `{field}` is missing")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// An enum value that is unspecified, or newer than this program.
    #[error("field `{field}`: {number} is not a known {kind}")]
    Enum {
        /// The field.
        field: &'static str,
        /// The enum.
        kind: &'static str,
        /// The number found.
        number: i32,
    },
    /// A text that is not an identity or a name.
    #[error("field `{field}`: {source}")]
    Name {
        /// The field.
        field: &'static str,
        /// Why.
        source: holdfast_common::id::Error,
    },
    /// A number or text outside of its range.
    #[error("field `{field}`: {problem}")]
    Range {
        /// The field.
        field: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A text that is not the JSON of what it should be.
    #[error("field `{field}`: {why}")]
    Json {
        /// The field.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// The value of a field that must be there.
pub fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Invalid> {
    value.ok_or(Invalid::Missing { field })
}

/// A name or identity from its text.
pub fn parsed<T: std::str::FromStr<Err = holdfast_common::id::Error>>(
    field: &'static str,
    text: &str,
) -> Result<T, Invalid> {
    text.parse().map_err(|source| Invalid::Name { field, source })
}

/// A name from its text; empty is none.
pub fn parsed_or_none<T: std::str::FromStr<Err = holdfast_common::id::Error>>(
    field: &'static str,
    text: &str,
) -> Result<Option<T>, Invalid> {
    if text.is_empty() { Ok(None) } else { parsed(field, text).map(Some) }
}

/// A fence from its number: zero is missing.
pub fn fence_from_wire(field: &'static str, number: u64) -> Result<holdfast_common::fence::Fence, Invalid> {
    holdfast_common::fence::Fence::from_u64(number).ok_or(Invalid::Missing { field })
}

#[cfg(test)]
mod tests;

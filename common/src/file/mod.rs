//! The two files that people write, read into a [`crate::spec`].
//!
//! ```text
//! bytes -> text -> tree -> DeploymentFile -> (inputs, target) -> DeploymentSpec
//!                       -> TargetSpec
//! ```
//!
//! TOML, or JSON of the same schema (a file that begins with `{`). Reading is pure: no file, no environment, no shell.
//! Nothing in a file is ignored. A key that the schema lacks is [`Code::UnknownKey`](crate::code::Code::UnknownKey); a
//! part that the schema has and this version can't honour is
//! [`Code::NotSupported`](crate::code::Code::NotSupported). Every error says line, column and key.
//!
//! `${inputs.NAME}` is the only substitution. It is made once, in the strings of `run`, `with` and `[[verify]]`; what it puts
//! in is never read again, and holds no control characters.

mod deployment;
mod error;
mod field;
mod inputs;
mod json;
mod later;
mod reader;
mod reconcile;
mod resolve;
mod rollback;
mod step;
mod suggest;
mod system;
mod target;
mod template;
#[cfg(test)]
mod tests;
mod tree;
mod undigested;
mod verify;

pub use deployment::DeploymentFile;
pub use error::{Error, Errors, Position};
pub use inputs::{Input, InputKind};
pub use suggest::nearest;
pub use target::TargetFile;
pub use undigested::uploads_without_digest;

/// The only schema that this version reads.
pub const SCHEMA: &str = "holdfast/v1";

/// Longest file, in bytes.
pub const MAX_FILE: usize = 1024 * 1024;

/// Deepest nesting of tables and lists. The schema itself needs five.
pub const MAX_DEPTH: usize = 16;

/// Most keys and values in a file.
pub const MAX_VALUES: usize = 20_000;

/// Longest value of an input, in bytes.
pub const MAX_INPUT: usize = 4096;

/// Longest sum of the strings in a resolved deployment, in bytes.
pub const MAX_RESOLVED: usize = 1024 * 1024;

/// Bytes of a file as text. Refuses what is too large or not UTF-8, with the place of the first bad byte.
pub fn text(bytes: &[u8]) -> Result<&str, Errors> {
    if bytes.len() > MAX_FILE {
        return Err(Errors::too_large(bytes.len()));
    }
    std::str::from_utf8(bytes).map_err(|error| Errors::not_utf8(bytes, error.valid_up_to()))
}

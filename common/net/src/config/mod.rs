//! A program's configuration: a TOML file, each key of which an environment variable can override.
//!
//! The key `listen.address` is the variable `HOLDFAST_LISTEN_ADDRESS`: upper case, dots and dashes as underscores. Text
//! is written bare; lists and maps as TOML (`["a", "b"]`, `{ role = "shop" }`). A variable that is set to nothing counts
//! as not set. The keys are found by asking the configuration's own `Deserialize`, so there is no second list of them.
//!
//! Several programs and the commands of running steps share the prefix `HOLDFAST_`, so a variable that is no key of this
//! program is an error only where it must be meant for it: when it lies under one of its tables (`HOLDFAST_LISTEN_...`
//! where there is a `[listen]`), or is one or two letters off one of its keys. The rest is left to others, and so are
//! the variables that a step's command gets ([`STEP_VARIABLES`]), and those of an operator's shell ([`OPERATOR_VARIABLES`]).
//!
//! Unknown keys in the file are always errors, whether or not the type says `deny_unknown_fields`.

mod error;
mod merge;
mod schema;
mod span;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;

use serde::de::DeserializeOwned;

pub use error::{Error, Place};
use merge::Sources;
use schema::Schema;
pub use span::Span;

/// What a step's command finds in its environment. Never configuration, even if a program is started by a step.
pub const STEP_VARIABLES: [&str; 7] = [
    "HOLDFAST_OPERATION_ID",
    "HOLDFAST_FENCE",
    "HOLDFAST_DEPLOYMENT",
    "HOLDFAST_ATTEMPT",
    "HOLDFAST_TARGET",
    "HOLDFAST_EXPECTED_REVISION",
    "HOLDFAST_CREDENTIALS",
];

/// What an operator's shell has for `holdfast`. Never configuration of a service that is started from it.
pub const OPERATOR_VARIABLES: [&str; 6] = [
    "HOLDFAST_ADDRESS",
    "HOLDFAST_CA",
    "HOLDFAST_CONTEXT",
    "HOLDFAST_SERVER_NAME",
    "HOLDFAST_TOKEN",
    "HOLDFAST_TOKEN_FILE",
];

const PREFIX: &str = "HOLDFAST_";

/// One key and the variable that overrides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Like `HOLDFAST_LISTEN_ADDRESS`.
    pub name: String,
    /// Like `listen.address`.
    pub key: String,
}

/// Reads `file` (or nothing, where all comes from variables) and overrides its keys from `environment`, which is
/// `std::env::vars_os()` in a `main`.
pub fn load<T: DeserializeOwned>(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<T, Error> {
    let text = file.map(read).transpose()?.unwrap_or_default();
    let schema = Schema::of::<T>();
    let overrides = merge::overrides(&schema, environment)?;
    Sources { file, text: &text, schema: &schema, overrides: &overrides }.deserialize()
}

/// Every key of a configuration and its variable, in the order of declaration: for help texts and reference pages.
#[must_use]
pub fn variables<T: DeserializeOwned>() -> Vec<Variable> {
    let schema = Schema::of::<T>();
    schema.keys().map(|key| Variable { name: key.variable(), key: key.dotted() }).collect()
}

fn read(file: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(file).map_err(|source| Error::Read { file: file.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|_| Error::NotText { place: Place::File(file.to_owned()) })
}

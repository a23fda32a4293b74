use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file, at a line and a column, both from 1. Columns count characters.
    Position {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// Somewhere in a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
    /// There is no file and no variable.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position { file, line, column } => write!(f, "{}:{line}:{column}", file.display()),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Nowhere => f.write_str("no configuration file"),
        }
    }
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there or may not be read.
    #[error("could not read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not UTF-8.
    #[error("{place}: not UTF-8 text")]
    NotText {
        /// The file or the variable.
        place: Place,
    },
    /// Not TOML.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser said.
        message: String,
    },
    /// A key that this program does not have.
    #[error("{place}: unknown key {key:?}{}", hint(suggestion.as_ref()))]
    UnknownKey {
        /// Where.
        place: Place,
        /// The whole key, like `listen.adress`.
        key: String,
        /// The key that was probably meant.
        suggestion: Option<String>,
    },
    /// A variable that is meant for this program and is none of its keys.
    #[error("unknown environment variable {name}{}", hint(suggestion.as_ref()))]
    UnknownVariable {
        /// Its name.
        name: String,
        /// The variable that was probably meant.
        suggestion: Option<String>,
    },
    /// A key without a default is given neither in the file nor by its variable.
    #[error("{place}: the key {key:?} is missing: set it there{}", or_as(variable.as_ref()))]
    Missing {
        /// The table that lacks it.
        place: Place,
        /// The whole key.
        key: String,
        /// The variable that would do as well, where one would.
        variable: Option<String>,
    },
    /// A value of the wrong type or out of range.
    #[error("{place}: {key:?}: {message}")]
    Value {
        /// Where.
        place: Place,
        /// The whole key.
        key: String,
        /// What is expected.
        message: String,
    },
}

fn or_as(variable: Option<&String>) -> String {
    variable.map(|name| format!(" or as {name}")).unwrap_or_default()
}

fn hint(suggestion: Option<&String>) -> String {
    suggestion.map(|meant| format!(", did you mean {meant}?")).unwrap_or_default()
}

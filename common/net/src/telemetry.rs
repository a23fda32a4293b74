//! The log on stderr. Control characters of what is logged are escaped by the subscriber.

use std::io::{self, IsTerminal};
use std::str::FromStr;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// How a log line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people. Coloured on a terminal, unless `NO_COLOR` is set.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Error::Format(text.to_owned())),
        }
    }
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `text` nor `json`.
    #[error("{0:?} is not a log format: expected \"text\" or \"json\"")]
    Format(String),
    /// Not a filter like `info` or `holdfast=debug,h2=warn`.
    #[error("{filter:?} is not a log filter: {source}")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// A process has one log.
    #[error("the log is already set up")]
    Already,
}

/// Starts the process's log on stderr. `filter` is like `info` or `info,holdfast_coordinator=debug`.
pub fn init(format: Format, filter: &str) -> Result<(), Error> {
    let parsed = parse(filter)?;
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(parsed);
    match format {
        Format::Text => subscriber.with_ansi(coloured()).finish().try_init(),
        // Without the module: `target` is a target of ours, and no line has a key twice.
        Format::Json => subscriber.json().flatten_event(true).with_target(false).with_ansi(false).finish().try_init(),
    }
    .map_err(|_| Error::Already)
}

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::builder().parse(filter).map_err(|source| Error::Filter { filter: filter.to_owned(), source })
}

fn coloured() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_filters_that_make_no_sense_are_errors() {
        assert_eq!("json".parse::<Format>().expect("known"), Format::Json);
        assert!("yaml".parse::<Format>().is_err());
        assert!(parse("info,holdfast_net=debug").is_ok());
        assert!(parse("info,holdfast_net=loud").is_err());
    }
}

//! The log on stderr: a line for each record, whatever is in it, and nobody waits for who reads it.

mod unread;

use std::io::{self, IsTerminal, Write};
use std::str::FromStr;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use unread::Patient;

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
    let json = format == Format::Json;
    let writer = move || OneLine(Patient::new(io::stderr(), &unread::STDERR, json));
    let subscriber = tracing_subscriber::fmt().with_writer(writer).with_env_filter(parsed);
    match format {
        Format::Text => subscriber.with_ansi(coloured()).finish().try_init(),
        // Without the module: `target` is a target of ours, and no line has a key twice.
        Format::Json => subscriber.json().flatten_event(true).with_target(false).with_ansi(false).finish().try_init(),
    }
    .map_err(|_| Error::Already)
}

/// Writes each record on one line of its own: a line feed in what an agent, a target or a command said begins no record.
///
/// The subscriber hands a record over in one piece, with the line feed that ends it.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let (text, end) = match record.strip_suffix(b"\n") {
            Some(text) => (text, "\n"),
            None => (record, ""),
        };
        if text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let text = String::from_utf8_lossy(text).replace('\n', "\\n").replace('\r', "\\r");
            self.0.write_all(format!("{text}{end}").as_bytes())?;
        } else {
            self.0.write_all(record)?;
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// What of a peer's making is told where a filter does not ask for it: a peer may send such a thing a hundred thousand times a second.
const QUIET: &str = "h2=error";

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    EnvFilter::builder()
        .parse(format!("{QUIET},{filter}"))
        .map_err(|source| Error::Filter { filter: filter.to_owned(), source })
}

fn coloured() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T32: a peer's frames are told at a peer's pace only where somebody wants to hear of them.
    #[test]
    fn what_a_peer_sends_is_told_where_the_filter_asks_for_it_and_nowhere_else() {
        let directives = |filter: &str| parse(filter).unwrap().to_string();
        assert!(directives("info").contains("h2=error"), "{}", directives("info"));
        let asked = directives("info,h2=debug");
        assert!(asked.contains("h2=debug") && !asked.contains("h2=error"), "{asked}");
    }

    /// T32
    #[test]
    fn what_is_logged_begins_no_record_of_its_own() {
        let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("no test panics with it").write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let said = "gone\n2026-11-30T00:00:00Z  INFO decided by=root\r{\"level\":\"INFO\"}\n";
        for json in [false, true] {
            let writer = std::sync::Arc::clone(&log);
            let fmt = tracing_subscriber::fmt().with_writer(move || OneLine(Shared(std::sync::Arc::clone(&writer))));
            let tell = || {
                tracing::warn!(error = %said, "could not be done");
                tracing::warn!(detail = said, "{said}");
            };
            if json {
                tracing::subscriber::with_default(fmt.json().flatten_event(true).finish(), tell);
            } else {
                tracing::subscriber::with_default(fmt.with_ansi(false).finish(), tell);
            }
            let text =
                String::from_utf8(std::mem::take(&mut *log.lock().expect("no test panics with it"))).expect("text");
            let lines: Vec<&str> = text.split(['\n', '\r']).filter(|line| !line.is_empty()).collect();
            assert_eq!(lines.len(), 2, "{text}");
            assert!(lines.iter().all(|line| line.contains("WARN") && line.contains("gone")), "{text}");
        }
    }

    #[test]
    fn formats_and_filters_that_make_no_sense_are_errors() {
        assert_eq!("json".parse::<Format>().expect("known"), Format::Json);
        assert!("yaml".parse::<Format>().is_err());
        assert!(parse("info,holdfast_net=debug").is_ok());
        assert!(parse("info,holdfast_net=loud").is_err());
    }
}

//! What the server's errors mean.
//!
//! | SQLSTATE | while reading | from a transaction that changes |
//! | --- | --- | --- |
//! | ZH001 | | a higher fence was seen |
//! | ZH002 | | another revision |
//! | ZH003, ZH004, ZH005 | the resource is not what it was declared to be | the same |
//! | ZH009 | | the same: its record was changed by hand |
//! | ZH006 | | the file's content |
//! | ZH007, ZH008 | | not known: somebody runs it, or nobody saw it end |
//! | 40xxx but 40003, 53xxx, 55P03, 57P03 | try later | the same: the server rolled it back |
//! | 3F000, 42P01, 42883, 42501 | not set up, or not let in | the migration's own fault |
//! | 08xxx, 40003, other 57xxx, 58xxx, XXxxx, FATAL and PANIC, no answer | nothing was begun | not known |
//! | any other | nothing was begun | the migration's own fault, rolled back |
//!
//! Only what the server calls an ERROR says that it rolled back: a session that it ends may have committed before.

use std::io;

use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;
use holdfast_common::text::one_line;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, ErrorPosition, Severity};

use crate::adapters::system::Failure;
use crate::internal::with_causes;

/// What is missing where the record is.
pub(super) const SETUP: &str = "a database administrator sets it up with what `holdfast-agent adapter sql` prints";

/// While the session is opened: nothing was begun.
pub(super) fn connecting(error: &Error) -> Failure {
    let text = format!("could not connect: {}", told(error));
    match (error.as_db_error(), io_kind(error)) {
        (Some(db), _) if is_transient(db) => Failure::Transient(text),
        (Some(_), _) | (None, None | Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) => {
            Failure::Resource(text)
        }
        (None, Some(_)) => Failure::Transient(text),
    }
}

/// While something is read, or the fence is raised: to be repeated or not, it changed nothing that could be wrong.
pub(super) fn reading(error: &Error) -> Failure {
    let Some(db) = error.as_db_error() else { return Failure::NotBegun(told(error)) };
    match db.code().code() {
        "3F000" | "42P01" | "42883" => Failure::Resource(format!("this database has no record of Holdfast's: {SETUP}")),
        "42501" => Failure::Resource(format!("{}: {SETUP}", told(error))),
        "ZH003" | "ZH004" | "ZH005" => Failure::Resource(told(error)),
        _ if is_transient(db) => Failure::Transient(told(error)),
        _ => Failure::NotBegun(told(error)),
    }
}

/// Of a statement that is a transaction of its own.
pub(super) fn changing(error: &Error, fence: Fence, expected: Option<&Revision>) -> Failure {
    let Some(db) = error.as_db_error() else { return Failure::Machinery(told(error)) };
    let is_error = db.parsed_severity() == Some(Severity::Error);
    let code = db.code().code();
    match (code, expected) {
        ("ZH001", _) => {
            let highest = db.detail().and_then(|text| text.parse().ok()).and_then(Fence::from_u64);
            Failure::FencedOff { fence, highest }
        }
        ("ZH002", Some(expected)) => {
            let found = db.detail().and_then(|text| Revision::new(text).ok());
            Failure::Revision { expected: expected.clone(), found }
        }
        ("ZH002" | "ZH003" | "ZH004" | "ZH005" | "ZH009", _) => Failure::Resource(told(error)),
        ("ZH007" | "ZH008", _) => Failure::Machinery(told(error)),
        _ if is_error && is_transient(db) => Failure::Transient(told(error)),
        _ if is_error && !is_silent(code) => Failure::Content(told(error)),
        _ => Failure::Machinery(told(error)),
    }
}

/// On one line, with the line of the migration where the server names one. The server's details are left out: they quote rows.
pub(super) fn told(error: &Error) -> String {
    let Some(db) = error.as_db_error() else { return one_line(&with_causes(error)) };
    let line = match db.position() {
        Some(ErrorPosition::Internal { position, query }) => Some(line_of(query, *position)),
        Some(ErrorPosition::Original(_)) | None => None,
    };
    let line = line.map_or(String::new(), |line| format!(" in line {line}"));
    one_line(&format!("{}{line} [{}]", db.message(), db.code().code()))
}

/// Positions count characters, from 1.
fn line_of(query: &str, position: u32) -> usize {
    let before = usize::try_from(position).unwrap_or(usize::MAX).saturating_sub(1);
    1 + query.chars().take(before).filter(|c| *c == '\n').count()
}

/// Whether it says nothing of what became of the transaction: the connection's, the operator's and the machine's own troubles.
fn is_silent(code: &str) -> bool {
    code == "40003" || ["08", "57", "58", "XX"].iter().any(|class| code.starts_with(class))
}

fn is_transient(db: &DbError) -> bool {
    let code = db.code().code();
    code != "40003" && ["40", "53"].iter().any(|class| code.starts_with(class)) || matches!(code, "55P03" | "57P03")
}

/// What the operating system said, where it said something.
fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = inner.source();
    }
    None
}

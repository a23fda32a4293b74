//! The rules of single values. They hold for what stands in the file and for what a substitution makes of it.

use crate::archive::ArchiveSource;
use crate::file::reader::{Complaint, shown};
use crate::id::Revision;
use crate::spec::OrderKey;

const MAX_PATH: usize = 1024;

pub(super) fn sha256(text: &str) -> Result<(), Complaint> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints them",
        shown(text)
    )))
}

pub(super) fn revision(text: &str) -> Result<(), Complaint> {
    Revision::new(text).map(|_| ()).map_err(|error| Complaint::invalid(error.to_string()))
}

/// A path on the host, an https URL, or a file to upload.
pub(super) fn archive(text: &str) -> Result<(), Complaint> {
    ArchiveSource::of(text).map(|_| ()).map_err(|why| Complaint::invalid(why.to_string()))
}

/// A folder that belongs to a resource: absolute, and written in the one plain way.
pub(super) fn root(text: &str) -> Result<(), Complaint> {
    let parts = text.strip_prefix('/').filter(|rest| !rest.is_empty());
    let Some(parts) = parts.filter(|_| text.len() <= MAX_PATH) else {
        return Err(Complaint::invalid(format!("{} is no absolute path of 2 to {MAX_PATH} bytes", shown(text))));
    };
    if parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        let message = format!("{} has an empty part, \".\" or \"..\": write the path without them", shown(text));
        return Err(Complaint::invalid(message));
    }
    Ok(())
}

/// Whether one folder is the other or lies in it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// An order key in a string.
pub(super) fn order(text: &str) -> Result<(), Complaint> {
    OrderKey::parse(text).map(|_| ()).ok_or_else(|| no_order(text))
}

pub(super) fn no_order(text: &str) -> Complaint {
    Complaint::invalid(format!("{} is no order key: a whole number from 0 to {}", shown(text), OrderKey::MAX))
}

pub(super) fn program(text: &str) -> Result<(), Complaint> {
    if text.is_empty() {
        return Err(Complaint::invalid("the first entry is the program and can't be empty"));
    }
    Ok(())
}

//! One record per attempt that came to unpacking. The record's file has the release folder's name.
//!
//! The attempt's own process holds a kernel lock on its record for as long as it lives. A record is first seen with that
//! lock held, so a record without it tells that its process is gone.

use std::fs::{self, File};
use std::io;

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision};
use serde::{Deserialize, Serialize};

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::names::ReleaseName;
use super::root::{Current, Root};
use crate::durable;

/// What one attempt was to put in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) operation: OperationId,
    pub(super) fence: Fence,
    pub(super) revision: Revision,
    /// Of the archive, lower-case hex.
    pub(super) sha256: String,
    pub(super) state: State,
}

/// How far it is known to have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It had not flipped when this was written.
    Preparing,
    /// `current` was its release.
    Applied,
}

/// A record, and whether its process lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) record: Record,
    pub(super) alive: bool,
}

/// Records that this process is at work. The answer is the lock: keep it until the end.
pub(super) fn begin(root: &Root, record: &Record) -> Result<File, Error> {
    let path = root.operations().join(name_of(record).to_string());
    call(Call::RecordPreparing, || durable::replace_locked(&path, &bytes_of(record))).map_err(io_at("write", &path))
}

/// Records that it flipped.
pub(super) fn applied(root: &Root, record: Record, by: Call) -> Result<(), Error> {
    let path = root.operations().join(name_of(&record).to_string());
    let record = Record { state: State::Applied, ..record };
    call(by, || durable::replace(&path, &bytes_of(&record))).map_err(io_at("write", &path))
}

/// Before `current` may be replaced, the ledger must say what it was: afterwards nothing else would.
pub(super) fn settle(root: &Root) -> Result<(), Error> {
    let Current::Release(name) = root.read_current()? else { return Ok(()) };
    match read(root, &name)? {
        Some(Seen { record, .. }) if record.state == State::Preparing => {
            root.sync()?;
            applied(root, record, Call::Settle)
        }
        Some(_) | None => Ok(()),
    }
}

/// The record of that name.
pub(super) fn read(root: &Root, name: &ReleaseName) -> Result<Option<Seen>, Error> {
    let path = root.operations().join(name.to_string());
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_at("open", &path)(error)),
    };
    let alive = durable::is_locked(&file).map_err(io_at("look at", &path))?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes).map_err(io_at("read", &path))?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|_| Error::Damaged { path: path.clone() })?;
    if name_of(&record) != *name {
        return Err(Error::Damaged { path });
    }
    Ok(Some(Seen { record, alive }))
}

/// The names of all records, by fence.
pub(super) fn names(root: &Root) -> Result<Vec<ReleaseName>, Error> {
    let path = root.operations();
    let failed = || io_at("list", &path);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        names.extend(entry.file_name().to_str().and_then(ReleaseName::parse));
    }
    names.sort_by_key(|name| name.fence);
    Ok(names)
}

/// Whether that operation is known to have been applied, under whatever fence.
pub(super) fn is_applied(root: &Root, operation: &OperationId) -> Result<bool, Error> {
    any_applied(root, |name| &name.operation == operation)
}

/// Whether the attempt under that fence flipped.
pub(super) fn has_flipped(root: &Root, fence: Fence) -> Result<bool, Error> {
    Ok(any_applied(root, |name| name.fence == fence)?
        || matches!(root.read_current()?, Current::Release(name) if name.fence == fence)
        // What stood in `current` a moment ago may have been settled and replaced since.
        || any_applied(root, |name| name.fence == fence)?)
}

/// The revision of what `current` names, where it is one of ours.
pub(super) fn revision_of(root: &Root, current: &Current) -> Result<Option<Revision>, Error> {
    match current {
        Current::Release(name) => Ok(read(root, name)?.map(|seen| seen.record.revision)),
        Current::Absent | Current::Foreign(_) => Ok(None),
    }
}

fn any_applied(root: &Root, wanted: impl Fn(&ReleaseName) -> bool) -> Result<bool, Error> {
    for name in names(root)?.iter().filter(|name| wanted(name)) {
        if read(root, name)?.is_some_and(|seen| seen.record.state == State::Applied) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn name_of(record: &Record) -> ReleaseName {
    ReleaseName { operation: record.operation.clone(), fence: record.fence }
}

fn bytes_of(record: &Record) -> Vec<u8> {
    serde_json::to_vec_pretty(record).expect("plain data serializes")
}

//! Removing an attempt's outputs, so that a reader is told what is gone and when.
//!
//! The record is durable before the first byte goes, and the folder leaves its place by one rename: at every instant an
//! attempt's outputs are there whole or told as removed. What a crash left in between is ended at the next start.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use holdfast_common::id::{AttemptId, DeploymentId};
use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

use super::places::Places;
use super::{End, Error, Gap, GapReason, OVERHEAD, Stream, failed, parse_stream, read_file, segments, write_durably};

/// What was removed of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    at: Wall,
    deployment: DeploymentId,
    /// By the name of the stream's folder.
    streams: BTreeMap<String, RemovedStream>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RemovedStream {
    bytes: u64,
    /// Missing where it had not ended.
    end: Option<End>,
}

impl Removed {
    /// What there is not of a stream from `offset` on: all of it.
    pub(super) fn gaps(&self, stream: &Stream, offset: u64) -> Vec<Gap> {
        let Some(RemovedStream { bytes, end }) = self.streams.get(&stream.name()) else { return Vec::new() };
        let mut gaps = Vec::new();
        if *bytes > offset {
            let reason = GapReason::Removed { at: self.at };
            gaps.push(Gap { from: offset, length: Some(bytes - offset), reason });
        }
        gaps.extend(end.iter().flat_map(|end| end.gaps(offset.max(*bytes))));
        gaps
    }
}

/// What is kept of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) attempt: AttemptId,
    pub(super) deployment: DeploymentId,
    /// When the first output came.
    pub(super) at: Wall,
    /// On disk, about.
    pub(super) bytes: u64,
}

/// What was removed of an attempt, if it was.
pub(super) fn of(places: &Places, attempt: AttemptId) -> Result<Option<Removed>, Error> {
    Ok(read_file(&places.removal(attempt))?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// Every attempt of which something is kept.
pub(super) fn survey(places: &Places) -> Result<Vec<Kept>, Error> {
    let mut kept = Vec::new();
    for attempt in attempts(places)? {
        if let Some(about) = places.about(attempt)? {
            let bytes = streams(places, attempt)?.iter().map(|(_, stream)| stream.bytes + OVERHEAD).sum();
            kept.push(Kept { attempt, deployment: about.deployment, at: about.at, bytes });
        }
    }
    Ok(kept)
}

/// Removes what is kept of an attempt. Answers how much that was, about.
pub(super) fn remove(places: &Places, kept: &Kept, at: Wall) -> Result<u64, Error> {
    let streams: BTreeMap<String, RemovedStream> = streams(places, kept.attempt)?.into_iter().collect();
    let bytes = streams.values().map(|stream| stream.bytes + OVERHEAD).sum();
    let record = Removed { at, deployment: kept.deployment, streams };
    write_durably(&places.removal(kept.attempt), &serde_json::to_vec(&record).expect("plain data serializes"))?;
    discard(places, kept.attempt)?;
    empty_trash(places, |path| path.extension().is_none())?;
    Ok(bytes)
}

/// Ends what a crash left.
pub(super) fn finish(places: &Places) -> Result<(), Error> {
    for attempt in attempts(places)? {
        if of(places, attempt)?.is_some() {
            discard(places, attempt)?;
        }
    }
    empty_trash(places, |_| true)
}

fn discard(places: &Places, attempt: AttemptId) -> Result<(), Error> {
    let folder = places.attempt(attempt);
    let trash = places.trash().join(uuid::Uuid::new_v4().simple().to_string());
    match fs::rename(&folder, trash) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error { doing: "remove", path: folder, source }),
    }
}

/// While others work, all but what they are making.
fn empty_trash(places: &Places, may_go: impl Fn(&std::path::Path) -> bool) -> Result<(), Error> {
    let trash = places.trash();
    for entry in fs::read_dir(&trash).map_err(failed("list", &trash))? {
        let path = entry.map_err(failed("list", &trash))?.path();
        if may_go(&path) {
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}

fn attempts(places: &Places) -> Result<Vec<AttemptId>, Error> {
    let root = places.root();
    let mut attempts = Vec::new();
    for entry in fs::read_dir(root).map_err(failed("list", root))? {
        let entry = entry.map_err(failed("list", root))?;
        attempts.extend(entry.file_name().to_str().and_then(|name| name.parse().ok()).map(AttemptId));
    }
    Ok(attempts)
}

fn streams(places: &Places, attempt: AttemptId) -> Result<Vec<(String, RemovedStream)>, Error> {
    let folder = places.attempt(attempt);
    let mut streams = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed("list", &folder))? {
        let entry = entry.map_err(failed("list", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if parse_stream(attempt, &name).is_some() {
            let bytes = segments::bytes(&entry.path())?;
            streams.push((name, RemovedStream { bytes, end: End::read(&entry.path())? }));
        }
    }
    Ok(streams)
}

//! What is to be sent of a stream next, from its file and from what is known of its step.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use holdfast_proto::v1::LogStream;

use crate::hands::OUTPUT_BYTES;
use crate::places::StepFolder;
use crate::supervisor::{Known, Supervisor, Written};

/// Largest piece of a stream in one message, in bytes.
pub(super) const CHUNK: u64 = 256 * 1024;

/// What there is of a stream from some offset on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// At most [`CHUNK`] bytes.
    pub(super) data: Vec<u8>,
    /// Bytes that the host has kept by now.
    pub(super) kept: u64,
    /// Set once `data` is the rest of it.
    pub(super) end: Option<End>,
}

/// How a stream ended. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Read and not kept.
    pub(super) cut: u64,
    /// Not for the bound, but because the disk was full.
    pub(super) cut_for_room: bool,
    /// Kept, and gone from the file.
    pub(super) lost: u64,
    /// Nobody saw how it ended.
    pub(super) unknown: bool,
}

/// What is there after `offset`. With `only_end` no data is wanted. `None`: the step never ran, there is no output.
pub(super) fn next(
    supervisor: &Supervisor,
    folder: &StepFolder,
    stream: LogStream,
    offset: u64,
    only_end: bool,
) -> io::Result<Option<Piece>> {
    // The step first: if it has ended by now, its file is complete.
    let known = match supervisor.survey(folder) {
        Ok(known) => known,
        // Its records are gone, with whatever was in them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Known::NotYetStarted,
        Err(error) => return Err(error),
    };
    let (path, pick): (_, fn(Written, Written) -> Written) = match stream {
        LogStream::Stderr => (folder.stderr(), |_, stderr| stderr),
        LogStream::Stdout | LogStream::Unspecified => (folder.stdout(), |stdout, _| stdout),
    };
    let (data, length) = read(&path, offset, if only_end { 0 } else { CHUNK })?;
    let written = match known {
        Known::NeverStarted { .. } => return Ok(None),
        Known::Ended(record) => Some(pick(record.stdout, record.stderr)),
        Known::Gone { survivors, .. } if survivors.is_empty() => Some(nobody_saw(length)),
        // Followed once it had started: without a start record the folder is gone.
        Known::NotYetStarted if !folder.path().exists() => Some(nobody_saw(length)),
        Known::Gone { .. } | Known::NotYetStarted | Known::Running => None,
    };
    let sent = offset + data.len() as u64;
    let kept = written.map_or(length, |written| written.kept).max(sent);
    let is_rest = only_end || sent >= length;
    let end = written.filter(|_| is_rest).map(|written| End {
        cut: written.cut,
        cut_for_room: had_no_room(&written),
        lost: kept.saturating_sub(sent.max(length)),
        unknown: written.held_open,
    });
    Ok(Some(Piece { data, kept, end }))
}

/// A shim keeps all that it may: what it cut before its bound, it could not write.
fn had_no_room(written: &Written) -> bool {
    written.cut > 0 && written.kept < OUTPUT_BYTES
}

fn nobody_saw(length: u64) -> Written {
    Written { kept: length, held_open: true, ..Written::default() }
}

/// Bytes from `offset` on, and the file's length. A file that is not there has none.
fn read(path: &Path, offset: u64, bound: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut data = Vec::new();
    if length > offset {
        file.seek(SeekFrom::Start(offset))?;
        file.take(bound.min(length - offset)).read_to_end(&mut data)?;
    }
    Ok((data, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_before_the_bound_is_told_as_lost_for_lack_of_room() {
        let no_room = |kept, cut| had_no_room(&Written { kept, cut, ..Written::default() });
        assert!(no_room(5, 1) && no_room(OUTPUT_BYTES - 1, 1));
        assert!(!no_room(OUTPUT_BYTES, 1) && !no_room(5, 0));
    }
}

//! A stream's bytes, in files of a bounded size that are named by the offset of their first byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Error, failed, sync_folder};

/// After so many bytes a new segment begins.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// One file: its first byte's offset, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    start: u64,
    length: u64,
}

impl Segment {
    fn end(self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// What lies at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Data(Vec<u8>),
    /// Nothing there, but again from that offset on.
    Missing {
        until: u64,
    },
    Nothing,
}

/// Where the stream goes on. 0 where there is nothing.
pub(super) fn position(folder: &Path) -> Result<u64, Error> {
    Ok(list(folder)?.last().map_or(0, |last| last.end()))
}

/// How many bytes there are.
pub(super) fn bytes(folder: &Path) -> Result<u64, Error> {
    Ok(list(folder)?.iter().map(|segment| segment.length).sum())
}

/// Puts bytes behind the last one, which is at `position`.
pub(super) fn append(folder: &Path, mut position: u64, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        let last = list(folder)?.last().copied().filter(|last| last.length < SEGMENT_BYTES && last.end() == position);
        let segment = last.unwrap_or(Segment { start: position, length: 0 });
        let room = usize::try_from(SEGMENT_BYTES - segment.length).unwrap_or(usize::MAX).min(bytes.len());
        write(&path(folder, segment.start), segment.length, &bytes[..room])?;
        position += room as u64;
        bytes = &bytes[room..];
    }
    Ok(())
}

/// All or nothing: what was written of a piece before an error is taken back.
fn write(path: &Path, length: u64, bytes: &[u8]) -> Result<(), Error> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed("open", path))?;
    let written = file.write_all(bytes);
    if written.is_err() {
        let _a_reader_sees_a_part_of_it = file.set_len(length);
    }
    written.map_err(failed("write", path))
}

/// Makes everything stay.
pub(super) fn sync(folder: &Path) -> Result<(), Error> {
    for segment in list(folder)? {
        let path = path(folder, segment.start);
        File::open(&path).and_then(|file| file.sync_data()).map_err(failed("sync", &path))?;
    }
    sync_folder(folder)
}

/// At most `bound` bytes from `offset` on, of one segment.
pub(super) fn read(folder: &Path, offset: u64, bound: usize) -> Result<Read, Error> {
    let segments = list(folder)?;
    if let Some(segment) = segments.iter().rfind(|segment| segment.start <= offset && offset < segment.end()) {
        let path = path(folder, segment.start);
        let mut file = File::open(&path).map_err(failed("open", &path))?;
        file.seek(SeekFrom::Start(offset - segment.start)).map_err(failed("seek in", &path))?;
        let mut data = Vec::new();
        file.take(bound as u64).read_to_end(&mut data).map_err(failed("read", &path))?;
        return Ok(Read::Data(data));
    }
    let next = segments.iter().find(|segment| segment.start > offset);
    Ok(next.map_or(Read::Nothing, |next| Read::Missing { until: next.start }))
}

fn path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:020}"))
}

/// In order. A folder that is not there has none.
fn list(folder: &Path) -> Result<Vec<Segment>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error { doing: "list", path: folder.to_owned(), source }),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", folder))?;
        let start = entry.file_name().to_str().filter(|name| name.len() == 20).and_then(|name| name.parse().ok());
        let Some(start) = start else { continue };
        let length = entry.metadata().map_err(failed("look at", &entry.path()))?.len();
        if length > 0 {
            segments.push(Segment { start, length });
        }
    }
    segments.sort_by_key(|segment| segment.start);
    Ok(segments)
}

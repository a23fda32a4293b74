//! What steps wrote to their outputs.
//!
//! ```text
//! logs/<attempt>/<step>.stdout        the bytes, from the first on
//! logs/<attempt>/<step>.stdout.json   what was not kept, and whether the stream has ended
//! ```
//!
//! Every name is made here, from identities that were checked. A chunk is kept once, whatever is sent twice: only what
//! lies behind the last byte is appended, and a chunk that would leave a gap is not taken. A stream is bounded; what
//! lies behind the bound is counted, not kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_common::id::{AttemptId, StepName};
use serde::{Deserialize, Serialize};

/// Bytes that one read returns at most.
pub const READ_BYTES: usize = 64 * 1024;

const LOCKS: usize = 16;

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Channel {
    /// Both.
    pub const ALL: [Channel; 2] = [Channel::Stdout, Channel::Stderr];

    fn name(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
        }
    }
}

/// One output of one step in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The attempt.
    pub attempt: AttemptId,
    /// The step.
    pub step: StepName,
    /// Which output.
    pub channel: Channel,
}

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Of the first byte of `data` in the stream.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// Bytes that the agent did not keep after this chunk.
    pub cut: u64,
    /// The stream has ended with this chunk.
    pub last: bool,
}

/// What is stored of a stream, from an offset on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Of the first byte of `data`.
    pub offset: u64,
    /// At most [`READ_BYTES`].
    pub data: Vec<u8>,
    /// Bytes that were not kept after the last byte; counted once the stored bytes have all been read.
    pub cut: u64,
    /// Nothing will follow.
    pub ended: bool,
}

/// The outputs of all attempts.
#[derive(Clone, Debug)]
pub struct Logs {
    folder: PathBuf,
    max_bytes: u64,
    locks: Arc<[Mutex<()>; LOCKS]>,
}

/// What was not kept, and whether there will be more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    /// By the agent.
    cut: u64,
    /// Here, behind the bound.
    dropped: u64,
    ended: bool,
}

/// How keeping or reading fails.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {}", path.display())]
pub struct Error {
    doing: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Logs {
    /// In `folder`, which is made when it is needed; at most `max_bytes` are kept of each stream.
    #[must_use]
    pub fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self { folder, max_bytes, locks: Arc::new(std::array::from_fn(|_| Mutex::new(()))) }
    }

    /// Keeps what is new in the chunk. Answers the offset from which the agent goes on: behind the chunk if it was
    /// taken or was there before, at the last byte if it would have left a gap. Blocks on the disk.
    pub fn append(&self, stream: &Stream, chunk: &Chunk) -> Result<u64, Error> {
        let path = self.path(stream);
        let _one_at_a_time = self.lock(stream);
        let mut tail = read_tail(&path)?;
        let kept = length(&path)?;
        let position = kept + tail.dropped;
        let end = chunk.offset.saturating_add(u64::try_from(chunk.data.len()).unwrap_or(u64::MAX));
        if chunk.offset > position {
            return Ok(position);
        }
        let before = tail;
        let new = usize::try_from(position - chunk.offset).ok().and_then(|known| chunk.data.get(known..));
        let new = new.unwrap_or_default();
        let room = usize::try_from(self.max_bytes.saturating_sub(kept)).unwrap_or(usize::MAX).min(new.len());
        if room > 0 || !path.exists() {
            write_at_end(&path, &new[..room])?;
        }
        tail.dropped += (new.len() - room) as u64;
        if end >= position {
            tail.cut = tail.cut.max(chunk.cut);
            tail.ended |= chunk.last;
        }
        if tail != before {
            write_tail(&path, tail)?;
        }
        Ok(position.max(end))
    }

    /// What is stored from `offset` on; `None` where nothing of the stream was ever kept. Blocks on the disk.
    pub fn read(&self, stream: &Stream, offset: u64) -> Result<Option<Stored>, Error> {
        let path = self.path(stream);
        // The tail first: a stream that has ended by now has all its bytes.
        let tail = read_tail(&path)?;
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error { doing: "open", path, source }),
        };
        let failed = |doing, source| Error { doing, path: path.clone(), source };
        file.seek(SeekFrom::Start(offset)).map_err(|source| failed("seek in", source))?;
        let mut data = Vec::new();
        file.take(READ_BYTES as u64).read_to_end(&mut data).map_err(|source| failed("read", source))?;
        let all = data.len() < READ_BYTES;
        let cut = if all { tail.cut + tail.dropped } else { 0 };
        Ok(Some(Stored { offset, data, cut, ended: all && tail.ended }))
    }

    fn path(&self, stream: &Stream) -> PathBuf {
        let name = format!("{}.{}", stream.step, stream.channel.name());
        self.folder.join(stream.attempt.0.hyphenated().to_string()).join(name)
    }

    fn lock(&self, stream: &Stream) -> std::sync::MutexGuard<'_, ()> {
        let place = stream.attempt.0.as_bytes().iter().fold(0_usize, |sum, byte| sum + usize::from(*byte)) % LOCKS;
        self.locks[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn length(path: &Path) -> Result<u64, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(Error { doing: "look at", path: path.to_owned(), source }),
    }
}

fn write_at_end(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |doing, source| Error { doing, path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| failed("make the folder of", source))?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(|source| failed("open", source))?;
    file.write_all(bytes).map_err(|source| failed("write", source))
}

fn tail_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// A tail that can't be read counts as none: it only tells what is missing.
fn read_tail(path: &Path) -> Result<Tail, Error> {
    let path = tail_path(path);
    match fs::read(&path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tail::default()),
        Err(source) => Err(Error { doing: "read", path, source }),
    }
}

/// By a rename, so that a reader finds the old one or the new one.
fn write_tail(path: &Path, tail: Tail) -> Result<(), Error> {
    let path = tail_path(path);
    let mut fresh = path.clone().into_os_string();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let bytes = serde_json::to_vec(&tail).expect("plain data serializes");
    fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, &path)).map_err(|source| Error {
        doing: "write",
        path,
        source,
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            Self(std::env::temp_dir().join(format!("holdfast-logs-{}", Uuid::new_v4())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn stream() -> Stream {
        let step = StepName::new("switch").unwrap();
        Stream { attempt: AttemptId(Uuid::from_u128(1)), step, channel: Channel::Stdout }
    }

    fn chunk(offset: u64, data: &str) -> Chunk {
        Chunk { offset, data: data.into(), cut: 0, last: false }
    }

    fn text(logs: &Logs) -> String {
        String::from_utf8(logs.read(&stream(), 0).unwrap().unwrap().data).unwrap()
    }

    #[test]
    fn chunks_sent_twice_or_overlapping_are_kept_once() {
        let folder = Folder::new();
        let logs = Logs::new(folder.0.clone(), 1000);
        assert_eq!(logs.append(&stream(), &chunk(0, "abc")).unwrap(), 3);
        assert_eq!(logs.append(&stream(), &chunk(0, "abc")).unwrap(), 3);
        assert_eq!(logs.append(&stream(), &chunk(1, "bcde")).unwrap(), 5);
        assert_eq!(logs.append(&stream(), &chunk(0, "a")).unwrap(), 5);
        assert_eq!(text(&logs), "abcde");
    }

    #[test]
    fn a_gap_is_not_taken_and_says_where_to_go_on() {
        let folder = Folder::new();
        let logs = Logs::new(folder.0.clone(), 1000);
        assert_eq!(logs.append(&stream(), &chunk(7, "x")).unwrap(), 0);
        assert_eq!(logs.read(&stream(), 0).unwrap(), None);
        assert_eq!(logs.append(&stream(), &chunk(0, "abc")).unwrap(), 3);
        assert_eq!(logs.append(&stream(), &chunk(u64::MAX, "x")).unwrap(), 3);
        assert_eq!(text(&logs), "abc");
    }

    #[test]
    fn what_lies_behind_the_bound_is_counted_not_kept() {
        let folder = Folder::new();
        let logs = Logs::new(folder.0.clone(), 4);
        assert_eq!(logs.append(&stream(), &chunk(0, "abc")).unwrap(), 3);
        assert_eq!(logs.append(&stream(), &chunk(3, "defg")).unwrap(), 7);
        assert_eq!(logs.append(&stream(), &chunk(3, "defg")).unwrap(), 7, "the same again");
        let last = Chunk { cut: 10, last: true, ..chunk(7, "h") };
        assert_eq!(logs.append(&stream(), &last).unwrap(), 8);
        assert_eq!(logs.append(&stream(), &last).unwrap(), 8, "the same again");
        let stored = logs.read(&stream(), 0).unwrap().unwrap();
        assert_eq!(stored, Stored { offset: 0, data: b"abcd".to_vec(), cut: 14, ended: true });
        assert_eq!(logs.read(&stream(), 4).unwrap().unwrap().data, b"");
    }

    #[test]
    fn an_empty_stream_that_ended_is_there() {
        let folder = Folder::new();
        let logs = Logs::new(folder.0.clone(), 4);
        assert_eq!(logs.append(&stream(), &Chunk { last: true, ..chunk(0, "") }).unwrap(), 0);
        assert!(logs.read(&stream(), 0).unwrap().unwrap().ended);
    }

    #[test]
    fn names_are_made_here() {
        let logs = Logs::new(PathBuf::from("/l"), 1);
        let path = logs.path(&stream());
        assert_eq!(path, Path::new("/l/00000000-0000-0000-0000-000000000001/switch.stdout"));
    }
}

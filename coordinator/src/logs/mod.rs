//! What steps wrote to their outputs.
//!
//! ```text
//! logs/<attempt>/about.json                       whose it is; made with the folder
//! logs/<attempt>/<step>.stdout/<offset>           a segment: the bytes from that offset on
//! logs/<attempt>/<step>.stdout/end.json           the stream has ended: how much of it there was, and what is not here
//! logs/removed/<attempt>.json                     what retention took away, and when
//! logs/trash/                                     on its way out
//! ```
//!
//! Every name is made here, from identities that were checked. A chunk is kept once, whatever is sent twice: only what
//! lies behind the last byte is appended, and a chunk that would leave a gap is not taken.
//!
//! What an agent is told of a stream on its way survives the end of this process: it is in the kernel's hands. What it
//! is told of a stream that ended survives the machine's: the bytes, then the end, are synced before the answer. After a
//! power loss in between, the agent asks where the stream stands and sends again what is missing. Outputs are for
//! people; nothing is ever decided by them.
//!
//! Bounds: one output, all outputs together, and age. Only outputs of deployments that ended are ever removed, the oldest
//! first; when that frees too little, agents are told to wait and keep the rest on their hosts.

mod end;
mod places;
mod removal;
pub mod retention;
mod segments;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_common::id::{AttemptId, DeploymentId, StepName};
use holdfast_common::time::Wall;
use tokio::sync::{Notify, watch};

pub use end::{End, Gap, GapReason};
use places::Places;
pub use places::{Channel, Stream};

/// Bytes that one read returns at most.
pub const READ_BYTES: usize = 64 * 1024;

/// What a stream takes on disk beside its bytes: a folder and an end.
const OVERHEAD: u64 = 8 * 1024;

const LOCKS: usize = 16;
const BELLS: usize = 64;
/// Streams of which it is remembered how much the host has.
const MAX_ANNOUNCED: usize = 10_000;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one output.
    pub stream_bytes: u64,
    /// Bytes of all outputs together.
    pub total_bytes: u64,
}

/// A piece of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Of the first byte of `data` in the stream.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// Bytes that the host has kept by now.
    pub kept: u64,
    /// The stream has ended with this chunk.
    pub end: Option<HostEnd>,
}

/// What the host says of a stream that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostEnd {
    /// Bytes that it read and did not keep.
    pub cut: u64,
    /// It had no room for them.
    pub cut_for_room: bool,
    /// Bytes that it kept and has lost since.
    pub lost: u64,
    /// Nobody saw the end.
    pub unknown: bool,
}

/// The answer to a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Taken {
    /// Everything before it is here; the agent goes on from it.
    pub next: u64,
    /// All of the stream and its end are on disk.
    pub stored: bool,
    /// No more is kept of this stream.
    pub limit_reached: bool,
    /// There is no room for outputs now.
    pub full: bool,
}

/// What is there at an offset of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Found {
    /// Bytes from that offset on, at most [`READ_BYTES`].
    Data(Vec<u8>),
    /// Bytes that are missing before others that are there.
    Gap(Gap),
    /// Nothing will follow but these gaps.
    End(Vec<Gap>),
    /// Nothing yet. Where it is known, how many bytes the host has of the stream.
    NotYet(Option<u64>),
}

/// The outputs of all attempts. Cheap to clone. Every call blocks on the disk.
#[derive(Clone, Debug)]
pub struct Logs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    places: Places,
    bounds: Bounds,
    /// About what lies on disk.
    used: AtomicU64,
    locks: [Mutex<()>; LOCKS],
    bells: [watch::Sender<u64>; BELLS],
    announced: Mutex<BTreeMap<Stream, u64>>,
    tidy: Notify,
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
    /// In `folder`, which is made where it is missing. Ends what a removal had begun.
    pub fn open(folder: PathBuf, bounds: Bounds) -> Result<Self, Error> {
        let places = Places::below(folder);
        places.prepare()?;
        removal::finish(&places)?;
        let used = removal::survey(&places)?.iter().map(|kept| kept.bytes).sum();
        Ok(Self(Arc::new(Inner {
            places,
            bounds,
            used: AtomicU64::new(used),
            locks: std::array::from_fn(|_| Mutex::new(())),
            bells: std::array::from_fn(|_| watch::Sender::new(0)),
            announced: Mutex::default(),
            tidy: Notify::new(),
        })))
    }

    /// Keeps what is new in the chunk. The same chunk again changes nothing.
    pub fn take(&self, deployment: DeploymentId, stream: &Stream, chunk: &Chunk, now: Wall) -> Result<Taken, Error> {
        let taken = {
            let _one_at_a_time = self.lock(stream.attempt);
            self.take_locked(deployment, stream, chunk, now)?
        };
        self.announce(stream, chunk.kept, taken.stored);
        if taken.full {
            self.0.tidy.notify_one();
        }
        self.0.bells[bell(deployment)].send_modify(|count| *count = count.wrapping_add(1));
        Ok(taken)
    }

    fn take_locked(&self, deployment: DeploymentId, stream: &Stream, chunk: &Chunk, now: Wall) -> Result<Taken, Error> {
        let Inner { places, bounds, used, .. } = &*self.0;
        if removal::of(places, stream.attempt)?.is_some() {
            return Ok(Taken { next: chunk.kept, stored: true, ..Taken::default() });
        }
        let folder = places.stream(stream);
        let position = segments::position(&folder)?;
        if End::read(&folder)?.is_some() {
            return Ok(Taken { next: position, stored: true, ..Taken::default() });
        }
        let limit_reached = |position| position >= bounds.stream_bytes;
        let told = |next| Taken { next, limit_reached: limit_reached(next), ..Taken::default() };
        if chunk.offset > position || (chunk.data.is_empty() && chunk.end.is_none()) {
            return Ok(told(position));
        }
        let known = usize::try_from(position - chunk.offset).unwrap_or(usize::MAX).min(chunk.data.len());
        let new = &chunk.data[known..];
        let room = usize::try_from(bounds.stream_bytes.saturating_sub(position)).unwrap_or(usize::MAX).min(new.len());
        let before = used.load(Ordering::Relaxed);
        if before.saturating_add(room as u64 + OVERHEAD) > bounds.total_bytes {
            return Ok(Taken { full: true, ..told(position) });
        }
        if places.make(deployment, stream, now)? {
            used.fetch_add(OVERHEAD, Ordering::Relaxed);
        }
        segments::append(&folder, position, &new[..room])?;
        used.fetch_add(room as u64, Ordering::Relaxed);
        let position = position + room as u64;
        let Some(HostEnd { cut, cut_for_room, lost, unknown }) = chunk.end else { return Ok(told(position)) };
        segments::sync(&folder)?;
        let kept = chunk.kept.max(position);
        End { stored: position, kept, lost, cut, cut_for_room, unknown }.write(&folder)?;
        Ok(Taken { stored: true, ..told(position) })
    }

    /// What is there from `offset` on.
    pub fn read(&self, stream: &Stream, offset: u64) -> Result<Found, Error> {
        let places = &self.0.places;
        if let Some(removed) = removal::of(places, stream.attempt)? {
            return Ok(Found::End(removed.gaps(stream, offset)));
        }
        let folder = places.stream(stream);
        // The end first: a stream that has ended by now has all its bytes.
        let end = End::read(&folder)?;
        match segments::read(&folder, offset, READ_BYTES)? {
            segments::Read::Data(data) => return Ok(Found::Data(data)),
            segments::Read::Missing { until } => {
                let length = Some(until - offset);
                return Ok(Found::Gap(Gap { from: offset, length, reason: GapReason::LostByCoordinator }));
            }
            segments::Read::Nothing => {}
        }
        // A removal may have taken the segments from under this read.
        if let (None, Some(removed)) = (end, removal::of(places, stream.attempt)?) {
            return Ok(Found::End(removed.gaps(stream, offset)));
        }
        Ok(match end {
            Some(end) => Found::End(end.gaps(offset)),
            None => Found::NotYet(self.announced().get(stream).copied()),
        })
    }

    /// Changes whenever something of that deployment has arrived, or of another: a hint to look.
    #[must_use]
    pub fn arrivals(&self, deployment: DeploymentId) -> watch::Receiver<u64> {
        self.0.bells[bell(deployment)].subscribe()
    }

    fn announce(&self, stream: &Stream, kept: u64, stored: bool) {
        let mut announced = self.announced();
        if stored {
            announced.remove(stream);
            return;
        }
        if announced.len() >= MAX_ANNOUNCED && !announced.contains_key(stream) {
            announced.pop_first();
        }
        announced.insert(stream.clone(), kept);
    }

    fn announced(&self) -> std::sync::MutexGuard<'_, BTreeMap<Stream, u64>> {
        self.0.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self, attempt: AttemptId) -> std::sync::MutexGuard<'_, ()> {
        let place = sum(attempt.0.as_bytes()) % LOCKS;
        self.0.locks[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bell(deployment: DeploymentId) -> usize {
    sum(deployment.0.as_bytes()) % BELLS
}

fn sum(bytes: &[u8]) -> usize {
    bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)))
}

/// An error that names what was done to which path.
fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error { doing, path, source }
}

/// A small file, or that it is not there.
fn read_file(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error { doing: "read", path: path.to_owned(), source }),
    }
}

/// A file that is whole or absent, and stays.
fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let made = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let written = made.and_then(|mut file| {
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, path)).map_err(failed("write", path))?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

/// The step's name and which output, from a folder's name.
fn parse_stream(attempt: AttemptId, name: &str) -> Option<Stream> {
    let (step, channel) = name.rsplit_once('.')?;
    let channel = Channel::ALL.into_iter().find(|one| one.name() == channel)?;
    Some(Stream { attempt, step: StepName::new(step).ok()?, channel })
}

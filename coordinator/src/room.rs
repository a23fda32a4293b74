//! Whether the coordinator's disk has room for what it would promise.
//!
//! | room | submissions, declarations, new leases, outputs | permits | reports, heartbeats, cancels, evidence, decisions |
//! | --- | --- | --- | --- |
//! | plenty | taken | granted | recorded |
//! | low | refused or paused | granted: the reserve stands for their ends | recorded |
//! | full | refused or paused | wait until the reserve stands again | recorded, out of the reserve |
//! | full, and a write fails all the same | refused or paused | wait | agents' words wait in order and unanswered; operators are refused; heartbeats are answered from memory |
//!
//! A permit promises that its end can be recorded, so it stands on the reserve alone. While nothing can be written, serving time
//! stands still: no lease lapses because of a disk.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_net::room::{Gauge, Room, Wanted};
use tokio::sync::watch;

/// What the ends of one attempt may take in the store: its events, its rows, and the pages between them.
const BYTES_PER_ATTEMPT: u64 = 64 * 1024;

/// Names that the store itself may need when it is opened again, and some for what people attach.
const INODES: u64 = 8;

/// Whether the system refused a write for lack of room.
#[must_use]
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Where the driver learns whether there is room. `now` is on the driver's monotonic clock.
pub trait Space: Send {
    /// Looks, if it is time. Answers whether the room is another one now.
    fn look(&mut self, now: Duration, under_way: usize) -> bool;

    /// As of the last look.
    fn room(&self) -> Room;

    /// A write failed for lack of room: gives the reserve to it.
    fn release(&mut self, now: Duration);

    /// How long until the next look. `None` for never.
    fn wait(&self, now: Duration) -> Option<Duration>;
}

/// A disk that is never full: for simulations, and for tests of other things.
#[derive(Debug)]
pub struct Endless;

impl Space for Endless {
    fn look(&mut self, _now: Duration, _under_way: usize) -> bool {
        false
    }

    fn room(&self) -> Room {
        Room::Plenty
    }

    fn release(&mut self, _now: Duration) {}

    fn wait(&self, _now: Duration) -> Option<Duration> {
        None
    }
}

/// The file system that the store is on.
#[derive(Debug)]
pub struct Disk {
    gauge: Gauge,
    base: u64,
    wanted: Wanted,
}

impl Disk {
    /// With a reserve of so many bytes, and some more for each attempt under way.
    #[must_use]
    pub fn new(data: PathBuf, bytes: u64) -> Self {
        let wanted = Wanted { bytes, inodes: INODES };
        Self { gauge: Gauge::new(data), base: bytes, wanted }
    }

    /// For everybody else.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Room> {
        self.gauge.watch()
    }
}

impl Space for Disk {
    fn look(&mut self, now: Duration, under_way: usize) -> bool {
        let attempts = u64::try_from(under_way).unwrap_or(u64::MAX);
        self.wanted.bytes = self.base.saturating_add(attempts.saturating_mul(BYTES_PER_ATTEMPT));
        self.gauge.look(now, self.wanted)
    }

    fn room(&self) -> Room {
        self.gauge.room()
    }

    fn release(&mut self, now: Duration) {
        self.gauge.release(now, self.wanted);
    }

    fn wait(&self, now: Duration) -> Option<Duration> {
        Some(self.gauge.wait(now))
    }
}

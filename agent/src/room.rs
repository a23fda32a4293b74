//! Whether this host has room to promise that a step's end can be recorded.
//!
//! | room | offers | steps of attempts that are here | what ends |
//! | --- | --- | --- | --- |
//! | plenty | taken | begin | journaled, reported |
//! | low, or few descriptors | declined: no room | begin while the reserve stands and there are descriptors | journaled, reported |
//! | full | declined | wait under their lease | journaled out of the reserve |
//! | full, and the journal fails all the same | declined | wait | kept, unsaid, until it is durable; heartbeats go on |
//!
//! A step has its own reserve beside it: the shim makes the files for its exit record before the start record stands.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use holdfast_net::room::{Descriptors, Gauge, Room, Wanted};
use tokio::sync::watch;

/// Files that stops, tombstones and the journal may need at any time.
const INODES: u64 = 16;
/// The same for each attempt that is here.
const INODES_PER_ATTEMPT: u64 = 8;
const BYTES_PER_ATTEMPT: u64 = 64 * 1024;

/// What may be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether an offer may be taken.
    pub takes_offers: bool,
    /// Whether a step may begin.
    pub can_begin: bool,
}

impl Verdict {
    fn of(room: Room, descriptors: Descriptors) -> Self {
        let enough = descriptors.are_enough();
        Self { takes_offers: room.takes_new_work() && enough, can_begin: room.can_promise() && enough }
    }
}

/// The room of the state folder, and the descriptors of this process. Shared by the driver and the hands.
#[derive(Debug)]
pub struct HostRoom(Option<Mutex<Looked>>);

#[derive(Debug)]
struct Looked {
    gauge: Gauge,
    base: u64,
    wanted: Wanted,
    since: Instant,
    descriptors: watch::Receiver<Descriptors>,
}

impl HostRoom {
    /// A host that is never full: for simulations, and for tests of other things.
    #[must_use]
    pub fn endless() -> Self {
        Self(None)
    }

    /// Of that folder, with a reserve of so many bytes and some more for each attempt.
    #[must_use]
    pub fn on(state: &Path, bytes: u64, descriptors: watch::Receiver<Descriptors>) -> Self {
        Self(Some(Mutex::new(Looked {
            gauge: Gauge::new(state.to_owned()),
            base: bytes,
            wanted: Wanted { bytes, inodes: INODES },
            since: Instant::now(),
            descriptors,
        })))
    }

    /// Looks, if it is time, and says what may be done.
    pub fn look(&self, attempts: usize) -> Verdict {
        let everything = Verdict { takes_offers: true, can_begin: true };
        self.with_looked(|looked| looked.look(attempts)).unwrap_or(everything)
    }

    /// Whether an offer may be taken, with the descriptors counted now.
    #[must_use]
    pub fn takes_offers(&self, verdict: Verdict) -> bool {
        verdict.takes_offers && (self.0.is_none() || Descriptors::now().are_enough())
    }

    /// What is short, for people; `None` where there is room for everything.
    #[must_use]
    pub fn lack(&self) -> Option<String> {
        self.with_looked(|looked| looked.lack()).flatten()
    }

    /// A write found no room: gives the reserve to what must be written.
    pub fn release(&self) {
        let _nothing_to_release =
            self.with_looked(|looked| looked.gauge.release(looked.since.elapsed(), looked.wanted));
    }

    /// Does what must be written, out of the reserve if need be.
    pub fn with<T>(&self, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match write() {
            Err(error) if is_no_room(&error) => {
                self.release();
                write()
            }
            result => result,
        }
    }

    /// The room, for everybody else.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Room> {
        self.with_looked(|looked| looked.gauge.watch()).unwrap_or_else(|| watch::Sender::default().subscribe())
    }

    fn with_looked<R>(&self, look: impl FnOnce(&mut Looked) -> R) -> Option<R> {
        let looked = self.0.as_ref()?;
        Some(look(&mut looked.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Looked {
    fn look(&mut self, attempts: usize) -> Verdict {
        let attempts = u64::try_from(attempts).unwrap_or(u64::MAX);
        self.wanted = Wanted {
            bytes: self.base.saturating_add(attempts.saturating_mul(BYTES_PER_ATTEMPT)),
            inodes: INODES.saturating_add(attempts.saturating_mul(INODES_PER_ATTEMPT)),
        };
        self.gauge.look(self.since.elapsed(), self.wanted);
        Verdict::of(self.gauge.room(), *self.descriptors.borrow())
    }

    fn lack(&self) -> Option<String> {
        let (room, descriptors) = (self.gauge.room(), *self.descriptors.borrow());
        match (room.takes_new_work(), descriptors.are_enough()) {
            (false, _) => Some(room.to_string()),
            (true, false) => Some(descriptors.to_string()),
            (true, true) => None,
        }
    }
}

/// Whether the system refused a write for lack of room.
#[must_use]
pub fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use holdfast_net::room::Lack;

    use super::*;

    #[test]
    fn an_offer_needs_plenty_and_a_step_the_reserve_and_both_need_descriptors() {
        let lack = Lack::Inodes { free: 0, wanted: 1 };
        let few = Descriptors::Low { open: 60, limit: 64 };
        let rows = [
            (Room::Plenty, Descriptors::Enough, true, true),
            (Room::Low(lack), Descriptors::Enough, false, true),
            (Room::Full(lack), Descriptors::Enough, false, false),
            (Room::Plenty, few, false, false),
        ];
        for (room, descriptors, takes_offers, can_begin) in rows {
            assert_eq!(Verdict::of(room, descriptors), Verdict { takes_offers, can_begin }, "{room:?} {descriptors:?}");
        }
    }
}

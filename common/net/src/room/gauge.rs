//! Looks at the disk now and then, keeps the reserve, and makes known what follows.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::{Reserve, Room, Wanted, next};

/// Between two looks while there is room.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two looks while there is none.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The room of one folder. Owned by the one thread that promises and records.
#[derive(Debug)]
pub struct Gauge {
    reserve: Reserve,
    known: watch::Sender<Room>,
    next_look: Option<Duration>,
}

impl Gauge {
    /// Of the file system that `folder` is on; the reserve is `folder/reserve`.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { reserve: Reserve::at(folder.join("reserve")), known: watch::Sender::default(), next_look: None }
    }

    /// As of the last look.
    #[must_use]
    pub fn room(&self) -> Room {
        *self.known.borrow()
    }

    /// For everybody else.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Room> {
        self.known.subscribe()
    }

    /// How long until the next look, counted on the same clock as [`Gauge::look`].
    #[must_use]
    pub fn wait(&self, now: Duration) -> Duration {
        self.next_look.map_or(Duration::ZERO, |at| at.saturating_sub(now))
    }

    /// Looks, if it is time. What is free again goes into the reserve first. Answers whether the room is another one now.
    pub fn look(&mut self, now: Duration, wanted: Wanted) -> bool {
        if self.next_look.is_some_and(|at| now < at) {
            return false;
        }
        self.look_now(now, wanted)
    }

    fn look_now(&mut self, now: Duration, wanted: Wanted) -> bool {
        let before = self.room();
        let after = match self.reserve.read(wanted) {
            Ok(mut reading) => {
                // Only where as much again stays free: else it would be taken away from a write that is needed now.
                let spare = reading.free_bytes >= wanted.bytes.saturating_mul(2);
                if !reading.reserve_stands && (spare || before.can_promise()) {
                    let held = self.reserve.hold(wanted);
                    if let Err(error) = held {
                        tracing::debug!(%error, "the reserve could not be put aside");
                    }
                    reading = self.reserve.read(wanted).unwrap_or(reading);
                }
                next(before, reading, wanted)
            }
            Err(error) => {
                tracing::warn!(%error, "could not look at the disk");
                before
            }
        };
        self.next_look = Some(now + if after.takes_new_work() { LOOK_EVERY } else { LOOK_AGAIN });
        self.tell(before, after)
    }

    /// A write failed for lack of room: the reserve goes to what must be recorded.
    pub fn release(&mut self, now: Duration, wanted: Wanted) {
        self.reserve.release();
        let before = self.room();
        if let Ok(reading) = self.reserve.read(wanted) {
            let after = next(before, super::Reading { reserve_stands: false, ..reading }, wanted);
            self.tell(before, after);
        }
        self.next_look = Some(now + LOOK_AGAIN);
    }

    fn tell(&mut self, before: Room, after: Room) -> bool {
        self.known.send_if_modified(|room| std::mem::replace(room, after) != after);
        let same = std::mem::discriminant(&before) == std::mem::discriminant(&after);
        match after {
            Room::Plenty if !same => tracing::info!("there is room on the disk again"),
            Room::Low(_) | Room::Full(_) if !same => tracing::warn!("{after}"),
            Room::Plenty | Room::Low(_) | Room::Full(_) => {}
        }
        !same
    }
}

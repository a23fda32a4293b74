//! What waits for the driver.
//!
//! | from | waits at most | more |
//! | --- | --- | --- |
//! | the coordinator | 1,024 messages | stay in the session's connection, and so with the coordinator |
//! | the session itself | one question at a time | it waits for the answer |
//! | the hands | a few for each step and look under way, whose number the driver bounds | |

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Event;

/// Messages of the coordinator that may wait.
const ROOM: usize = 1024;

/// The driver has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the driver has stopped")]
pub struct Stopped;

/// One event, and its room until it is taken up.
#[derive(Debug)]
struct Waiting {
    event: Event,
    _room: Option<OwnedSemaphorePermit>,
}

/// The sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sender {
    events: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

/// The driver's end.
#[derive(Debug)]
pub struct Inbox {
    events: mpsc::Receiver<Waiting>,
    room: Arc<Semaphore>,
}

/// Both ends.
#[must_use]
pub fn channel() -> (Sender, Inbox) {
    let (sender, events) = mpsc::channel();
    let room = Arc::new(Semaphore::new(ROOM));
    (Sender { events: sender, room: Arc::clone(&room) }, Inbox { events, room })
}

impl Sender {
    /// Tells what the hands did, or asks a question of which there is one at a time. Never waits.
    pub fn send(&self, event: Event) -> Result<(), Stopped> {
        self.put(event, None)
    }

    /// Tells what the coordinator said, once there is room for it.
    pub async fn send_with_room(&self, event: Event) -> Result<(), Stopped> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| Stopped)?;
        self.put(event, Some(room))
    }

    fn put(&self, event: Event, room: Option<OwnedSemaphorePermit>) -> Result<(), Stopped> {
        self.events.send(Waiting { event, _room: room }).map_err(|_| Stopped)
    }
}

impl Inbox {
    /// The next event, waited for at most so long; `None` for ever.
    pub(super) fn next(&self, at_most: Option<Duration>) -> Result<Event, RecvTimeoutError> {
        let waited = match at_most {
            Some(span) => self.events.recv_timeout(span),
            None => self.events.recv().map_err(RecvTimeoutError::from),
        };
        waited.map(|waiting| waiting.event)
    }

    /// What is there, without waiting.
    pub(super) fn rest(&self) -> impl Iterator<Item = Event> {
        self.events.try_iter().map(|waiting| waiting.event)
    }

    /// How many messages of the coordinator wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        ROOM - self.room.available_permits().min(ROOM)
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Whoever waits for room hears that nobody takes anything up any more.
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_coordinators_words_wait_for_room_and_nobody_elses_do() {
        let (sender, inbox) = channel();
        for _ in 0..ROOM {
            assert_eq!(sender.send_with_room(Event::Stop).now_or_never(), Some(Ok(())));
        }
        assert_eq!(inbox.waiting(), ROOM);
        let mut over = Box::pin(sender.send_with_room(Event::Stop));
        assert!(over.as_mut().now_or_never().is_none(), "it waits");
        sender.send(Event::Stop).expect("what was done is told at once");
        assert!(inbox.next(None).is_ok());
        assert_eq!(over.now_or_never(), Some(Ok(())), "room was made");
        assert_eq!(inbox.rest().count(), ROOM + 1);
        drop(inbox);
        assert_eq!(sender.send_with_room(Event::Stop).now_or_never(), Some(Err(Stopped)));
    }
}

//! What the driver does while its disk is full. See [`crate::room`] for the table. Permits wait here, too, while the store
//! does not follow from its events.
//!
//! ```text
//!   a commit finds no room ─▶ nothing of it is there: memory goes back to before it
//!        └─▶ the reserve is released, and the same messages are done again, one by one, agents' words first
//!              ├─ written            answered
//!              ├─ nothing to write   answered
//!              └─ no room            an agent's word waits; whoever else asked is refused
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use holdfast_common::id::TargetName;
use holdfast_net::room::Room;

use super::batch::Batch;
use super::inbox::{Body, Message};
use super::step::Driver;
use super::{Asked, Error, Fatal};
use crate::room::Space;
use crate::store::{self, Store, Transaction};
use crate::verify::Finding;

/// Words of agents that may wait at once. More are refused, and their agents say them again in a later session.
const WAITING: usize = 512;
/// Between two tries to write what waits.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// What the driver knows of its disk.
pub(super) struct Full {
    pub(super) space: Box<dyn Space>,
    /// Whether the last write failed and none has succeeded since.
    pub(super) stuck: bool,
    /// What agents said and could not be recorded, and the permits that no promise could be made for, in order.
    pub(super) waiting: VecDeque<Message>,
    /// What was found in the store, which keeps every permit waiting.
    pub(super) unsound: Option<Finding>,
    /// When what waits is tried again.
    again: Duration,
}

impl Full {
    pub(super) fn new(space: Box<dyn Space>) -> Self {
        Self { space, stuck: false, waiting: VecDeque::new(), unsound: None, again: Duration::ZERO }
    }

    /// Takes out of the messages the permits that can't be promised now, and puts in before them what can be done again.
    pub(super) fn sort(&mut self, messages: Vec<Message>) -> Vec<Message> {
        let mut all: VecDeque<Message> = std::mem::take(&mut self.waiting);
        all.extend(messages);
        if self.space.room().can_promise() && self.unsound.is_none() {
            return all.into();
        }
        let (permits, rest) = all.into_iter().partition::<VecDeque<_>, _>(is_permit);
        permits.into_iter().for_each(|permit| self.wait(permit));
        rest.into()
    }

    /// How long the driver may sleep.
    pub(super) fn patience(&self, now: Duration) -> Option<Duration> {
        if self.stuck { Some(self.again.saturating_sub(now)) } else { self.space.wait(now) }
    }

    fn wait(&mut self, message: Message) {
        if self.waiting.len() < WAITING {
            return self.waiting.push_back(message);
        }
        let room = self.space.room();
        message.refuse(self.unsound.clone().map_or(Error::NoRoom(room), |found| Error::Unsound(Box::new(found))));
    }
}

impl<S: Store> Driver<S> {
    /// Nothing of the last transaction is on disk. What was decided in it never was.
    pub(super) fn take_back(&mut self, batch: Batch) {
        let Self { inner, unseen, .. } = self;
        for (name, before) in batch.before {
            inner.targets.restore(&name, before, inner.now);
            unseen.insert(name);
        }
        unseen.extend(batch.touched);
    }

    /// A write found no room.
    pub(super) fn no_room(&mut self, error: &store::Error) {
        if !self.full.stuck {
            let source = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(%error, source, "nothing of it was recorded or answered; results come first now");
        }
        self.full.stuck = true;
        self.full.again = self.monotonic;
        self.full.space.release(self.monotonic);
        self.inner.gate = self.full.space.room();
    }

    /// Each message in a transaction of its own, so that one that can't be written keeps no other.
    pub(super) fn one_by_one(&mut self, messages: Vec<Message>) -> Result<(), Fatal> {
        let (words, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| waits_for(message).is_some());
        if self.monotonic < self.full.again {
            words.into_iter().for_each(|word| self.full.wait(word));
            return self.others(others);
        }
        self.full.again = self.monotonic + AGAIN_AFTER;
        self.store.make_room().map_err(Fatal)?;
        let mut behind = BTreeSet::new();
        for message in words {
            let before = waits_for(&message).unwrap_or_default().to_owned();
            // In the order in which it was said: an end is not told before its start.
            if behind.contains(&before) {
                self.full.wait(message);
            } else if let Some(message) = self.alone(message)? {
                behind.insert(before);
                self.full.wait(message);
            }
        }
        self.others(others)?;
        if self.full.stuck { self.probe() } else { Ok(()) }
    }

    fn others(&mut self, others: Vec<Message>) -> Result<(), Fatal> {
        for message in others {
            if let Some(message) = self.alone(message)? {
                message.refuse(Error::NoRoom(self.full.space.room()));
            }
        }
        Ok(())
    }

    /// Gives the message back if it could not be written.
    fn alone(&mut self, message: Message) -> Result<Option<Message>, Fatal> {
        let one = [message];
        match self.attempt(&one, false) {
            Ok(wrote) => {
                self.full.stuck &= !wrote;
                Ok(None)
            }
            Err(Fatal(store::Error::NoRoom { .. })) => Ok(one.into_iter().next()),
            Err(fatal) => Err(fatal),
        }
    }

    /// Whether the least that is ever written can be.
    fn probe(&mut self) -> Result<(), Fatal> {
        let Self { store, inner, full, .. } = self;
        let written = store.begin().and_then(|mut tx| {
            tx.serve(inner.clock.run(), inner.clock.served())?;
            tx.commit()
        });
        match written {
            Ok(()) => {
                inner.clock.mark_written();
                full.stuck = false;
                Ok(())
            }
            Err(store::Error::NoRoom { .. }) => Ok(()),
            Err(error) => Err(Fatal(error)),
        }
    }

    /// Targets on which an attempt is under way: so many ends are owed.
    pub(super) fn under_way(&self) -> usize {
        let live = |name: &&TargetName| {
            let current = self.inner.targets.get(name).and_then(|target| target.state.current.as_ref());
            current.is_some_and(|deployment| deployment.live().is_some())
        };
        self.inner.targets.names().filter(live).count()
    }
}

/// What an agent says and must not have said in vain waits; behind whom, for the order. Signs of life are said again anyway.
fn waits_for(message: &Message) -> Option<&str> {
    match &message.body {
        Body::Ask { target, asked, .. } => match &**asked {
            Asked::OfferAnswered { .. }
            | Asked::Detached { .. }
            | Asked::PermitRequested { .. }
            | Asked::Reported { .. }
            | Asked::JournalSpoke { .. }
            | Asked::InquiryAnswered { .. } => Some(target.as_str()),
            Asked::Declare { .. }
            | Asked::Submit { .. }
            | Asked::Rollback { .. }
            | Asked::Heard { .. }
            | Asked::Cancel { .. }
            | Asked::Inspect { .. }
            | Asked::FenceOff { .. }
            | Asked::Attest { .. }
            | Asked::AttestRevision { .. }
            | Asked::Decide { .. }
            | Asked::Hold { .. }
            | Asked::Unhold { .. } => None,
        },
        Body::Orphan { report, .. } => Some(report.speaker.agent.as_str()),
        Body::State { .. }
        | Body::TargetOf { .. }
        | Body::Agent { .. }
        | Body::Identify { .. }
        | Body::Drain { .. }
        | Body::Resume { .. }
        | Body::MakeToken { .. }
        | Body::RevokeToken { .. }
        | Body::Fleet { .. }
        | Body::Refused { .. }
        | Body::SessionStarted(_)
        | Body::AgentsChanged
        | Body::Several(_)
        | Body::Stop(_) => None,
    }
}

fn is_permit(message: &Message) -> bool {
    matches!(&message.body, Body::Ask { asked, .. } if matches!(**asked, Asked::PermitRequested { .. }))
}

/// What is asked for in vain while there is no room for new work.
pub(super) fn new_work(gate: Room) -> Result<(), Error> {
    if gate.takes_new_work() { Ok(()) } else { Err(Error::NoRoom(gate)) }
}

//! One step: a batch of messages, one commit, then the answers and effects.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_common::id::TargetName;
use holdfast_common::time::Millis;
use holdfast_coordinator_core::Now;

use super::batch::Batch;
use super::decide::Inner;
use super::full::Full;
use super::serving::ServingClock;
use super::{Fatal, Message, Moment};
use crate::bugs::{self, Bug};
use crate::store::{self, Store, Transaction};

/// How a transaction begins.
type Begin<S> = for<'a> fn(&'a mut S) -> Result<<S as Store>::Transaction<'a>, store::Error>;

/// Owns the store. See the module.
pub struct Driver<S: Store> {
    pub(super) store: S,
    pub(super) inner: Inner,
    pub(super) full: Full,
    /// Of the current step.
    pub(super) monotonic: Duration,
    /// Targets whose effects were not looked at since they were loaded.
    pub(super) unseen: BTreeSet<TargetName>,
    pub(super) lease_margin: Millis,
    pub(super) broken: bool,
}

impl<S: Store> Driver<S> {
    /// Does what the messages ask and what time asks, commits it, then answers and hands out what is due.
    ///
    /// After an error nothing is known of what is on disk: every later step fails too, and the process should stop.
    pub fn step(&mut self, messages: Vec<Message>, now: Moment) -> Result<(), Fatal> {
        if self.broken {
            let source = "an earlier step failed".into();
            return Err(Fatal(store::Error::Failed { doing: "go on", source }));
        }
        self.monotonic = now.monotonic;
        self.look();
        self.hear_verdict();
        self.hear_suspicion();
        if self.full.stuck {
            self.inner.clock.stand_still(now);
        } else {
            self.inner.clock.advance(now);
        }
        self.inner.now = core_now(&self.store, &self.inner.clock, now, self.lease_margin);
        let result = self.run(messages.into_iter().flat_map(Message::each).collect());
        self.broken = result.is_err();
        result
    }

    fn look(&mut self) {
        if self.full.space.wait(self.monotonic) != Some(Duration::ZERO) {
            return;
        }
        let under_way = self.under_way();
        if self.full.space.look(self.monotonic, under_way) && self.full.space.room().takes_new_work() {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
        self.inner.gate = self.full.space.room();
    }

    fn hear_verdict(&mut self) {
        let unsound = self.inner.verdict.against();
        if self.full.unsound.is_some() && unsound.is_none() {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
        self.full.unsound = unsound;
    }

    fn hear_suspicion(&mut self) {
        let suspected = std::mem::replace(&mut self.inner.suspected, self.inner.sessions.suspects_itself());
        if suspected && !self.inner.suspected {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
    }

    fn run(&mut self, messages: Vec<Message>) -> Result<(), Fatal> {
        let mut messages = self.full.sort(messages);
        self.inner.metrics.took(messages.len());
        if !self.full.stuck {
            match self.attempt(&messages, true) {
                Err(Fatal(error @ store::Error::NoRoom { .. })) => self.no_room(&error),
                Ok(_wrote) => return Ok(()),
                Err(fatal) => return Err(fatal),
            }
            messages = self.full.sort(messages);
        }
        self.one_by_one(messages)
    }

    /// One transaction. `whole` does what time asks, too. Answers whether anything was to be written; after an error the
    /// messages can be tried again.
    ///
    /// No write is expected to be refused. Where one is, all is done again, with each write apart: it is answered with its error,
    /// and the others are done.
    pub(super) fn attempt(&mut self, messages: &[Message], whole: bool) -> Result<bool, Fatal> {
        match self.transact(messages, whole, S::begin_together) {
            Err(Fatal(store::Error::Spoiled { .. })) => self.transact(messages, whole, S::begin),
            done => done,
        }
    }

    fn transact(&mut self, messages: &[Message], whole: bool, begin: Begin<S>) -> Result<bool, Fatal> {
        let mut batch = Batch::touching(if whole { std::mem::take(&mut self.unseen) } else { BTreeSet::new() });
        if let Err(error) = self.decide_and_commit(&mut batch, messages, whole, begin) {
            self.take_back(batch);
            return Err(error);
        }
        self.inner.measure(&batch);
        self.inner.publish(&mut batch);
        batch.say_all(&self.inner.targets);
        self.inner.hand_out(&batch);
        Ok(batch.wrote)
    }

    fn decide_and_commit(
        &mut self,
        batch: &mut Batch,
        messages: &[Message],
        whole: bool,
        begin: Begin<S>,
    ) -> Result<(), Fatal> {
        let Self { store, inner, .. } = self;
        let mut tx = begin(store).map_err(Fatal)?;
        for message in messages {
            inner.take(&mut tx, batch, &message.body)?;
        }
        inner.forget_sent(batch);
        if whole {
            inner.wake(&mut tx, batch)?;
        }
        inner.assign(&mut tx, batch)?;
        if bugs::on(Bug::ReplyBeforeCommit) {
            batch.say_all(&inner.targets);
        }
        if bugs::on(Bug::SendBeforeCommit) {
            inner.hand_out(batch);
        }
        inner.finish(tx, batch, whole)
    }

    /// How long the next step can wait for messages. `None` for ever.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let disk = self.full.patience(self.monotonic);
        if self.full.stuck {
            return disk;
        }
        if !self.unseen.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = self.inner.targets.next_wakeup().map(|next| {
            let until = Duration::from(next.since(self.inner.clock.now()));
            until.min(self.inner.clock.write_in())
        });
        next.into_iter().chain(disk).min()
    }

    /// Writes how long this run has served. To be called before the driver is dropped in order.
    pub fn close(&mut self, now: Moment) -> Result<(), Fatal> {
        self.inner.clock.advance(now);
        let (run, served) = (self.inner.clock.run(), self.inner.clock.served());
        let written = self.store.begin().and_then(|mut tx| {
            tx.serve(run, served)?;
            tx.commit()
        });
        match written {
            // Leases live a little longer for it.
            Err(error @ store::Error::NoRoom { .. }) => {
                tracing::warn!(%error, "how long this run has served is not written");
                Ok(())
            }
            written => written.map_err(Fatal),
        }
    }
}

pub(super) fn core_now(store: &impl Store, clock: &ServingClock, now: Moment, lease_margin: Millis) -> Now {
    Now { wall: now.wall, serving: clock.now(), run: clock.run(), epoch: store.identity().epoch, lease_margin }
}

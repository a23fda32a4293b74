//! The loop: a batch of events is decided, made durable, and followed.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use holdfast_agent_core::leave::Asked;
use holdfast_agent_core::work::{Boot, Phase};
use holdfast_agent_core::{Input, decide};
use holdfast_common::id::AttemptId;
use holdfast_common::time::Millis;

use super::batch::Batch;
use super::{Clock, Driver, Event, HandEvent, Hands, Inbox, Told};
use crate::session::Hurry;

/// Events that one commit of the journal covers at most.
const BATCH: usize = 256;

/// How often the folders of older attempts are looked at.
const PRUNE_EVERY: Millis = Millis::from_secs(60 * 60);

impl<H: Hands, C: Clock> Driver<H, C> {
    /// Runs until told to stop.
    pub fn run(mut self, inbox: &Inbox) {
        loop {
            self.pulse.rests();
            let first = match inbox.next(Some(self.patience())) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.pulse.works();
            self.metrics.waits(inbox.waiting());
            let batch = first.into_iter().chain(inbox.rest()).take(BATCH).collect::<Vec<_>>();
            let stop = batch.iter().any(|event| matches!(event, Event::Stop));
            self.step(batch);
            if stop {
                return;
            }
        }
    }

    /// How long nothing is to be done unless something happens. While there is work it is looked at in short turns: leases are
    /// counted on a clock that goes on in suspend, which the wait does not. Without work, without contact and without anybody who
    /// tries it still turns: a loop that rests for long is taken for dead.
    pub(super) fn patience(&self) -> Duration {
        const WITH_WORK: Duration = Duration::from_millis(250);
        const AT_REST: Duration = Duration::from_millis(500);
        let now = self.clock.boot();
        let heartbeat = self.session.as_ref().map(|live| live.next_heartbeat.0.saturating_sub(now.0));
        let heartbeat = heartbeat.map_or(AT_REST, Duration::from_millis);
        let busy = self.works.values().any(|work| work.phase != Phase::Over) || self.asked != Asked::No;
        heartbeat.min(if busy { WITH_WORK } else { AT_REST })
    }

    /// Decides a batch of events, makes it durable, then says and does what follows. A plain function: a simulator calls it
    /// without a thread.
    pub fn step(&mut self, events: Vec<Event>) {
        self.look();
        // What is owed since an earlier batch becomes durable with this one, before any of it is said or done.
        let mut batch = std::mem::take(&mut self.owed);
        for event in events {
            self.event(event, &mut batch);
        }
        self.tick(&mut batch);
        self.settle(batch);
        self.prune_if_due();
        self.leave_if_asked();
        let outbox = self.unsaid.values().sum();
        self.metrics.stands(self.session.is_some(), outbox, self.works.values());
    }

    fn look(&mut self) {
        self.verdict = self.room.look(self.works.len());
        for work in self.works.values_mut() {
            work.has_room = self.verdict.can_begin;
        }
    }

    fn event(&mut self, event: Event, batch: &mut Batch) {
        match event {
            Event::Hello(reply) => drop(reply.send(self.hello(batch))),
            Event::Up(welcome, outgoing) => self.up(welcome, outgoing, batch),
            Event::Down(reply) => {
                self.session_is(None, batch);
                let hurry = if self.works.is_empty() { Hurry::Idle } else { Hurry::HoldsWork };
                let _nobody_waits = reply.send(hurry);
            }
            Event::Message(session, message) if self.is_live(session) => {
                self.metrics.heard();
                self.message(session, message, batch);
            }
            Event::Leave => self.asked = self.asked.again(self.clock.boot()),
            Event::Message(..) | Event::Stop => {}
            Event::Hand(event) => self.hand(event, batch),
        }
    }

    fn hand(&mut self, event: HandEvent, batch: &mut Batch) {
        let (folder, input) = match event {
            HandEvent::Examined(attempt, step, refused) => (attempt, Input::Examined { step, refused }),
            HandEvent::Reread(attempt, step, found) => (attempt, Input::Reread { step, found }),
            HandEvent::Started(attempt, step) => (attempt, Input::Started { step }),
            HandEvent::Ended(attempt, step, Told { end, exit, observed, detail }) => {
                // A step that ended had begun: the start is told first, also when it was never seen.
                self.decide(self.claimed_by(attempt), Input::Started { step: step.clone() }, batch);
                (attempt, Input::Ended { step, end, exit, observed, detail })
            }
            HandEvent::StopActed(attempt, detail) => (attempt, Input::StopActed { detail }),
            HandEvent::StopHeldUp(attempt, why) => (attempt, Input::StopHeldUp { why }),
            HandEvent::Tombstoned(attempt, step) => (attempt, Input::Tombstoned { step }),
            HandEvent::FoundNotStarted(attempt) => (attempt, Input::FoundNotStarted),
            HandEvent::FoundRunning(attempt) => (attempt, Input::FoundRunning),
            HandEvent::Inquired(id, finding) => {
                self.looking = self.looking.saturating_sub(1);
                return batch.findings.push((id, finding));
            }
        };
        self.decide(self.claimed_by(folder), input, batch);
    }

    fn tick(&mut self, batch: &mut Batch) {
        for attempt in self.works.keys().copied().collect::<Vec<_>>() {
            self.decide(attempt, Input::Tick, batch);
        }
    }

    pub(super) fn decide(&mut self, attempt: AttemptId, input: Input, batch: &mut Batch) {
        let now = self.clock.boot();
        if let Some(work) = self.works.get_mut(&attempt) {
            let claim = work.assignment.claim;
            batch.take(claim, decide(work, now, input));
        }
    }

    fn prune_if_due(&mut self) {
        let now = self.clock.boot();
        if now < self.next_prune {
            return;
        }
        self.next_prune = Boot(now.0.saturating_add(PRUNE_EVERY.0));
        let works = self.works.values().flat_map(|work| [work.assignment.claim.attempt, work.assignment.folder()]);
        let needed = works.chain(self.unsaid.keys().copied()).collect();
        self.hands.prune(needed);
    }
}

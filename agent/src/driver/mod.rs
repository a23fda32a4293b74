//! The agent's one deciding thread.
//!
//! ```text
//!   session ──┐                     ┌─▶ journal   one commit for all that a batch decided
//!             ├─▶ Event ─▶ decide ──┤
//!   hands ────┘     (core)          └─▶ then, in order: reports and questions out, processes started and stopped
//! ```
//!
//! What a batch decided is durable before any of it is said or done. Heartbeats are sent from here, so that they stop when
//! this thread does: an agent whose work loop is dead is not healthy.

mod after;
mod batch;
mod event;
mod goes_on;
mod hands;
mod hello;
mod inbox;
mod lease;
mod leaving;
mod message;
mod offer;
mod say;
mod session;
mod settle;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_agent_core::Work;
use holdfast_agent_core::leave::Asked;
use holdfast_agent_core::work::Boot;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, TargetName};
use holdfast_common::report::ReportSequence;
use holdfast_common::time::Wall;
use holdfast_net::ops::Pulse;

use crate::bugs::{self, Bug};
use crate::config::Config;
use crate::journal::{Error, Journal, Position};
use crate::machine;
use crate::metrics::Metrics;
use crate::policy::Host;
use crate::room::{HostRoom, Verdict};
use crate::session::{Drained, Ending};
use crate::standing::Standing;
use batch::Batch;
use session::Live;

pub use event::{Event, Finding, HandEvent, Told};
pub use hands::Hands;
pub use inbox::{Inbox, Sender, Stopped, channel};

/// The two clocks.
pub trait Clock {
    /// For people.
    fn wall(&self) -> Wall;
    /// For leases.
    fn boot(&self) -> Boot;
}

/// The agent's decisions and their consequences.
pub struct Driver<H, C> {
    journal: Journal,
    hands: H,
    clock: C,
    host: Host,
    config: Config,
    works: BTreeMap<AttemptId, Work>,
    fences: BTreeMap<TargetName, Fence>,
    /// Unanswered reports by attempt.
    unsaid: BTreeMap<AttemptId, usize>,
    /// The attempt of each report that was said and not answered.
    said: BTreeMap<ReportSequence, AttemptId>,
    /// Of the last Welcome.
    token: String,
    /// The last one that the journal has: no other is presented.
    kept_token: String,
    machine: String,
    /// Of this process alone: drawn at its start, kept nowhere.
    instance: String,
    position: Option<Position>,
    session: Option<Live>,
    /// Looks at resources and raises of fences that are under way.
    looking: usize,
    room: Arc<HostRoom>,
    verdict: Verdict,
    /// What was decided and is not durable, for lack of room. Nothing of it was said or done.
    owed: Batch,
    metrics: Arc<Metrics>,
    pulse: Pulse,
    /// Whether a stop was asked for.
    asked: Asked,
    /// Who is told that the last word is said.
    exit: Ending,
    drained: Option<Drained>,
    standing: Standing,
    next_prune: Boot,
}

impl<H: Hands, C: Clock> Driver<H, C> {
    /// Takes up what the journal holds: nothing is assumed, every step that may have begun is looked at.
    pub fn new(journal: Journal, hands: H, clock: C, config: Config) -> Result<Self, Error> {
        let (_, token, position) = journal.standing()?;
        let machine = machine::fingerprint(&config.machine);
        let mut driver = Self {
            hands,
            clock,
            host: Host::of(&config),
            config,
            works: BTreeMap::new(),
            fences: journal.fences()?.into_iter().collect(),
            unsaid: BTreeMap::new(),
            said: BTreeMap::new(),
            kept_token: token.clone(),
            token,
            machine,
            instance: uuid::Uuid::new_v4().to_string(),
            position,
            session: None,
            looking: 0,
            room: Arc::new(HostRoom::endless()),
            verdict: Verdict { takes_offers: true, can_begin: true },
            owed: Batch::default(),
            metrics: Arc::default(),
            pulse: Pulse::new(),
            asked: Asked::No,
            exit: Ending::default(),
            drained: None,
            standing: Standing::default(),
            next_prune: Boot(0),
            journal,
        };
        for (claim, _) in driver.journal.unanswered()? {
            *driver.unsaid.entry(claim.attempt).or_default() += 1;
        }
        driver.take_up()?;
        Ok(driver)
    }

    /// On a host that can fill up.
    #[must_use]
    pub fn on(mut self, room: Arc<HostRoom>) -> Self {
        self.room = room;
        self
    }

    /// Measures into these instead of its own.
    #[must_use]
    pub fn measured(mut self, metrics: Arc<Metrics>, pulse: Pulse) -> Self {
        (self.metrics, self.pulse) = (metrics, pulse);
        self
    }

    /// Tells how it stands, and that it goes.
    #[must_use]
    pub fn telling(mut self, standing: Standing, exit: Ending) -> Self {
        (self.standing, self.exit) = (standing, exit);
        self
    }

    fn take_up(&mut self) -> Result<(), Error> {
        if bugs::on(Bug::JournalForgotten) {
            return Ok(());
        }
        for remembered in self.journal.attempts()? {
            let work = remembered.work();
            if let (true, Some(step)) = (work.may_run(), work.step()) {
                self.hands.survey(&work.assignment, step);
            }
            self.works.insert(work.assignment.claim.attempt, work);
        }
        Ok(())
    }
}

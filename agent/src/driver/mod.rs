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

mod batch;
mod goes_on;
mod hello;
mod inbox;
mod leaving;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use holdfast_agent_core::decide::Refused;
use holdfast_agent_core::leave::Asked;
use holdfast_agent_core::offer::{self, Verdict as Judged};
use holdfast_agent_core::work::{Assignment, Boot, LeaseCount, Phase};
use holdfast_agent_core::{Input, Work, decide};
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, EvidenceId, Revision, SessionId, StepName, TargetName};
use holdfast_common::outcome::{Exit, Reading, StepEnd};
use holdfast_common::report::{DeclineReason, Declined, PermitDenial, ReportSequence, Reread};
use holdfast_common::spec::StepSpec;
use holdfast_common::time::{Millis, Wall};
use holdfast_net::ops::Pulse;
use holdfast_proto::v1::{ConnectRequest, Hello};
use tokio::sync::{mpsc, oneshot};

use crate::bugs::{self, Bug};
use crate::config::Config;
use crate::crash::{self, CrashPoint};
use crate::journal::{Error, Journal, Position};
use crate::machine;
use crate::metrics::Metrics;
use crate::policy::Host;
use crate::room::{HostRoom, Verdict};
use crate::session::{Drained, Ending, FromCoordinator, Hurry, Inquiry, Welcome};
use crate::standing::Standing;
use batch::Batch;

pub use inbox::{Inbox, Sender, Stopped, channel};

/// What the driver's thread is told.
#[derive(Debug)]
pub enum Event {
    /// The session wants to introduce itself.
    Hello(oneshot::Sender<Hello>),
    /// A session began.
    Up(Welcome, mpsc::Sender<ConnectRequest>),
    /// The session is over. How soon another one is needed is answered.
    Down(oneshot::Sender<Hurry>),
    /// The coordinator said something in a session.
    Message(SessionId, FromCoordinator),
    /// The hands did or saw something.
    Hand(HandEvent),
    /// Somebody asks the agent to stop, once more.
    Leave,
    /// Write what is left and end the thread. Work goes on under its shims.
    Stop,
}

/// What the hands did or saw. An attempt here is the one whose folder holds the records.
#[derive(Debug)]
pub enum HandEvent {
    /// A step's archive was looked at: why it is refused, where it is.
    Examined(AttemptId, StepName, Option<Refused>),
    /// A carried step's resource was read again, or could not be.
    Reread(AttemptId, StepName, Reread),
    /// A step's start record stands and its body runs.
    Started(AttemptId, StepName),
    /// A step is over, as told by its exit and its resource.
    Ended(AttemptId, StepName, Told),
    /// A stop signal was sent, or nothing was there to signal.
    StopActed(AttemptId, String),
    /// What was asked for could not be done yet: why, for people.
    StopHeldUp(AttemptId, String),
    /// A tombstone stands: the step never began and never can.
    Tombstoned(AttemptId, StepName),
    /// After a restart: the step had not begun.
    FoundNotStarted(AttemptId),
    /// After a restart, or in answer to a tombstone: the step's shim lives.
    FoundRunning(AttemptId),
    /// An inquiry was done.
    Inquired(EvidenceId, Finding),
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// As far as anybody knows.
    pub end: StepEnd,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// Read back.
    pub observed: Option<Revision>,
    /// For people.
    pub detail: String,
}

/// What came of an inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The resource was read.
    Read(Reading),
    /// The fence was raised, and the resource read after it.
    Raised(Reading),
    /// It could not be done.
    Failed(String),
}

/// Who touches processes and resources. Every call returns at once; what comes of it arrives as a [`HandEvent`].
pub trait Hands {
    /// Looks at the archive that a step would put in place. Changes nothing.
    fn examine(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Reads the resource of a carried step again. Changes nothing.
    fn reread(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Launches a step under a shim. Its body must not begin after `not_after`, the end of the lease's count.
    fn launch(&mut self, assignment: &Assignment, step: &StepSpec, not_after: Option<Boot>);
    /// Stops a step's process group: SIGTERM, grace, SIGKILL.
    fn stop(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Creates a step's start record as "never started". If the step had begun after all, says what is known of it.
    fn tombstone(&mut self, assignment: &Assignment, step: &StepSpec);
    /// After a restart: finds out from locks and records what is known of a step.
    fn survey(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Looks at a resource or raises its fence, outside every lease.
    fn inquire(&mut self, inquiry: Inquiry);
    /// Removes what is kept of older attempts and not needed any more. Hands that keep nothing have nothing to do.
    fn prune(&mut self, _needed: BTreeSet<AttemptId>) {}
}

/// The two clocks.
pub trait Clock {
    /// For people.
    fn wall(&self) -> Wall;
    /// For leases.
    fn boot(&self) -> Boot;
}

/// The live session.
struct Live {
    id: SessionId,
    outgoing: mpsc::Sender<ConnectRequest>,
    heartbeat: Millis,
    max_text: usize,
    next_heartbeat: Boot,
    number: u64,
    /// When each unanswered heartbeat was sent: leases count from then.
    sent: BTreeMap<u64, Boot>,
    /// Attempts whose lease was given or renewed in this session: its Hello said nothing of their loss.
    leased: BTreeSet<AttemptId>,
}

/// Looks that are under way at most: each is a thread, and mostly a process.
const LOOKS: usize = 64;

/// Unanswered heartbeats that are remembered. An answer to an older one renews nothing.
const UNANSWERED: usize = 1024;

/// Events that one commit of the journal covers at most.
const BATCH: usize = 256;

/// How often the folders of older attempts are looked at.
const PRUNE_EVERY: Millis = Millis::from_secs(60 * 60);

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
            let mut work = Work::taken(remembered.assignment, LeaseCount::NotLive, None);
            work.at = remembered.at;
            work.phase = remembered.phase;
            work.stop = remembered.stop;
            if let (true, Some(step)) = (work.may_run(), work.step()) {
                self.hands.survey(&work.assignment, step);
            }
            self.works.insert(work.assignment.claim.attempt, work);
        }
        Ok(())
    }

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
    fn patience(&self) -> Duration {
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

    fn is_live(&self, session: SessionId) -> bool {
        self.session.as_ref().is_some_and(|live| live.id == session)
    }

    /// A coordinator that is behind what was seen has travelled in time: this agent says nothing to it.
    fn up(&mut self, welcome: Welcome, outgoing: mpsc::Sender<ConnectRequest>, batch: &mut Batch) {
        let position = Position { store: welcome.store, epoch: welcome.epoch, commit: welcome.commit };
        if let Some(seen) = self.position.filter(|seen| is_behind(position, *seen)) {
            tracing::error!(?seen, ?position, "the coordinator is behind what this agent has seen: not talking to it");
            return;
        }
        if self.exit.going.is_cancelled() {
            return;
        }
        let now = self.clock.boot();
        self.token = welcome.token;
        self.position = Some(position);
        batch.welcomed = true;
        self.metrics.session_began();
        // Who is drained hears of it in each session.
        self.drained = None;
        self.session = Some(Live {
            id: welcome.session,
            outgoing,
            heartbeat: welcome.heartbeat,
            max_text: welcome.max_text_bytes,
            next_heartbeat: now,
            number: 0,
            sent: BTreeMap::new(),
            leased: BTreeSet::new(),
        });
        batch.replay = true;
        self.session_is(Some(welcome.session), batch);
    }

    fn session_is(&mut self, session: Option<SessionId>, batch: &mut Batch) {
        if session.is_none() {
            self.session = None;
        }
        for attempt in self.works.keys().copied().collect::<Vec<_>>() {
            self.decide(attempt, Input::Session(session), batch);
        }
    }

    fn message(&mut self, session: SessionId, message: FromCoordinator, batch: &mut Batch) {
        match message {
            FromCoordinator::Renewed { number, leases } => self.renewed(number, leases, batch),
            FromCoordinator::Offer { assignment, ttl } => self.offered(session, *assignment, ttl, batch),
            FromCoordinator::Permit { claim, step, denial } => self.permit(session, claim, step, denial, batch),
            FromCoordinator::Disposition(sequence, disposition) => {
                tracing::debug!(sequence = sequence.0, ?disposition, "report answered");
                crash::point(CrashPoint::DispositionHeard);
                self.journal.answered(sequence, disposition);
                batch.answered.push(sequence);
            }
            FromCoordinator::Cancel { claim, reason } if self.holds(claim) => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::info!(%deployment, %attempt, %fence, reason, "asked to stop");
                crash::point(CrashPoint::CancelHeard);
                self.decide(claim.attempt, Input::StopAsked, batch);
            }
            FromCoordinator::Cancel { claim, .. } => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::info!(%deployment, %attempt, %fence, "asked to stop what is not held");
            }
            FromCoordinator::Inquiry(inquiry) => batch.inquiries.push(*inquiry),
            FromCoordinator::Drained(drained) => self.drained = drained,
            // Answered by the session itself.
            FromCoordinator::Bye { .. } | FromCoordinator::Ping(_) => {}
        }
    }

    fn holds(&self, claim: Claim) -> bool {
        self.works.get(&claim.attempt).is_some_and(|work| work.assignment.claim == claim)
    }

    /// Leases count from when the heartbeat was sent, less a margin: the coordinator counts from its receipt, plus one.
    fn renewed(&mut self, number: u64, leases: Vec<(Claim, Option<Millis>)>, batch: &mut Batch) {
        let Some(live) = &mut self.session else { return };
        let sent = live.sent.remove(&number);
        live.sent.retain(|earlier, _| *earlier > number);
        let mut lost_with_process = false;
        for (claim, ttl) in leases.into_iter().filter(|(claim, _)| self.holds(*claim)).collect::<Vec<_>>() {
            let input = match (ttl, sent) {
                (Some(ttl), Some(sent)) => {
                    self.is_leased(claim.attempt);
                    Input::Renewed { until: until(sent, ttl) }
                }
                // An answer to no heartbeat of this session renews nothing.
                (Some(_), None) => continue,
                (None, _) => {
                    let lost_here = sent.is_some() && self.was_leased_here(claim.attempt);
                    lost_with_process |= lost_here && self.may_be_changing(claim);
                    Input::Superseded
                }
            };
            self.decide(claim.attempt, input, batch);
        }
        if lost_with_process {
            self.leave();
        }
    }

    fn is_leased(&mut self, attempt: AttemptId) {
        if let Some(live) = &mut self.session {
            live.leased.insert(attempt);
        }
    }

    fn was_leased_here(&self, attempt: AttemptId) -> bool {
        self.session.as_ref().is_some_and(|live| live.leased.contains(&attempt))
    }

    fn may_be_changing(&self, claim: Claim) -> bool {
        self.works.get(&claim.attempt).is_some_and(|work| work.may_run() && work.mutates())
    }

    /// The lease lapsed in a session that outlived it, as when this host stood still: that the process still runs is said by a
    /// Hello alone, and somebody may wait for it. What is unsaid is in the outbox.
    fn leave(&mut self) {
        if let Some(live) = self.session.take() {
            tracing::info!(session = %live.id, "an attempt lost its lease while its process may run: a new session tells of it");
        }
    }

    fn offered(&mut self, session: SessionId, assignment: Assignment, ttl: Millis, batch: &mut Batch) {
        if let Some(goes_on) = assignment.goes_on.clone() {
            return self.go_on(session, assignment, &goes_on, ttl, batch);
        }
        let claim = assignment.claim;
        let seen = self.fences.get(&assignment.target).copied();
        let on_target = self.works.values().filter(|work| work.assignment.target == assignment.target);
        let verdict = offer::judge(claim, on_target, seen);
        if let (Judged::Take | Judged::Decline(_), Err(refusal)) = (&verdict, self.host.offer(&assignment)) {
            let declined = Declined { reason: DeclineReason::HostPolicy, detail: refusal.to_string() };
            return self.decline(claim, declined, batch);
        }
        match verdict {
            Judged::TakenAlready => batch.accept(claim),
            Judged::Take if !self.room.takes_offers(self.verdict) => {
                self.decline(claim, DeclineReason::NoRoom.into(), batch)
            }
            Judged::Take if self.asked != Asked::No => self.decline(claim, DeclineReason::Draining.into(), batch),
            Judged::Decline(reason) => self.decline(claim, reason.into(), batch),
            Judged::Take => {
                let (Claim { deployment, attempt, fence }, target) = (claim, &assignment.target);
                tracing::info!(%target, %deployment, %attempt, %fence, "took an offer");
                self.fences.insert(assignment.target.clone(), claim.fence);
                batch.fences.insert(assignment.target.clone(), claim.fence);
                let lease = LeaseCount::Until(until(self.clock.boot(), ttl));
                self.is_leased(claim.attempt);
                self.works.insert(claim.attempt, Work::taken(assignment, lease, Some(session)));
                batch.dirty.insert(claim.attempt);
                batch.accept(claim);
                self.decide(claim.attempt, Input::Tick, batch);
            }
        }
    }

    fn decline(&self, claim: Claim, declined: Declined, batch: &mut Batch) {
        let Declined { reason, detail } = &declined;
        tracing::warn!(deployment = %claim.deployment, ?reason, detail, "declined an offer");
        self.metrics.declined(*reason);
        batch.declined.push((claim, declined));
    }

    fn permit(
        &mut self,
        session: SessionId,
        claim: Claim,
        step: StepName,
        denial: Option<PermitDenial>,
        batch: &mut Batch,
    ) {
        if !self.holds(claim) {
            let Claim { deployment, attempt, fence } = claim;
            tracing::warn!(%deployment, %attempt, %fence, "a permit for what is not held");
            return;
        }
        let input = match denial {
            None => {
                crash::point(CrashPoint::PermitHeard);
                Input::Granted { step, session }
            }
            Some(denial) => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::warn!(%deployment, %attempt, %fence, %step, ?denial, "permit denied");
                Input::Denied { step, denial }
            }
        };
        self.decide(claim.attempt, input, batch);
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

    fn decide(&mut self, attempt: AttemptId, input: Input, batch: &mut Batch) {
        let now = self.clock.boot();
        if let Some(work) = self.works.get_mut(&attempt) {
            let claim = work.assignment.claim;
            batch.take(claim, decide(work, now, input));
        }
    }
}

/// The agent's own count ends a tenth early, and never less than a fifth of a second.
fn until(from: Boot, ttl: Millis) -> Boot {
    let margin = (ttl.0 / 10).max(200);
    Boot(from.0.saturating_add(ttl.0.saturating_sub(margin)))
}

fn is_behind(position: Position, seen: Position) -> bool {
    position.store != seen.store || (position.epoch, position.commit) < (seen.epoch, seen.commit)
}

/// Whether nothing is left to do or say about an attempt.
fn is_settled(work: &Work, unsaid: usize) -> bool {
    work.phase == Phase::Over && unsaid == 0
}

//! Targets, agents, a network that loses, doubles and reorders, and a coordinator that restarts. Every step is checked
//! against the invariants and the oracle.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::*;
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::recovery::{DecisionKind, Runner};
use holdfast_common::report::{DeclineReason, Disposition, PermitDenial, Report};
use holdfast_common::spec::{PlanDigest, RetryClass, TargetSpec};
use holdfast_common::time::{Millis, Serving, Wall};
use holdfast_coordinator_core::input::*;
use holdfast_coordinator_core::invariants::{self, Step};
use holdfast_coordinator_core::rollback::{Retained, candidates};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;
use serde::Serialize;

use crate::agent::{Agent, Phase, Work};
use crate::coverage;
use crate::ledger::{Ledger, Truth};
use crate::specs::*;

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Letter {
    Answer { agent: usize, incarnation: u64, target: usize, claim: Claim, declined: Option<DeclineReason> },
    Heartbeat { agent: usize, incarnation: u64, target: usize, claim: Claim },
    Ask { agent: usize, incarnation: u64, target: usize, claim: Claim, step: StepName },
    Report { agent: usize, incarnation: u64, sequence: u64 },
    Journal { agent: usize, incarnation: u64, target: usize, claim: Claim, runner: Runner },
    Found { agent: usize, target: usize, inquiry: EvidenceId, found: Found },
    Offer { agent: usize, incarnation: u64, target: usize, claim: Claim },
    Permit { agent: usize, incarnation: u64, claim: Claim, step: StepName },
    Over { agent: usize, incarnation: u64, claim: Claim },
    Cancel { agent: usize, target: usize, claim: Claim },
    Disposition { agent: usize, incarnation: u64, sequence: u64 },
    Inquire { agent: usize, target: usize, inquiry: EvidenceId, resource: ResourceName, of: Operation },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Operation {
    pub deployment: DeploymentId,
    pub step: StepName,
    pub fence: Option<Fence>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Found {
    pub identity: String,
    pub state: OperationState,
    pub revision: Option<Revision>,
    pub raised: Option<Fence>,
    pub failed: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Target {
    #[serde(serialize_with = "bare::state")]
    pub state: TargetState,
    #[serde(skip)]
    pub history: Vec<Recorded>,
    #[serde(serialize_with = "bare::ended")]
    pub ended: BTreeMap<DeploymentId, Deployment>,
    #[serde(skip)]
    pub begun: BTreeMap<u64, u64>,
    answered: Vec<(u64, Claim, Report)>,
}

/// When a lease is over, by what the design says of it: its TTL after it was heard, or what it was given for an absence; and the margin.
fn lapses(lease: &Lease) -> u64 {
    let silent = lease.heard.0 + lease.ttl.0;
    let away = lease.away.as_ref().filter(|away| !away.is_back);
    silent.max(away.map_or(0, |away| away.until.0)) + MARGIN
}

/// States without what never changes in a search: half of their text. A field that is added does not compile here until
/// somebody has said whether it does.
mod bare {
    use serde::Serializer;

    use super::*;

    struct Bare<'a>(&'a Deployment);

    impl Serialize for Bare<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let Deployment {
                id,
                number: _,
                request: _,
                kind,
                spec: _,
                plan: _,
                submitted_by: _,
                submitted_at: _,
                state,
                waiting,
                not_before,
                queue_deadline,
                deadline,
                over_deadline,
                policy_at,
                // For people: nothing is decided by it.
                held_because: _,
                reserved_at,
                expected,
                attempts,
                cancel,
                evidence,
                inquiries,
                decisions,
                ended,
            } = self.0;
            let instants = (not_before, queue_deadline, deadline, over_deadline, policy_at);
            let place = (id, kind, state, waiting, instants, reserved_at, expected);
            (place, attempts, cancel, evidence, inquiries, decisions, ended).serialize(to)
        }
    }

    pub fn state<S: Serializer>(state: &TargetState, to: S) -> Result<S::Ok, S::Error> {
        let TargetState {
            spec: _,
            sequence: _,
            fence,
            next_number,
            home,
            identities,
            floors,
            resources,
            current,
            queue,
            hold,
            order,
        } = state;
        let held: Vec<Bare<'_>> = current.iter().map(Bare).collect();
        let queue: Vec<Bare<'_>> = queue.iter().map(Bare).collect();
        let known = (identities, floors, resources);
        (fence, next_number, home, known, held, queue, hold, order).serialize(to)
    }

    pub fn ended<S: Serializer>(ended: &BTreeMap<DeploymentId, Deployment>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ended.values().map(Bare))
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct World {
    pub serving: u64,
    pub run: u64,
    pub targets: Vec<Target>,
    pub agents: Vec<Agent>,
    pub net: BTreeSet<Letter>,
    pub ledger: Ledger,
    pub attempts: u64,
    pub evidence: u64,
    pub deployments: u64,
    pub incarnations: u64,
    /// Walls and event sequences differ between paths to the same state: the small world leaves them out.
    pub small: bool,
    /// Whether what is told is compared with what the targets underwent; not where a test speaks for the agents itself.
    #[serde(skip)]
    pub oracle: bool,
    /// Prints every input and event: for a sequence that is run by its seed.
    #[serde(skip)]
    pub trace: bool,
    #[serde(skip)]
    pub inputs: u64,
    pub jitter: u16,
}

impl World {
    pub fn new(specs: Vec<TargetSpec>, agents: usize, small: bool) -> Self {
        let mut world = Self {
            serving: 1,
            run: 1,
            targets: Vec::new(),
            agents: (0..agents).map(Agent::new).collect(),
            net: BTreeSet::new(),
            ledger: Ledger::default(),
            attempts: 0,
            evidence: 0,
            deployments: 0,
            incarnations: agents as u64,
            small,
            oracle: true,
            trace: false,
            inputs: 0,
            jitter: 500,
        };
        for spec in specs {
            let input = Input::Declare { spec, by: anna() };
            let decision = decide(None, world.now(), &input).expect("declares");
            let written = record(None, world.now(), decision.events).expect("legal").expect("declared");
            world.targets.push(Target {
                state: written.state,
                history: written.recorded,
                ended: BTreeMap::new(),
                begun: BTreeMap::from([(1, 1)]),
                answered: Vec::new(),
            });
        }
        world
    }

    pub fn now(&self) -> Now {
        let wall = Wall(if self.small { 0 } else { i64::try_from(self.serving).unwrap() * 1_000 });
        Now { wall, serving: Serving(self.serving), run: Run(self.run), epoch: Epoch(1), lease_margin: Millis(MARGIN) }
    }

    pub fn wall(&self) -> i64 {
        self.now().wall.0
    }

    pub fn speaker(&self, agent: usize, incarnation: u64) -> Speaker {
        Speaker { agent: agent_name(agent), incarnation: incarnation_id(incarnation) }
    }

    pub fn draw_evidence(&self) -> EvidenceId {
        evidence_id(self.evidence + 1)
    }

    pub fn jitter(&self) -> Jitter {
        Jitter(self.jitter)
    }

    /// Decides, writes, checks. The only way into the core.
    pub fn feed(&mut self, target: usize, input: &Input) -> Result<Answer, Refusal> {
        self.feed_at(target, self.now(), input)
    }

    pub fn feed_at(&mut self, target: usize, now: Now, input: &Input) -> Result<Answer, Refusal> {
        self.inputs += 1;
        if self.trace {
            println!("{} target {target} <- {input:?}", self.serving);
        }
        let decision = match decide(Some(&self.targets[target].state), now, input) {
            Ok(decision) => decision,
            Err(refusal) => {
                self.cover(|| coverage::refusal(&refusal));
                assert!(!matches!(refusal, Refusal::Broken { .. }), "{refusal} on {input:?}");
                return Err(refusal);
            }
        };
        self.cover(|| coverage::answer(&decision.answer));
        self.write(target, now, decision.events);
        if let (Answer::Renewed { heard, .. }, Input::Heard { claim, .. } | Input::OfferAnswered { claim, .. }) =
            (&decision.answer, input)
        {
            self.targets[target].state.hear(claim.attempt, *heard);
        }
        let state = &self.targets[target].state;
        let wake = next_wakeup(state, now);
        self.cover(|| due(state, now).iter().for_each(coverage::effect));
        assert!(
            state.current.as_ref().is_none_or(|d| d.live().is_none()) || wake.is_some(),
            "a lease that never lapses"
        );
        Ok(decision.answer)
    }

    /// Notes what a random sequence has reached; the small worlds count states.
    fn cover(&self, note: impl FnOnce()) {
        if !self.small {
            note();
        }
    }

    fn write(&mut self, target: usize, now: Now, events: Vec<Event>) {
        for event in events {
            if self.trace {
                println!("    -> {event:?}");
            }
            let before = self.targets[target].state.clone();
            let written = record(Some(before.clone()), now, vec![event]).expect("a decision's events are legal");
            let Written { state: after, mut recorded, ended } = written.expect("declared");
            let recorded = recorded.remove(0);
            let step = Step { before: Some(&before), recorded: &recorded, after: &after };
            invariants::check(&step).unwrap_or_else(|violation| panic!("{violation}\n{recorded:#?}"));
            self.cover(|| coverage::step(&step));
            self.judge(target, &before, &recorded.event, &ended);
            match &recorded.event {
                Event::EvidenceFiled { .. } | Event::InquiryOpened { .. } => self.evidence += 1,
                Event::LeaseGranted { .. } => self.attempts += 1,
                Event::Submitted { .. } => self.deployments += 1,
                _ => {}
            }
            let held = &mut self.targets[target];
            held.ended.extend(ended.into_iter().map(|deployment| (deployment.id, deployment)));
            held.state = after;
            if self.small {
                held.state.sequence = EventSequence(0);
            } else {
                held.history.push(recorded);
            }
        }
    }

    /// What the oracle has to say to an event.
    fn judge(&self, target: usize, before: &TargetState, event: &Event, ended: &[Deployment]) {
        match event {
            Event::LeaseGranted { readmits: Some(earlier), .. } => {
                let same = |claim: &Claim| {
                    before.current.as_ref().is_some_and(|current| {
                        let last = current.attempts.iter().find(|attempt| attempt.id == *earlier);
                        last.is_some_and(|last| current.is_of(last, claim.attempt))
                    })
                };
                let last = before.current.as_ref().and_then(|current| current.attempts.last()).expect("it had one");
                let refused = self.ledger.raised(target).is_some_and(|raised| raised > last.fence);
                assert!(!refused, "I2: readmitted although its resource refuses it");
                let mut others = self.ledger.open.iter().filter(|open| open.target == target && !same(&open.claim));
                assert_eq!(others.next().map(|open| open.claim), None, "O1: readmitted over other work");
            }
            Event::LeaseGranted { deployment, .. } => {
                assert!(
                    !self.ledger.open.iter().any(|open| open.target == target),
                    "O1: {deployment} leased over work"
                );
            }
            Event::DeploymentEnded { deployment, state, ended: end } => {
                assert!(!self.ledger.at_work(*deployment), "O4: {deployment} ended while it was at work");
                let last = ended.first().expect("it was here");
                if end.never_mutated {
                    assert!(!self.ledger.began(*deployment), "I14: {deployment} is said to have changed nothing");
                }
                let queued = last.cancel.as_ref().is_some_and(|cancel| cancel.cause == CancelCause::QueueTimeout);
                assert!(!queued || !self.ledger.began(*deployment), "F5: {deployment} had begun, and left the queue");
                if *state == DeploymentState::Succeeded && self.oracle {
                    for step in last.spec.steps.iter().filter(|step| step.resource.is_some()) {
                        let truth = self.ledger.truth(*deployment, &step.name);
                        assert_eq!(truth, Truth::Whole, "O5: {} is told as applied", step.name);
                    }
                }
                let succeeded = last.attempts.last().is_some_and(|last| last.state == AttemptState::Succeeded);
                assert!(!succeeded || *state == DeploymentState::Succeeded, "F60: a success was told as {state:?}");
            }
            Event::Decided { deployment, record } if self.oracle => {
                let truth = record.step.as_ref().map(|step| self.ledger.truth(*deployment, step));
                let told = match record.target {
                    OperationState::NotApplied => Some(Truth::Nothing),
                    OperationState::Partial => Some(Truth::Part),
                    OperationState::Applied => Some(Truth::Whole),
                    OperationState::Applying | OperationState::Unknown => None,
                };
                let of = before.deployment(*deployment).expect("it was here");
                let step = record.step.as_ref().and_then(|name| of.step(name));
                let now = step.and_then(|step| self.ledger.revision(target, step.resource.as_ref()?));
                let replaced = step.is_some_and(|step| step.revision.is_some() && step.revision != now);
                let in_part = truth == Some(Truth::Whole) && told == Some(Truth::Part) && replaced;
                let agrees = truth.is_none() || told.is_none() || truth == told || in_part;
                assert!(agrees, "O5: decided on {told:?}, it is {truth:?}");
                assert!(record.shown == of.newest_evidence(), "EVIDENCE: decided without the newest evidence");
                let class = step.map(|step| step.retry);
                let again = record.kind == DecisionKind::Retry && class == Some(RetryClass::Unsafe);
                assert!(!again || truth != Some(Truth::Part), "I10: an unsafe step that is there in part is repeated");
                let goes_on = record.kind == DecisionKind::Readmit;
                assert!(goes_on || !self.ledger.at_work(*deployment), "I4: decided while it was at work");
            }
            Event::ReportAccepted { attempt, .. } => {
                let last = before.current.as_ref().and_then(Deployment::live).expect("a live attempt");
                assert_eq!(last.id, *attempt);
                let lapses = last.lease.as_ref().map(lapses).expect("a lease");
                assert!(self.serving < lapses, "I5: accepted after the lease had lapsed");
            }
            Event::AgentAway { away, serving, .. } => {
                assert!(*serving == Serving(self.serving) && away.added.0 <= AWAY, "I19: more than the bound");
                assert_eq!(away.until.0, self.serving + TTL + away.added.0, "I19: an end that nobody was given");
            }
            Event::PermitGranted { attempt, .. } => {
                let last = before.current.as_ref().and_then(Deployment::live).expect("a live attempt");
                assert_eq!(last.id, *attempt);
                let lapses = last.lease.as_ref().map(lapses);
                assert!(lapses > Some(self.serving), "I3: permitted after the lease had lapsed");
                let current = before.current.as_ref().expect("it has an attempt");
                for carry in carries(current, last).into_iter().filter(|_| self.oracle && !last.ever_permitted()) {
                    let resource = current.step(&carry.step).and_then(|step| step.resource.clone()).expect("one");
                    let there = self.ledger.revision(target, &resource);
                    assert_eq!(there, carry.left, "F14: permitted over what somebody else had changed");
                }
            }
            _ => {}
        }
    }

    /// The coordinator stops and starts: what was not written is forgotten, and the rest must be the same.
    pub fn restart(&mut self) {
        self.run += 1;
        for target in &mut self.targets {
            target.begun.insert(self.run, self.serving);
            let mut rebuilt = None;
            for recorded in &target.history {
                rebuilt = Some(apply(rebuilt, recorded).expect("a written history is legal"));
            }
            let mut rebuilt = rebuilt.expect("declared");
            let mut expected = target.state.clone();
            let lease = |state: &mut TargetState| {
                state.current.as_mut().and_then(|d| d.attempts.last_mut()).and_then(|a| a.lease.take())
            };
            let (mut kept, mut was) = (rebuilt.clone(), lease(&mut expected));
            let now = lease(&mut kept);
            assert_eq!(kept, expected, "O8: the state after a restart differs");
            let written = |lease: &Option<Lease>| lease.as_ref().map(|l| (l.ttl, l.written_run, l.away.clone()));
            assert_eq!(written(&now), written(&was));
            let begun = target.begun.clone();
            rebuilt.resume(|run| begun.get(&run.0).map(|serving| Serving(*serving)));
            let heard = rebuilt.current.as_ref().and_then(|d| d.attempts.last()).and_then(|a| a.lease.as_ref());
            let at_least = was.take().map(|l| l.heard);
            assert!(heard.map(|l| l.heard) >= at_least, "a restart lapses a lease that lived");
            target.state = rebuilt;
        }
    }

    /// Asks to go back, as the list shows it now.
    pub fn go_back(&mut self, target: usize, to: &str, attested: bool, retained: Retained) -> Result<Answer, Refusal> {
        let wanted = revision(to);
        let places = candidates(&self.targets[target].state, &self.past(target), &retained, self.now().wall);
        let place = places.iter().find(|place| place.revisions.values().any(|had| had.as_ref() == Some(&wanted)));
        let shown = place.map(|place| place.undoes.iter().map(|undone| undone.number).collect()).unwrap_or_default();
        self.go_back_over(target, to, shown, attested, retained)
    }

    /// Asks to go back over these.
    pub fn go_back_over(
        &mut self,
        target: usize,
        to: &str,
        shown: Vec<u64>,
        attested: bool,
        retained: Retained,
    ) -> Result<Answer, Refusal> {
        let (deployment, request) = (deployment_id(self.deployments + 1), request_id(self.deployments + 1));
        let (to, past) = (revision(to), self.past(target));
        let (reason, attested) = ("not healthy".into(), attested.then(|| "tried on a copy".to_owned()));
        let by = anna();
        self.feed(target, &Input::Rollback { deployment, request, to, shown, by, reason, attested, past, retained })
    }

    /// What ended on a target.
    pub fn past(&self, target: usize) -> Vec<Deployment> {
        self.targets[target].ended.values().cloned().collect()
    }

    /// The target of a deployment.
    pub fn target_of(&self, deployment: DeploymentId) -> Option<usize> {
        self.targets
            .iter()
            .position(|target| target.state.deployment(deployment).is_some() || target.ended.contains_key(&deployment))
    }

    fn memory(&self, target: usize, incarnation: u64, claim: &Claim, report: &Report) -> Memory {
        let target = &self.targets[target];
        let past = target.ended.get(&claim.deployment).and_then(|deployment| {
            let attempt = deployment.attempts.iter().find(|attempt| attempt.id == claim.attempt)?;
            Some(PastAttempt {
                deployment: deployment.id,
                id: attempt.id,
                agent: attempt.agent.clone(),
                incarnation: attempt.incarnation,
                fence: attempt.fence,
                state: attempt.state,
                last_evidence: deployment.newest_evidence(),
            })
        });
        let before = self
            .targets
            .iter()
            .flat_map(|target| &target.answered)
            .find(|(of, _, earlier)| *of == incarnation && earlier.sequence == report.sequence);
        let answered = before.map(
            |(_, of, earlier)| {
                if of == claim && earlier == report { Answered::Same } else { Answered::Different }
            },
        );
        Memory { attempt: past, answered }
    }

    /// Feeds a report as the shell would. Returns its one answer.
    pub fn report(
        &mut self,
        agent: usize,
        incarnation: u64,
        target: usize,
        claim: Claim,
        report: &Report,
    ) -> Disposition {
        let memory = self.memory(target, incarnation, &claim, report);
        let known = memory.answered;
        let input = Input::Reported {
            speaker: self.speaker(agent, incarnation),
            claim,
            report: report.clone(),
            memory,
            evidence: self.draw_evidence(),
            jitter: self.jitter(),
        };
        let Ok(Answer::Answered(disposition)) = self.feed(target, &input) else { panic!("a report has one answer") };
        if known == Some(Answered::Same) {
            assert!(disposition != Disposition::Accepted, "I8: a report was accepted twice");
        }
        if known.is_none() {
            let answered = &mut self.targets[target].answered;
            answered.push((incarnation, claim, report.clone()));
            answered.sort_by_key(|(incarnation, _, report)| (*incarnation, report.sequence));
        }
        disposition
    }

    /// Delivers a letter. With `keep` it will come again.
    pub fn deliver(&mut self, letter: &Letter, keep: bool) {
        if !keep {
            self.net.remove(letter);
        }
        match letter.clone() {
            Letter::Answer { agent, incarnation, target, claim, declined } => {
                let input = Input::OfferAnswered {
                    speaker: self.speaker(agent, incarnation),
                    claim,
                    declined: declined.map(Into::into),
                    jitter: self.jitter(),
                };
                let answer = self.feed(target, &input).expect("an answer is never refused");
                if answer == Answer::Superseded {
                    self.net.insert(Letter::Over { agent, incarnation, claim });
                }
            }
            Letter::Heartbeat { agent, incarnation, target, claim } => {
                let input = Input::Heard { speaker: self.speaker(agent, incarnation), claim, via: Via::Session };
                if self.feed(target, &input).expect("life is never refused") == Answer::Superseded {
                    self.net.insert(Letter::Over { agent, incarnation, claim });
                }
            }
            Letter::Ask { agent, incarnation, target, claim, step } => {
                self.ask(agent, incarnation, target, claim, step)
            }
            Letter::Report { agent, incarnation, sequence } => {
                let entry = self.agents[agent].journal.get(sequence as usize - 1).cloned();
                if let Some(entry) = entry.filter(|_| self.agents[agent].incarnation == incarnation) {
                    let _ = self.report(agent, incarnation, entry.target, entry.claim, &entry.report);
                    if self.small {
                        // A disposition that is lost makes the report come again, as its own duplicate does.
                        self.agents[agent].journal[sequence as usize - 1].answered = true;
                    } else {
                        self.net.insert(Letter::Disposition { agent, incarnation, sequence });
                    }
                }
            }
            Letter::Journal { agent, incarnation, target, claim, runner } => {
                let (speaker, evidence) = (self.speaker(agent, incarnation), self.draw_evidence());
                let input = Input::JournalSpoke { speaker, claim, runner, detail: String::new(), evidence };
                self.feed(target, &input).expect("a journal is never refused");
            }
            Letter::Found { agent, target, inquiry, found } => self.found(agent, target, inquiry, found),
            Letter::Offer { agent, incarnation, target, claim } => self.offered(agent, incarnation, target, claim),
            Letter::Permit { agent, incarnation, claim, step } => {
                if let Some(work) = self.work(agent, incarnation, &claim)
                    && matches!(work.phase, Phase::Idle | Phase::Asked)
                    && !work.cancelled
                    && !work.failed
                    && work.step().is_some_and(|at| at.name == step)
                {
                    work.phase = Phase::Permitted;
                }
            }
            Letter::Over { agent, incarnation, claim } => {
                if let Some(work) = self.work(agent, incarnation, &claim) {
                    work.failed = true;
                }
            }
            Letter::Cancel { agent, claim, .. } => {
                let wall = self.wall();
                if let Some(at) = self.agents[agent].work(&claim) {
                    self.agents[agent].cancel(at, wall);
                }
            }
            Letter::Disposition { agent, incarnation, sequence } => {
                if self.agents[agent].incarnation == incarnation {
                    self.agents[agent].journal[sequence as usize - 1].answered = true;
                }
            }
            Letter::Inquire { agent, target, inquiry, resource, of } => {
                if let Some(fence) = of.fence {
                    self.ledger.raise(target, &resource, fence);
                }
                let strange = self.jitter % 23 == 5;
                let found = Found {
                    failed: self.jitter % 10 == 3,
                    identity: if strange { "id-other".into() } else { format!("id-{resource}") },
                    state: self.ledger.read(of.deployment, &of.step),
                    revision: self.ledger.revision(target, &resource),
                    raised: of.fence,
                };
                self.net.insert(Letter::Found { agent, target, inquiry, found });
            }
        }
    }

    /// A look or a raise reaches another resource: what is there, and what it does there, tells nothing of the right one.
    pub fn deliver_astray(&mut self, letter: &Letter) {
        let Letter::Inquire { agent, target, inquiry, of, .. } = letter else {
            panic!("only a question can go astray")
        };
        self.net.remove(letter);
        let (identity, state, raised) = ("id-other".to_owned(), OperationState::NotApplied, of.fence);
        let found = Found { identity, state, revision: None, raised, failed: false };
        self.net.insert(Letter::Found { agent: *agent, target: *target, inquiry: *inquiry, found });
    }

    /// An agent says that it goes and will be back, and goes: what was on its way to it is gone, and a permit that it did not use
    /// is buried.
    pub fn detach(&mut self, agent: usize, away: u64) {
        let (incarnation, wall) = (self.agents[agent].incarnation, self.wall());
        let holds = |work: &&Work| work.phase != Phase::Over;
        let held: Vec<(usize, Claim)> =
            self.agents[agent].works.iter().filter(holds).map(|work| (work.target, work.claim)).collect();
        for (target, claim) in held {
            let speaker = self.speaker(agent, incarnation);
            let input = Input::Detached { speaker, claim, away: Millis(away), bound: Millis(AWAY) };
            self.feed(target, &input).expect("a goodbye is never refused");
        }
        self.net.retain(|letter| !matches!(letter, Letter::Permit { agent: to, .. } if *to == agent));
        self.agents[agent].restart(wall);
    }

    fn work(&mut self, agent: usize, incarnation: u64, claim: &Claim) -> Option<&mut Work> {
        let agent = &mut self.agents[agent];
        let at = agent.work(claim).filter(|_| agent.incarnation == incarnation)?;
        Some(&mut agent.works[at])
    }

    fn ask(&mut self, agent: usize, incarnation: u64, target: usize, claim: Claim, step: StepName) {
        let Some(plan) = self.agents[agent].work(&claim).map(|at| self.agents[agent].works[at].plan.clone()) else {
            return;
        };
        match self.request(agent, incarnation, target, claim, &step, plan) {
            Ok(()) => {
                self.net.insert(Letter::Permit { agent, incarnation, claim, step });
            }
            Err(_) => {
                self.net.insert(Letter::Over { agent, incarnation, claim });
            }
        }
    }

    pub fn request(
        &mut self,
        agent: usize,
        incarnation: u64,
        target: usize,
        claim: Claim,
        step: &StepName,
        plan: PlanDigest,
    ) -> Result<(), PermitDenial> {
        let input =
            Input::PermitRequested { speaker: self.speaker(agent, incarnation), claim, step: step.clone(), plan };
        match self.feed(target, &input).expect("a permit is never refused") {
            Answer::Permitted => Ok(()),
            Answer::Denied(denial) => Err(denial),
            other => panic!("{other:?} is no answer to a permit request"),
        }
    }

    fn found(&mut self, agent: usize, target: usize, inquiry: EvidenceId, found: Found) {
        let reading = Reading {
            resource_identity: found.identity,
            state: found.state,
            revision: found.revision,
            active: None,
            highest_fence: found.raised,
            retained: Vec::new(),
            detail: String::new(),
        };
        let finding = match (found.failed, found.raised) {
            (true, _) => Finding::Failed { detail: "could not".into() },
            (false, Some(_)) => Finding::Raised { reading },
            (false, None) => Finding::Read(reading),
        };
        let incarnation = self.agents[agent].incarnation;
        let (speaker, evidence) = (self.speaker(agent, incarnation), self.draw_evidence());
        let input = Input::InquiryAnswered { speaker, inquiry, finding, evidence };
        self.feed(target, &input).expect("a finding is never refused");
    }

    /// An agent gets an offer: it takes it, says again that it did, or knows a higher fence.
    fn offered(&mut self, number: usize, incarnation: u64, target: usize, claim: Claim) {
        let attempt = self.targets[target].state.current.as_ref().and_then(|deployment| {
            let attempt = deployment.attempts.iter().find(|attempt| attempt.id == claim.attempt)?;
            let carried = attempt.steps.iter().map(|step| matches!(step.state, StepState::Carried { .. }));
            let (carried, rereads) = (carried.collect::<Vec<_>>(), carries(deployment, attempt));
            Some((deployment.spec.clone(), deployment.plan.clone(), carried, rereads))
        });
        let (goes_on, wall) = (self.goes_on(target, &claim), self.wall());
        let agent = &mut self.agents[number];
        if agent.incarnation != incarnation {
            return;
        }
        let mut declined = None;
        if let (None, Some((earlier, open))) = (agent.work(&claim), goes_on) {
            let taken = agent.readmit(&earlier, claim, &open, wall);
            agent.highest.insert(target, claim.fence);
            declined = (!taken).then_some(DeclineReason::Conflict);
        } else if agent.work(&claim).is_none() {
            let seen = agent.highest.get(&target).copied();
            let busy = agent.works.iter().any(|work| work.target == target && work.phase == Phase::Running);
            if seen >= Some(claim.fence) {
                declined = Some(DeclineReason::FenceRegression);
            } else if busy {
                declined = Some(DeclineReason::Busy);
            } else if let Some((spec, plan, carried, rereads)) = attempt {
                agent.highest.insert(target, claim.fence);
                let (at, phase, cancelled, failed) = (0, Phase::Idle, false, false);
                let begun_by = claim.attempt;
                let work = Work { target, claim, spec, plan, carried, rereads, at, phase, cancelled, failed, begun_by };
                agent.works.push(work);
            } else {
                return;
            }
        }
        self.net.insert(Letter::Answer { agent: number, incarnation, target, claim, declined });
    }

    /// The attempts whose process the claimed one goes on with, and the step that is open.
    fn goes_on(&self, target: usize, claim: &Claim) -> Option<(Vec<AttemptId>, StepName)> {
        let deployment = self.targets[target].state.current.as_ref()?;
        let attempt = deployment.attempts.iter().find(|attempt| attempt.id == claim.attempt)?;
        attempt.readmits?;
        let earlier = deployment.lineage(attempt).skip(1).map(|earlier| earlier.id).collect();
        Some((earlier, attempt.open_permit()?.name.clone()))
    }

    /// Everything that is due and not on its way is sent.
    pub fn send_due(&mut self, target: usize, assign: bool) {
        let now = self.now();
        for effect in due(&self.targets[target].state, now) {
            match effect {
                Effect::Assign { .. } if assign => self.assign(target, &[]),
                Effect::Assign { .. } => {}
                Effect::Recover { .. } => self.recover(target),
                Effect::Offer { agent, incarnation, claim } => {
                    let agent = self.agent(&agent);
                    if self.agents[agent].incarnation_id() == incarnation {
                        let incarnation = self.agents[agent].incarnation;
                        self.net.insert(Letter::Offer { agent, incarnation, target, claim });
                    }
                }
                Effect::Cancel { agent, claim } => {
                    self.net.insert(Letter::Cancel { agent: self.agent(&agent), target, claim });
                }
                Effect::Inquire { agent, inquiry, resource, deployment, step, kind } => {
                    let fence = match kind {
                        InquiryKind::Inspect => None,
                        InquiryKind::FenceOff { fence } => Some(fence),
                    };
                    let of = Operation { deployment, step, fence };
                    self.net.insert(Letter::Inquire { agent: self.agent(&agent), target, inquiry, resource, of });
                }
            }
        }
    }

    /// The policy makes its next move.
    pub fn recover(&mut self, target: usize) {
        let (inquiry, evidence) = (self.draw_inquiry(), self.draw_evidence());
        let (attempt, reachable) = (attempt_id(self.attempts + 1), self.reachable());
        let input = Input::Recover { inquiry, evidence, attempt, reachable };
        self.feed(target, &input).expect("a policy is never refused");
    }

    pub fn agent(&self, name: &AgentName) -> usize {
        (0..self.agents.len()).find(|number| &agent_name(*number) == name).expect("an agent of this world")
    }

    pub fn assign(&mut self, target: usize, unfit: &[usize]) {
        let candidates = self.agents.iter().map(|agent| Candidate {
            agent: agent_name(agent.number),
            incarnation: agent.up.then(|| agent.incarnation_id()),
            unfit: unfit.contains(&agent.number).then(|| "draining".to_owned()),
        });
        let input = Input::Assign { candidates: candidates.collect(), attempt: attempt_id(self.attempts + 1) };
        let _ = self.feed(target, &input);
    }
}

//! Whatever agents, operators, time and crashes do: the store's walls never refuse what the core decided, the log
//! verifies, and it leads to the state that the driver had.

use std::collections::BTreeMap;

use holdfast_common::id::{EvidenceId, IncarnationId, Revision};
use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::recovery::{Attestation, AttestedRunner, AttestedTarget, Runner};
use holdfast_common::report::{DeclineReason, Declined, Report, ReportSequence};
use holdfast_coordinator_core::input::{Finding, Via};
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::TargetState;
use rand::Rng as _;

use super::*;

const INPUTS: usize = 120;

struct Walk {
    rig: Rig,
    random: StdRng,
    claims: Vec<Claim>,
    deployments: Vec<DeploymentId>,
    inquiries: Vec<(EvidenceId, InquiryKind)>,
    sequence: u64,
    /// How often each kind of answer came.
    seen: BTreeMap<&'static str, u32>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut rig = Rig::new();
        rig.declare();
        let random = StdRng::seed_from_u64(seed);
        let (claims, deployments, inquiries) = (Vec::new(), Vec::new(), Vec::new());
        Self { rig, random, claims, deployments, inquiries, sequence: 0, seen: BTreeMap::new() }
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.random.random_range(0..n) == 0
    }

    /// Mostly the latest, now and then an older one.
    fn pick<T: Clone>(&mut self, of: impl Fn(&Self) -> &Vec<T>) -> Option<T> {
        let (count, old) = (of(self).len(), self.one_in(5));
        let index = if old && count > 0 { self.random.random_range(0..count) } else { count.checked_sub(1)? };
        of(self).get(index).cloned()
    }

    fn speaker(&mut self) -> Speaker {
        match self.random.random_range(0..20) {
            0 => Speaker { agent: AgentName::new("db-01").unwrap(), ..speaker() },
            1 => Speaker { incarnation: IncarnationId(Uuid::from_u128(8)), ..speaker() },
            _usual => speaker(),
        }
    }

    fn go(&mut self) {
        match self.random.random_range(0..30) {
            0 => self.rig.crash_and_restart(),
            1..=4 => {
                let span = Duration::from_millis(self.random.random_range(1..9_000));
                self.rig.pass(span);
            }
            5 => drop(self.rig.handle.session_started(speaker()).now_or_never()),
            6 => {
                let there = self.random.random();
                self.rig.agents.there.store(there, Ordering::Relaxed);
                self.rig.handle.agents_changed();
            }
            _input => {
                if let Some(asked) = self.asked() {
                    let result = self.rig.ask(asked);
                    self.note(result);
                }
            }
        }
        self.rig.step();
        self.listen();
    }

    fn listen(&mut self) {
        for effect in self.rig.agents.take() {
            match effect {
                Effect::Offer { claim, .. } => self.claims.push(claim),
                Effect::Inquire { inquiry, kind, .. } => self.inquiries.push((inquiry, kind)),
                Effect::Cancel { .. } | Effect::Assign { .. } | Effect::Recover { .. } => {}
            }
        }
    }

    fn note(&mut self, result: Result<Told, Error>) {
        let kind = match &result {
            Ok(told) => {
                if let (Answer::Submitted { .. }, Some(deployment)) = (&told.answer, told.deployment) {
                    self.deployments.push(deployment);
                }
                told_kind(&told.answer)
            }
            Err(Error::Refused(_)) => "refused",
            Err(error) => panic!("{error}: {:?}", std::error::Error::source(error)),
        };
        *self.seen.entry(kind).or_default() += 1;
    }

    fn asked(&mut self) -> Option<Asked> {
        let by = operator();
        Some(match self.random.random_range(0..25) {
            0 | 1 => submission("shop@prod", self.random.random(), 1),
            2..=4 => {
                let declined = self.one_in(4).then(|| Declined::from(DeclineReason::Busy));
                Asked::OfferAnswered { speaker: self.speaker(), claim: self.pick(|w| &w.claims)?, declined }
            }
            5 | 6 => {
                let via = if self.one_in(4) { Via::Upload } else { Via::Session };
                Asked::Heard { speaker: self.speaker(), claim: self.pick(|w| &w.claims)?, via }
            }
            7..=9 => {
                let claim = self.pick(|walk| &walk.claims)?;
                let state = self.rig.state();
                let plan = state.deployment(claim.deployment)?.plan.clone();
                Asked::PermitRequested { speaker: self.speaker(), claim, step: step_name(), plan }
            }
            10..=15 => {
                let (claim, report) = (self.pick(|walk| &walk.claims)?, self.report());
                Asked::Reported { speaker: self.speaker(), claim, report }
            }
            16 => {
                let runner = if self.random.random() { Runner::Stopped } else { Runner::StillRunning };
                let claim = self.pick(|walk| &walk.claims)?;
                Asked::JournalSpoke { speaker: self.speaker(), claim, runner, detail: String::new() }
            }
            17 => Asked::Cancel { deployment: self.pick(|w| &w.deployments)?, by, reason: "stop".to_owned() },
            18 => Asked::Inspect { deployment: self.pick(|walk| &walk.deployments)?, by },
            19 => {
                let reason = "lost".to_owned();
                Asked::FenceOff { deployment: self.pick(|walk| &walk.deployments)?, by, reason }
            }
            20 => self.finding()?,
            21 => {
                let attestation = Attestation {
                    runner: AttestedRunner::Stopped,
                    target: self.one_of(&[
                        AttestedTarget::Applied,
                        AttestedTarget::NotApplied,
                        AttestedTarget::Partial,
                    ]),
                    observed: holdfast_common::id::Revision::new("v0").ok(),
                    how: "seen".to_owned(),
                    attachment: None,
                };
                Asked::Attest { deployment: self.pick(|walk| &walk.deployments)?, by, attestation }
            }
            22 if self.one_in(2) => {
                let until = Some(Until { shown: Wall(9_000_000), lasts: holdfast_common::time::Millis(9_000) });
                Asked::Hold { by, reason: "freeze".to_owned(), until: until.filter(|_| self.one_in(2)) }
            }
            22 => Asked::Unhold { by },
            _decide => {
                let deployment = self.pick(|walk| &walk.deployments)?;
                let state = self.rig.state();
                let shown = state.deployment(deployment).map(|found| found.newest_evidence()).unwrap_or_default();
                let kind = self.one_of(&[
                    DecisionKind::Retry,
                    DecisionKind::AcceptSucceeded,
                    DecisionKind::AcceptFailed,
                    DecisionKind::AcceptCancelled,
                    DecisionKind::Abandon,
                    DecisionKind::Note,
                ]);
                Asked::Decide { deployment, by, kind, reason: "because".to_owned(), shown, retained: Retained::new() }
            }
        })
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.random_range(0..of.len())]
    }

    fn report(&mut self) -> Report {
        let ended = |end, exit| ReportBody::StepEnded {
            step: step_name(),
            end,
            exit,
            observed: Some(Revision::new("v1").unwrap()),
            detail: String::new(),
        };
        let failed = |class| StepEnd::Failed { maybe_partial: true, class };
        let body = match self.random.random_range(0..14) {
            0..=2 => ReportBody::StepStarted { step: step_name() },
            3..=5 => ended(StepEnd::Applied, Some(Exit::Exited(0))),
            6 => ended(failed(FailureClass::Transient), Some(Exit::Exited(75))),
            7 => ended(StepEnd::Unknown, None),
            8 => ended(StepEnd::NotStarted, None),
            9 => ended(StepEnd::Stopped { maybe_partial: false }, Some(Exit::Signaled { signal: 15, by_us: true })),
            10 => ReportBody::cancel_received(),
            11 => ReportBody::AttemptEnded { end: AttemptEnd::Failed },
            12 => ReportBody::AttemptEnded { end: AttemptEnd::Stopped },
            _succeeded => ReportBody::AttemptEnded { end: AttemptEnd::Succeeded },
        };
        // Now and then an old sequence again, with whatever content.
        if self.sequence == 0 || !self.one_in(8) {
            self.sequence += 1;
        }
        Report { sequence: ReportSequence(self.sequence), said_at: Wall(1), body }
    }

    fn finding(&mut self) -> Option<Asked> {
        let (inquiry, kind) = self.pick(|walk| &walk.inquiries)?;
        let (state, highest_fence) = match kind {
            InquiryKind::Inspect => (self.one_of(&[OperationState::Applied, OperationState::Unknown]), None),
            InquiryKind::FenceOff { fence } => {
                (self.one_of(&[OperationState::Applied, OperationState::NotApplied]), Some(fence))
            }
        };
        let reading = Reading {
            resource_identity: "release-1".to_owned(),
            state,
            revision: None,
            active: None,
            highest_fence,
            retained: Vec::new(),
            detail: String::new(),
        };
        let finding = match kind {
            InquiryKind::Inspect => Finding::Read(reading),
            InquiryKind::FenceOff { .. } => Finding::Raised { reading },
        };
        Some(Asked::InquiryAnswered { speaker: self.speaker(), inquiry, finding })
    }

    fn check(&mut self) {
        assert_eq!(self.rig.agents.reader.verify().unwrap(), []);
        assert_eq!(self.rig.agents.early.lock().unwrap().as_slice(), []);
        let stored = self.rig.agents.reader.state(&target_name("shop@prod")).unwrap().unwrap();
        let live = TargetState::clone(&self.rig.state());
        assert_eq!(silent(stored), silent(live));
    }
}

/// Without the signs of life, which are in memory only.
fn silent(mut state: TargetState) -> TargetState {
    let lease = state.current.as_mut().and_then(|it| it.attempts.last_mut()).and_then(|it| it.lease.as_mut());
    if let Some(lease) = lease {
        lease.heard = Serving(0);
    }
    state
}

fn told_kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Done => "done",
        Answer::Submitted { .. } => "submitted",
        Answer::Renewed { .. } => "renewed",
        Answer::Superseded => "superseded",
        Answer::Permitted => "permitted",
        Answer::Denied(_) => "denied",
        Answer::Answered(Disposition::Accepted) => "accepted",
        Answer::Answered(Disposition::Duplicate) => "duplicate",
        Answer::Answered(Disposition::Filed(_)) => "filed",
        Answer::CancelRecorded => "cancel recorded",
        Answer::CancelledAtOnce => "cancelled at once",
        Answer::CancelTooLate(_) => "cancel too late",
        Answer::InquiryOpened(_) => "inquiry opened",
        Answer::Decided(_) => "decided",
    }
}

#[test]
fn the_walls_never_refuse_what_the_core_decided() {
    let seeds = std::env::var("HOLDFAST_WALKS").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let mut seen: BTreeMap<&'static str, u32> = BTreeMap::new();
    for seed in 0..seeds {
        let mut walk = Walk::new(seed);
        for _input in 0..INPUTS {
            walk.go();
        }
        walk.check();
        for (kind, count) in walk.seen {
            *seen.entry(kind).or_default() += count;
        }
    }
    for kind in [
        "submitted",
        "renewed",
        "superseded",
        "permitted",
        "denied",
        "accepted",
        "filed",
        "cancel recorded",
        "cancelled at once",
        "cancel too late",
        "inquiry opened",
        "decided",
        "refused",
    ] {
        assert!(seen.contains_key(kind), "never {kind}: {seen:?}");
    }
}

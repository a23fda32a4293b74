//! An honest agent: a durable journal of reports, permits used once, tombstones, and no word that it does not know.

use std::collections::BTreeMap;

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, StepName};
use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, Reading, StepEnd};
use holdfast_common::recovery::Runner;
use holdfast_common::report::{Carry, Report, ReportBody, ReportSequence, Reread};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, StepEffect, StepSpec};
use holdfast_common::time::Wall;
use serde::Serialize;

use crate::ledger::{Interval, Ledger, Truth};
use crate::specs::incarnation_id;

#[derive(Clone, Debug, Serialize)]
pub struct Agent {
    pub number: usize,
    pub incarnation: u64,
    pub up: bool,
    /// Reports ends only: the small world has no room for starts.
    pub terse: bool,
    /// Everything it reported, by sequence: never forgotten in this incarnation.
    pub journal: Vec<Entry>,
    pub works: Vec<Work>,
    pub highest: BTreeMap<usize, Fence>,
    /// So many of its next looks fail.
    #[serde(skip)]
    pub blind: u8,
    /// Once it will ask for a permit before it has looked.
    #[serde(skip)]
    pub hasty: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub target: usize,
    pub claim: Claim,
    pub report: Report,
    pub answered: bool,
}

/// One attempt as its agent knows it.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    pub target: usize,
    pub claim: Claim,
    #[serde(skip)]
    pub spec: DeploymentSpec,
    #[serde(skip)]
    pub plan: PlanDigest,
    pub carried: Vec<bool>,
    /// What it is to read again before anything else.
    pub rereads: Vec<Carry>,
    pub at: usize,
    pub phase: Phase,
    pub cancelled: bool,
    pub failed: bool,
    /// The attempt under which the process at hand was begun: another one where it was readmitted since.
    pub begun_by: AttemptId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Phase {
    /// Before the step at `at`.
    Idle,
    /// Waits for a permit.
    Asked,
    /// Holds a permit that it has not used.
    Permitted,
    /// The step's process runs.
    Running,
    /// It will never do anything of this attempt any more.
    Over,
}

/// How a running step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Applied,
    Failed { partial: bool, class: FailureClass },
    Stopped { partial: bool },
    Unknown { truth: Truth, gone: bool },
}

impl Work {
    pub fn step(&self) -> Option<&StepSpec> {
        self.spec.steps.get(self.at)
    }

    pub fn mutates(&self) -> bool {
        self.step().is_some_and(|step| step.effect == StepEffect::Mutates)
    }
}

impl Agent {
    pub fn new(number: usize) -> Self {
        let (journal, works, highest) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (up, terse, blind, hasty) = (true, false, 0, false);
        Self { number, incarnation: number as u64, up, terse, journal, works, highest, blind, hasty }
    }

    pub fn work(&self, claim: &Claim) -> Option<usize> {
        self.works.iter().position(|work| work.claim == *claim)
    }

    fn say(&mut self, at: usize, body: ReportBody, wall: i64) {
        let work = &self.works[at];
        let sequence = ReportSequence(self.journal.len() as u64 + 1);
        let report = Report { sequence, said_at: Wall(wall), body };
        self.journal.push(Entry { target: work.target, claim: work.claim, report, answered: false });
    }

    fn say_end(&mut self, at: usize, end: StepEnd, exit: Option<Exit>, wall: i64) {
        let Some(step) = self.works[at].step().cloned() else { return };
        let observed = if end == StepEnd::Applied { step.revision.clone() } else { None };
        let body = ReportBody::StepEnded { step: step.name, end, exit, observed, detail: String::new() };
        self.say(at, body, wall);
    }

    /// What the journal says of the runner when the agent comes back.
    pub fn word(&self, at: usize) -> Runner {
        match self.works[at].phase {
            Phase::Running => Runner::StillRunning,
            Phase::Over => Runner::Stopped,
            Phase::Idle | Phase::Asked | Phase::Permitted => Runner::Unknown,
        }
    }

    /// Begins the step at hand: a step without effect at once, a mutating one under its permit.
    pub fn begin(&mut self, at: usize, ledger: &mut Ledger, wall: i64) {
        let work = &mut self.works[at];
        let Some(step) = work.step().cloned() else { return };
        if step.effect == StepEffect::Mutates {
            assert_eq!(work.phase, Phase::Permitted);
            let resource = step.resource.clone().unwrap();
            let enforced = resource.as_str() == "site";
            let (target, claim, revision) = (work.target, work.claim, step.revision.clone());
            work.begun_by = claim.attempt;
            let begun = ledger.begin(Interval { target, resource, claim, step: step.name.clone(), enforced, revision });
            work.phase = Phase::Running;
            if !self.terse {
                self.say(at, ReportBody::StepStarted { step: step.name }, wall);
            }
            if !begun {
                self.end(at, End::Failed { partial: false, class: FailureClass::Permanent }, ledger, wall);
            }
        } else {
            work.phase = Phase::Running;
            if !self.terse {
                self.say(at, ReportBody::StepStarted { step: step.name }, wall);
            }
        }
    }

    /// The running step ends.
    pub fn end(&mut self, at: usize, end: End, ledger: &mut Ledger, wall: i64) {
        let work = &self.works[at];
        let Some(step) = work.step().cloned() else { return };
        let mutates = step.effect == StepEffect::Mutates;
        let attempt = work.begun_by;
        let truth = |partial| if partial { Truth::Part } else { Truth::Nothing };
        let (end, exit) = match end {
            End::Applied if !mutates || ledger.end(attempt, &step.name, Truth::Whole) => {
                (StepEnd::Applied, Some(Exit::Exited(0)))
            }
            End::Applied => {
                (StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent }, Some(Exit::Exited(1)))
            }
            End::Failed { partial, class } => {
                ledger.end(attempt, &step.name, truth(partial));
                (StepEnd::Failed { maybe_partial: partial && mutates, class }, Some(Exit::Exited(1)))
            }
            End::Stopped { partial } => {
                ledger.end(attempt, &step.name, truth(partial));
                let exit = Exit::Signaled { signal: 15, by_us: true };
                (StepEnd::Stopped { maybe_partial: partial && mutates }, Some(exit))
            }
            End::Unknown { truth, gone } => {
                if gone {
                    ledger.end(attempt, &step.name, truth);
                }
                (StepEnd::Unknown, Some(Exit::Unknown))
            }
        };
        self.say_end(at, end, exit, wall);
        self.after(at, end, mutates);
    }

    fn after(&mut self, at: usize, end: StepEnd, mutates: bool) {
        let work = &mut self.works[at];
        match end {
            StepEnd::Applied => {
                work.at += 1;
                work.phase = Phase::Idle;
            }
            StepEnd::Unknown if mutates => work.phase = Phase::Over,
            _ => {
                work.failed = true;
                work.phase = Phase::Idle;
            }
        }
    }

    /// Goes on with its own process under a new claim: where that ended meanwhile, its end is said again. `false`: it holds
    /// nothing of it.
    pub fn readmit(&mut self, earlier: &[AttemptId], claim: Claim, open: &StepName, wall: i64) -> bool {
        let Some(at) = self.works.iter().rposition(|work| earlier.contains(&work.claim.attempt)) else { return false };
        let running = self.works[at].phase == Phase::Running;
        let ended = self.journal.iter().rev().find_map(|entry| match &entry.report.body {
            ReportBody::StepEnded { step, end, exit, .. } => {
                (earlier.contains(&entry.claim.attempt) && step == open).then_some((*end, *exit))
            }
            _ => None,
        });
        let work = &mut self.works[at];
        let index = work.spec.steps.iter().position(|step| &step.name == open).expect("a step of it");
        match (running && work.at == index, ended) {
            (true, _) => {
                work.claim = claim;
                work.failed = false;
            }
            (false, Some((end, exit))) => {
                (work.claim, work.at, work.failed, work.phase) = (claim, index, false, Phase::Idle);
                self.say_end(at, end, exit, wall);
                self.after(at, end, true);
            }
            (false, None) => return false,
        }
        true
    }

    /// Whether it is to look at what it carries over before it goes on; a hasty one does not.
    pub fn is_to_read(&self, at: usize) -> bool {
        let work = &self.works[at];
        let ahead = work.spec.steps.iter().zip(&work.carried).skip(work.at);
        let changes = |(step, carried): (&StepSpec, &bool)| step.effect == StepEffect::Mutates && !carried;
        let hastes = self.hasty && ahead.into_iter().any(changes);
        !work.rereads.is_empty() && !hastes
    }

    /// Reads again what it carries over: the next one. Where that is not as it was left, or can't be read, nothing of the
    /// attempt begins.
    pub fn reread(&mut self, at: usize, ledger: &Ledger, wall: i64) {
        let unreadable = self.blind > 0;
        self.blind = self.blind.saturating_sub(1);
        let work = &mut self.works[at];
        let Carry { step, left } = work.rereads.remove(0);
        let resource = work.spec.steps.iter().find(|spec| spec.name == step).and_then(|spec| spec.resource.clone());
        let resource = resource.expect("what is read again has a resource");
        let reading = Reading {
            resource_identity: format!("id-{resource}"),
            state: ledger.read(work.claim.deployment, &step),
            revision: ledger.revision(work.target, &resource),
            active: None,
            highest_fence: None,
            retained: Vec::new(),
            detail: String::new(),
        };
        let as_left = !unreadable && reading.is_as_left(left.as_ref());
        work.failed |= !as_left;
        let found = if unreadable { Reread::Failed { detail: String::new() } } else { Reread::Read { reading } };
        self.say(at, ReportBody::Reread { step, found }, wall);
    }

    /// A permit, or the wish for one, that will not be used: the tombstone comes before the word.
    pub fn bury(&mut self, at: usize, wall: i64) {
        self.say_end(at, StepEnd::NotStarted, None, wall);
        self.works[at].failed = true;
        self.works[at].phase = Phase::Idle;
    }

    /// Says how the attempt ended.
    pub fn finish(&mut self, at: usize, wall: i64) {
        let work = &self.works[at];
        let end = if work.at >= work.spec.steps.len() && !work.failed {
            AttemptEnd::Succeeded
        } else if work.cancelled {
            AttemptEnd::Stopped
        } else {
            AttemptEnd::Failed
        };
        self.say(at, ReportBody::AttemptEnded { end }, wall);
        self.works[at].phase = Phase::Over;
    }

    pub fn cancel(&mut self, at: usize, wall: i64) {
        if !self.works[at].cancelled && self.works[at].phase != Phase::Over {
            self.works[at].cancelled = true;
            self.say(at, ReportBody::cancel_received(), wall);
            self.say(at, ReportBody::CancelActed { detail: String::new() }, wall);
        }
    }

    /// Its process was restarted; its journal and the commands' shims lived on. A permit is good for one session only.
    pub fn restart(&mut self, wall: i64) {
        for at in 0..self.works.len() {
            match self.works[at].phase {
                Phase::Permitted => self.bury(at, wall),
                Phase::Asked => self.works[at].phase = Phase::Idle,
                Phase::Idle | Phase::Running | Phase::Over => {}
            }
        }
    }

    /// Its journal is lost. What ran goes on, and nobody knows it any more.
    pub fn lose_journal(&mut self, incarnation: u64) {
        *self = Self { incarnation, ..Self::new(self.number) };
    }

    pub fn incarnation_id(&self) -> holdfast_common::id::IncarnationId {
        incarnation_id(self.incarnation)
    }
}

//! What the agent knows of one attempt.
//!
//! | phase | means | survives a restart as |
//! | --- | --- | --- |
//! | `Ready` | the step at hand has not begun, no permit was asked | itself |
//! | `Asked` | a permit was asked in some session; the answer may be on record at the coordinator | `Asked` of no session |
//! | `Starting` | "starting" is durable; the start record may exist or not | asked of the supervisor's records |
//! | `Running` | the shim was launched | asked of the supervisor's records |
//! | `Over` | nothing more is done; what is unsaid is in the outbox | itself |

use std::collections::BTreeSet;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, SessionId, StepName, TargetName};
use holdfast_common::report::Carry;
use holdfast_common::spec::{PlanDigest, ResourceSpec, StepEffect, StepSpec};
use holdfast_common::time::Millis;
use serde::{Deserialize, Serialize};

/// An attempt as it was offered. Never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Under what.
    pub claim: Claim,
    /// On what.
    pub target: TargetName,
    /// Counts the deployment's attempts.
    pub number: u32,
    /// What permits are bound to.
    pub plan: PlanDigest,
    /// What to do, in order.
    pub steps: Vec<StepSpec>,
    /// What it is done to.
    pub resources: Vec<ResourceSpec>,
    /// Steps that were applied in an earlier attempt.
    pub carried: BTreeSet<StepName>,
    /// From SIGTERM to SIGKILL.
    pub grace: Millis,
    /// Those of them whose resource is read again before anything else, in the deployment's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<Carry>,
    /// Exit statuses of commands that are worth another try.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub transient_exit_codes: BTreeSet<u8>,
    /// The process that it goes on with, where a decision readmitted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on: Option<GoesOn>,
}

impl Assignment {
    /// The attempt whose folder holds the records of its steps: its own, or that of the first attempt whose process it goes on
    /// with.
    #[must_use]
    pub fn folder(&self) -> AttemptId {
        let first = self.goes_on.as_ref().and_then(|goes_on| goes_on.attempts.last());
        first.copied().unwrap_or(self.claim.attempt)
    }
}

/// A process that an earlier attempt of this journal began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoesOn {
    /// The attempts that it may have been claimed under, the newest first. Never empty.
    pub attempts: Vec<AttemptId>,
    /// The step that is open.
    pub step: StepName,
}

/// Milliseconds of CLOCK_BOOTTIME, which goes on in suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// The agent's own count of a lease. Never journaled: after a restart it is not live until the coordinator renews it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCount {
    /// Live until this instant, margin already taken off.
    Until(Boot),
    /// Not renewed in this life of the agent.
    NotLive,
    /// The coordinator said that the attempt is not current.
    Superseded,
}

/// Where the agent is with an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// The step at hand has not begun.
    Ready,
    /// A permit for the step at hand was asked for.
    Asked {
        /// In which session; an answer of another is not used.
        #[serde(skip)]
        session: Option<SessionId>,
    },
    /// "Starting" is durable for the step at hand.
    Starting,
    /// The step at hand was launched.
    Running,
    /// Nothing more is done.
    Over,
}

/// What is known of a request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// None was heard.
    NotAsked,
    /// Asked and received.
    Asked,
    /// What was asked for was done, and that was reported. It is reported once, and before the end that it led to.
    Acted,
}

/// Whether what the step at hand would put in place was looked at. Never journaled: after a restart it is looked at anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examination {
    /// Not yet.
    Due,
    /// Somebody is looking.
    UnderWay,
    /// It is what was asked for and safe to unpack.
    Passed,
}

/// One attempt, as the agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// What was offered.
    pub assignment: Assignment,
    /// The step at hand: an index into the assignment's steps.
    pub at: usize,
    /// Where the agent is with it.
    pub phase: Phase,
    /// Whether the archive of the step at hand was looked at, where it has one.
    pub examined: Examination,
    /// How many of the carried steps were read again and found as they were left. Never journaled: after a restart they are
    /// read anew, unless a step has begun since.
    pub reread: usize,
    /// Whether one of them is being read.
    pub is_reading: bool,
    /// A request to stop.
    pub stop: Stop,
    /// The agent's own count of the lease.
    pub lease: LeaseCount,
    /// The live session, where there is one.
    pub session: Option<SessionId>,
    /// Whether the host has room for the records of a step that begins now. Never journaled.
    pub has_room: bool,
    /// Until when a step without effect, found running after a restart, may go on without a count of the lease.
    pub grace: Option<Boot>,
}

impl Work {
    /// A freshly taken attempt.
    #[must_use]
    pub fn taken(assignment: Assignment, lease: LeaseCount, session: Option<SessionId>) -> Self {
        let mut work = Self {
            assignment,
            at: 0,
            phase: Phase::Ready,
            examined: Examination::Due,
            reread: 0,
            is_reading: false,
            stop: Stop::NotAsked,
            lease,
            session,
            has_room: true,
            grace: None,
        };
        work.skip_carried();
        work
    }

    /// The step at hand; `None` when all are done.
    #[must_use]
    pub fn step(&self) -> Option<&StepSpec> {
        self.assignment.steps.get(self.at)
    }

    /// Whether a process of this attempt may be alive.
    #[must_use]
    pub fn may_run(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Running => true,
            Phase::Ready | Phase::Asked { .. } | Phase::Over => false,
        }
    }

    /// Whether the agent asks the coordinator to renew its lease.
    #[must_use]
    pub fn wants_lease(&self) -> bool {
        !matches!(self.phase, Phase::Over) && self.lease != LeaseCount::Superseded
    }

    /// The carried step whose resource is to be read again next. None once a step of the attempt has begun: what is there is
    /// then its own work too.
    pub(crate) fn unread(&self) -> Option<&Carry> {
        let carried = |step: &&StepSpec| self.assignment.carried.contains(&step.name);
        let first = self.assignment.steps.iter().take_while(carried).count();
        self.assignment.carries.get(self.reread).filter(|_| self.at == first && self.phase == Phase::Ready)
    }

    pub(crate) fn skip_carried(&mut self) {
        while self.step().is_some_and(|step| self.assignment.carried.contains(&step.name)) {
            self.at += 1;
        }
    }

    pub(crate) fn lease_lives(&self, now: Boot) -> bool {
        match self.lease {
            LeaseCount::Until(until) => now < until,
            LeaseCount::NotLive | LeaseCount::Superseded => false,
        }
    }

    /// Only while nothing was heard of the lease in this life.
    pub(crate) fn has_grace(&self, now: Boot) -> bool {
        self.lease == LeaseCount::NotLive && self.grace.is_some_and(|until| now < until)
    }

    /// Whether the step at hand puts something in place that nobody has looked at.
    pub(crate) fn is_unexamined(&self) -> bool {
        self.step().is_some_and(|step| step.body.is_examined()) && self.examined != Examination::Passed
    }

    /// Whether the step at hand changes something outside.
    #[must_use]
    pub fn mutates(&self) -> bool {
        self.step().is_some_and(|step| step.effect == StepEffect::Mutates)
    }
}

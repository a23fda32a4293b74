//! One attempt and its steps, as their events leave them.

use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, AttemptId, DeploymentId, IncarnationId, Revision, StepName};
use holdfast_common::outcome::{Exit, StepEnd};
use holdfast_common::report::DeclineReason;
use holdfast_common::time::{Millis, Serving, Wall};
use serde::{Deserialize, Serialize};

use super::{EvidenceSequence, Run};

/// One try by one agent under one fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its identity.
    pub id: AttemptId,
    /// Counts the deployment's attempts from 1.
    pub number: u32,
    /// The agent it was offered to.
    pub agent: AgentName,
    /// The journal it is bound to.
    pub incarnation: IncarnationId,
    /// Its fence.
    pub fence: Fence,
    /// Where it stands.
    pub state: AttemptState,
    /// The lease, until it ended or lapsed.
    pub lease: Option<Lease>,
    /// When it was offered.
    pub offered_at: Wall,
    /// The attempt whose running process it goes on with, where a decision readmitted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readmits: Option<AttemptId>,
    /// In the agent's words, where it declined and had more to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub declined: String,
    /// Its steps, in the deployment's order.
    pub steps: Vec<StepRun>,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Leased and offered; the agent has not answered.
    Offered,
    /// The agent has taken it.
    Running,
    /// Accepted: every step was applied.
    Succeeded,
    /// Accepted: a step failed.
    Failed,
    /// Accepted: it was asked to stop and is over.
    Stopped,
    /// The agent did not take it.
    Declined(DeclineReason),
    /// Contact was lost; it was never permitted to change anything.
    Lapsed,
    /// Contact was lost; every permit was closed.
    Interrupted,
    /// Contact was lost or the end is unknown, with a permit open.
    Uncertain,
    /// It was uncertain, and a decision settled it.
    Resolved,
}

impl AttemptState {
    /// Whether it may still act: it is leased and nobody has seen or recorded its end.
    #[must_use]
    pub fn is_live(self) -> bool {
        match self {
            AttemptState::Offered | AttemptState::Running => true,
            AttemptState::Succeeded
            | AttemptState::Failed
            | AttemptState::Stopped
            | AttemptState::Declined(_)
            | AttemptState::Lapsed
            | AttemptState::Interrupted
            | AttemptState::Uncertain
            | AttemptState::Resolved => false,
        }
    }

    /// Whether it has its accepted terminal observation, which is never rewritten.
    #[must_use]
    pub fn is_observed(self) -> bool {
        match self {
            AttemptState::Succeeded | AttemptState::Failed | AttemptState::Stopped | AttemptState::Declined(_) => true,
            AttemptState::Offered
            | AttemptState::Running
            | AttemptState::Lapsed
            | AttemptState::Interrupted
            | AttemptState::Uncertain
            | AttemptState::Resolved => false,
        }
    }

    /// Whether it counts as a try. A declined offer does not.
    #[must_use]
    pub fn is_try(self) -> bool {
        !matches!(self, AttemptState::Declined(_))
    }
}

/// Permission to act as the current owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// How long it lasts without a renewal.
    pub ttl: Millis,
    /// The run that last wrote a renewal.
    pub written_run: Run,
    /// The last sign of the right session under the right fence. Between written renewals it moves in memory only; after
    /// a restart it is the start of the run after `written_run`.
    pub heard: Serving,
    /// The one planned absence of its agent that it may outlast, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
}

/// An agent said that it goes and will be back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// When it said so, for people.
    pub since: Wall,
    /// What it was given beside its TTL: what it asked for, within the coordinator's bound.
    pub added: Millis,
    /// Until when the lease outlasts it, margin apart.
    pub until: Serving,
    /// It was heard again: from then on the lease is like any other.
    pub is_back: bool,
}

impl Away {
    /// When it should be back, for people.
    #[must_use]
    pub fn back_by(&self) -> Wall {
        Wall(self.since.0.saturating_add_unsigned(self.added.0.saturating_mul(1000)))
    }
}

/// One step in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRun {
    /// The step.
    pub name: StepName,
    /// Where it stands.
    pub state: StepState,
    /// When its permit was recorded. A permit is open from then until [`StepState`] closes it.
    pub permitted_at: Option<Wall>,
    /// Its start, said at (agent) and received at (coordinator).
    pub started: Option<Seen>,
    /// Its end, said at and received at.
    pub ended: Option<Seen>,
    /// When it is over its deadline, in serving time.
    pub deadline: Option<Serving>,
    /// Set when it passed its deadline without an observed end.
    pub over_deadline: bool,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// The revision read back.
    pub observed: Option<Revision>,
    /// The agent's sentence about the end.
    pub detail: String,
}

impl Attempt {
    /// The run of that step.
    #[must_use]
    pub fn step(&self, name: &StepName) -> Option<&StepRun> {
        self.steps.iter().find(|step| &step.name == name)
    }

    /// The step whose permit is open: it may have begun, and nobody has said how it ended. A decision closes it.
    #[must_use]
    pub fn open_permit(&self) -> Option<&StepRun> {
        if self.state == AttemptState::Resolved {
            return None;
        }
        self.steps.iter().find(|step| step.permit_is_open())
    }

    /// The carried steps, and what came of reading their resources again.
    pub fn carries(&self) -> impl Iterator<Item = (&StepName, CarryState)> {
        self.steps.iter().filter_map(|step| match step.state {
            StepState::Carried { carry } => Some((&step.name, carry)),
            StepState::Pending | StepState::Permitted | StepState::Started | StepState::Ended(_) => None,
        })
    }

    /// The carried step whose resource was found otherwise than it had left it.
    #[must_use]
    pub fn disturbed(&self) -> Option<&StepName> {
        self.carries().find(|(_, carry)| *carry == CarryState::Differs).map(|(name, _)| name)
    }

    /// Whether any permit was ever recorded for it.
    #[must_use]
    pub fn ever_permitted(&self) -> bool {
        self.steps.iter().any(|step| step.permitted_at.is_some())
    }
}

impl StepRun {
    /// Whether a permit was recorded and nothing has closed it: only `applied`, `failed`, `stopped` and `not_started` do.
    #[must_use]
    pub fn permit_is_open(&self) -> bool {
        self.permitted_at.is_some()
            && match self.state {
                StepState::Permitted | StepState::Started | StepState::Ended(StepEnd::Unknown) => true,
                StepState::Pending
                | StepState::Carried { .. }
                | StepState::Ended(
                    StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::NotStarted,
                ) => false,
            }
    }
}

/// When something was said and when it was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The agent's clock.
    pub said_at: Wall,
    /// The coordinator's clock.
    pub received_at: Wall,
}

/// Where a step of an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun, no permit.
    Pending,
    /// May have begun: the permit is recorded, nothing was heard since.
    Permitted,
    /// Its start was reported.
    Started,
    /// Over, as told.
    Ended(StepEnd),
    /// Applied in an earlier attempt.
    Carried {
        /// What came of reading its resource again at the start of this attempt.
        carry: CarryState,
    },
}

/// What came of reading a carried step's resource again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CarryState {
    /// It is not read again: its adapter can't, or another step has the last word on its resource.
    NotRead,
    /// Its agent has not said yet what it found.
    Due,
    /// It was found as the step had left it.
    AsLeft,
    /// It was found otherwise: somebody else was there.
    Differs,
    /// It could not be read this time.
    Failed,
}

impl CarryState {
    /// Whether a change may follow on it.
    #[must_use]
    pub fn may_follow(self) -> bool {
        match self {
            CarryState::NotRead | CarryState::AsLeft => true,
            CarryState::Due | CarryState::Differs | CarryState::Failed => false,
        }
    }
}

/// What the store remembers of an attempt that is not in the target's current deployment any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    /// Its deployment.
    pub deployment: DeploymentId,
    /// Its identity.
    pub id: AttemptId,
    /// The agent it was leased to.
    pub agent: AgentName,
    /// The journal it was leased to.
    pub incarnation: IncarnationId,
    /// Its fence.
    pub fence: Fence,
    /// How it ended.
    pub state: AttemptState,
    /// Where the deployment's evidence stands.
    pub last_evidence: EvidenceSequence,
}

//! What an agent says about its work, and the one answer that each saying gets.

use serde::{Deserialize, Serialize};

use crate::id::{Revision, StepName};
use crate::outcome::{AttemptEnd, Exit, Reading, StepEnd};
use crate::time::Wall;

/// Counts an incarnation's reports from 1, in the order in which its journal recorded them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportSequence(pub u64);

/// One durable report: it was in the agent's journal before it was first sent, and is sent again until it is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its place in the incarnation's journal.
    pub sequence: ReportSequence,
    /// The agent's own time of the observation.
    pub said_at: Wall,
    /// What was observed.
    pub body: ReportBody,
}

/// What was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ReportBody {
    /// A step's body began.
    StepStarted {
        /// The step.
        step: StepName,
    },
    /// A step is over, or nobody can tell, or it never began.
    StepEnded {
        /// The step.
        step: StepName,
        /// How it ended.
        end: StepEnd,
        /// How its process ended, where there was one.
        exit: Option<Exit>,
        /// The revision read back from the resource afterwards.
        observed: Option<Revision>,
        /// A sentence for people. Data, never interpreted.
        detail: String,
    },
    /// The attempt is over.
    AttemptEnded {
        /// How it ended.
        end: AttemptEnd,
    },
    /// The agent knows that a stop is asked for. It says so when it hears of it, and again where something holds it up.
    CancelReceived {
        /// Why nothing was done about it yet; empty when it has only just been heard. Data, never interpreted.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        held_up: String,
    },
    /// The agent sent the stop signal, or found nothing to signal.
    CancelActed {
        /// What it did.
        detail: String,
    },
    /// The resource of a step that was carried over was read again, before anything else of the attempt.
    Reread {
        /// The step.
        step: StepName,
        /// What came of it.
        found: Reread,
    },
}

impl ReportBody {
    /// A request to stop was heard.
    #[must_use]
    pub fn cancel_received() -> Self {
        ReportBody::CancelReceived { held_up: String::new() }
    }
}

/// What came of reading a resource again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "found")]
pub enum Reread {
    /// It was read.
    Read {
        /// What is there.
        reading: Reading,
    },
    /// It could not be read this time.
    Failed {
        /// Why. Data, never interpreted.
        detail: String,
    },
}

/// A step that an attempt carries over and whose resource it reads again first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Carry {
    /// The step.
    pub step: StepName,
    /// The revision that it left there, where one is known.
    pub left: Option<Revision>,
}

/// The one answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "disposition", content = "reason")]
#[must_use]
pub enum Disposition {
    /// It changed the state of its attempt.
    Accepted,
    /// It was answered before; nothing changed.
    Duplicate,
    /// It is kept as evidence of its own attempt, and changed nothing else.
    Filed(FiledReason),
}

/// Why a report is evidence only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FiledReason {
    /// A newer fence was allocated on the target.
    SupersededFence,
    /// The attempt's lease had lapsed.
    LeaseExpired,
    /// The attempt already had its terminal observation.
    AttemptTerminal,
    /// The step already had its terminal observation, or the step is not in a state that this could follow.
    StepOutOfOrder,
    /// No such attempt on that deployment is known.
    UnknownAttempt,
    /// The attempt is leased to another agent.
    WrongAgent,
    /// The attempt is leased to another journal of the same agent.
    WrongIncarnation,
    /// The fence is not the one of the attempt's lease.
    WrongFence,
    /// The step is not part of the deployment.
    UnknownStep,
    /// A mutating step was reported without a permit on record.
    NotPermitted,
    /// The same sequence number came with another content.
    SequenceConflict,
}

/// Why a permit was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermitDenial {
    /// The claim names no attempt of the caller. The same answer for what exists elsewhere and what does not exist.
    NotYours,
    /// The attempt is no longer the current one of its target.
    NotCurrent,
    /// The lease has lapsed.
    LeaseExpired,
    /// A cancel is recorded.
    CancelRecorded,
    /// A deadline has passed.
    DeadlinePassed,
    /// Another step comes first, or this one is over.
    OutOfOrder,
    /// The step has no effect and needs no permit, or is not in the deployment.
    NoSuchMutation,
    /// The plan that the agent holds is not the plan on record.
    PlanDiffers,
    /// Another permit on this target is open.
    PermitOpen,
    /// The attempt has not found the resource of each step that it carries over as that step had left it.
    CarryUnread,
}

/// Why an agent declined an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclineReason {
    /// It is at work on another attempt of this target.
    Busy,
    /// It holds the same attempt under another fence, or another attempt under the same fence.
    Conflict,
    /// It does not serve this target, resource or adapter.
    UnknownTarget,
    /// The offer's fence is not above the highest it has seen.
    FenceRegression,
    /// Its host's policy forbids it.
    HostPolicy,
    /// It is draining.
    Draining,
    /// Its host's disk has no room for a step's records, or there are no descriptors for it.
    NoRoom,
}

/// An offer that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// Why.
    pub reason: DeclineReason,
    /// In the agent's words, where it has more to say: the rule of its host. Data, never interpreted.
    pub detail: String,
}

impl From<DeclineReason> for Declined {
    fn from(reason: DeclineReason) -> Self {
        Self { reason, detail: String::new() }
    }
}

//! What was observed. A missing observation is never one of these: it is the absence of the value.

use serde::{Deserialize, Serialize};

use crate::id::{OperationId, Revision};

/// How a process was seen to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited by itself with this status.
    Exited(i32),
    /// A signal ended it. Never a success.
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether the agent had sent it.
        by_us: bool,
    },
    /// The kernel killed it for memory.
    OutOfMemory,
    /// It could not be started at all.
    NotSpawned,
    /// It is gone, and nobody saw how.
    Unknown,
}

/// How a step ended, as far as anybody knows. See the outcome table in `docs/architecture.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// The effect is there (for a step without effect: it exited with 0).
    Applied,
    /// It ended by itself and the whole effect is not there.
    Failed {
        /// Whether a part of the effect may be there.
        maybe_partial: bool,
        /// What kind of failure it was.
        class: FailureClass,
    },
    /// It was stopped from outside, it is over, and the whole effect is not there.
    Stopped {
        /// Whether a part of the effect may be there.
        maybe_partial: bool,
    },
    /// Nobody can tell. The permit stays open.
    Unknown,
    /// The permitted step was never started and now never can be: the agent has a tombstone for it.
    NotStarted,
}

/// Why something failed, as the adapter classed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// Listed as worth another try.
    Transient,
    /// Another try would fail the same way: bad credential, invalid specification, refused precondition, any exit
    /// status that is not listed as transient.
    Permanent,
    /// The machinery failed, not the work: agent lost, disk full, spawn failed.
    Infrastructure,
}

/// How an attempt ended, in the agent's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// Every step was applied.
    Succeeded,
    /// A step failed.
    Failed,
    /// It ended because it was asked to stop.
    Stopped,
}

/// What an operation was read to be at its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// The resource has no effect of it.
    NotApplied,
    /// The resource is being changed by it now.
    Applying,
    /// The resource has its whole effect.
    Applied,
    /// The resource has a part of its effect.
    Partial,
    /// The resource could not be read, or does not say.
    Unknown,
}

/// One look at a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The identity that the adapter had stored at the resource. A reading of another resource proves nothing.
    pub resource_identity: String,
    /// What the operation that was asked for is there.
    pub state: OperationState,
    /// The revision the resource has now, where it tells.
    pub revision: Option<Revision>,
    /// The operation that is changing the resource now, where it tells.
    pub active: Option<OperationId>,
    /// The highest fence the resource has seen, where it keeps one.
    pub highest_fence: Option<crate::fence::Fence>,
    /// Earlier revisions that the resource retains and can take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<Revision>,
    /// A sentence for people. Data, never interpreted.
    pub detail: String,
}

impl Reading {
    /// What became of a step that was to leave that revision. An operation that was applied and is not what the resource has
    /// now was undone or replaced by somebody else: its effect is not whole.
    #[must_use]
    pub fn state_of(&self, wanted: Option<&Revision>) -> OperationState {
        match (self.state, wanted) {
            (OperationState::Applied, Some(wanted)) if self.revision.as_ref() != Some(wanted) => {
                OperationState::Partial
            }
            (state, _) => state,
        }
    }

    /// Whether the resource is as an operation left it that had been seen as applied. Where the revision that it left is
    /// known, it must be there, and nothing must say that it is not the operation's; else the operation must be told as applied.
    #[must_use]
    pub fn is_as_left(&self, left: Option<&Revision>) -> bool {
        match (self.state, left) {
            (OperationState::Applied, None) => true,
            (OperationState::Applied | OperationState::Unknown, Some(left)) => self.revision.as_ref() == Some(left),
            (OperationState::NotApplied | OperationState::Applying | OperationState::Partial, _)
            | (OperationState::Unknown, None) => false,
        }
    }
}

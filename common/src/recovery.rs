//! The words of reconciliation: what is known of the runner and of the target, and what was decided.

use serde::{Deserialize, Serialize};

use crate::id::Revision;

/// What is known of whoever might still be changing the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// It ended, and its effect can't outlive it.
    Stopped,
    /// The resource refuses it.
    FencedOff,
    /// A person attests that its host is gone.
    HostGone,
    /// It says that it is still at work.
    StillRunning,
    /// Nobody knows.
    Unknown,
}

impl Runner {
    /// Whether nothing of the old attempt can change the target any more.
    #[must_use]
    pub fn is_out(self) -> bool {
        match self {
            Runner::Stopped | Runner::FencedOff | Runner::HostGone => true,
            Runner::StillRunning | Runner::Unknown => false,
        }
    }
}

/// What an operator may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// A new attempt where knowledge ends.
    Retry,
    /// The change is complete.
    AcceptSucceeded,
    /// The change is not complete and stays as it is.
    AcceptFailed,
    /// The same, after a cancel.
    AcceptCancelled,
    /// Undo by a deployment of its own.
    Rollback,
    /// The same process goes on under a new fence.
    Readmit,
    /// Give up without knowing, on a person's attestation.
    Abandon,
    /// A remark. Changes nothing.
    Note,
}

/// What a person says they know of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestedRunner {
    /// It ended.
    Stopped,
    /// Its host is gone for good.
    HostGone,
}

/// What a person says they know of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestedTarget {
    /// The open step's whole effect is there.
    Applied,
    /// None of it is.
    NotApplied,
    /// A part of it is.
    Partial,
}

/// A person's reading, for ever shown as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// The runner.
    pub runner: AttestedRunner,
    /// The target.
    pub target: AttestedTarget,
    /// The revision they saw, where they saw one.
    pub observed: Option<Revision>,
    /// How they know.
    pub how: String,
    /// SHA-256 of an attached file, lower-case hex, where there is one.
    pub attachment: Option<String>,
}

/// Who decides when contact was lost, the strictest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// A person.
    Manual,
    /// The coordinator, where the proof is complete.
    #[default]
    WhenProven,
    /// The coordinator, on the same incarnation's word.
    TrustReport,
}

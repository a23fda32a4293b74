//! What is known of one target. Only `apply` changes it, event by event.

use std::collections::{BTreeMap, VecDeque};

use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, DeploymentId, DeploymentLabel, OperatorName, ResourceName, Revision};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

use crate::fate;

mod attempt;
mod deployment;
mod evidence;
mod hold;

pub use attempt::{Attempt, AttemptState, Away, CarryState, Lease, PastAttempt, Seen, StepRun, StepState};
pub use deployment::{
    Base, CancelCause, Cancellation, Deployment, DeploymentState, Ended, HeldUp, Kind, RollbackOf, Trust, Undone,
    Waiting,
};
pub use evidence::{DecisionRecord, Evidence, EvidenceBody, EvidenceSequence, Inquiry, InquiryKind};
pub use hold::{HighestOrder, HoldEnd, HoldUntil, OperatorHold};

/// Counts a target's events from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSequence(pub u64);

/// Counts coordinator starts on one store from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Run(pub u64);

/// One target: what is reserved as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetState {
    /// As declared last.
    pub spec: TargetSpec,
    /// The last event that is part of this state.
    pub sequence: EventSequence,
    /// The highest fence ever allocated on it. None before the first lease.
    pub fence: Option<Fence>,
    /// The number of the next deployment: `shop@prod#12`.
    pub next_number: u64,
    /// The agent whose host holds the target's host-bound resources, once a lease has bound it.
    pub home: Option<AgentName>,
    /// The identity that each resource told when it was first read. A reading of another one proves nothing.
    pub identities: BTreeMap<ResourceName, String>,
    /// The highest fence that each resource has shown or confirmed. It never goes down: a resource that shows a lower one was put
    /// back to an earlier state.
    #[serde(default)]
    pub floors: BTreeMap<ResourceName, Fence>,
    /// What is known of each resource.
    pub resources: BTreeMap<ResourceName, ResourceKnowledge>,
    /// The deployment that holds the reservation.
    pub current: Option<Deployment>,
    /// Those that wait for it, in order.
    pub queue: VecDeque<Deployment>,
    /// An operator's hold: nothing new begins while it is on.
    #[serde(default)]
    pub hold: Option<OperatorHold>,
    /// The highest order key that ever held the target. A lower one never will.
    #[serde(default)]
    pub order: Option<HighestOrder>,
}

/// What is known of one resource's revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "known")]
pub enum ResourceKnowledge {
    /// Nothing was ever recorded of it.
    #[default]
    Never,
    /// Recorded from an observation or an attestation.
    Revision {
        /// The revision; `None` where the adapter tells none.
        revision: Option<Revision>,
        /// When the coordinator recorded it.
        at: Wall,
        /// From whose word; `None` where that was not kept when it was recorded.
        #[serde(default)]
        source: Option<RevisionSource>,
    },
    /// A deployment ended and left it changed in part, or nobody knows how. The queue waits for a reading.
    Unknown {
        /// The deployment that left it so.
        since: DeploymentId,
    },
}

/// From whose word a revision is on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum RevisionSource {
    /// A deployment left it so.
    Deployment {
        /// Its number.
        number: u64,
        /// The agent of its last attempt.
        agent: Option<AgentName>,
        /// Whether a decision says so, rather than an accepted report.
        decided: bool,
    },
    /// An agent read it.
    Read {
        /// Who.
        agent: AgentName,
    },
    /// A person attests it.
    Attested {
        /// Who.
        by: OperatorName,
        /// How they know.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        how: String,
    },
}

impl TargetState {
    /// The current or a waiting deployment.
    #[must_use]
    pub fn deployment(&self, id: DeploymentId) -> Option<&Deployment> {
        self.current.iter().chain(&self.queue).find(|deployment| deployment.id == id)
    }

    /// What is known of a resource now. A holder whose attempt is over may have left a change of which nobody knows the end:
    /// then what was recorded before it is not what is there.
    #[must_use]
    pub fn known(&self, resource: &ResourceName) -> ResourceKnowledge {
        let over = self.current.as_ref().filter(|holder| holder.live().is_none());
        match over.filter(|holder| fate::leaves_unknown(holder, resource)) {
            Some(holder) => ResourceKnowledge::Unknown { since: holder.id },
            None => self.resources.get(resource).cloned().unwrap_or_default(),
        }
    }

    pub(crate) fn deployment_mut(&mut self, id: DeploymentId) -> Option<&mut Deployment> {
        self.current.iter_mut().chain(&mut self.queue).find(|deployment| deployment.id == id)
    }

    /// What people call a deployment of this target.
    #[must_use]
    pub fn label(&self, deployment: &Deployment) -> DeploymentLabel {
        DeploymentLabel { target: self.spec.name.clone(), number: deployment.number }
    }
}

//! The oracle: what the targets *really* underwent, whatever anybody was told.

use std::collections::BTreeMap;

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, DeploymentId, ResourceName, Revision, StepName};
use holdfast_common::outcome::OperationState;
use serde::Serialize;

type Operation = (DeploymentId, StepName);

/// A mutation at work.
#[derive(Clone, Debug, Serialize)]
pub struct Interval {
    pub target: usize,
    pub resource: ResourceName,
    pub claim: Claim,
    pub step: StepName,
    pub enforced: bool,
    pub revision: Option<Revision>,
}

/// Where an operation stands at its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Truth {
    Nothing,
    Part,
    Whole,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Ledger {
    pub open: Vec<Interval>,
    #[serde(with = "pairs")]
    truth: BTreeMap<Operation, Truth>,
    #[serde(with = "pairs")]
    fences: BTreeMap<(usize, ResourceName), Fence>,
    #[serde(with = "pairs")]
    revisions: BTreeMap<(usize, ResourceName), Option<Revision>>,
}

/// JSON has no maps with such keys.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Serialize, Serializer};

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map.iter())
    }
}

impl Ledger {
    /// A mutation begins. `false`: its resource refuses the fence, in the same step.
    pub fn begin(&mut self, interval: Interval) -> bool {
        if self.refuses(&interval) {
            return false;
        }
        if interval.enforced {
            self.fences.insert((interval.target, interval.resource.clone()), interval.claim.fence);
        }
        let other = self.open.iter().find(|other| other.target == interval.target);
        assert!(other.is_none(), "O1: two mutations overlap: {other:?} and {interval:?}");
        self.truth.entry((interval.claim.deployment, interval.step.clone())).or_insert(Truth::Nothing);
        self.open.push(interval);
        true
    }

    fn refuses(&self, interval: &Interval) -> bool {
        let seen = self.fences.get(&(interval.target, interval.resource.clone()));
        interval.enforced && seen.is_some_and(|seen| interval.claim.fence < *seen)
    }

    /// A mutation is over. `false`: it had been refused before.
    pub fn end(&mut self, attempt: AttemptId, step: &StepName, truth: Truth) -> bool {
        let at = self.open.iter().position(|open| open.claim.attempt == attempt && &open.step == step);
        let Some(interval) = at.map(|at| self.open.remove(at)) else { return false };
        let now = self.truth.entry((interval.claim.deployment, interval.step)).or_insert(Truth::Nothing);
        *now = (*now).max(truth);
        if truth == Truth::Whole {
            self.revisions.insert((interval.target, interval.resource), interval.revision);
        }
        true
    }

    /// The resource refuses everything below the fence from now on, also what is at work.
    pub fn raise(&mut self, target: usize, resource: &ResourceName, fence: Fence) {
        let seen = self.fences.entry((target, resource.clone())).or_insert(fence);
        *seen = (*seen).max(fence);
        let seen = *seen;
        let refused = |open: &Interval| {
            open.enforced && open.target == target && &open.resource == resource && open.claim.fence < seen
        };
        self.open.retain(|open| !refused(open));
    }

    /// The highest fence that any resource of the target has seen.
    pub fn raised(&self, target: usize) -> Option<Fence> {
        self.fences.iter().filter(|((of, _), _)| *of == target).map(|(_, fence)| *fence).max()
    }

    /// Somebody changes a resource by hand.
    pub fn edit(&mut self, target: usize, resource: &ResourceName, to: Revision) {
        self.revisions.insert((target, resource.clone()), Some(to));
    }

    /// Somebody makes sure that nothing of an attempt is at work.
    pub fn kill(&mut self, attempt: AttemptId) {
        self.open.retain(|open| open.claim.attempt != attempt);
    }

    pub fn at_work(&self, deployment: DeploymentId) -> bool {
        self.open.iter().any(|open| open.claim.deployment == deployment)
    }

    pub fn began(&self, deployment: DeploymentId) -> bool {
        self.truth.keys().any(|(of, _)| *of == deployment)
    }

    pub fn truth(&self, deployment: DeploymentId, step: &StepName) -> Truth {
        self.truth.get(&(deployment, step.clone())).copied().unwrap_or(Truth::Nothing)
    }

    pub fn revision(&self, target: usize, resource: &ResourceName) -> Option<Revision> {
        self.revisions.get(&(target, resource.clone())).cloned().flatten()
    }

    /// What an honest look says.
    pub fn read(&self, deployment: DeploymentId, step: &StepName) -> OperationState {
        if self.open.iter().any(|open| open.claim.deployment == deployment && &open.step == step) {
            return OperationState::Applying;
        }
        match self.truth(deployment, step) {
            Truth::Nothing => OperationState::NotApplied,
            Truth::Part => OperationState::Partial,
            Truth::Whole => OperationState::Applied,
        }
    }
}

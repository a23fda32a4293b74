//! Whose turn it is, and how a deployment ends. A reservation is taken and given up here and nowhere else.
//!
//! ```text
//! target free, head of the queue       what follows
//! a resource it uses is unread         it waits for a reading; nobody overtakes it
//! a pinned revision is not the one     it ends as failed, nothing changed; the next one's turn
//! else                                 it is reserved, with the revisions of this moment
//! ```

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::{DeploymentId, ResourceName, Revision};
use holdfast_common::spec::DeploymentSpec;

use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::fate;
use crate::state::{Deployment, DeploymentState, Ended, ResourceKnowledge, TargetState, Waiting};

/// The longest queue of a target.
pub const QUEUE_MAX: usize = 100;

/// How a deployment ends.
pub(crate) struct End {
    pub(crate) state: DeploymentState,
    pub(crate) because: String,
    pub(crate) by_decision: bool,
    /// Every change was applied, and a check after them failed.
    pub(crate) not_healthy: bool,
}

impl End {
    pub(crate) fn observed(state: DeploymentState, because: impl Into<String>) -> Self {
        Self { state, because: because.into(), by_decision: false, not_healthy: false }
    }

    pub(crate) fn decided(state: DeploymentState, because: String) -> Self {
        Self { state, because, by_decision: true, not_healthy: false }
    }

    pub(crate) fn not_healthy(because: String) -> Self {
        Self { state: DeploymentState::Failed, because, by_decision: false, not_healthy: true }
    }
}

/// Ends a deployment: what it left at its resources, its end, and the next one's turn.
pub(crate) fn end(draft: &mut Draft<'_>, id: DeploymentId, end: End) {
    let Some(deployment) = draft.state().deployment(id) else { return };
    let succeeded = end.state == DeploymentState::Succeeded;
    let too_late = succeeded && deployment.cancel.is_some();
    let passed = deployment.deadline.is_some_and(|deadline| deadline <= draft.now.serving);
    let state = if too_late && bugs::on(Bug::CancelWins) { DeploymentState::Cancelled } else { end.state };
    let ended = Ended {
        at: draft.now.wall,
        by_decision: end.by_decision,
        because: end.because,
        never_mutated: fate::never_mutated(deployment),
        cancel_too_late: too_late,
        after_deadline: succeeded && (passed || deployment.any_over_deadline()),
        not_healthy: end.not_healthy,
    };
    for (resource, knowledge) in fate::aftermath(draft.state(), deployment, draft.now.wall) {
        draft.record(Event::RevisionRecorded { resource, knowledge });
    }
    draft.record(Event::DeploymentEnded { deployment: id, state, ended });
    next_turn(draft);
}

/// Reserves the free target for the head of its queue, as far as that may begin.
pub(crate) fn next_turn(draft: &mut Draft<'_>) {
    while draft.current().is_none() {
        let Some(head) = draft.state().queue.front() else { return };
        let id = head.id;
        if let Some(resource) = unread(draft.state(), &head.spec) {
            let why = Waiting::UnreadRevision { resource };
            if head.waiting.as_ref() != Some(&why) {
                draft.record(Event::Waits { deployment: id, why, not_before: None });
            }
            return;
        }
        if let Some(pin) = mismatch(draft.state(), &head.spec) {
            let because = explain::pin_differs(&pin);
            let never_mutated = fate::never_mutated(head);
            let at = draft.now.wall;
            let (cancel_too_late, after_deadline, not_healthy) = (false, false, false);
            let by_decision = false;
            let ended = Ended { at, by_decision, because, never_mutated, cancel_too_late, after_deadline, not_healthy };
            draft.record(Event::DeploymentEnded { deployment: id, state: DeploymentState::Failed, ended });
            continue;
        }
        let expected = expected(draft.state(), &head.spec);
        draft.record(Event::Reserved { deployment: id, expected });
        return;
    }
}

/// Who holds the target or stands first in its queue.
pub(crate) fn holder(state: &TargetState) -> Option<&Deployment> {
    state.current.as_ref().or(state.queue.front())
}

/// A pin that is not the recorded revision.
pub(crate) struct Pin {
    pub(crate) resource: ResourceName,
    pub(crate) expected: Revision,
    pub(crate) recorded: Revision,
}

/// The first pin that the recorded revision contradicts. Only the first pin on a resource speaks of what it had before
/// the deployment, and only a revision that is on record can contradict: everything else is checked at the resource.
pub(crate) fn mismatch(state: &TargetState, spec: &DeploymentSpec) -> Option<Pin> {
    let mut seen = BTreeSet::new();
    spec.steps.iter().find_map(|step| {
        let resource = step.resource.as_ref().filter(|resource| seen.insert((*resource).clone()))?;
        let expected = step.expected_revision.as_ref()?;
        let recorded = known(state, resource)?;
        (&recorded != expected).then(|| Pin { resource: resource.clone(), expected: expected.clone(), recorded })
    })
}

fn known(state: &TargetState, resource: &ResourceName) -> Option<Revision> {
    match state.resources.get(resource)? {
        ResourceKnowledge::Revision { revision, .. } => revision.clone(),
        ResourceKnowledge::Never | ResourceKnowledge::Unknown { .. } => None,
    }
}

/// A resource of those steps whose revision nobody knows.
pub(crate) fn unread(state: &TargetState, spec: &DeploymentSpec) -> Option<ResourceName> {
    let mut used = spec.steps.iter().filter_map(|step| step.resource.as_ref());
    used.find(|name| matches!(state.resources.get(*name), Some(ResourceKnowledge::Unknown { .. }))).cloned()
}

fn expected(state: &TargetState, spec: &DeploymentSpec) -> BTreeMap<ResourceName, Option<Revision>> {
    let mut expected = BTreeMap::new();
    for step in &spec.steps {
        if let Some(resource) = &step.resource {
            let pinned = step.expected_revision.clone().or_else(|| known(state, resource));
            expected.entry(resource.clone()).or_insert(pinned);
        }
    }
    expected
}

//! Whose turn it is, and how a deployment ends. A reservation is taken and given up here and nowhere else.
//!
//! ```text
//! target free, head of the queue       what follows
//! an operator's hold is on             it waits for the hold; nobody overtakes it
//! a resource it uses is unread         it waits for a reading; nobody overtakes it
//! a pinned revision is not the one     it ends as failed, nothing changed; the next one's turn
//! else                                 it is reserved, with the revisions of this moment
//!
//! one that waits                       what ends it before its turn
//! its order key is lower than one      it ends as failed, nothing changed; the same key again may follow
//!   that has held the target
//! the queue is `latest` and a newer    it ends as cancelled, superseded; a rollback stays
//!   one is recorded
//!
//! a rollback                           what follows
//! was asked for on a target at rest    it is before all that wait, and takes its turn
//! was decided on                       it takes the reservation of what it undoes: nothing is in between
//! rests on something unresolved, and   held, unless a person decides its end
//!   would end without a change of its own
//! ```
//!
//! An order key counts once it has held the target: one that only waited, and was cancelled, bars nobody. A deployment
//! without a key claims no order and is never barred by one.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::{DeploymentId, ResourceName, Revision};
use holdfast_common::spec::{DeploymentSpec, OrderKey, QueueKind};

use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::explain;
use crate::fate;
use crate::policy;
use crate::rollback;
use crate::state::{
    Deployment, DeploymentState, Ended, HighestOrder, OperatorHold, ResourceKnowledge, TargetState, Waiting,
};

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

/// Ends a deployment: what it left at its resources, its end, and the next one's turn. A rollback that rests on something
/// unresolved does not end by itself: it is held.
pub(crate) fn end(draft: &mut Draft<'_>, id: DeploymentId, end: End) {
    let deployment = draft.state().deployment(id);
    let rests = deployment.is_some_and(rollback::rests_on_unresolved) && !bugs::on(Bug::RollbackFreesUnresolved);
    if rests && !end.by_decision {
        let because = format!(
            "{}; what it was to undo is partial or unknown, and none of its own changes is applied",
            end.because
        );
        return draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    }
    close(draft, id, end);
    next_turn(draft);
}

/// What a deployment left at its resources, and its end. Whose turn it is then, the caller decides.
pub(crate) fn close(draft: &mut Draft<'_>, id: DeploymentId, end: End) {
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
}

/// Hands the reservation of one that just ended to the rollback of it, which was just submitted: nobody gets in between, and
/// neither a hold nor an unread revision is in its way.
pub(crate) fn hand_over(draft: &mut Draft<'_>, rollback: DeploymentId) {
    let Some(deployment) = draft.state().deployment(rollback) else { return };
    let expected = expected(draft.state(), &deployment.spec);
    draft.record(Event::Reserved { deployment: rollback, expected });
    if let Some(hold) = draft.state().hold.as_ref().filter(|_| due::is_on_hold(draft.state())) {
        let why = hold.waiting();
        draft.record(Event::Waits { deployment: rollback, why, not_before: None });
    }
}

/// Reserves the free target for the head of its queue, as far as that may begin.
pub(crate) fn next_turn(draft: &mut Draft<'_>) {
    while draft.current().is_none() {
        let Some(head) = draft.state().queue.front() else { return };
        let id = head.id;
        if let Some(hold) = draft.state().hold.as_ref().filter(|_| due::is_on_hold(draft.state())) {
            let why = hold.waiting();
            if head.waiting.as_ref() != Some(&why) {
                draft.record(Event::Waits { deployment: id, why, not_before: None });
            }
            return;
        }
        if let Some(resource) = unread(draft.state(), &head.spec) {
            let why = Waiting::UnreadRevision { resource };
            if head.waiting.as_ref() != Some(&why) {
                draft.record(Event::Waits { deployment: id, why, not_before: None });
            }
            return;
        }
        if let Some(pin) = mismatch(draft.state(), &head.spec) {
            drop_waiting(draft, id, DeploymentState::Failed, explain::pin_differs(&pin));
            continue;
        }
        let expected = expected(draft.state(), &head.spec);
        draft.record(Event::Reserved { deployment: id, expected });
        return drop_passed(draft);
    }
}

/// Ends one that waits and never had an attempt. It is nobody's turn because of that.
fn drop_waiting(draft: &mut Draft<'_>, id: DeploymentId, state: DeploymentState, because: String) {
    let Some(deployment) = draft.state().queue.iter().find(|waiting| waiting.id == id) else { return };
    let never_mutated = fate::never_mutated(deployment);
    let ended = Ended {
        at: draft.now.wall,
        by_decision: false,
        because,
        never_mutated,
        cancel_too_late: false,
        after_deadline: false,
        not_healthy: false,
    };
    draft.record(Event::DeploymentEnded { deployment: id, state, ended });
}

/// Ends those that wait with a lower order key than has held the target: they never will.
fn drop_passed(draft: &mut Draft<'_>) {
    let state = draft.state();
    let passed = state.queue.iter().filter_map(|waiting| Some((waiting.id, passed(state, &waiting.spec)?)));
    for (id, (key, highest)) in passed.collect::<Vec<_>>() {
        let because = explain::order_passed(key, highest, &highest.label(&draft.state().spec.name));
        drop_waiting(draft, id, DeploymentState::Failed, because);
    }
}

/// Ends those that waited before the newest in a queue of kind `latest`. The holder is not among them.
pub(crate) fn supersede(draft: &mut Draft<'_>) {
    let state = draft.state();
    let Some(newest) = state.queue.back().filter(|_| state.spec.queue == QueueKind::Latest) else { return };
    let (newest, by) = (newest.id, state.label(newest));
    let superseded = state.queue.iter().filter(|waiting| waiting.id != newest && waiting.kind.is_deploy());
    let older: Vec<_> = superseded.map(|waiting| waiting.id).collect();
    for id in older {
        drop_waiting(draft, id, DeploymentState::Cancelled, explain::superseded(&by));
    }
}

/// The order key that bars a deployment: its own, and the higher one that has held the target.
pub(crate) fn passed(state: &TargetState, spec: &DeploymentSpec) -> Option<(OrderKey, HighestOrder)> {
    spec.order.zip(state.order).filter(|(key, highest)| *key < highest.key)
}

/// Why a deployment waits that could have its next attempt: for this, unless the target is on hold.
pub(crate) fn unless_on_hold(state: &TargetState, why: Waiting) -> Waiting {
    state.hold.as_ref().filter(|_| due::is_on_hold(state)).map_or(why, OperatorHold::waiting)
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

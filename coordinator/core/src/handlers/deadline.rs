//! A deadline has passed. It is a policy, never an outcome: it asks for a stop, and whoever observed an end tells it.
//!
//! ```text
//! whose                     counted from                 what is recorded
//! a step's, it runs         its permit or its start      over deadline; a request to stop with cause timeout
//! the deployment's          when an agent first took it  over deadline; the same request, whatever its state; ended at once
//!                                                        only between attempts, where nothing is under way
//! its time in the queue     its submission               the same request, and it ends as cancelled: nothing was permitted
//! ```
//!
//! A request that is on record already stays as it is: who asked first is who asked.

use holdfast_common::id::{AttemptId, DeploymentId, StepName};
use holdfast_common::time::Serving;

use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::explain;
use crate::reservation::{self, End};
use crate::split;
use crate::state::{AttemptState, CancelCause, Deployment, DeploymentState};

/// Records every deadline that has passed, and what follows.
pub(crate) fn pass(draft: &mut Draft<'_>) {
    for (attempt, step) in steps(draft) {
        draft.record(Event::DeadlinePassed { attempt, step: step.clone() });
        if bugs::on(Bug::TimeoutEnds) {
            return end_for_no_reason(draft, attempt);
        }
        if let Some(id) = draft.current().map(|deployment| deployment.id) {
            ask(draft, id, CancelCause::Timeout { step });
        }
    }
    whole(draft);
    queue(draft);
}

fn steps(draft: &Draft<'_>) -> Vec<(AttemptId, StepName)> {
    let Some(attempt) = draft.current().and_then(Deployment::live) else { return Vec::new() };
    let late = attempt
        .steps
        .iter()
        .filter(|step| due::runs(step.state) && !step.over_deadline && has_passed(draft, step.deadline));
    late.map(|step| (attempt.id, step.name.clone())).collect()
}

/// The deployment's own: also while it is uncertain or held, where only a decision ends it.
fn whole(draft: &mut Draft<'_>) {
    let late = |deployment: &&Deployment| !deployment.over_deadline && has_passed(draft, deployment.deadline);
    let Some(deployment) = draft.current().filter(late) else { return };
    let id = deployment.id;
    draft.record(Event::DeploymentDeadlinePassed { deployment: id });
    let live = draft.current().and_then(Deployment::live).map(|attempt| attempt.id);
    if let Some(attempt) = live.filter(|_| bugs::on(Bug::DeploymentTimeoutEnds)) {
        return end_for_no_reason(draft, attempt);
    }
    ask(draft, id, CancelCause::DeploymentTimeout);
    let waits = draft.current().is_some_and(|current| {
        matches!(current.state, DeploymentState::Queued | DeploymentState::Active) && current.live().is_none()
    });
    if waits {
        split::after_cancel(draft);
    }
}

/// Whoever waited too long for its turn or for an agent. What is on offer is not waiting: it is taken, declined or lapses.
fn queue(draft: &mut Draft<'_>) {
    let state = draft.state();
    let all = state.current.iter().chain(&state.queue);
    let late = all.filter(|waiting| waiting.is_in_queue() && has_passed(draft, waiting.queue_deadline));
    for id in late.map(|deployment| deployment.id).collect::<Vec<_>>() {
        ask(draft, id, CancelCause::QueueTimeout);
        if draft.current().is_some_and(|current| current.id == id) {
            split::after_cancel(draft);
        } else {
            let because = format!("{}; nothing was changed", explain::asked_by(&CancelCause::QueueTimeout));
            reservation::end(draft, id, End::observed(DeploymentState::Cancelled, because));
        }
    }
}

fn ask(draft: &mut Draft<'_>, id: DeploymentId, cause: CancelCause) {
    if draft.state().deployment(id).is_some_and(|deployment| deployment.cancel.is_none()) {
        let reason = explain::asked_by(&cause);
        draft.record(Event::CancelRecorded { deployment: id, cause, reason });
    }
}

fn has_passed(draft: &Draft<'_>, deadline: Option<Serving>) -> bool {
    deadline.is_some_and(|deadline| deadline <= draft.now.serving)
}

/// The seeded fault: a deadline that ends what may have begun.
fn end_for_no_reason(draft: &mut Draft<'_>, attempt: AttemptId) {
    let Some(id) = draft.current().map(|deployment| deployment.id) else { return };
    let because = "a deadline passed".to_owned();
    draft.record(Event::AttemptEnded { attempt, state: AttemptState::Stopped, because: because.clone() });
    reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
}

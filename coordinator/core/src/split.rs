//! When a lease lapses.
//!
//! ```text
//! the attempt                     becomes       the deployment
//! found a carried step changed    lapsed        held: somebody else was there
//! has an open permit              uncertain     uncertain: the target stays held, nobody tries again by a timer
//! was permitted, all closed       interrupted   cancel recorded: cancelled, or held where an unsafe step may be in part
//!                                               a closed step bars another try, or tries used up: held
//!                                               else active: the next try where knowledge ends
//! was never permitted             lapsed        cancel recorded: cancelled (held, as above)
//!                                               another try barred: failed if nothing was ever permitted, else held
//!                                               tries used up: the same
//!                                               else queued if nothing was ever permitted, else active: the next try
//! ```

use holdfast_common::id::StepName;
use holdfast_common::outcome::{FailureClass, StepEnd};
use holdfast_common::time::Millis;

use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::fate;
use crate::input::Jitter;
use crate::lease;
use crate::policy;
use crate::reservation::{self, End};
use crate::state::{Attempt, AttemptState, CarryState, Deployment, DeploymentState, StepState, Waiting};

/// Records the lapse of the current attempt, where its lease is over.
pub(crate) fn lapse(draft: &mut Draft<'_>, jitter: Jitter) {
    let now = draft.now;
    let Some(attempt) = draft.current().and_then(Deployment::live) else { return };
    let Some(lease) = attempt.lease.as_ref().filter(|lease| !lease::lives(lease, now)) else { return };
    let id = attempt.id;
    let (state, because) = match attempt.open_permit() {
        Some(step) => (AttemptState::Uncertain, explain::uncertain(lease, &step.name)),
        None if attempt.ever_permitted() => (AttemptState::Interrupted, explain::interrupted(lease)),
        None => (AttemptState::Lapsed, explain::lapsed(lease)),
    };
    if state == AttemptState::Uncertain {
        uncertain(draft, because);
    } else {
        draft.record(Event::AttemptEnded { attempt: id, state, because: because.clone() });
        lost(draft, jitter, &because);
    }
}

/// The current attempt may be changing the target, and nobody can say. The target stays held.
pub(crate) fn uncertain(draft: &mut Draft<'_>, because: String) {
    let Some(deployment) = draft.current() else { return };
    let Some(attempt) = deployment.live().map(|attempt| attempt.id) else { return };
    let id = deployment.id;
    if bugs::on(Bug::LapseAsFailed) {
        draft.record(Event::AttemptEnded { attempt, state: AttemptState::Failed, because: because.clone() });
        return reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
    }
    draft.record(Event::AttemptEnded { attempt, state: AttemptState::Uncertain, because: because.clone() });
    if bugs::on(Bug::FreeOnExpiry) {
        return reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
    }
    let state = if bugs::on(Bug::RetryUncertainByTimer) { DeploymentState::Active } else { DeploymentState::Uncertain };
    draft.record(policy::moved(draft, id, state, because));
    if bugs::on(Bug::RetryUncertainByTimer) {
        draft.record(Event::Waits { deployment: id, why: Waiting::Assignment, not_before: None });
    }
}

/// What a lapsed or interrupted attempt makes of its deployment.
fn lost(draft: &mut Draft<'_>, jitter: Jitter, because: &str) {
    let Some(deployment) = draft.current() else { return };
    if let Some(last) = deployment.attempts.last().filter(|last| last.disturbed().is_some()) {
        let because = format!("{because}; {}", explain::disturbed(deployment, last));
        let id = deployment.id;
        return draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    }
    if deployment.cancel.is_some() {
        return after_cancel(draft);
    }
    if let Some(bar) = fate::bars_another_try(deployment) {
        return give_up(draft, format!("{because}; {bar}"));
    }
    if deployment.tries_left() == 0 {
        let tries = explain::tries_used(deployment.tries());
        return give_up(draft, format!("{because}; {tries}"));
    }
    try_again(draft, jitter, because);
}

/// A deployment with a recorded cancel whose attempt is over without an accepted end: not tried again.
pub(crate) fn after_cancel(draft: &mut Draft<'_>) {
    let Some(deployment) = draft.current() else { return };
    let asked = deployment.cancel.as_ref().map(|cancel| explain::asked_by(&cancel.cause)).unwrap_or_default();
    let because = format!("{asked}; {}", explain::had_applied(deployment));
    let id = deployment.id;
    if fate::unsafe_in_part(deployment) {
        let because = format!("{because}; a step that is not safe to repeat may be applied in part");
        draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    } else {
        reservation::end(draft, id, End::observed(DeploymentState::Cancelled, because));
    }
}

/// No further attempt follows by itself: ended where nothing was ever permitted, else held for a person.
fn give_up(draft: &mut Draft<'_>, because: String) {
    let Some(deployment) = draft.current() else { return };
    let id = deployment.id;
    if deployment.ever_permitted() {
        draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    } else {
        reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
    }
}

/// Another attempt follows after a delay.
pub(crate) fn try_again(draft: &mut Draft<'_>, jitter: Jitter, because: &str) {
    let Some(deployment) = draft.current() else { return };
    let Some(last) = deployment.attempts.last() else { return };
    let (used, left) = (deployment.tries(), deployment.tries_left());
    let delay = lease::backoff(&deployment.spec.retry, used.max(1), jitter);
    let (step, class) = failed_at(last);
    let (deployment, after, number) = (deployment.id, last.id, last.number);
    let scheduled = Event::RetryScheduled { deployment, after, number, step, class, delay, used, left };
    back(draft, because);
    draft.record(scheduled);
    waits(draft, delay);
}

/// The step that did not end well, and how that is classed: what nobody classed is the machinery's.
fn failed_at(attempt: &Attempt) -> (Option<StepName>, FailureClass) {
    let found = attempt.steps.iter().find_map(|step| match step.state {
        StepState::Ended(StepEnd::Failed { class, .. }) => Some((step.name.clone(), class)),
        StepState::Ended(StepEnd::Stopped { .. } | StepEnd::Unknown | StepEnd::NotStarted)
        | StepState::Carried { carry: CarryState::Failed } => Some((step.name.clone(), FailureClass::Infrastructure)),
        StepState::Ended(StepEnd::Applied)
        | StepState::Carried { .. }
        | StepState::Pending
        | StepState::Permitted
        | StepState::Started => None,
    });
    found.map_or((None, FailureClass::Infrastructure), |(step, class)| (Some(step), class))
}

/// Back to waiting, for so long.
pub(crate) fn wait(draft: &mut Draft<'_>, because: &str, delay: Millis) {
    back(draft, because);
    waits(draft, delay);
}

/// Queued while no attempt was ever permitted, else active between attempts.
fn back(draft: &mut Draft<'_>, because: &str) {
    let Some(deployment) = draft.current() else { return };
    let id = deployment.id;
    let state = if deployment.ever_permitted() { DeploymentState::Active } else { DeploymentState::Queued };
    draft.record(policy::moved(draft, id, state, because.to_owned()));
}

fn waits(draft: &mut Draft<'_>, delay: Millis) {
    let Some(id) = draft.current().map(|deployment| deployment.id) else { return };
    let not_before = Some(draft.now.serving.after(delay));
    let why = reservation::unless_on_hold(draft.state(), Waiting::backoff(delay, draft.now.wall));
    draft.record(Event::Waits { deployment: id, why, not_before });
}

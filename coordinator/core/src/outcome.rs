//! What an accepted end of an attempt makes of its deployment.
//!
//! ```text
//! the agent said   steps                                    cancel   the deployment
//! succeeded        all applied                              -        succeeded ("the cancel came too late" where one was)
//! failed, stopped  an unsafe step may be applied in part    any      held
//! failed           -                                        yes      failed, as observed
//! stopped          -                                        yes      cancelled, as observed
//! either           nothing bars another try, tries left,    no       the next try after a delay
//!                  not all mutating steps applied
//! either           else                                     no       failed, as observed
//! ```

use holdfast_common::id::StepName;
use holdfast_common::outcome::{AttemptEnd, StepEnd};
use holdfast_common::spec::StepEffect;

use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::fate::{self, Fate};
use crate::input::Jitter;
use crate::policy;
use crate::reservation::{self, End};
use crate::split;
use crate::state::{Attempt, AttemptState, Deployment, DeploymentState, StepState};

/// Whether the end that an agent tells agrees with what it told of the steps. A success with a step missing, or a
/// failure with nothing missing, is not believed.
pub(crate) fn agrees(attempt: &Attempt, end: AttemptEnd) -> bool {
    let done = |state| matches!(state, StepState::Ended(StepEnd::Applied) | StepState::Carried { .. });
    let all = attempt.steps.iter().all(|step| done(step.state));
    match end {
        AttemptEnd::Succeeded => all,
        AttemptEnd::Failed | AttemptEnd::Stopped => !all && attempt.open_permit().is_none(),
    }
}

/// Records the end of the current attempt and what follows.
pub(crate) fn ended(draft: &mut Draft<'_>, end: AttemptEnd, jitter: Jitter) {
    let Some(deployment) = draft.current() else { return };
    let Some(attempt) = deployment.live() else { return };
    let because = sentence(deployment, attempt, end);
    let (id, attempt) = (deployment.id, attempt.id);
    let state = match end {
        AttemptEnd::Succeeded => AttemptState::Succeeded,
        AttemptEnd::Failed => AttemptState::Failed,
        AttemptEnd::Stopped => AttemptState::Stopped,
    };
    draft.record(Event::AttemptEnded { attempt, state, because: because.clone() });
    let Some(deployment) = draft.current() else { return };
    if end == AttemptEnd::Succeeded {
        return reservation::end(draft, id, End::observed(DeploymentState::Succeeded, because));
    }
    if fate::unsafe_in_part(deployment) {
        let because = format!("{because}; it is not safe to repeat and may be applied in part");
        return draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    }
    let tries_left = deployment.tries() < deployment.spec.retry.max_attempts;
    let again = fate::bars_another_try(deployment).is_none() && tries_left && !is_unhealthy(deployment);
    match (end, deployment.cancel.is_some()) {
        (AttemptEnd::Stopped, true) => reservation::end(draft, id, End::observed(DeploymentState::Cancelled, because)),
        (_, false) if again => split::try_again(draft, jitter, &because),
        (_, _) => reservation::end(draft, id, End::observed(DeploymentState::Failed, because)),
    }
}

/// Every mutating step is applied, and a check after them failed: applied, not healthy. Another try changes nothing.
fn is_unhealthy(deployment: &Deployment) -> bool {
    let mut steps = fate::mutating(deployment).peekable();
    let any = steps.peek().is_some();
    any && steps.all(|step| matches!(fate::of(deployment, step), Fate::Applied(_)))
}

fn sentence(deployment: &Deployment, attempt: &Attempt, end: AttemptEnd) -> String {
    let agent = &attempt.agent;
    let asked = deployment.cancel.as_ref().map(|cancel| explain::asked_by(&cancel.cause));
    match (end, asked) {
        (AttemptEnd::Succeeded, None) => format!("{agent} reported every step as applied"),
        (AttemptEnd::Succeeded, Some(asked)) => {
            format!("{agent} reported every step as applied; {asked}, and it came too late")
        }
        (AttemptEnd::Stopped, Some(asked)) => format!("{asked}, and {agent} stopped{}", left(deployment, attempt)),
        (AttemptEnd::Stopped, None) => {
            format!("{agent} stopped although nobody asked for it{}", left(deployment, attempt))
        }
        (AttemptEnd::Failed, _) => match unfinished(attempt) {
            Some(step) if is_unhealthy(deployment) => format!("applied, not healthy: step {step} failed on {agent}"),
            Some(step) => format!("step {step} failed on {agent}{}", left(deployment, attempt)),
            None => format!("{agent} failed before any step did{}", left(deployment, attempt)),
        },
    }
}

fn unfinished(attempt: &Attempt) -> Option<&StepName> {
    let failed = attempt.steps.iter().find(|step| {
        matches!(step.state, StepState::Ended(StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::Unknown))
    });
    failed.map(|step| &step.name)
}

fn left(deployment: &Deployment, attempt: &Attempt) -> String {
    let partial = |name: &StepName| {
        deployment
            .step(name)
            .is_some_and(|step| step.effect == StepEffect::Mutates && fate::of(deployment, step) == Fate::Partial)
    };
    match attempt.steps.iter().find(|step| partial(&step.name)) {
        Some(step) => format!("; step {} may be applied in part", step.name),
        None => format!("; {}", explain::had_applied(deployment)),
    }
}

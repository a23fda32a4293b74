//! What an accepted end of an attempt makes of its deployment.
//!
//! ```text
//! the agent said   steps                                    cancel   the deployment
//! failed, stopped  a carried step was found changed         any      held: somebody else was there
//! succeeded        all applied, all checks held             -        succeeded ("came too late" where a stop was asked for)
//! failed, stopped  an unsafe step may be applied in part    any      held
//! failed, stopped  all changes applied, a check after       any      failed: applied, not healthy. No other try
//!                  them failed, or its own time was over
//! failed           -                                        yes      failed, as observed
//! stopped          -                                        yes      cancelled, as observed
//! either           nothing bars another try, tries left     no       the next try after a delay: what was applied is
//!                                                                    carried, a check that was not seen to end runs again
//! failed           no tries left, nothing permitted in      no       held: nobody has seen what is there now
//!                  this try, something in an earlier one
//! either           else                                     no       failed, as observed, saying so where the tries are used up
//! ```

use holdfast_common::id::{AgentName, StepName};
use holdfast_common::outcome::{AttemptEnd, StepEnd};
use holdfast_common::spec::StepEffect;

use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::fate::{self, Fate, Health};
use crate::input::Jitter;
use crate::policy;
use crate::reservation::{self, End};
use crate::split;
use crate::state::{Attempt, AttemptState, CancelCause, CarryState, Deployment, DeploymentState, StepState};

/// Whether the end that an agent tells agrees with what it told of the steps. A success with a step missing or over something
/// that was not found as it was left, or a failure with nothing missing, is not believed.
pub(crate) fn agrees(attempt: &Attempt, end: AttemptEnd) -> bool {
    let done = |state| match state {
        StepState::Ended(StepEnd::Applied) => true,
        StepState::Carried { carry } => carry.may_follow(),
        StepState::Pending
        | StepState::Permitted
        | StepState::Started
        | StepState::Ended(StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::Unknown | StepEnd::NotStarted) => {
            false
        }
    };
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
    let health = fate::health(deployment);
    if matches!(health, Health::Against(_)) && bugs::on(Bug::VerifyIgnored) {
        return reservation::end(draft, id, End::observed(DeploymentState::Succeeded, because));
    }
    if deployment.attempts.last().is_some_and(|last| last.disturbed().is_some()) {
        return draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    }
    if fate::unsafe_in_part(deployment) {
        let because = format!("{because}; it is not safe to repeat and may be applied in part");
        return draft.record(policy::moved(draft, id, DeploymentState::Held, because));
    }
    if matches!(health, Health::Against(_)) {
        return reservation::end(draft, id, End::not_healthy(because));
    }
    let (tries, left) = (deployment.tries(), deployment.tries_left());
    let bar = fate::bars_another_try(deployment);
    let nothing_permitted = deployment.attempts.last().is_some_and(|last| !last.ever_permitted());
    match (end, deployment.cancel.is_some(), bar) {
        (AttemptEnd::Stopped, true, _) => {
            reservation::end(draft, id, End::observed(DeploymentState::Cancelled, because));
        }
        (_, false, None) if left > 0 => split::try_again(draft, jitter, &because),
        // Nothing of this try was permitted, something of an earlier one was: what is there now, nobody has seen.
        (AttemptEnd::Failed, false, None) if nothing_permitted && deployment.ever_permitted() => {
            let because = format!("{because}; {}", explain::tries_used(tries));
            draft.record(policy::moved(draft, id, DeploymentState::Held, because));
        }
        (_, false, None) if tries > 1 => {
            let because = format!("{because}; {}", explain::tries_used(tries));
            reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
        }
        (_, _, _) => reservation::end(draft, id, End::observed(DeploymentState::Failed, because)),
    }
}

fn sentence(deployment: &Deployment, attempt: &Attempt, end: AttemptEnd) -> String {
    let agent = &attempt.agent;
    let cause = deployment.cancel.as_ref().map(|cancel| &cancel.cause);
    let asked = cause.map(explain::asked_by);
    match (end, asked) {
        (AttemptEnd::Succeeded, None) => succeeded(deployment, attempt),
        (AttemptEnd::Succeeded, Some(asked)) if cause.is_some_and(CancelCause::is_timeout) => {
            format!("{}, after a deadline: {asked}, and the stop came too late", succeeded(deployment, attempt))
        }
        (AttemptEnd::Succeeded, Some(asked)) => {
            format!("{}; {asked}, and it came too late", succeeded(deployment, attempt))
        }
        (AttemptEnd::Failed | AttemptEnd::Stopped, _) if attempt.disturbed().is_some() => {
            explain::disturbed(deployment, attempt)
        }
        (AttemptEnd::Failed | AttemptEnd::Stopped, asked) => match (fate::health(deployment), end, asked) {
            (Health::Against(step), ..) => not_healthy(deployment, &step, agent),
            (_, AttemptEnd::Stopped, Some(asked)) => {
                format!("{asked}, and {agent} stopped{}", left(deployment, attempt))
            }
            _ if unread(attempt).is_some() => not_read_again(deployment, attempt),
            (Health::Unseen(step), ..) => {
                format!("applied, health not known: step {step} did not end well on {agent}")
            }
            (Health::Unasked | Health::Held, AttemptEnd::Stopped, None) => {
                format!("{agent} stopped although nobody asked for it{}", left(deployment, attempt))
            }
            (Health::Unasked | Health::Held, _, _) => match unfinished(attempt) {
                Some(step) => format!("step {step} failed on {agent}{}", left(deployment, attempt)),
                None => format!("{agent} failed before any step did{}", left(deployment, attempt)),
            },
        },
    }
}

fn succeeded(deployment: &Deployment, attempt: &Attempt) -> String {
    let checks = deployment.spec.steps.iter().filter(|step| step.body.check().is_some()).count();
    let reported = format!("{} reported every step as applied{}", attempt.agent, not_reported(deployment));
    match checks {
        0 => reported,
        1 => format!("{reported}, and that its check held"),
        _ => format!("{reported}, and that all {checks} checks held"),
    }
}

/// The steps that an earlier attempt left and that no agent has reported as applied, with what stands for each.
fn not_reported(deployment: &Deployment) -> String {
    let words = fate::mutating(deployment).filter_map(|step| {
        let record = fate::applied_by_decision(deployment, step)?;
        let ground = match (record.attested, record.trusted) {
            (true, _) => "a person attested",
            (false, true) => "its agent told too late",
            (false, false) => "was read",
        };
        Some(format!(" but {}, which {ground}", step.name))
    });
    words.collect()
}

fn not_healthy(deployment: &Deployment, step: &StepName, agent: &AgentName) -> String {
    match deployment.step(step).is_some_and(|step| step.body.check().is_some()) {
        true => format!("applied, not healthy: check {step} did not hold on {agent}"),
        false => format!("applied, not healthy: step {step} failed on {agent}"),
    }
}

/// The carried step whose resource the agent could not read again.
fn unread(attempt: &Attempt) -> Option<&StepName> {
    attempt.carries().find(|(_, carry)| *carry == CarryState::Failed).map(|(name, _)| name)
}

fn not_read_again(deployment: &Deployment, attempt: &Attempt) -> String {
    let step = unread(attempt).map(StepName::as_str).unwrap_or_default();
    let agent = &attempt.agent;
    format!("{agent} could not read again what step {step} had left; {}", explain::had_applied(deployment))
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

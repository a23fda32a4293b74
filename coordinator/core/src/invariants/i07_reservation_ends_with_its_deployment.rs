//! I7: a reservation ends only with a terminal deployment: by an accepted observation, by proof, or by a decision. A success
//! is observed only where every step without effect, each check among them, ended well in the last attempt. A rollback that was
//! put on something unresolved, and of which nothing was applied, ends by a decision only.

use holdfast_common::outcome::{OperationState, StepEnd};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::StepEffect;

use super::Step;
use crate::event::Event;
use crate::state::{AttemptState, Base, DecisionRecord, Deployment, DeploymentState, StepState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(held) = step.before.and_then(|before| before.current.as_ref()) else { return Ok(()) };
    if step.after.current.as_ref().is_some_and(|deployment| deployment.id == held.id) {
        return Ok(());
    }
    let Event::DeploymentEnded { deployment, state, ended } = &step.recorded.event else {
        return Err("a reservation ended without the end of its deployment");
    };
    if *deployment != held.id || !state.is_terminal() {
        return Err("a reservation ended with another deployment, or with none that is over");
    }
    if ended.by_decision {
        return decided(held);
    }
    resolved(held)?;
    observed(held)?;
    if *state == DeploymentState::Succeeded { seen_whole(held) } else { Ok(()) }
}

fn resolved(held: &Deployment) -> Result<(), &'static str> {
    let unresolved = held.kind.rollback().is_some_and(|of| of.base == Base::Unresolved);
    let mutates = |name| held.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
    let mut runs = held.attempts.iter().flat_map(|attempt| &attempt.steps);
    let applied = runs.any(|run| run.state == StepState::Ended(StepEnd::Applied) && mutates(&run.name));
    let decided =
        |record: &DecisionRecord| record.kind != DecisionKind::Note && record.target == OperationState::Applied;
    match unresolved && !applied && !held.decisions.iter().any(decided) {
        true => Err("a rollback on something unresolved ended by itself, and nothing of it was applied"),
        false => Ok(()),
    }
}

fn seen_whole(held: &Deployment) -> Result<(), &'static str> {
    let last = held.attempts.last().ok_or("it is told as a success, and nobody tried")?;
    let whole = last.steps.iter().all(|run| {
        let mutates = held.step(&run.name).is_some_and(|step| step.effect == StepEffect::Mutates);
        match run.state {
            StepState::Ended(StepEnd::Applied) => true,
            StepState::Carried { .. } => mutates,
            _ => false,
        }
    });
    if whole { Ok(()) } else { Err("it is told as a success, and a step or a check was not seen to end well") }
}

fn decided(held: &Deployment) -> Result<(), &'static str> {
    let last = held.attempts.last().map(|attempt| attempt.id);
    let record = held.decisions.last().filter(|record| record.kind != DecisionKind::Note && record.attempt == last);
    record.map(|_| ()).ok_or("it is said to end by a decision, and none is on record")
}

/// Every permit was closed by an accepted observation, or by an earlier decision on that attempt.
fn observed(held: &Deployment) -> Result<(), &'static str> {
    let open = held.attempts.iter().any(|attempt| {
        let resolved = attempt.state == AttemptState::Resolved;
        let over = !attempt.state.is_live() && attempt.state != AttemptState::Uncertain;
        let closed = attempt.steps.iter().all(|step| {
            let ends = matches!(
                step.state,
                StepState::Ended(
                    StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::NotStarted
                )
            );
            step.permitted_at.is_none() || ends
        });
        !(resolved || over && closed)
    });
    if open { Err("the target was freed while an attempt or a permit was open") } else { Ok(()) }
}

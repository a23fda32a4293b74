//! I6: terminal observations are never rewritten; histories only grow.

use super::Step;
use crate::state::{Attempt, Deployment, StepState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(before) = step.before else { return Ok(()) };
    if step.after.sequence.0 != before.sequence.0 + 1 {
        return Err("an event has no place of its own");
    }
    before.current.iter().chain(&before.queue).try_for_each(|deployment| match step.after.deployment(deployment.id) {
        Some(after) => grows(deployment, after),
        None => Ok(()),
    })
}

fn grows(before: &Deployment, after: &Deployment) -> Result<(), &'static str> {
    if !after.evidence.starts_with(&before.evidence) || !after.decisions.starts_with(&before.decisions) {
        return Err("evidence or decisions were rewritten");
    }
    if after.attempts.len() < before.attempts.len() {
        return Err("an attempt was forgotten");
    }
    before.attempts.iter().zip(&after.attempts).try_for_each(|(before, after)| kept(before, after))
}

fn kept(before: &Attempt, after: &Attempt) -> Result<(), &'static str> {
    if (before.id, before.fence, &before.agent) != (after.id, after.fence, &after.agent) {
        return Err("an attempt became another one");
    }
    if before.state.is_observed() && before != after {
        return Err("a terminal observation was rewritten");
    }
    let rewritten = before.steps.iter().zip(&after.steps).any(|(before, after)| {
        matches!(before.state, StepState::Ended(_)) && (before.state, before.exit) != (after.state, after.exit)
    });
    if rewritten { Err("the end of a step was rewritten") } else { Ok(()) }
}

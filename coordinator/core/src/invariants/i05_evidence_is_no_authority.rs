//! I5: no report from a non-current attempt changes anything but the evidence of its own attempt.

use super::Step;
use crate::event::Event;
use crate::state::Deployment;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(before) = step.before else { return Ok(()) };
    match &step.recorded.event {
        Event::EvidenceFiled { .. } => {
            let same = before.fence == step.after.fence
                && before.home == step.after.home
                && before.resources == step.after.resources
                && before.queue.len() == step.after.queue.len()
                && before.current.iter().chain(&before.queue).all(|deployment| {
                    step.after.deployment(deployment.id).is_some_and(|after| is_same(deployment, after))
                });
            if same { Ok(()) } else { Err("evidence changed more than evidence") }
        }
        Event::ReportAccepted { attempt, .. } => {
            let last = before.current.as_ref().and_then(|deployment| deployment.attempts.last());
            let current = last.filter(|last| last.id == *attempt && last.state.is_live() && last.lease.is_some());
            if current.is_some_and(|last| Some(last.fence) == before.fence) {
                Ok(())
            } else {
                Err("a report of an attempt that is not current was accepted")
            }
        }
        _ => Ok(()),
    }
}

fn is_same(before: &Deployment, after: &Deployment) -> bool {
    before.state == after.state
        && before.waiting == after.waiting
        && before.attempts == after.attempts
        && before.cancel == after.cancel
        && before.decisions == after.decisions
}

//! I17: while an operator's hold is on, no deployment takes the target, but a rollback that is handed the reservation of what
//! it undoes; no lease is granted, but to go on with a process that runs already; and neither placing nor ending it moves a deployment or an attempt.

use super::Step;
use crate::event::Event;
use crate::state::{AttemptState, DeploymentState, TargetState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let on_hold = step.before.is_some_and(|before| before.hold.is_some());
    match &step.recorded.event {
        Event::Reserved { .. } if on_hold && !was_handed_over(step.after) => {
            Err("a deployment took a target that is on hold")
        }
        Event::LeaseGranted { readmits: None, .. } if on_hold => Err("a lease was granted on a target that is on hold"),
        Event::HoldPlaced { .. } | Event::HoldEnded { .. } => {
            let same = step.before.map(places) == Some(places(step.after));
            if same { Ok(()) } else { Err("a hold moved a deployment or an attempt") }
        }
        _ => Ok(()),
    }
}

fn was_handed_over(state: &TargetState) -> bool {
    let rollback = state.current.as_ref().and_then(|deployment| deployment.kind.rollback());
    rollback.is_some_and(|of| of.base.is_handed_over())
}

fn places(state: &TargetState) -> Vec<(u64, DeploymentState, Vec<AttemptState>)> {
    let all = state.current.iter().chain(&state.queue);
    all.map(|d| (d.number, d.state, d.attempts.iter().map(|attempt| attempt.state).collect())).collect()
}

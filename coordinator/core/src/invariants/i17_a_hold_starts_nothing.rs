//! I17: while an operator's hold is on, no deployment takes the target and no lease is granted; and neither placing nor
//! ending it moves a deployment or an attempt.

use super::Step;
use crate::event::Event;
use crate::state::{AttemptState, DeploymentState, TargetState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let on_hold = step.before.is_some_and(|before| before.hold.is_some());
    match &step.recorded.event {
        Event::Reserved { .. } if on_hold => Err("a deployment took a target that is on hold"),
        Event::LeaseGranted { .. } if on_hold => Err("a lease was granted on a target that is on hold"),
        Event::HoldPlaced { .. } | Event::HoldEnded { .. } => {
            let same = step.before.map(places) == Some(places(step.after));
            if same { Ok(()) } else { Err("a hold moved a deployment or an attempt") }
        }
        _ => Ok(()),
    }
}

fn places(state: &TargetState) -> Vec<(u64, DeploymentState, Vec<AttemptState>)> {
    let all = state.current.iter().chain(&state.queue);
    all.map(|d| (d.number, d.state, d.attempts.iter().map(|attempt| attempt.state).collect())).collect()
}

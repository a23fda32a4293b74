//! I14: "never mutated" is said only where no permit is on record, or each has its tombstone.

use holdfast_common::outcome::StepEnd;

use super::Step;
use crate::event::Event;
use crate::state::StepState;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Event::DeploymentEnded { deployment, ended, .. } = &step.recorded.event else { return Ok(()) };
    if !ended.never_mutated {
        return Ok(());
    }
    let deployment = step.before.and_then(|before| before.deployment(*deployment)).ok_or("the end of no deployment")?;
    let mut runs = deployment.attempts.iter().flat_map(|attempt| &attempt.steps);
    let proven = runs.all(|run| run.permitted_at.is_none() || run.state == StepState::Ended(StepEnd::NotStarted));
    if proven { Ok(()) } else { Err("it is said to have changed nothing, and a permit has no tombstone") }
}

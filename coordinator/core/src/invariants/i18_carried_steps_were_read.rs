//! I18: a permit is granted only to an attempt that found the resource of every carried step that can be read as that step
//! had left it; and where one was found otherwise, no attempt follows and the deployment does not end without a decision.

use super::Step;
use crate::event::Event;
use crate::state::{Attempt, Deployment};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(deployment) = step.before.and_then(|before| before.current.as_ref()) else { return Ok(()) };
    match &step.recorded.event {
        Event::PermitGranted { attempt, .. } => {
            let mut of = deployment.attempts.iter().filter(|other| other.id == *attempt);
            let unread = of.any(|attempt| attempt.carries().any(|(_, carry)| !carry.may_follow()));
            if unread { Err("a change was permitted over what was not found as it was left") } else { Ok(()) }
        }
        Event::LeaseGranted { .. } if is_undecided(deployment) => {
            Err("an attempt followed on what somebody else changed")
        }
        Event::DeploymentEnded { deployment: ended, .. } if *ended == deployment.id && is_undecided(deployment) => {
            Err("what somebody else changed was settled without a decision")
        }
        _ => Ok(()),
    }
}

fn is_undecided(deployment: &Deployment) -> bool {
    let disturbed = |last: &&Attempt| last.disturbed().is_some();
    let Some(last) = deployment.attempts.last().filter(disturbed) else { return false };
    !deployment.decisions.iter().any(|record| record.attempt == Some(last.id))
}

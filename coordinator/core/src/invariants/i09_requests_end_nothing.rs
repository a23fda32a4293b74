//! I9: cancel and timeout never by themselves end a deployment that may have begun.

use super::Step;
use crate::event::Event;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(before) = step.before.and_then(|before| before.current.as_ref()) else { return Ok(()) };
    match &step.recorded.event {
        Event::CancelRecorded { .. }
        | Event::CancelAfterEnd { .. }
        | Event::DeadlinePassed { .. }
        | Event::DeploymentDeadlinePassed { .. } => {
            let same = step.after.current.as_ref().is_some_and(|after| {
                let states = |d: &crate::state::Deployment| d.attempts.iter().map(|a| a.state).collect::<Vec<_>>();
                before.id == after.id && before.state == after.state && states(before) == states(after)
            });
            if same { Ok(()) } else { Err("a request changed where the deployment stands") }
        }
        Event::DeploymentEnded { deployment, ended, .. } if *deployment == before.id && !ended.by_decision => {
            let under_way = before.attempts.last().is_some_and(|last| last.state.is_live());
            if under_way { Err("it ended while its attempt was under way") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

//! I1: a target has at most one reservation, and a lease on it goes only to the deployment that holds it.

use super::Step;
use crate::event::Event;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let holder = step.before.and_then(|before| before.current.as_ref()).map(|deployment| deployment.id);
    if let Event::LeaseGranted { deployment, .. } = &step.recorded.event
        && holder != Some(*deployment)
    {
        return Err("a lease went to a deployment that does not hold the target");
    }
    if matches!(step.recorded.event, Event::Reserved { .. }) && holder.is_some() {
        return Err("the target was reserved twice");
    }
    let held = step.after.current.as_ref().map(|deployment| deployment.id);
    if step.after.queue.iter().any(|waiting| Some(waiting.id) == held || !waiting.attempts.is_empty()) {
        return Err("a deployment that waits holds the target or has an attempt");
    }
    Ok(())
}

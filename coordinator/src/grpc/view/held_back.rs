//! Why the next step of what runs does not begin, where no event says it. Told beside the record: there may be no room for one.
//!
//! | the first step that has not begun | no permit is granted | the agent begins no step |
//! | --- | --- | --- |
//! | changes something, not permitted | waits | waits |
//! | changes nothing | begins | waits |
//! | is permitted | begins | waits |
//!
//! While a step is under way, nothing waits; nor after a stop was asked for.

use holdfast_common::spec::StepEffect;
use holdfast_coordinator_core::state::{AttemptState, Deployment, StepRun, StepState};
use holdfast_proto::v1;

use super::sentence::quote;

/// Which step waits, for what, and who can act.
#[must_use]
pub fn held_back(deployment: &Deployment, no_permit: Option<&str>, no_room: Option<&v1::NoRoom>) -> Option<String> {
    let attempt = deployment.live().filter(|attempt| attempt.state == AttemptState::Running)?;
    let is_under_way = attempt.steps.iter().any(|step| step.state == StepState::Started);
    if is_under_way || deployment.cancel.is_some() {
        return None;
    }
    let next = attempt.steps.iter().find(|step| matches!(step.state, StepState::Pending | StepState::Permitted))?;
    if let Some(no_permit) = no_permit.filter(|_| needs_permit(deployment, next)) {
        return Some(format!("step {} waits for a permit: {no_permit}", next.name));
    }
    let no_room = no_room.filter(|no_room| no_room.begins_no_step)?;
    let (step, agent, why) = (&next.name, &attempt.agent, quote(&no_room.why));
    Some(format!("step {step} waits until {agent} has room to begin it, which whoever runs that host can make: {why}"))
}

fn needs_permit(deployment: &Deployment, step: &StepRun) -> bool {
    let spec = deployment.spec.steps.iter().find(|spec| spec.name == step.name);
    step.state == StepState::Pending
        && spec.is_some_and(|spec| match spec.effect {
            StepEffect::Mutates => true,
            StepEffect::None => false,
        })
}

//! I3: a mutating step begins only under a recorded permit of an attempt that was current when it was recorded.

use holdfast_common::report::ReportBody;
use holdfast_common::spec::StepEffect;

use super::Step;
use crate::apply::is_refusal;
use crate::event::Event;
use crate::state::AttemptState;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let current = step.before.and_then(|before| before.current.as_ref());
    match &step.recorded.event {
        Event::PermitGranted { attempt, .. } => {
            let deployment = current.ok_or("a permit on a target that nobody holds")?;
            let last = deployment.attempts.last().ok_or("a permit without an attempt")?;
            if last.id != *attempt || last.state != AttemptState::Running || last.lease.is_none() {
                return Err("a permit of an attempt that was not current");
            }
            if deployment.cancel.is_some() {
                return Err("a permit after a stop was recorded");
            }
            Ok(())
        }
        Event::ReportAccepted { attempt, report, .. } => {
            let name = match &report.body {
                // Refused by the agent before it asked: nothing began.
                ReportBody::StepEnded { end, .. } if is_refusal(*end) => return Ok(()),
                ReportBody::StepStarted { step } | ReportBody::StepEnded { step, .. } => step,
                ReportBody::AttemptEnded { .. }
                | ReportBody::CancelReceived { .. }
                | ReportBody::CancelActed { .. }
                | ReportBody::Reread { .. } => return Ok(()),
            };
            let deployment = current.ok_or("a report was accepted on a target that nobody holds")?;
            let mutates = deployment.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
            let of = deployment.attempts.iter().find(|other| other.id == *attempt);
            let permitted = of.and_then(|of| of.step(name)).is_some_and(|run| run.permitted_at.is_some());
            if mutates && !permitted { Err("a mutation was accepted without a permit") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

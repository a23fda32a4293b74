//! I10: an `unsafe` step is never repeated without a decision; a `permanent` failure is never retried.

use holdfast_common::id::AttemptId;
use holdfast_common::outcome::{FailureClass, StepEnd};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::RetryClass;

use super::Step;
use crate::event::Event;
use crate::state::{Deployment, StepState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(deployment) = step.before.and_then(|before| before.current.as_ref()) else { return Ok(()) };
    match &step.recorded.event {
        Event::PermitGranted { step: name, .. } => {
            let spec = deployment.step(name).ok_or("a permit for a step that the deployment does not have")?;
            let began = deployment.attempts.iter().any(|attempt| {
                let run = attempt.step(name).filter(|run| run.permitted_at.is_some());
                run.is_some_and(|run| run.state != StepState::Ended(StepEnd::NotStarted))
                    && !was_retried(deployment, attempt.number)
                    && !was_readmitted(deployment, attempt.id)
            });
            if spec.retry == RetryClass::Unsafe && began { Err("an unsafe step was repeated") } else { Ok(()) }
        }
        Event::LeaseGranted { .. } => {
            let permanent =
                |state| matches!(state, StepState::Ended(StepEnd::Failed { class: FailureClass::Permanent, .. }));
            let last = deployment.attempts.last();
            let barred = last.is_some_and(|last| last.steps.iter().any(|run| permanent(run.state)));
            if barred { Err("a permanent failure was retried") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Whether a later attempt went on with its process: its permit moved there, and how it ended stands there.
fn was_readmitted(deployment: &Deployment, attempt: AttemptId) -> bool {
    deployment.attempts.iter().any(|later| later.readmits == Some(attempt))
}

fn was_retried(deployment: &Deployment, number: u32) -> bool {
    deployment.decisions.iter().filter(|record| record.kind == DecisionKind::Retry).any(|record| {
        let settled = deployment.attempts.iter().find(|attempt| Some(attempt.id) == record.attempt);
        settled.is_some_and(|settled| settled.number >= number)
    })
}

//! I4: while a permit is open and its outcome unknown, no other attempt gets a lease or a permit on that target, except
//! after a recorded decision that names its proof or its attestation.

use holdfast_common::outcome::StepEnd;
use holdfast_common::recovery::DecisionKind;

use super::Step;
use crate::event::Event;
use crate::state::{Attempt, Deployment, StepState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let Some(deployment) = step.before.and_then(|before| before.current.as_ref()) else { return Ok(()) };
    match &step.recorded.event {
        Event::PermitGranted { .. } | Event::LeaseGranted { .. } => {
            let open = deployment.attempts.iter().any(|attempt| is_open(attempt) && !is_settled(deployment, attempt));
            if open { Err("another attempt or step went on while a permit was open") } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

fn is_open(attempt: &Attempt) -> bool {
    attempt.steps.iter().any(|step| {
        let closed = matches!(
            step.state,
            StepState::Ended(StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::NotStarted)
        );
        step.permitted_at.is_some() && !closed
    })
}

fn is_settled(deployment: &Deployment, attempt: &Attempt) -> bool {
    deployment.decisions.iter().any(|record| {
        let goes_on = matches!(record.kind, DecisionKind::Retry | DecisionKind::Readmit);
        goes_on && record.attempt == Some(attempt.id) && !record.evidence.is_empty()
    })
}

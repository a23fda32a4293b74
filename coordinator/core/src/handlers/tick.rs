//! Time has passed.
//!
//! ```text
//! what passed                    what is recorded
//! a lease                        the split; nothing else in the same tick
//! a step's deadline              over deadline, and a request to stop with cause timeout; ends nothing
//! a delay                        it waits for its assignment; under a hold that is seen when the hold ends
//! a hold's time                  the hold ends, and what waited for it goes on
//! ```

use holdfast_common::id::{AttemptId, StepName};

use crate::bugs::{self, Bug};
use crate::decision::Answer;
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::handlers::hold;
use crate::input::Jitter;
use crate::reservation::{self, End};
use crate::split;
use crate::state::{AttemptState, CancelCause, Deployment, DeploymentState, Waiting};

pub(crate) fn tick(draft: &mut Draft<'_>, jitter: Jitter) -> Answer {
    let before = draft.current().and_then(Deployment::live).map(|attempt| attempt.id);
    split::lapse(draft, jitter);
    let after = draft.current().and_then(Deployment::live).map(|attempt| attempt.id);
    if before == after {
        deadlines(draft);
        hold::expire(draft);
        delay(draft);
    }
    Answer::Done
}

fn deadlines(draft: &mut Draft<'_>) {
    for (attempt, step) in passed(draft) {
        draft.record(Event::DeadlinePassed { attempt, step: step.clone() });
        let Some(deployment) = draft.current() else { return };
        let id = deployment.id;
        if bugs::on(Bug::TimeoutEnds) {
            let because = format!("step {step} passed its deadline");
            draft.record(Event::AttemptEnded { attempt, state: AttemptState::Stopped, because: because.clone() });
            return reservation::end(draft, id, End::observed(DeploymentState::Failed, because));
        }
        if deployment.cancel.is_none() {
            let reason = format!("step {step} passed its deadline");
            let cause = CancelCause::Timeout { step };
            draft.record(Event::CancelRecorded { deployment: id, cause, reason });
        }
    }
}

fn passed(draft: &Draft<'_>) -> Vec<(AttemptId, StepName)> {
    let Some(attempt) = draft.current().and_then(Deployment::live) else { return Vec::new() };
    let now = draft.now.serving;
    let late = attempt.steps.iter().filter(|step| {
        due::runs(step.state) && !step.over_deadline && step.deadline.is_some_and(|deadline| deadline <= now)
    });
    late.map(|step| (attempt.id, step.name.clone())).collect()
}

fn delay(draft: &mut Draft<'_>) {
    if due::is_on_hold(draft.state()) {
        return;
    }
    let Some(deployment) = draft.current().filter(|deployment| deployment.live().is_none()) else { return };
    if deployment.not_before.is_some_and(|instant| instant <= draft.now.serving) {
        let id = deployment.id;
        draft.record(Event::Waits { deployment: id, why: Waiting::Assignment, not_before: None });
    }
}

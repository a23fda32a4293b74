//! A deployment is asked for. It waits its turn; nothing overtakes.

use holdfast_common::id::{DeploymentId, OperatorName, RequestId};
use holdfast_common::spec::{DeploymentSpec, PlanDigest};

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::reservation::{self, Pin, QUEUE_MAX};

pub(crate) fn submit(
    draft: &mut Draft<'_>,
    deployment: DeploymentId,
    request: RequestId,
    spec: &DeploymentSpec,
    by: &OperatorName,
    no_queue: bool,
) -> Result<Answer, Refusal> {
    let state = draft.state();
    match reservation::holder(state) {
        Some(holder) if no_queue => {
            return Err(Refusal::TargetHeld { holder: state.label(holder), state: holder.state });
        }
        Some(_) if state.queue.len() >= QUEUE_MAX => return Err(Refusal::QueueFull { waiting: state.queue.len() }),
        Some(_) => {}
        // A pin is judged when its turn comes; where that is now, the caller hears it at once.
        None => {
            if let Some(Pin { resource, expected, recorded }) = reservation::mismatch(state, spec) {
                return Err(Refusal::RevisionMismatch { resource, expected, recorded: Some(recorded) });
            }
        }
    }
    let number = state.next_number;
    let plan = PlanDigest::of(spec, &state.spec);
    let queue_deadline = spec.timeouts.queue.map(|queue| draft.now.serving.after(queue));
    let (spec, by) = (spec.clone(), by.clone());
    draft.record(Event::Submitted { deployment, number, request, spec, plan, by, queue_deadline });
    reservation::next_turn(draft);
    Ok(Answer::Submitted { number })
}

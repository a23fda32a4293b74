//! A deployment is asked for. It waits its turn; nothing overtakes.

use holdfast_common::id::{DeploymentId, OperatorName, RequestId};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, QueueKind};

use crate::decision::Answer;
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::reservation::{self, Pin, QUEUE_MAX};
use crate::state::Kind;

pub(crate) fn submit(
    draft: &mut Draft<'_>,
    deployment: DeploymentId,
    request: RequestId,
    spec: &DeploymentSpec,
    by: &OperatorName,
    no_queue: bool,
) -> Result<Answer, Refusal> {
    let state = draft.state();
    if let Some((order, highest)) = reservation::passed(state, spec) {
        let before = highest.label(&state.spec.name);
        return Err(Refusal::OrderPassed { order, highest, before });
    }
    let full = state.queue.len() >= QUEUE_MAX && state.spec.queue != QueueKind::Latest;
    match reservation::holder(state) {
        Some(holder) if no_queue => {
            return Err(Refusal::TargetHeld { holder: state.label(holder), state: holder.state });
        }
        Some(_) if full => return Err(Refusal::QueueFull { waiting: state.queue.len() }),
        Some(_) => {}
        None if due::is_on_hold(state) => {
            if let Some(hold) = state.hold.as_ref().filter(|_| no_queue) {
                return Err(Refusal::TargetOnHold(hold.clone()));
            }
        }
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
    let kind = Kind::Deploy;
    draft.record(Event::Submitted { deployment, number, request, kind, spec, plan, by, queue_deadline });
    reservation::supersede(draft);
    reservation::next_turn(draft);
    say_why_it_waits(draft, deployment);
    Ok(Answer::Submitted { number })
}

/// Whoever follows it hears at once behind whom it waits. For the first in the queue that is said already.
fn say_why_it_waits(draft: &mut Draft<'_>, id: DeploymentId) {
    let state = draft.state();
    let is_first = reservation::holder(state).is_some_and(|holder| holder.id == id);
    let waiting = state.deployment(id).and_then(|deployment| deployment.waiting.clone());
    if let Some(why) = waiting.filter(|_| !is_first) {
        draft.record(Event::Waits { deployment: id, why, not_before: None });
    }
}

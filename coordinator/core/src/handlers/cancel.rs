//! A stop is asked for. A request, never an outcome.
//!
//! ```text
//! the deployment                         what follows
//! is not here, and had ended             kept in its history; answered with what it ended as
//! waits, no attempt under way            ends as cancelled on the spot (held where an unsafe step may be in part)
//! has an attempt under way, or is        recorded once; the agent is told until it confirms
//! uncertain or held
//! ```

use holdfast_common::id::{DeploymentId, OperatorName};

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::input::PastDeployment;
use crate::refusal::Refusal;
use crate::reservation::{self, End};
use crate::split;
use crate::state::{CancelCause, DeploymentState};

pub(crate) fn cancel(
    draft: &mut Draft<'_>,
    id: DeploymentId,
    by: &OperatorName,
    reason: &str,
    past: Option<&PastDeployment>,
) -> Result<Answer, Refusal> {
    let Some(deployment) = draft.state().deployment(id) else {
        return after_end(draft, id, by, reason, past);
    };
    let waits = matches!(deployment.state, DeploymentState::Queued | DeploymentState::Active);
    let at_once = waits && deployment.live().is_none();
    let asked = deployment.cancel.as_ref().is_some_and(|cancel| matches!(cancel.cause, CancelCause::Operator { .. }));
    if !asked {
        let cause = CancelCause::Operator { by: by.clone() };
        draft.record(Event::CancelRecorded { deployment: id, cause, reason: reason.to_owned() });
    }
    if !at_once {
        return Ok(Answer::CancelRecorded);
    }
    if draft.current().is_some_and(|current| current.id == id) {
        split::after_cancel(draft);
    } else {
        let because = format!("{by} asked for a stop while it waited; nothing was changed");
        reservation::end(draft, id, End::observed(DeploymentState::Cancelled, because));
    }
    let ended = draft.state().deployment(id).is_none();
    Ok(if ended { Answer::CancelledAtOnce } else { Answer::CancelRecorded })
}

fn after_end(
    draft: &mut Draft<'_>,
    id: DeploymentId,
    by: &OperatorName,
    reason: &str,
    past: Option<&PastDeployment>,
) -> Result<Answer, Refusal> {
    let past = past.filter(|past| past.id == id).ok_or(Refusal::DeploymentNotFound(id))?;
    let (by, reason, ended_as) = (by.clone(), reason.to_owned(), past.state);
    draft.record(Event::CancelAfterEnd { deployment: id, by, reason, ended_as });
    Ok(Answer::CancelTooLate(past.state))
}

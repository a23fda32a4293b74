//! A target is declared, or declared anew.

use holdfast_common::id::OperatorName;
use holdfast_common::spec::TargetSpec;

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::reservation;

/// Resources and agents don't change under a deployment, neither the holder nor one that waits.
pub(crate) fn declare(draft: &mut Draft<'_>, spec: &TargetSpec, by: &OperatorName) -> Result<Answer, Refusal> {
    let state = draft.state();
    if &state.spec == spec {
        return Ok(Answer::Done);
    }
    let moves = state.spec.resources != spec.resources || state.spec.agents != spec.agents;
    if let Some(holder) = reservation::holder(state).filter(|_| moves) {
        return Err(Refusal::TargetInUse { holder: state.label(holder) });
    }
    draft.record(Event::TargetDeclared { spec: spec.clone(), by: by.clone() });
    Ok(Answer::Done)
}

//! The policy makes its next move, through the same inquiries and decisions as a person.

use holdfast_common::id::{AgentName, AttemptId, EvidenceId};

use super::{inquire, settle};
use crate::decision::Answer;
use crate::draft::Draft;
use crate::open_decisions::open_decisions;
use crate::policy::{self, Move};

/// Identities drawn by the caller, and who reaches the resource in question.
pub(crate) struct Drawn<'a> {
    pub(crate) inquiry: EvidenceId,
    pub(crate) evidence: EvidenceId,
    pub(crate) attempt: AttemptId,
    pub(crate) reachable: &'a [AgentName],
}

pub(crate) fn recover(draft: &mut Draft<'_>, drawn: &Drawn<'_>) -> Answer {
    let now = draft.now;
    let Some(deployment) = draft.current().filter(|current| policy::is_due(draft.state(), current, now)) else {
        return Answer::Done;
    };
    let (id, shown) = (deployment.id, deployment.newest_evidence());
    let Some(next) = policy::next(draft.state(), deployment, now.wall) else { return Answer::Done };
    let reason = policy::reason(&open_decisions(draft.state(), deployment, now.wall));
    let by = policy::observer();
    let moved = match next {
        Move::FenceOff => inquire::fence_off(draft, id, &by, drawn.inquiry, drawn.reachable, &reason),
        Move::Inspect => inquire::inspect(draft, id, &by, drawn.inquiry, drawn.reachable),
        Move::Decide(kind) => {
            let (evidence, attempt) = (drawn.evidence, drawn.attempt);
            let asked = settle::Asked { by: &by, kind, reason: &reason, shown, evidence, attempt, back: None };
            settle::settle(draft, id, &asked)
        }
    };
    // Nobody reaches the resource now: that may change.
    if moved.is_err() {
        policy::later(draft, id);
    }
    Answer::Done
}

//! Going back to an earlier revision is asked for: a deployment of its own, before all that wait.

use holdfast_common::id::{DeploymentId, OperatorName, RequestId, Revision};
use holdfast_common::spec::PlanDigest;

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::reservation;
use crate::rollback::{self, Retained, WayBack};
use crate::state::{Base, Deployment, Kind, RollbackOf};

/// What is asked for, and what the caller has looked up.
pub(crate) struct Asked<'a> {
    pub(crate) id: DeploymentId,
    pub(crate) request: RequestId,
    pub(crate) to: &'a Revision,
    pub(crate) shown: &'a [u64],
    pub(crate) by: &'a OperatorName,
    pub(crate) reason: &'a str,
    pub(crate) attested: Option<&'a str>,
    pub(crate) past: &'a [Deployment],
    pub(crate) retained: &'a Retained,
}

/// What it undoes is what stands on the target now: while somebody holds it, that is not known yet.
pub(crate) fn back(draft: &mut Draft<'_>, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    let state = draft.state();
    let goes_back = |waiting: &&Deployment| waiting.kind.rollback().is_some();
    if let Some(holder) = state.current.as_ref().or(state.queue.front().filter(goes_back)) {
        return Err(Refusal::TargetHeld { holder: state.label(holder), state: holder.state });
    }
    let wall = draft.now.wall;
    let way = rollback::to(state, asked.past, asked.to, asked.retained, wall, asked.attested.is_some())
        .ok_or_else(|| Refusal::NothingToGoBackTo { revision: asked.to.clone() })?
        .map_err(Refusal::CannotGoBack)?;
    let now: Vec<u64> = way.undoes.iter().map(|undone| undone.number).collect();
    if now != asked.shown {
        return Err(Refusal::PlaceMoved { shown: asked.shown.to_vec(), now });
    }
    let number = state.next_number;
    let of = RollbackOf {
        undoes: way.undoes.clone(),
        base: Base::AtRest,
        reason: asked.reason.to_owned(),
        attested: asked.attested.map(str::to_owned),
    };
    submit(draft, asked.id, asked.request, asked.by, of, way);
    reservation::next_turn(draft);
    Ok(Answer::Submitted { number })
}

/// Puts a rollback before all that wait.
pub(crate) fn submit(
    draft: &mut Draft<'_>,
    deployment: DeploymentId,
    request: RequestId,
    by: &OperatorName,
    of: RollbackOf,
    way: WayBack,
) {
    let plan = PlanDigest::of(&way.spec, &draft.state().spec);
    draft.record(Event::Submitted {
        deployment,
        number: draft.state().next_number,
        request,
        kind: Kind::Rollback(of),
        spec: way.spec,
        plan,
        by: by.clone(),
        queue_deadline: None,
    });
}

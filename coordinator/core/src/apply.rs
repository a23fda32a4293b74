//! What follows from what was written. The only place that changes a [`TargetState`].
//!
//! Each event is legal in some states and illegal in all others; an illegal pair is told as an [`IllegalEvent`] that
//! carries both, and changes nothing. This is the second wall behind `decide`, and what a restart replays.

use holdfast_common::id::DeploymentId;

use crate::authority;
use crate::event::{Event, Recorded};
use crate::input::Now;
use crate::state::{Deployment, EventSequence, TargetState};

mod attempt;
mod target;
mod waiting;

pub(crate) use attempt::{is_refusal, may_end};

/// An event that can't follow on a state. Neither was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {} can't follow: {because}", .recorded.sequence.0)]
pub struct IllegalEvent {
    /// Why not.
    pub because: &'static str,
    /// The state, as it was.
    pub state: Option<Box<TargetState>>,
    /// The event.
    pub recorded: Box<Recorded>,
}

/// What is to be written for a decision's events, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The state after the last event.
    pub state: TargetState,
    /// The events with their place and time.
    pub recorded: Vec<Recorded>,
    /// Deployments that ended, as they ended. They are not part of the state any more.
    pub ended: Vec<Deployment>,
}

/// The state after one more event.
///
/// # Errors
/// The event is not legal in this state: both come back unchanged.
pub fn apply(state: Option<TargetState>, recorded: &Recorded) -> Result<TargetState, IllegalEvent> {
    let illegal = |because, state: Option<TargetState>| IllegalEvent {
        because,
        state: state.map(Box::new),
        recorded: Box::new(recorded.clone()),
    };
    match state {
        None => first(recorded).map_err(|because| illegal(because, None)),
        Some(mut state) => match change(&mut state, recorded) {
            Ok(_) => Ok(state),
            Err(because) => Err(illegal(because, Some(state))),
        },
    }
}

/// Gives each event of a decision its place and time, and applies it.
///
/// # Errors
/// An event is not legal: then none of them is to be written.
pub fn record(state: Option<TargetState>, now: Now, events: Vec<Event>) -> Result<Option<Written>, IllegalEvent> {
    let mut state = state;
    let (mut all, mut ended) = (Vec::with_capacity(events.len()), Vec::new());
    for event in events {
        let recorded = place(state.as_ref(), now, event);
        ended.extend(ending(state.as_ref(), &recorded));
        state = Some(apply(state, &recorded)?);
        all.push(recorded);
    }
    Ok(state.map(|state| Written { state, recorded: all, ended }))
}

/// The event at the next place of the target.
pub(crate) fn place(state: Option<&TargetState>, now: Now, event: Event) -> Recorded {
    let last = state.map_or(0, |state| state.sequence.0);
    let deployment = about(state, &event);
    Recorded { sequence: EventSequence(last + 1), at: now.wall, deployment, event }
}

/// The deployment as it ends with this event.
pub(crate) fn ending(state: Option<&TargetState>, recorded: &Recorded) -> Option<Deployment> {
    let Event::DeploymentEnded { deployment, state: end, ended } = &recorded.event else { return None };
    let mut last = state?.deployment(*deployment)?.clone();
    last.state = *end;
    last.waiting = None;
    last.ended = Some(ended.clone());
    Some(last)
}

fn about(state: Option<&TargetState>, event: &Event) -> Option<DeploymentId> {
    match event {
        Event::TargetDeclared { .. }
        | Event::RevisionRecorded { .. }
        | Event::HoldPlaced { .. }
        | Event::HoldEnded { .. } => None,
        Event::Submitted { deployment, .. }
        | Event::Reserved { deployment, .. }
        | Event::Waits { deployment, .. }
        | Event::LeaseGranted { deployment, .. }
        | Event::EvidenceFiled { deployment, .. }
        | Event::InquiryOpened { deployment, .. }
        | Event::CancelRecorded { deployment, .. }
        | Event::CancelAfterEnd { deployment, .. }
        | Event::DeploymentDeadlinePassed { deployment }
        | Event::DeploymentMoved { deployment, .. }
        | Event::PolicyScheduled { deployment, .. }
        | Event::RetryScheduled { deployment, .. }
        | Event::Decided { deployment, .. }
        | Event::DeploymentEnded { deployment, .. } => Some(*deployment),
        Event::LeaseRenewed { .. }
        | Event::AgentAway { .. }
        | Event::OfferAccepted { .. }
        | Event::OfferDeclined { .. }
        | Event::PermitGranted { .. }
        | Event::ReportAccepted { .. }
        | Event::AttemptEnded { .. }
        | Event::DeadlinePassed { .. } => state?.current.as_ref().map(|deployment| deployment.id),
    }
}

fn first(recorded: &Recorded) -> Result<TargetState, &'static str> {
    let Event::TargetDeclared { spec, .. } = &recorded.event else { return Err("a target's first event declares it") };
    if recorded.sequence != EventSequence(1) {
        return Err("it is not the first event of the target");
    }
    Ok(target::declared(spec))
}

/// Checks first, changes last: on an error the state is as it was.
pub(crate) fn change(state: &mut TargetState, recorded: &Recorded) -> Result<(), &'static str> {
    if recorded.sequence.0 != state.sequence.0 + 1 {
        return Err("it is not the next event of the target");
    }
    match &recorded.event {
        Event::TargetDeclared { spec, .. } => target::declared_anew(state, spec),
        Event::Submitted { .. } => waiting::submitted(state, recorded)?,
        Event::Reserved { deployment, expected } => waiting::reserved(state, recorded, *deployment, expected)?,
        Event::Waits { deployment, why, not_before } => waiting::waits(state, *deployment, why, *not_before)?,
        Event::LeaseGranted { .. } => attempt::leased(state, recorded)?,
        Event::LeaseRenewed { attempt, run, serving } => attempt::renewed(state, *attempt, *run, *serving)?,
        Event::AgentAway { attempt, away, serving } => attempt::away(state, *attempt, away, *serving)?,
        Event::OfferAccepted { attempt, deadline } => attempt::accepted(state, *attempt, *deadline)?,
        Event::OfferDeclined { attempt, reason, detail } => attempt::declined(state, *attempt, *reason, detail)?,
        Event::PermitGranted { attempt, step, deadline } => {
            attempt::permitted(state, recorded.at, *attempt, step, *deadline)?;
        }
        Event::ReportAccepted { attempt, report, deadline } => {
            attempt::reported(state, recorded.at, *attempt, report, *deadline)?;
        }
        Event::AttemptEnded { attempt, state: end, .. } => attempt::ended(state, *attempt, *end)?,
        Event::DeadlinePassed { attempt, step } => attempt::over_deadline(state, *attempt, step)?,
        Event::DeploymentDeadlinePassed { deployment } => waiting::over_deadline(state, *deployment)?,
        Event::EvidenceFiled { deployment, evidence } => target::filed(state, *deployment, evidence)?,
        Event::InquiryOpened { deployment, inquiry, .. } => target::inquired(state, *deployment, inquiry)?,
        Event::CancelRecorded { deployment, cause, reason } => {
            target::cancelled(state, recorded.at, *deployment, cause, reason)?;
        }
        Event::CancelAfterEnd { .. } => {}
        Event::DeploymentMoved { deployment, state: to, policy_at, because } => {
            waiting::moved(state, *deployment, *to, *policy_at, because)?;
        }
        Event::PolicyScheduled { deployment, at } => waiting::scheduled(state, *deployment, *at)?,
        Event::RetryScheduled { deployment, after, used, .. } => {
            waiting::retry_scheduled(state, *deployment, *after, *used)?;
        }
        Event::Decided { deployment, record } => target::decided(state, *deployment, record)?,
        Event::DeploymentEnded { deployment, state: end, .. } => waiting::ended(state, *deployment, *end)?,
        Event::RevisionRecorded { resource, knowledge } => target::revision(state, resource, knowledge)?,
        Event::HoldPlaced { hold } => state.hold = Some(hold.clone()),
        Event::HoldEnded { .. } => target::hold_ended(state)?,
    }
    state.sequence = recorded.sequence;
    Ok(())
}

/// Raises the target's fence, or says that it would not be a raise.
fn raise(state: &mut TargetState, fence: holdfast_common::fence::Fence) -> Result<(), &'static str> {
    if !authority::is_raise(state, fence) {
        return Err("its fence is not above the highest one of the target");
    }
    state.fence = Some(fence);
    Ok(())
}

//! An operator puts the target on hold, and takes the hold away. A hold stops nothing and frees nothing: it only lets
//! nothing new begin.
//!
//! ```text
//! what there is while a hold is on           what becomes of it
//! an attempt on offer or at work             it goes on to its end: offers are taken, permits are granted
//! a deployment that holds the target,        it keeps it, and waits for the hold before its next attempt
//!   and no attempt of it is under way
//! an uncertain or held deployment            it is reconciled as ever; a retry waits for the hold
//! the first in the queue of a free target    it waits for the hold
//! ```
//!
//! Permits of an attempt that is under way are granted, because the attempt was begun before the hold, and to stop it
//! between two steps would leave the target half changed: whoever wants that asks for a stop.

use holdfast_common::id::OperatorName;

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::input::Until;
use crate::refusal::Refusal;
use crate::reservation;
use crate::state::{Deployment, DeploymentState, HoldEnd, HoldUntil, OperatorHold, Waiting};

/// The same hold again is one record; another one takes its place.
pub(crate) fn place(draft: &mut Draft<'_>, by: &OperatorName, reason: &str, until: Option<Until>) -> Answer {
    if draft.state().hold.as_ref().is_some_and(|hold| is_same(hold, by, reason, until)) {
        return Answer::Done;
    }
    let (now, serving) = (draft.now.wall, draft.now.serving);
    let until = until.map(|until| HoldUntil { shown: until.shown, at: serving.after(until.lasts) });
    let hold = OperatorHold { by: by.clone(), reason: reason.to_owned(), since: now, until };
    let why = hold.waiting();
    draft.record(Event::HoldPlaced { hold });
    match draft.current().filter(|current| waits(current)) {
        Some(current) => {
            let (deployment, not_before) = (current.id, current.not_before);
            draft.record(Event::Waits { deployment, why, not_before });
        }
        None => reservation::next_turn(draft),
    }
    Answer::Done
}

fn is_same(hold: &OperatorHold, by: &OperatorName, reason: &str, until: Option<Until>) -> bool {
    let shown = hold.until.map(|until| until.shown);
    &hold.by == by && hold.reason == reason && shown == until.map(|until| until.shown)
}

/// Whether an attempt of it would follow by itself.
fn waits(current: &Deployment) -> bool {
    matches!(current.state, DeploymentState::Queued | DeploymentState::Active) && current.live().is_none()
}

pub(crate) fn take_away(draft: &mut Draft<'_>, by: &OperatorName) -> Result<Answer, Refusal> {
    if draft.state().hold.is_none() {
        return Err(Refusal::NotOnHold);
    }
    over(draft, HoldEnd::Operator { name: by.clone() });
    Ok(Answer::Done)
}

/// Ends a hold whose time has passed.
pub(crate) fn expire(draft: &mut Draft<'_>) {
    let until = draft.state().hold.as_ref().and_then(|hold| hold.until);
    if until.is_some_and(|until| until.at <= draft.now.serving) {
        over(draft, HoldEnd::Time);
    }
}

/// What waited for the hold goes on: nothing begins that was not first before.
fn over(draft: &mut Draft<'_>, how: HoldEnd) {
    draft.record(Event::HoldEnded { how });
    match draft.current().filter(|current| waits(current)) {
        Some(current) => {
            let not_before = current.not_before.filter(|instant| draft.now.serving < *instant);
            let delay = not_before.map(|instant| instant.since(draft.now.serving));
            let why = delay.map_or(Waiting::Assignment, |delay| Waiting::backoff(delay, draft.now.wall));
            draft.record(Event::Waits { deployment: current.id, why, not_before });
        }
        None => reservation::next_turn(draft),
    }
}

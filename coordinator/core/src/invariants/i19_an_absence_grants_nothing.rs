//! I19: a planned absence moves the end of the current lease of taken work, once for each lease and by no more than it adds; it
//! moves no attempt and no step, opens no permit, raises no fence, and no lease has another absence than was recorded.

use super::Step;
use crate::event::Event;
use crate::state::{Attempt, AttemptState, Away, Deployment, TargetState};

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let before = step.before.and_then(last);
    match &step.recorded.event {
        Event::AgentAway { attempt, away, serving } => {
            let running = |last: &&Attempt| last.id == *attempt && last.state == AttemptState::Running;
            let last = before.filter(running).ok_or("an absence of an attempt that nobody is at")?;
            let lease = last.lease.as_ref().ok_or("an absence without a lease")?;
            if lease.away.is_some() {
                return Err("a lease outlasted a second absence");
            }
            if away.until.0 > serving.0.saturating_add(lease.ttl.0).saturating_add(away.added.0) {
                return Err("an absence moved the end of a lease by more than it adds");
            }
            let same = step.before.map(bare) == Some(bare(step.after));
            if same { Ok(()) } else { Err("an absence changed more than the end of a lease") }
        }
        Event::LeaseGranted { .. } if absence(self::last(step.after)).is_some() => {
            Err("a new lease begins with an absence")
        }
        Event::LeaseGranted { .. } | Event::LeaseRenewed { .. } | Event::TargetDeclared { .. } => Ok(()),
        _ => {
            // Only a lease that is there can have one.
            let after = absence(self::last(step.after));
            let same = after.is_none() || after == absence(before);
            if same { Ok(()) } else { Err("a lease has an absence that nobody recorded") }
        }
    }
}

fn last(state: &TargetState) -> Option<&Attempt> {
    state.current.as_ref()?.attempts.last()
}

fn absence(attempt: Option<&Attempt>) -> Option<&Away> {
    attempt?.lease.as_ref()?.away.as_ref()
}

/// The target without its leases and its place in the history.
fn bare(state: &TargetState) -> (TargetState, Option<Deployment>) {
    let mut state = state.clone();
    state.sequence = crate::state::EventSequence(0);
    let mut current = state.current.take();
    if let Some(last) = current.as_mut().and_then(|current| current.attempts.last_mut()) {
        last.lease = None;
    }
    (state, current)
}

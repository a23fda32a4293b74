//! Events about a deployment's place: asked for, reserved, waiting, moved, ended.

use std::collections::BTreeMap;

use holdfast_common::id::{AttemptId, DeploymentId, ResourceName, Revision};
use holdfast_common::time::Serving;

use crate::bugs::{self, Bug};
use crate::due;
use crate::event::{Event, Recorded};
use crate::state::{Deployment, DeploymentState, HighestOrder, TargetState, Waiting};

/// A deployment goes to the end of the queue, a rollback before it: what it undoes is what is there now.
pub(super) fn submitted(state: &mut TargetState, recorded: &Recorded) -> Result<(), &'static str> {
    let Event::Submitted { deployment: id, number, request, kind, spec, plan, by, queue_deadline } = &recorded.event
    else {
        return Err("it submits nothing");
    };
    if state.deployment(*id).is_some() {
        return Err("the deployment is here already");
    }
    if *number != state.next_number {
        return Err("it is not the target's next deployment number");
    }
    let goes_back = kind.rollback().is_some();
    if goes_back && state.current.is_some() {
        return Err("what holds the target would not be undone");
    }
    let waiting = match (&state.current, state.queue.front().filter(|_| !goes_back)) {
        (Some(holder), _) => Waiting::Reservation { holder: state.label(holder) },
        (None, Some(first)) => Waiting::Turn { after: state.label(first) },
        (None, None) => Waiting::Assignment,
    };
    state.next_number += 1;
    let deployment = Deployment {
        id: *id,
        number: *number,
        request: *request,
        kind: kind.clone(),
        spec: spec.clone(),
        plan: plan.clone(),
        submitted_by: by.clone(),
        submitted_at: recorded.at,
        state: DeploymentState::Queued,
        waiting: Some(waiting),
        not_before: None,
        queue_deadline: *queue_deadline,
        deadline: None,
        over_deadline: false,
        policy_at: None,
        held_because: None,
        reserved_at: None,
        expected: BTreeMap::new(),
        attempts: Vec::new(),
        cancel: None,
        evidence: Vec::new(),
        inquiries: Vec::new(),
        decisions: Vec::new(),
        ended: None,
    };
    if goes_back {
        state.queue.push_front(deployment);
        behind_the_first(state);
    } else {
        state.queue.push_back(deployment);
    }
    Ok(())
}

pub(super) fn reserved(
    state: &mut TargetState,
    recorded: &Recorded,
    id: DeploymentId,
    expected: &BTreeMap<ResourceName, Option<Revision>>,
) -> Result<(), &'static str> {
    if state.current.is_some() {
        return Err("the target is reserved already");
    }
    let Some(head) = state.queue.front().filter(|head| head.id == id) else {
        return Err("it is not the deployment's turn");
    };
    let handed_over = head.kind.rollback().is_some_and(|of| of.base.is_handed_over());
    if due::is_on_hold(state) && !handed_over {
        return Err("the target is on hold");
    }
    let Some(mut deployment) = state.queue.pop_front() else { return Err("nothing waits") };
    deployment.reserved_at = Some(recorded.at);
    deployment.waiting = Some(Waiting::Assignment);
    deployment.expected = expected.clone();
    let holder = state.label(&deployment);
    let highest = state.order.map(|highest| highest.key);
    if let Some(key) = deployment.spec.order.filter(|key| Some(*key) >= highest) {
        state.order = Some(HighestOrder { key, number: deployment.number });
    }
    for behind in &mut state.queue {
        behind.waiting = Some(Waiting::Reservation { holder: holder.clone() });
    }
    state.current = Some(deployment);
    Ok(())
}

pub(super) fn waits(
    state: &mut TargetState,
    id: DeploymentId,
    why: &Waiting,
    not_before: Option<Serving>,
) -> Result<(), &'static str> {
    let deployment = state.deployment_mut(id).ok_or("the deployment is not here")?;
    match deployment.state {
        DeploymentState::Queued | DeploymentState::Active if deployment.live().is_none() => {}
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Uncertain
        | DeploymentState::Held
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => return Err("the deployment does not wait for an attempt"),
    }
    deployment.waiting = Some(why.clone());
    deployment.not_before = not_before;
    Ok(())
}

pub(super) fn over_deadline(state: &mut TargetState, id: DeploymentId) -> Result<(), &'static str> {
    let deployment = state.current.as_mut().filter(|d| d.id == id).ok_or("the deployment is not the current one")?;
    if deployment.deadline.is_none() {
        return Err("the deployment has no deadline");
    }
    deployment.over_deadline = true;
    Ok(())
}

pub(super) fn moved(
    state: &mut TargetState,
    id: DeploymentId,
    to: DeploymentState,
    policy_at: Option<Serving>,
    because: &str,
) -> Result<(), &'static str> {
    let deployment = state.current.as_mut().filter(|d| d.id == id).ok_or("the deployment is not the current one")?;
    if to.is_terminal() {
        return Err("a deployment does not move to its end, it ends");
    }
    if deployment.live().is_some() {
        return Err("its attempt is not over");
    }
    if to == DeploymentState::Queued && deployment.ever_permitted() {
        return Err("an attempt of it was permitted: it does not queue again");
    }
    deployment.state = to;
    deployment.waiting = None;
    deployment.not_before = None;
    deployment.policy_at = policy_at;
    deployment.held_because = (to == DeploymentState::Held).then(|| because.to_owned());
    Ok(())
}

/// Moves nothing: it says why and when the next attempt follows.
pub(super) fn retry_scheduled(
    state: &TargetState,
    id: DeploymentId,
    after: AttemptId,
    used: u32,
) -> Result<(), &'static str> {
    let deployment = state.current.as_ref().filter(|d| d.id == id).ok_or("the deployment is not the current one")?;
    let waits = matches!(deployment.state, DeploymentState::Queued | DeploymentState::Active);
    if !waits || deployment.live().is_some() {
        return Err("the deployment does not wait for an attempt");
    }
    if deployment.attempts.last().is_none_or(|last| last.id != after) || deployment.tries() != used {
        return Err("it does not follow on the last attempt");
    }
    if used >= deployment.spec.retry.max_attempts {
        return Err("no tries are left");
    }
    Ok(())
}

pub(super) fn scheduled(state: &mut TargetState, id: DeploymentId, at: Serving) -> Result<(), &'static str> {
    let deployment = state.current.as_mut().filter(|d| d.id == id).ok_or("the deployment is not the current one")?;
    if !matches!(deployment.state, DeploymentState::Uncertain | DeploymentState::Held) {
        return Err("there is nothing for a policy to do");
    }
    deployment.policy_at = Some(at);
    Ok(())
}

pub(super) fn ended(state: &mut TargetState, id: DeploymentId, end: DeploymentState) -> Result<(), &'static str> {
    let deployment = state.deployment(id).ok_or("the deployment is not here")?;
    if !end.is_terminal() {
        return Err("that is no end");
    }
    if deployment.live().is_some() {
        return Err("its attempt is not over");
    }
    let open = deployment.attempts.iter().any(|attempt| attempt.open_permit().is_some());
    if open && !bugs::on(Bug::FreeOnExpiry) && !bugs::on(Bug::LapseAsFailed) {
        return Err("a permit of it is open");
    }
    state.current.take_if(|current| current.id == id);
    state.queue.retain(|waiting| waiting.id != id);
    behind_the_first(state);
    Ok(())
}

/// Those behind the first of a free target's queue wait for it, and for nobody that has ended.
fn behind_the_first(state: &mut TargetState) {
    let first = state.queue.front().filter(|_| state.current.is_none()).map(|first| state.label(first));
    let Some(after) = first else { return };
    for behind in state.queue.iter_mut().skip(1) {
        behind.waiting = Some(Waiting::Turn { after: after.clone() });
    }
}

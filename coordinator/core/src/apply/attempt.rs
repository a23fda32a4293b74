//! Events about an attempt and its steps.
//!
//! ```text
//! attempt: (leased) offered -> running -> succeeded | failed | stopped
//!                   offered -> declined
//!          offered, running -> lapsed | interrupted | uncertain -> resolved
//! step:    pending -> started                      a step without effect
//!          pending -> permitted -> started         a mutating step
//!          pending, permitted, started -> ended    the end may overtake the start
//! ```

use holdfast_common::adapter::Enforce;
use holdfast_common::id::{AgentName, AttemptId, IncarnationId, StepName};
use holdfast_common::outcome::StepEnd;
use holdfast_common::report::{DeclineReason, Report, ReportBody, Reread};
use holdfast_common::spec::{Reach, StepEffect};
use holdfast_common::time::{Serving, Wall};

use crate::bugs::{self, Bug};
use crate::due;
use crate::event::{Event, Recorded};
use crate::handlers::reread;
use crate::state::{
    Attempt, AttemptState, Away, CarryState, Deployment, DeploymentState, HeldUp, Lease, Run, Seen, StepRun, StepState,
    TargetState,
};
use crate::weigh;

pub(super) fn leased(state: &mut TargetState, recorded: &Recorded) -> Result<(), &'static str> {
    let Event::LeaseGranted {
        deployment: id,
        attempt,
        number,
        agent,
        incarnation,
        fence,
        ttl,
        run,
        serving,
        carried,
        reread,
        readmits,
    } = &recorded.event
    else {
        return Err("it grants no lease");
    };
    let deployment = state.current.as_ref().filter(|d| d.id == *id).ok_or("the deployment does not hold the target")?;
    // What runs goes on under a hold, under a new fence too.
    if due::is_on_hold(state) && readmits.is_none() {
        return Err("the target is on hold");
    }
    if !matches!(deployment.state, DeploymentState::Queued | DeploymentState::Active) || deployment.live().is_some() {
        return Err("the deployment does not wait for an attempt");
    }
    if deployment.attempts.iter().any(|other| other.open_permit().is_some()) && !bugs::on(Bug::RetryUncertainByTimer) {
        return Err("a permit of an earlier attempt is open");
    }
    if deployment.attempts.iter().any(|other| other.id == *attempt) || deployment.attempts.len() + 1 != *number as usize
    {
        return Err("the attempt is not a new one");
    }
    let steps = match readmits {
        Some(earlier) => readmitted(deployment, *earlier, agent, *incarnation)?,
        None => {
            let carry = |name: &StepName| match (carried.contains(name), reread.contains(name)) {
                (false, _) => None,
                (true, false) => Some(CarryState::NotRead),
                (true, true) => Some(CarryState::Due),
            };
            deployment.spec.steps.iter().map(|step| fresh(&step.name, carry(&step.name))).collect()
        }
    };
    if !bugs::on(Bug::ForgetFenceOnRequeue) {
        super::raise(state, *fence)?;
    }
    let Some(deployment) = state.current.as_mut() else { return Err("nothing holds the target") };
    deployment.attempts.push(Attempt {
        id: *attempt,
        number: *number,
        agent: agent.clone(),
        incarnation: *incarnation,
        fence: *fence,
        state: AttemptState::Offered,
        lease: Some(Lease { ttl: *ttl, written_run: *run, heard: *serving, away: None }),
        offered_at: recorded.at,
        readmits: *readmits,
        declined: String::new(),
        steps,
    });
    deployment.state = DeploymentState::Active;
    deployment.waiting = None;
    deployment.not_before = None;
    Ok(())
}

/// The steps as the earlier attempt left them, the open permit among them: the same process goes on.
fn readmitted(
    deployment: &Deployment,
    earlier: AttemptId,
    agent: &AgentName,
    incarnation: IncarnationId,
) -> Result<Vec<StepRun>, &'static str> {
    let last = deployment.attempts.last().filter(|last| last.id == earlier).ok_or("it does not go on with the last")?;
    if last.state != AttemptState::Resolved || !last.steps.iter().any(StepRun::permit_is_open) {
        return Err("nothing of the attempt that it goes on with is open");
    }
    if (&last.agent, last.incarnation) != (agent, incarnation) {
        return Err("only the same journal can go on with its process");
    }
    Ok(last.steps.clone())
}

fn fresh(name: &StepName, carry: Option<CarryState>) -> StepRun {
    StepRun {
        name: name.clone(),
        state: carry.map_or(StepState::Pending, |carry| StepState::Carried { carry }),
        permitted_at: None,
        started: None,
        ended: None,
        deadline: None,
        over_deadline: false,
        exit: None,
        observed: None,
        detail: String::new(),
    }
}

pub(super) fn renewed(state: &mut TargetState, id: AttemptId, run: Run, serving: Serving) -> Result<(), &'static str> {
    let lease = live(state, id)?.lease.as_mut().ok_or("the attempt has no lease")?;
    lease.written_run = run;
    lease.heard = lease.heard.max(serving);
    if let Some(away) = &mut lease.away {
        away.is_back = true;
    }
    Ok(())
}

/// Once for each lease, and of work that was taken.
pub(super) fn away(state: &mut TargetState, id: AttemptId, away: &Away, serving: Serving) -> Result<(), &'static str> {
    let attempt = live(state, id)?;
    if attempt.state != AttemptState::Running {
        return Err("the attempt was not taken");
    }
    let lease = attempt.lease.as_mut().ok_or("the attempt has no lease")?;
    if lease.away.is_some() && !bugs::on(Bug::AwayAgain) {
        return Err("the lease has outlasted an absence before");
    }
    lease.away = Some(away.clone());
    lease.heard = lease.heard.max(serving);
    Ok(())
}

/// The first accepted offer binds host-bound resources to the agent's host. Of the deployment's own, the first ends its
/// time in the queue and begins its time at work.
pub(super) fn accepted(state: &mut TargetState, id: AttemptId, deadline: Option<Serving>) -> Result<(), &'static str> {
    let attempt = offered(state, id)?;
    attempt.state = AttemptState::Running;
    let agent = attempt.agent.clone();
    if let Some(deployment) = &mut state.current {
        deployment.queue_deadline = None;
        deployment.deadline = deployment.deadline.or(deadline);
    }
    let bound = state.spec.resources.iter().any(|resource| resource.reach == Reach::Host);
    if bound && state.home.is_none() {
        state.home = Some(agent);
    }
    Ok(())
}

pub(super) fn declined(
    state: &mut TargetState,
    id: AttemptId,
    reason: DeclineReason,
    detail: &str,
) -> Result<(), &'static str> {
    let attempt = offered(state, id)?;
    attempt.state = AttemptState::Declined(reason);
    detail.clone_into(&mut attempt.declined);
    attempt.lease = None;
    Ok(())
}

pub(super) fn permitted(
    state: &mut TargetState,
    at: Wall,
    id: AttemptId,
    name: &StepName,
    deadline: Option<Serving>,
) -> Result<(), &'static str> {
    let deployment = state.current.as_ref().ok_or("nothing holds the target")?;
    let mutates = deployment.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
    let open = deployment.attempts.iter().any(|attempt| attempt.open_permit().is_some());
    if !mutates {
        return Err("only a mutating step is permitted");
    }
    if open && !bugs::on(Bug::SecondPermit) && !bugs::on(Bug::SkipPermitCheck) && !bugs::on(Bug::RetryUncertainByTimer)
    {
        return Err("another permit on the target is open");
    }
    let attempt = live(state, id)?;
    if attempt.state != AttemptState::Running {
        return Err("the attempt is not running");
    }
    let step = step(attempt, name)?;
    if step.state != StepState::Pending {
        return Err("the step is not pending");
    }
    step.state = StepState::Permitted;
    step.permitted_at = Some(at);
    step.deadline = deadline;
    Ok(())
}

/// What enforces fences has seen one that is no lower than that of the first attempt that might have applied the step.
fn shown_by_its_effect(state: &mut TargetState, name: &StepName) {
    let Some(deployment) = state.current.as_ref() else { return };
    let Some(step) = deployment.step(name) else { return };
    let permitted = |attempt: &&Attempt| attempt.step(name).is_some_and(|run| run.permitted_at.is_some());
    let first = deployment.attempts.iter().find(permitted).map(|attempt| attempt.fence);
    let enforces = weigh::capability(state, step).is_some_and(|capability| capability.enforce == Enforce::Fence);
    let resource = step.resource.clone().filter(|_| enforces);
    if let Some((resource, fence)) = resource.zip(first) {
        super::target::shown(state, &resource, fence);
    }
}

pub(super) fn reported(
    state: &mut TargetState,
    at: Wall,
    id: AttemptId,
    report: &Report,
    deadline: Option<Serving>,
) -> Result<(), &'static str> {
    let seen = Seen { said_at: report.said_at, received_at: at };
    let deployment = state.current.as_ref().ok_or("nothing holds the target")?;
    let mutates = |name: &StepName| deployment.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
    match &report.body {
        ReportBody::StepStarted { step: name } => {
            let from = if mutates(name) { StepState::Permitted } else { StepState::Pending };
            let step = step(live(state, id)?, name)?;
            if step.state != from {
                return Err("the step can't start now");
            }
            step.state = StepState::Started;
            step.started = Some(seen);
            step.deadline = deadline.or(step.deadline);
        }
        ReportBody::StepEnded { step: name, end, exit, observed, detail } => {
            let mutates = mutates(name);
            let step = step(live(state, id)?, name)?;
            if !may_end(step.state, mutates, *end) {
                return Err("the step can't end so now");
            }
            step.state = StepState::Ended(*end);
            step.ended = Some(seen);
            step.exit = *exit;
            step.observed.clone_from(observed);
            step.detail.clone_from(detail);
            if *end == StepEnd::Applied {
                shown_by_its_effect(state, name);
            }
        }
        ReportBody::AttemptEnded { .. } => {
            live(state, id)?;
            if let Some(cancel) = state.current.as_mut().and_then(|deployment| deployment.cancel.as_mut()) {
                cancel.observed = Some(seen);
            }
        }
        ReportBody::CancelReceived { held_up } => {
            live(state, id)?;
            let cancel = cancel(state)?;
            cancel.delivered.get_or_insert(seen);
            if !held_up.is_empty() {
                cancel.held_up = Some(HeldUp { seen, why: held_up.clone() });
            }
        }
        ReportBody::CancelActed { .. } => {
            live(state, id)?;
            cancel(state)?.acted = Some(seen);
        }
        ReportBody::Reread { step: name, found } => {
            let carry = reread::weigh(state, deployment, name, found).ok_or("the step has nothing to be read again")?;
            let attempt = live(state, id)?;
            if !reread::may_be_told(attempt, name) {
                return Err("the step is not to be read again now");
            }
            let step = step(attempt, name)?;
            step.state = StepState::Carried { carry };
            match found {
                Reread::Read { reading } => {
                    step.observed.clone_from(&reading.revision);
                    step.detail.clone_from(&reading.detail);
                }
                Reread::Failed { detail } => step.detail.clone_from(detail),
            }
        }
    }
    Ok(())
}

/// Which ends can follow on which state of a step.
pub(crate) fn may_end(state: StepState, mutates: bool, end: StepEnd) -> bool {
    match (state, end) {
        (StepState::Permitted, _) => mutates,
        (StepState::Pending | StepState::Started, StepEnd::NotStarted) => false,
        (StepState::Started, _) => true,
        // The agent refused it before it asked for a permit: nothing of it is there.
        (StepState::Pending, end) => !mutates || is_refusal(end),
        (StepState::Ended(_) | StepState::Carried { .. }, _) => false,
    }
}

pub(super) fn ended(state: &mut TargetState, id: AttemptId, end: AttemptState) -> Result<(), &'static str> {
    let attempt = last(state, id)?;
    let open = attempt.open_permit().is_some();
    let legal = match end {
        AttemptState::Succeeded | AttemptState::Failed | AttemptState::Stopped => {
            attempt.state == AttemptState::Running && (!open || bugs::on(Bug::LapseAsFailed))
        }
        AttemptState::Lapsed => attempt.state.is_live() && !attempt.ever_permitted(),
        AttemptState::Interrupted => attempt.state.is_live() && !open && attempt.ever_permitted(),
        AttemptState::Uncertain => attempt.state.is_live() && open,
        AttemptState::Resolved => attempt.state == AttemptState::Uncertain,
        AttemptState::Offered | AttemptState::Running | AttemptState::Declined(_) => false,
    };
    if !legal {
        return Err("the attempt can't end so");
    }
    attempt.state = end;
    attempt.lease = None;
    Ok(())
}

pub(super) fn over_deadline(state: &mut TargetState, id: AttemptId, name: &StepName) -> Result<(), &'static str> {
    step(live(state, id)?, name)?.over_deadline = true;
    Ok(())
}

fn last(state: &mut TargetState, id: AttemptId) -> Result<&mut Attempt, &'static str> {
    let attempt = state.current.as_mut().and_then(|deployment| deployment.attempts.last_mut());
    attempt.filter(|attempt| attempt.id == id).ok_or("it is not the target's last attempt")
}

fn live(state: &mut TargetState, id: AttemptId) -> Result<&mut Attempt, &'static str> {
    last(state, id)?.state.is_live().then_some(()).ok_or("the attempt is over")?;
    last(state, id)
}

fn offered(state: &mut TargetState, id: AttemptId) -> Result<&mut Attempt, &'static str> {
    let attempt = last(state, id)?;
    if attempt.state == AttemptState::Offered { Ok(attempt) } else { Err("the attempt is not on offer") }
}

fn step<'a>(attempt: &'a mut Attempt, name: &StepName) -> Result<&'a mut StepRun, &'static str> {
    attempt.steps.iter_mut().find(|step| &step.name == name).ok_or("the attempt has no such step")
}

fn cancel(state: &mut TargetState) -> Result<&mut crate::state::Cancellation, &'static str> {
    state.current.as_mut().and_then(|deployment| deployment.cancel.as_mut()).ok_or("no stop was asked for")
}

/// Whether it says that a step failed and nothing of its effect can be there. A mutating step without a permit can end
/// in no other way.
pub(crate) fn is_refusal(end: StepEnd) -> bool {
    matches!(end, StepEnd::Failed { maybe_partial: false, .. })
}

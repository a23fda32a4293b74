//! The refusal that a held target gives, with the facts of whoever holds it.

use holdfast_common::adapter::Inspect;
use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::state::{Attempt, Deployment, DeploymentState, StepRun};

use super::deployment::label;
use super::enums::state_word;
use super::instant;
use super::sentence::{because, open_step};

/// Why nothing can start on the target now, and what to do; `None` if nobody holds it. `waiter` is what waits because
/// of it, like `shop@prod#13`; without one, the request was refused.
#[must_use]
pub fn problem(state: &TargetState, waiter: Option<&str>) -> Option<Problem> {
    let holder = state.current.as_ref()?;
    let (target, who) = (&state.spec.name, label(&state.spec.name, holder).to_string());
    let title = format!("{target} is held by {who}, which is {}", state_word(holder.state));
    let problem = Problem::new(code(holder.state), title)
        .with("target", target.as_str())
        .with("deployment", &who)
        .with("state", state_word(holder.state));
    let problem = match (holder.state, open_step(holder)) {
        (DeploymentState::Uncertain, Some((attempt, step))) => uncertain(problem, attempt, step),
        (
            DeploymentState::Uncertain
            | DeploymentState::Held
            | DeploymentState::Queued
            | DeploymentState::Active
            | DeploymentState::Succeeded
            | DeploymentState::Failed
            | DeploymentState::Cancelled,
            _,
        ) => problem.known(because(holder)),
    };
    let problem = match waiter {
        Some(waiter) => problem.so(format!("{waiter} waits; {}", until(&who, target.as_str(), holder.state))),
        None => problem.so(format!("nothing was recorded; {}", until(&who, target.as_str(), holder.state))),
    };
    Some(next(problem, &who, holder.state, can_be_read(state, holder)))
}

fn code(state: DeploymentState) -> Code {
    match state {
        DeploymentState::Uncertain => Code::TargetUncertain,
        DeploymentState::Held => Code::TargetWaitsForDecision,
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => Code::TargetBusy,
    }
}

fn uncertain(problem: Problem, attempt: &Attempt, step: &StepRun) -> Problem {
    let permitted = step.permitted_at.map(instant).unwrap_or_default();
    let problem = problem.known(format!(
        "step {} was permitted {permitted} on {} under fence {}; last accepted word {}",
        step.name,
        attempt.agent,
        attempt.fence,
        last_word(attempt).map_or_else(|| "none".to_owned(), instant)
    ));
    problem
        .not_known(format!("whether {} finished; whether {} is still working", step.name, attempt.agent))
        .with("step", step.name.as_str())
        .with("agent", attempt.agent.as_str())
        .with("fence", attempt.fence.as_u64().to_string())
}

/// When the last report of the attempt was accepted.
fn last_word(attempt: &Attempt) -> Option<Wall> {
    attempt.steps.iter().flat_map(|step| step.started.iter().chain(&step.ended)).map(|seen| seen.received_at).max()
}

fn until(who: &str, target: &str, state: DeploymentState) -> String {
    match state {
        DeploymentState::Uncertain | DeploymentState::Held => {
            format!("nothing starts on {target} until {who} is reconciled")
        }
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => format!("nothing else starts on {target} until {who} has ended"),
    }
}

/// Whether the adapter of the step that is open can read its resource.
fn can_be_read(state: &TargetState, holder: &Deployment) -> bool {
    let step = open_step(holder).and_then(|(_, run)| holder.step(&run.name));
    let resource = step.and_then(|step| state.spec.resource(step.resource.as_ref()?));
    let capability = step.zip(resource).map(|(step, resource)| step.capability(resource));
    capability.is_some_and(|capability| capability.inspect != Inspect::None)
}

fn next(problem: Problem, who: &str, state: DeploymentState, can_be_read: bool) -> Problem {
    match state {
        DeploymentState::Uncertain if can_be_read => problem.next(format!("holdfast reconcile inspect {who}")),
        DeploymentState::Uncertain | DeploymentState::Held => problem.next(format!("holdfast reconcile show {who}")),
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => problem.next(format!("holdfast watch {who}")),
    }
}

/// Why the target can't be declared otherwise now, and what helps; `None` if nobody holds it or waits for it.
#[must_use]
pub fn in_use(state: &TargetState) -> Option<Problem> {
    let target = &state.spec.name;
    let first = state.current.as_ref().or(state.queue.front())?;
    let who = label(target, first).to_string();
    let verb = if state.current.is_some() { "holds" } else { "waits for" };
    let title = format!("{who} {verb} {target}: its resources and agents can't change under a deployment");
    let problem = Problem::new(Code::TargetInUse, title)
        .known(format!("{who} is {}: {}", state_word(first.state), because(first)))
        .so(format!("the declaration of {target} stays as it is, until nothing holds it and nothing waits for it"))
        .with("target", target.as_str())
        .with("deployment", &who)
        .with("state", state_word(first.state));
    let begun = first.live().is_some() || first.ever_permitted();
    let problem = match first.state {
        DeploymentState::Uncertain => problem.next(format!("holdfast reconcile show {who}")),
        DeploymentState::Queued if !begun => {
            problem.next(format!("holdfast cancel {who} --reason TEXT, which ends it at once: nothing of it has begun"))
        }
        DeploymentState::Held => problem.next(format!("holdfast reconcile show {who}")),
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => problem.next(format!("holdfast wait {who} --for terminal")),
    };
    let more = state.queue.iter().filter(|waiting| waiting.id != first.id).count();
    Some(if more == 0 {
        problem
    } else {
        problem
            .known(format!("{more} more wait"))
            .next(format!("holdfast list {target} --state queued, for those that wait behind it"))
    })
}

/// Whether anything of the holder is worth the caller's attention before it waits.
#[must_use]
pub fn needs_somebody(holder: &Deployment) -> bool {
    matches!(holder.state, DeploymentState::Uncertain | DeploymentState::Held)
}

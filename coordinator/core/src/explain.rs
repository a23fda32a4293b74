//! One sentence per decision. Each claims no more than the recorded facts; text from outside is not repeated here, but for the
//! rule by which a host refused.

use holdfast_common::id::{AgentName, DeploymentLabel, ResourceName, StepName};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::{DeclineReason, Declined};
use holdfast_common::spec::OrderKey;
use holdfast_common::time::Millis;

use crate::fate;
use crate::reservation::Pin;
use crate::state::{Attempt, CancelCause, Deployment, HighestOrder, Lease};

pub(crate) fn list(steps: &[StepName]) -> String {
    steps.iter().map(StepName::as_str).collect::<Vec<_>>().join(", ")
}

/// What a deployment that is not tried again had applied.
pub(crate) fn had_applied(deployment: &Deployment) -> String {
    match fate::applied(deployment).as_slice() {
        [] if fate::never_mutated(deployment) => "nothing was changed".to_owned(),
        [] => "no step was observed as applied".to_owned(),
        steps => format!("applied before: {}", list(steps)),
    }
}

pub(crate) fn asked_by(cause: &CancelCause) -> String {
    match cause {
        CancelCause::Operator { by } => format!("{by} asked for a stop"),
        CancelCause::Timeout { step } => format!("step {step} passed its deadline"),
        CancelCause::QueueTimeout => "no agent took it within its time in the queue".to_owned(),
        CancelCause::DeploymentTimeout => "it passed its own deadline".to_owned(),
    }
}

pub(crate) fn pin_differs(pin: &Pin) -> String {
    let Pin { resource, expected, recorded } = pin;
    format!(
        "resource {resource} has revision {recorded} on record and the file expects {expected}: nothing was changed"
    )
}

pub(crate) fn order_passed(key: OrderKey, highest: HighestOrder, before: &DeploymentLabel) -> String {
    format!("order key {key} is lower than {}, with which {before} held the target: nothing was changed", highest.key)
}

pub(crate) fn superseded(by: &DeploymentLabel) -> String {
    format!("superseded by {by} while it waited: nothing was changed")
}

/// What a lease had waited for in vain.
fn silence(lease: &Lease) -> String {
    let ttl = lease.ttl;
    match lease.away.as_ref().filter(|away| !away.is_back) {
        Some(away) => {
            format!("its agent left by plan and was not heard for {}", Millis(ttl.0.saturating_add(away.added.0)))
        }
        None => format!("nothing was heard for {ttl}"),
    }
}

pub(crate) fn lapsed(lease: &Lease) -> String {
    format!("{} and no step was permitted to change anything in this attempt", silence(lease))
}

pub(crate) fn interrupted(lease: &Lease) -> String {
    format!("{}; how each permitted step ended had been reported before", silence(lease))
}

pub(crate) fn uncertain(lease: &Lease, step: &StepName) -> String {
    format!("{} and step {step} was permitted: it may be running or done", silence(lease))
}

pub(crate) fn end_unknown(step: &StepName) -> String {
    format!("the agent says that nobody can tell how step {step} ended")
}

/// Why an agent did not take the last attempt. Where an earlier one was leased to it too, its work may still run there.
pub(crate) fn declined(deployment: &Deployment, agent: &AgentName, declined: &Declined) -> String {
    let reason = declined.reason;
    let offered = deployment.attempts.last().map(|attempt| attempt.id);
    let earlier =
        deployment.attempts.iter().rev().find(|attempt| Some(attempt.id) != offered && attempt.agent == *agent);
    let why = match (reason, earlier) {
        (DeclineReason::Conflict, Some(earlier)) => format!(
            "its host still has attempt {} of this deployment under fence {}, whose work may be running there",
            earlier.number, earlier.fence
        ),
        (DeclineReason::Conflict, None) => "its host holds the same attempt under another fence".to_owned(),
        (DeclineReason::Busy, _) => {
            "its host still has work of an earlier deployment of this target, which may be running there".to_owned()
        }
        (DeclineReason::UnknownTarget, _) => "it does not serve this target, resource or adapter".to_owned(),
        (DeclineReason::FenceRegression, _) => "the fence is not above the highest that it has seen".to_owned(),
        (DeclineReason::HostPolicy, _) => "its host's policy forbids it".to_owned(),
        (DeclineReason::Draining, _) => "it is draining".to_owned(),
        (DeclineReason::NoRoom, _) => "its host has no room to record what would come of it".to_owned(),
    };
    let detail = if declined.detail.is_empty() { String::new() } else { format!(": {}", declined.detail) };
    format!("{agent} declined: {why}{detail}")
}

pub(crate) fn tries_used(tries: u32) -> String {
    match tries {
        0 | 1 => "its only try is used up".to_owned(),
        tries => format!("all {tries} tries are used up"),
    }
}

/// What an attempt found that carries over what somebody else has changed since.
pub(crate) fn disturbed(deployment: &Deployment, attempt: &Attempt) -> String {
    let Some(step) = attempt.disturbed().and_then(|name| deployment.step(name)) else { return String::new() };
    let resource = step.resource.as_ref().map(ResourceName::as_str).unwrap_or_default();
    let agent = &attempt.agent;
    format!(
        "{resource} is not as step {} had left it: {agent} read it again, and somebody else has changed it",
        step.name
    )
}

/// A decision, as people name it.
pub(crate) fn decision(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Retry => "retry",
        DecisionKind::AcceptSucceeded => "accept-succeeded",
        DecisionKind::AcceptFailed => "accept-failed",
        DecisionKind::AcceptCancelled => "accept-cancelled",
        DecisionKind::Rollback => "rollback",
        DecisionKind::Readmit => "readmit",
        DecisionKind::Abandon => "abandon",
        DecisionKind::Note => "note",
    }
}

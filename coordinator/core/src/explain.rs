//! One sentence per decision. Each claims no more than the recorded facts; text from outside is not repeated here.

use holdfast_common::id::{DeploymentLabel, StepName};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::OrderKey;
use holdfast_common::time::Millis;

use crate::fate;
use crate::reservation::Pin;
use crate::state::{CancelCause, Deployment, HighestOrder};

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

pub(crate) fn lapsed(ttl: Millis) -> String {
    format!("nothing was heard for {ttl} and no step was permitted to change anything in this attempt")
}

pub(crate) fn interrupted(ttl: Millis) -> String {
    format!("nothing was heard for {ttl}; how each permitted step ended had been reported before")
}

pub(crate) fn uncertain(ttl: Millis, step: &StepName) -> String {
    format!("nothing was heard for {ttl} and step {step} was permitted: it may be running or done")
}

pub(crate) fn end_unknown(step: &StepName) -> String {
    format!("the agent says that nobody can tell how step {step} ended")
}

pub(crate) fn tries_used(tries: u32) -> String {
    format!("{tries} tries were lost and no more are allowed")
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

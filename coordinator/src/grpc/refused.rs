//! What the driver and the store refuse, told with the facts of the target.

use holdfast_common::code::Code;
use holdfast_common::id::TargetName;
use holdfast_common::problem::Problem;
use holdfast_coordinator_core::Refusal;
use tonic::Status;

use super::shared::Shared;
use super::status;
use super::view;
use super::view::enums::state_word;
use super::view::held;
use super::view::sentence::decision_word;
use crate::driver;
use crate::store;

/// Why the driver did not do it. A refusal because of who holds the target tells about the holder.
pub(super) async fn by_driver(shared: &Shared, target: &TargetName, error: driver::Error) -> Status {
    if let driver::Error::Refused(refusal @ (Refusal::TargetHeld { .. } | Refusal::TargetInUse { .. })) = &error
        && let Some(state) = shared.driver.state(target.clone()).await
    {
        let in_use = matches!(refusal, Refusal::TargetInUse { .. });
        let told = if in_use { held::in_use(&state) } else { held::problem(&state, None) };
        if let Some(problem) = told {
            return status::of(&problem);
        }
    }
    status::of(&problem(target, &error))
}

fn problem(target: &TargetName, error: &driver::Error) -> Problem {
    match error {
        driver::Error::Refused(refusal) => refusal_problem(target, refusal),
        driver::Error::NotDeclared(name) => no_such_target(name.as_str()),
        driver::Error::RequestIdReused { existing } => Problem::new(error.code(), error.to_string())
            .so("nothing was recorded")
            .next(format!("holdfast show {existing}"))
            .with("deployment", existing.to_string()),
        driver::Error::ResourceTaken(taken) => Problem::new(error.code(), error.to_string())
            .so(format!("{target} was not declared"))
            .next(format!("holdfast target show {}", taken.target))
            .with("resource", taken.resource.as_str())
            .with("target", taken.target.as_str()),
        driver::Error::Store(source) => {
            tracing::error!(%target, error = %source, "the store refused what was decided");
            internal(Code::StoreFailed)
        }
        driver::Error::Contradiction(detail) => {
            tracing::error!(%target, detail, "a decision contradicts the state");
            internal(Code::Internal)
        }
        driver::Error::Stopped => Problem::new(Code::NotServing, "the coordinator is stopping")
            .not_known("whether the request was taken")
            .so("repeat a submission under the same request id; look before you repeat anything else"),
    }
}

fn internal(code: Code) -> Problem {
    Problem::new(code, code.title()).so("nothing was changed").next("read the coordinator's log")
}

fn refusal_problem(target: &TargetName, refusal: &Refusal) -> Problem {
    let problem =
        Problem::new(refusal.code(), title(refusal)).so("nothing was changed").with("target", target.as_str());
    match refusal {
        Refusal::NotDeclared => no_such_target(target.as_str()),
        Refusal::TargetInUse { holder } | Refusal::TargetHeld { holder, .. } => {
            problem.next(format!("holdfast show {holder}")).with("deployment", holder.to_string())
        }
        Refusal::QueueFull { .. } | Refusal::FenceExhausted => problem.next(format!("holdfast target show {target}")),
        Refusal::RevisionMismatch { resource, .. } => {
            problem.next(format!("holdfast target inspect {target}")).with("resource", resource.as_str())
        }
        Refusal::OrderPassed { before, .. } => problem
            .so("the same key again would be taken, and a file without `order` claims none")
            .next(format!("holdfast show {before}"))
            .with("deployment", before.to_string()),
        Refusal::TargetOnHold(hold) => problem
            .known(view::hold::sentence(hold))
            .next(format!("holdfast target unhold {target}"))
            .next("without --no-queue it waits in line"),
        Refusal::NotOnHold => problem.next(format!("holdfast target show {target}")),
        Refusal::ObservedMissing { resource } => problem
            .so("an attestation on it would not tell what it waits for")
            .next("look at the resource, then add --observed REVISION")
            .with("resource", resource.as_str()),
        Refusal::DeploymentNotFound(id) => {
            problem.next(format!("holdfast list {target}")).with("deployment", id.to_string())
        }
        Refusal::NothingToReconcile { .. } => problem.next("holdfast reconcile list"),
        Refusal::DecisionNotOpen { .. } | Refusal::EvidenceMoved { .. } => {
            problem.next("holdfast reconcile show DEPLOYMENT: each decision, open or why not")
        }
        Refusal::CannotInspect { .. } | Refusal::CannotFenceOff { .. } => {
            problem.next("holdfast reconcile attest DEPLOYMENT, if a person knows how it stands")
        }
        Refusal::Broken { because } => {
            tracing::error!(%target, because, "a decision contradicts the state");
            internal(Code::Internal)
        }
    }
}

/// The refusal in the words that people use.
pub(super) fn title(refusal: &Refusal) -> String {
    match refusal {
        Refusal::TargetHeld { holder, state } => format!("{holder} holds the target and is {}", state_word(*state)),
        Refusal::NothingToReconcile { state } => {
            format!("the deployment is {}: there is nothing to reconcile", state_word(*state))
        }
        Refusal::DecisionNotOpen { kind, why_not } => format!("{} is not open: {why_not}", decision_word(*kind)),
        Refusal::EvidenceMoved { shown, newest } => {
            format!("evidence {} has arrived after {}, which the decision was shown", newest.0, shown.0)
        }
        Refusal::RevisionMismatch { resource, expected, recorded } => {
            let recorded = recorded.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
            format!("resource {resource} has revision {recorded} on record, the file expects {expected}")
        }
        Refusal::TargetOnHold(hold) => format!("{} has put the target on hold", hold.by),
        Refusal::NotDeclared
        | Refusal::OrderPassed { .. }
        | Refusal::NotOnHold
        | Refusal::ObservedMissing { .. }
        | Refusal::TargetInUse { .. }
        | Refusal::QueueFull { .. }
        | Refusal::DeploymentNotFound(_)
        | Refusal::CannotInspect { .. }
        | Refusal::CannotFenceOff { .. }
        | Refusal::FenceExhausted
        | Refusal::Broken { .. } => refusal.to_string(),
    }
}

/// No such target, or none that the caller may see.
pub(super) fn no_such_target(name: &str) -> Problem {
    Problem::new(Code::TargetNotFound, format!("no such target: {name}"))
        .so("nothing was changed")
        .next("holdfast target apply FILE")
        .with("target", name)
}

/// The store could not be read. The cause goes to the log.
pub(super) fn by_store(error: &store::Error) -> Status {
    tracing::error!(%error, "could not read the store");
    status::of(&internal(Code::StoreFailed))
}

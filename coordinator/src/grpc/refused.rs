//! What the driver and the store refuse, told with the facts of the target.

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, DeploymentLabel, TargetName};
use holdfast_common::problem::Problem;
use holdfast_coordinator_core::Refusal;
use holdfast_net::room::{Descriptors, Room};
use tonic::Status;

use super::shared::Shared;
use super::status;
use super::view;
use super::view::enums::state_word;
use super::view::held;
use super::view::sentence::decision_word;
use crate::auth::{Operator, Permission};
use crate::driver;
use crate::store;
use crate::store::rows::DeploymentRow;

/// What a request was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A target.
    Target(TargetName),
    /// A deployment.
    Deployment(DeploymentLabel),
}

impl Subject {
    /// The deployment of that row.
    pub(super) fn of(row: &DeploymentRow) -> Self {
        Subject::Deployment(DeploymentLabel { target: row.target.clone(), number: row.record.number })
    }

    /// Its target.
    pub(super) fn target(&self) -> &TargetName {
        match self {
            Subject::Target(target) => target,
            Subject::Deployment(label) => &label.target,
        }
    }

    /// As it is named on the command line.
    fn name(&self) -> String {
        match self {
            Subject::Target(target) => target.to_string(),
            Subject::Deployment(label) => label.to_string(),
        }
    }
}

/// Why the driver did not do it. A refusal because of who holds the target tells about the holder.
///
/// What the caller may not view is not named to them.
pub(super) async fn by_driver(shared: &Shared, by: &Operator, about: &Subject, error: driver::Error) -> Status {
    let target = about.target();
    if let driver::Error::Refused(refusal @ (Refusal::TargetHeld { .. } | Refusal::TargetInUse { .. })) = &error
        && let Some(state) = shared.driver.state(target.clone()).await
    {
        let in_use = matches!(refusal, Refusal::TargetInUse { .. });
        let told = if in_use { held::in_use(&state) } else { held::problem(&state, None) };
        if let Some(problem) = told {
            return status::of(&problem);
        }
    }
    if hides(shared, by, &error).await {
        return status::of(&Problem::new(error.code(), error.code().title()).so("nothing was changed"));
    }
    if let driver::Error::RequestIdReused { existing } = &error {
        return status::of(&reused(&named(shared, *existing).await));
    }
    status::of(&problem(about, &error))
}

/// The deployment as people name it.
async fn named(shared: &Shared, id: DeploymentId) -> String {
    let row = shared.reader.run(move |reader| reader.deployment(id)).await.ok().flatten();
    row.map_or_else(|| id.to_string(), |row| Subject::of(&row).name())
}

fn reused(existing: &str) -> Problem {
    Problem::new(Code::RequestIdReused, format!("this request id was used for another request, which is {existing}"))
        .so("nothing was recorded")
        .next(format!("holdfast show {existing}"))
        .with("deployment", existing)
}

/// Whether the refusal names what the caller may not view.
async fn hides(shared: &Shared, by: &Operator, error: &driver::Error) -> bool {
    let named = match error {
        driver::Error::RequestIdReused { existing } => shared.driver.target_of(*existing).await,
        driver::Error::ResourceTaken(taken) => Some(taken.target.clone()),
        driver::Error::Refused(_)
        | driver::Error::NotDeclared(_)
        | driver::Error::Store(_)
        | driver::Error::Contradiction(_)
        | driver::Error::NoRoom(_)
        | driver::Error::Unsound(_)
        | driver::Error::Stopped => None,
    };
    named.is_some_and(|named| !by.scope.may(Permission::View, &named))
}

/// Why a token was not written.
pub(super) fn about_tokens(error: &driver::Error) -> Status {
    unwritten(error, "a token")
}

/// Why what was said of an agent was not written.
pub(super) fn about_agents(error: &driver::Error) -> Status {
    unwritten(error, "what was said of an agent")
}

fn unwritten(error: &driver::Error, what: &str) -> Status {
    match error {
        driver::Error::Stopped => status::plain(Code::NotServing, "the coordinator is stopping"),
        driver::Error::NoRoom(room) => status::of(&no_room(*room)),
        driver::Error::Unsound(_) => status::of(&unsound()),
        driver::Error::Refused(_)
        | driver::Error::NotDeclared(_)
        | driver::Error::RequestIdReused { .. }
        | driver::Error::ResourceTaken(_)
        | driver::Error::Store(_)
        | driver::Error::Contradiction(_) => {
            tracing::error!(%error, "could not write {what}");
            status::of(&internal(Code::StoreFailed))
        }
    }
}

fn problem(about: &Subject, error: &driver::Error) -> Problem {
    let target = about.target();
    match error {
        driver::Error::Refused(refusal) => refusal_problem(about, refusal),
        driver::Error::NotDeclared(name) => no_such_target(name.as_str()),
        driver::Error::RequestIdReused { existing } => reused(&existing.to_string()),
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
        driver::Error::NoRoom(room) => no_room(*room),
        driver::Error::Unsound(_) => unsound(),
        driver::Error::Stopped => Problem::new(Code::NotServing, "the coordinator is stopping")
            .not_known("whether the request was taken")
            .so("repeat a submission under the same request id; look before you repeat anything else"),
    }
}

/// The store differs from its events. What was found may be about a target that the caller may not view.
fn unsound() -> Problem {
    Problem::new(Code::StoreUnsound, Code::StoreUnsound.title())
        .known("the coordinator's auditor found a difference; /readyz and the log name it")
        .so("no lease and no permit is granted; what runs goes on, and its results are stored")
        .next("on the coordinator's host: holdfast-coordinator verify")
}

/// The disk is full, for whoever asked for something new.
pub(super) fn no_room(room: Room) -> Problem {
    let so = if room.can_promise() {
        "nothing was recorded; what runs goes on, and its results are stored"
    } else {
        "nothing was recorded; what runs goes on, and its results are stored from the reserve as far as it goes"
    };
    let problem = Problem::new(Code::DiskFull, "the coordinator's disk has no room for this").so(so);
    let problem = room.lack().into_iter().fold(problem, |problem, lack| problem.known(lack.to_string()));
    problem.next("free room on the coordinator's disk; then ask again: it takes new work by itself")
}

/// No new work while there are few descriptors: what runs needs them.
pub(super) fn without_descriptors(shared: &Shared) -> Result<(), Status> {
    match *shared.descriptors.borrow() {
        Descriptors::Enough => Ok(()),
        low @ Descriptors::Low { .. } => Err(status::of(
            &Problem::new(Code::OutOfDescriptors, "the coordinator has no descriptors for new work")
                .known(low.to_string())
                .so("nothing was recorded; what runs goes on")
                .next("close idle connections, or raise the coordinator's limit; then ask again"),
        )),
    }
}

fn internal(code: Code) -> Problem {
    Problem::new(code, code.title()).so("nothing was changed").next("read the coordinator's log")
}

fn refusal_problem(about: &Subject, refusal: &Refusal) -> Problem {
    let target = about.target();
    let name = about.name();
    let problem =
        Problem::new(refusal.code(), title(&name, refusal)).so("nothing was changed").with("target", target.as_str());
    match refusal {
        Refusal::NotDeclared => no_such_target(target.as_str()),
        Refusal::TargetInUse { holder } | Refusal::TargetHeld { holder, .. } => {
            problem.next(format!("holdfast show {holder}")).with("deployment", holder.to_string())
        }
        Refusal::QueueFull { .. } | Refusal::FenceExhausted => problem.next(format!("holdfast target show {target}")),
        Refusal::RevisionMismatch { resource, .. } => {
            let attest = format!(
                "where the record is wrong, as after a change by hand: holdfast target attest {target} --resource {resource} \
                 --observed REV --how TEXT --confirm {target}"
            );
            problem.next(format!("holdfast target inspect {target}")).next(attest).with("resource", resource.as_str())
        }
        Refusal::OrderPassed { before, .. } => problem
            .so("the same key again would be taken, and a file without `order` claims none")
            .next(format!("holdfast show {before}"))
            .with("deployment", before.to_string()),
        Refusal::TargetOnHold(hold) => problem
            .known(view::hold::sentence(hold))
            .next("without --no-queue it waits in line")
            .next(format!("where whoever holds it back agrees: holdfast target unhold {target}")),
        Refusal::NotOnHold => problem.next(format!("holdfast target show {target}")),
        Refusal::ObservedMissing { resource } => problem
            .so("an attestation on it would not tell what it waits for")
            .next("look at the resource, then add --observed REVISION")
            .with("resource", resource.as_str()),
        Refusal::NoSuchResource { resource } => {
            problem.next(format!("holdfast target show {target}")).with("resource", resource.as_str())
        }
        Refusal::DeploymentNotFound(id) => {
            problem.next(format!("holdfast list {target}")).with("deployment", id.to_string())
        }
        Refusal::NothingToReconcile { .. } => problem.next("holdfast reconcile list"),
        Refusal::DecisionNotOpen { .. } | Refusal::EvidenceMoved { .. } => {
            problem.next(format!("holdfast reconcile show {name}")).with("deployment", &name)
        }
        Refusal::CannotInspect { .. } | Refusal::CannotFenceOff { .. } => problem
            .next(format!("holdfast reconcile show {name}"))
            .next(format!("holdfast reconcile attest {name} --runner ... --target-state ... --how TEXT --confirm {target}, where a person knows how it stands"))
            .with("deployment", &name),
        Refusal::NothingToGoBackTo { .. } | Refusal::CannotGoBack(_) | Refusal::PlaceMoved { .. } => {
            problem.next(format!("holdfast rollback {target}, which lists each place and why not"))
        }
        Refusal::Broken { because } => {
            tracing::error!(%target, because, "a decision contradicts the state");
            internal(Code::Internal)
        }
    }
}

/// The refusal in the words that people use.
pub(super) fn title(name: &str, refusal: &Refusal) -> String {
    match refusal {
        Refusal::TargetHeld { holder, state } => format!("{holder} holds the target and is {}", state_word(*state)),
        Refusal::NothingToReconcile { state } => {
            format!("{name} is {}: there is nothing to reconcile", state_word(*state))
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
        Refusal::CannotGoBack(why) => format!("{name} can't go back: {}", view::sentence::no_way_back(why)),
        Refusal::NotDeclared
        | Refusal::OrderPassed { .. }
        | Refusal::NothingToGoBackTo { .. }
        | Refusal::PlaceMoved { .. }
        | Refusal::NotOnHold
        | Refusal::ObservedMissing { .. }
        | Refusal::NoSuchResource { .. }
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
        .next("holdfast targets")
        .next("holdfast target apply FILE")
        .with("target", name)
}

/// The store could not be read. The cause goes to the log.
pub(super) fn by_store(error: &store::Error) -> Status {
    tracing::error!(%error, "could not read the store");
    if error.lacks_descriptors() {
        return status::plain(Code::OutOfDescriptors, "the coordinator could not open its store for reading once more");
    }
    status::of(&internal(Code::StoreFailed))
}

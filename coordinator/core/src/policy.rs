//! What the coordinator does by itself where a deployment is uncertain or held, as far as its policy lets it.
//!
//! ```text
//! policy       runner    the step in question                            the next move
//! manual       any       any                                             none: a person decides
//! any other    not out   its resource keeps fences                       fence off
//! any other    not out   its resource keeps none                         none: a person, or the agent's own word
//! any other    out       can be read, and is not known                   inspect
//! any other    out       attested                                        none: a person is at work on it
//! any other    out       known, and a cancel is recorded                 accept as cancelled
//! any other    out       everything applied, each check observed         accept as succeeded
//! any other    out       the next attempt may follow, and tries are left retry
//! any other    out       not applied, and no attempt may follow          accept as failed
//! any other    out       somebody else has changed what was carried over none: a person decides
//! any other    out       in part, or unknown for good                    none: a person decides
//! any other    out       a rollback that rests on something unresolved   retry, as above; it never ends it
//! never        -         -                                               a rollback: only a person decides to go back
//! ```
//!
//! It moves only after its patience, or when a person asked for a look or a raise. What it does goes through the very same
//! inquiries and decisions as what a person does, on the same proof, under the name [`observer`].

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::id::{DeploymentId, OperatorName};
use holdfast_common::outcome::OperationState;
use holdfast_common::recovery::{DecisionKind, Policy};
use holdfast_common::spec::DeploymentSpec;
use holdfast_common::time::{Millis, Wall};

use crate::authority;
use crate::draft::Draft;
use crate::event::Event;
use crate::input::Now;
use crate::open_decisions::{Checklist, open_decisions};
use crate::state::{Attempt, Deployment, DeploymentState, TargetState};
use crate::weigh;

/// How many lease lengths pass before it moves, unless the target says otherwise.
const PATIENCE_TTLS: u64 = 10;
/// After an inquiry that brought nothing, it tries again so much later.
const AGAIN: Millis = Millis::from_secs(15);

/// The name under which it asks and decides. No person can have it.
pub const OBSERVER: &str = "policy";

pub(crate) fn observer() -> OperatorName {
    OperatorName::new(OBSERVER).expect("a valid name")
}

/// What it would do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    FenceOff,
    Inspect,
    Decide(DecisionKind),
}

/// The stricter of what the target and the deployment ask for.
#[must_use]
pub fn effective(state: &TargetState, spec: &DeploymentSpec) -> Policy {
    spec.policy.map_or(state.spec.policy, |own| own.min(state.spec.policy))
}

/// Whether the word of the attempt's own journal is taken for the end of its step: asked for by the target, and nothing was
/// allocated above its fence.
pub(crate) fn trusts(state: &TargetState, deployment: &Deployment, attempt: &Attempt) -> bool {
    effective(state, &deployment.spec) == Policy::TrustReport && authority::is_highest(state, attempt)
}

/// The event that moves a deployment, with the instant from which the policy may move in turn.
pub(crate) fn moved(draft: &Draft<'_>, id: DeploymentId, to: DeploymentState, because: impl Into<String>) -> Event {
    let unsettled = matches!(to, DeploymentState::Uncertain | DeploymentState::Held);
    let deployment = draft.state().deployment(id).filter(|_| unsettled);
    let policy_at = deployment.and_then(|deployment| {
        let acts = effective(draft.state(), &deployment.spec) != Policy::Manual;
        acts.then(|| draft.now.serving.after(patience(draft.state(), deployment)))
    });
    Event::DeploymentMoved { deployment: id, state: to, because: because.into(), policy_at }
}

fn patience(state: &TargetState, deployment: &Deployment) -> Millis {
    let default = Millis(deployment.spec.lease_ttl.0.saturating_mul(PATIENCE_TTLS));
    state.spec.patience.unwrap_or(default)
}

/// Whether it has something to do now.
pub(crate) fn is_due(state: &TargetState, deployment: &Deployment, now: Now) -> bool {
    deployment.policy_at.is_some_and(|at| at <= now.serving) && next(state, deployment, now.wall).is_some()
}

/// Its next move; `None` where a person has to decide, or an answer is awaited.
pub(crate) fn next(state: &TargetState, deployment: &Deployment, wall: Wall) -> Option<Move> {
    if effective(state, &deployment.spec) == Policy::Manual || !is_unsettled(deployment) {
        return None;
    }
    let last = deployment.attempts.last()?;
    if last.disturbed().is_some() {
        return None;
    }
    let last = last.id;
    if deployment.inquiries.iter().any(|inquiry| inquiry.attempt == Some(last)) {
        return None;
    }
    let checklist = open_decisions(state, deployment, wall);
    let step = weigh::in_question(deployment);
    let capability = step.and_then(|step| weigh::capability(state, step));
    if !checklist.runner.is_out() {
        let enforces = capability.is_some_and(|capability| capability.enforce == Enforce::Fence);
        return (enforces && deployment.state == DeploymentState::Uncertain).then_some(Move::FenceOff);
    }
    if checklist.runner_attested || checklist.steps.iter().any(|step| step.attested) {
        return None;
    }
    let readable = capability.is_some_and(|capability| capability.inspect != Inspect::None);
    let unclear = checklist.steps.iter().any(|step| match step.state {
        OperationState::Unknown | OperationState::Applying => true,
        OperationState::Partial => !weigh::was_read(deployment, &step.step),
        OperationState::NotApplied | OperationState::Applied => false,
    });
    if readable && unclear {
        return Some(Move::Inspect);
    }
    decision(deployment, &checklist).map(Move::Decide)
}

fn is_unsettled(deployment: &Deployment) -> bool {
    match deployment.state {
        DeploymentState::Uncertain | DeploymentState::Held => true,
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => false,
    }
}

fn decision(deployment: &Deployment, checklist: &Checklist) -> Option<DecisionKind> {
    let open = |kind| checklist.why_not(kind).is_none();
    let clean = checklist.steps.iter().all(|step| match step.state {
        OperationState::NotApplied | OperationState::Applied => true,
        OperationState::Applying | OperationState::Partial | OperationState::Unknown => false,
    });
    if deployment.cancel.is_some() {
        return (clean && open(DecisionKind::AcceptCancelled)).then_some(DecisionKind::AcceptCancelled);
    }
    if open(DecisionKind::AcceptSucceeded) {
        return Some(DecisionKind::AcceptSucceeded);
    }
    if open(DecisionKind::Retry) && deployment.tries() < deployment.spec.retry.max_attempts {
        return Some(DecisionKind::Retry);
    }
    (clean && open(DecisionKind::AcceptFailed)).then_some(DecisionKind::AcceptFailed)
}

/// Why it decides so, for people: what the proof says.
pub(crate) fn reason(checklist: &Checklist) -> String {
    let trusted = if checklist.trusted { "on its agent's own report, which this target trusts: " } else { "" };
    let step = checklist.steps.first().map(|step| format!("; step {}: {}", step.step, step.because));
    format!("{trusted}{}{}", checklist.runner_because, step.unwrap_or_default())
}

/// An inquiry brought nothing, or could not be made: it is tried again, not at once.
pub(crate) fn later(draft: &mut Draft<'_>, id: DeploymentId) {
    let at = draft.now.serving.after(AGAIN);
    draft.record(Event::PolicyScheduled { deployment: id, at });
}

/// After an inquiry was answered: where that did not bring it on, it looks again later.
pub(crate) fn answered(draft: &mut Draft<'_>, id: DeploymentId) {
    let asks = draft.state().deployment(id).and_then(|deployment| next(draft.state(), deployment, draft.now.wall));
    match asks {
        Some(Move::FenceOff | Move::Inspect) => later(draft, id),
        Some(Move::Decide(_)) | None => {}
    }
}

/// Somebody asked, or a word came that it waited for: it need not wait any longer.
pub(crate) fn now(draft: &mut Draft<'_>, id: DeploymentId) {
    let at = draft.now.serving;
    let waits = draft.state().deployment(id).and_then(|deployment| deployment.policy_at).is_some_and(|due| due > at);
    if waits {
        draft.record(Event::PolicyScheduled { deployment: id, at });
    }
}

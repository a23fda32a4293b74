//! What should be under way, and when to look again. The same function after a restart as in normal work.

use holdfast_common::claim::Claim;
use holdfast_common::report::ReportBody;
use holdfast_common::time::Serving;

use crate::decision::Effect;
use crate::input::Now;
use crate::lease;
use crate::state::{Attempt, AttemptState, Deployment, DeploymentState, EvidenceBody, StepState, TargetState};

/// Everything that should be under way now. The caller sends what is new; what it has sent and is still here stays due.
#[must_use]
pub fn due(state: &TargetState, now: Now) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(deployment) = &state.current {
        effects.extend(assignment(deployment, now));
        if let Some(attempt) = deployment.attempts.last() {
            effects.extend(offer(deployment, attempt, now));
            effects.extend(cancel(deployment, attempt));
        }
    }
    effects.extend(state.current.iter().chain(&state.queue).flat_map(inquiries));
    effects
}

/// The next instant at which [`crate::Input::Tick`] may have something to record or [`due`] something new: a lease that
/// lapses, a deadline that passes, a delay that is over. An instant that has passed already is due at once.
#[must_use]
pub fn next_wakeup(state: &TargetState, now: Now) -> Option<Serving> {
    let all = state.current.iter().chain(&state.queue);
    let queue = all.filter(|deployment| deployment.is_in_queue()).filter_map(|deployment| deployment.queue_deadline);
    let whole = state.current.iter().filter(|deployment| !deployment.over_deadline);
    let deadline = whole.filter_map(|deployment| deployment.deadline);
    let attempt = state.current.as_ref().and_then(|deployment| match deployment.live() {
        None => deployment.not_before,
        Some(attempt) => of_attempt(attempt, now),
    });
    queue.chain(deadline).chain(attempt).min()
}

fn of_attempt(attempt: &Attempt, now: Now) -> Option<Serving> {
    let lapse = attempt.lease.as_ref().map(|lease| lease::lapses_at(lease, now.lease_margin));
    let deadlines = attempt.steps.iter().filter(|step| runs(step.state) && !step.over_deadline);
    deadlines.filter_map(|step| step.deadline).chain(lapse).min()
}

/// Whether a step of that state can pass a deadline.
pub(crate) fn runs(state: StepState) -> bool {
    match state {
        StepState::Permitted | StepState::Started => true,
        StepState::Pending | StepState::Ended(_) | StepState::Carried { .. } => false,
    }
}

/// Whether the deployment looks for its next attempt now.
pub(crate) fn is_assignable(deployment: &Deployment, now: Now) -> bool {
    let state = matches!(deployment.state, DeploymentState::Queued | DeploymentState::Active);
    let delayed = deployment.not_before.is_some_and(|instant| now.serving < instant);
    let passed = |deadline: Option<Serving>| deadline.is_some_and(|instant| instant <= now.serving);
    let late = passed(deployment.deadline) || passed(deployment.queue_deadline);
    state && deployment.live().is_none() && deployment.cancel.is_none() && !delayed && !late
}

fn assignment(deployment: &Deployment, now: Now) -> Option<Effect> {
    is_assignable(deployment, now).then_some(Effect::Assign { deployment: deployment.id })
}

pub(crate) fn claim(deployment: &Deployment, attempt: &Attempt) -> Claim {
    Claim { deployment: deployment.id, attempt: attempt.id, fence: attempt.fence }
}

/// An offer whose loss nobody noticed is still due: it is answered, or it lapses.
fn offer(deployment: &Deployment, attempt: &Attempt, now: Now) -> Option<Effect> {
    let lives = attempt.lease.as_ref().is_some_and(|lease| lease::lives(lease, now));
    let due = attempt.state == AttemptState::Offered && lives && deployment.cancel.is_none();
    due.then(|| Effect::Offer {
        agent: attempt.agent.clone(),
        incarnation: attempt.incarnation,
        claim: claim(deployment, attempt),
    })
}

/// A stop that the agent has not confirmed stays due, also while it is uncertain whether the agent still works.
fn cancel(deployment: &Deployment, attempt: &Attempt) -> Option<Effect> {
    let asked = deployment.cancel.as_ref().is_some_and(|cancel| cancel.delivered.is_none());
    let reachable = attempt.state.is_live() || attempt.state == AttemptState::Uncertain;
    let due = asked && reachable && !confirmed_late(deployment, attempt);
    due.then(|| Effect::Cancel { agent: attempt.agent.clone(), claim: claim(deployment, attempt) })
}

fn confirmed_late(deployment: &Deployment, attempt: &Attempt) -> bool {
    deployment.evidence.iter().any(|evidence| match &evidence.body {
        EvidenceBody::LateReport { claim, report, .. } => {
            claim.attempt == attempt.id && matches!(report.body, ReportBody::CancelReceived)
        }
        EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::Note { .. } => false,
    })
}

/// Questions about an attempt are asked while its deployment is unsettled; what a decision settled is not asked again.
fn inquiries(deployment: &Deployment) -> impl Iterator<Item = Effect> {
    let unsettled = match deployment.state {
        DeploymentState::Uncertain | DeploymentState::Held | DeploymentState::Queued => true,
        DeploymentState::Active | DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => {
            false
        }
    };
    let last = deployment.attempts.last().map(|attempt| attempt.id);
    let asked = deployment.inquiries.iter().filter(move |inquiry| unsettled && inquiry.attempt == last);
    asked.map(|inquiry| Effect::Inquire {
        agent: inquiry.agent.clone(),
        inquiry: inquiry.id,
        resource: inquiry.resource.clone(),
        deployment: deployment.id,
        step: inquiry.step.clone(),
        kind: inquiry.kind,
    })
}

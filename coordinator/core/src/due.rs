//! What should be under way, and when to look again. The same function after a restart as in normal work.

use holdfast_common::claim::Claim;
use holdfast_common::report::ReportBody;
use holdfast_common::time::Serving;

use crate::bugs::{self, Bug};
use crate::decision::Effect;
use crate::input::Now;
use crate::lease;
use crate::policy;
use crate::state::{Attempt, AttemptState, Deployment, DeploymentState, EvidenceBody, StepState, TargetState};

/// Everything that should be under way now. The caller sends what is new; what it has sent and is still here stays due.
#[must_use]
pub fn due(state: &TargetState, now: Now) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(deployment) = &state.current {
        effects.extend(assignment(state, deployment, now));
        effects.extend(recovery(state, deployment, now));
        if let Some(attempt) = deployment.attempts.last() {
            effects.extend(offer(deployment, attempt, now));
            effects.extend(cancel(deployment, attempt));
        }
    }
    effects.extend(state.current.iter().chain(&state.queue).flat_map(inquiries));
    effects
}

/// The next instant at which [`crate::Input::Tick`] may have something to record or [`due`] something new: a lease that
/// lapses, a deadline that passes, a delay or a hold that is over. An instant that has passed already is due at once.
#[must_use]
pub fn next_wakeup(state: &TargetState, now: Now) -> Option<Serving> {
    let hold = state.hold.as_ref().and_then(|hold| hold.until).map(|until| until.at);
    let all = state.current.iter().chain(&state.queue);
    let queue = all.filter(|deployment| deployment.is_in_queue()).filter_map(|deployment| deployment.queue_deadline);
    let whole = state.current.iter().filter(|deployment| !deployment.over_deadline);
    let deadline = whole.filter_map(|deployment| deployment.deadline);
    let current = state.current.as_ref().and_then(|deployment| wakeup(state, deployment, now));
    queue.chain(deadline).chain(hold).chain(current).min()
}

fn wakeup(state: &TargetState, deployment: &Deployment, now: Now) -> Option<Serving> {
    let Some(attempt) = deployment.live() else {
        let delay = deployment.not_before.filter(|_| !is_on_hold(state));
        let policy = deployment.policy_at.filter(|at| *at > now.serving);
        return delay.into_iter().chain(policy).min();
    };
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

/// Whether an operator's hold lets nothing new begin.
pub(crate) fn is_on_hold(state: &TargetState) -> bool {
    state.hold.is_some() && !bugs::on(Bug::StartUnderHold)
}

/// Whether the deployment looks for its next attempt now.
pub(crate) fn is_assignable(state: &TargetState, deployment: &Deployment, now: Now) -> bool {
    if is_on_hold(state) {
        return false;
    }
    let waits = matches!(deployment.state, DeploymentState::Queued | DeploymentState::Active);
    let delayed = deployment.not_before.is_some_and(|instant| now.serving < instant);
    let passed = |deadline: Option<Serving>| deadline.is_some_and(|instant| instant <= now.serving);
    let late = passed(deployment.deadline) || passed(deployment.queue_deadline);
    waits && deployment.live().is_none() && deployment.cancel.is_none() && !delayed && !late
}

fn assignment(state: &TargetState, deployment: &Deployment, now: Now) -> Option<Effect> {
    is_assignable(state, deployment, now).then_some(Effect::Assign { deployment: deployment.id })
}

fn recovery(state: &TargetState, deployment: &Deployment, now: Now) -> Option<Effect> {
    policy::is_due(state, deployment, now).then_some(Effect::Recover { deployment: deployment.id })
}

pub(crate) fn claim(deployment: &Deployment, attempt: &Attempt) -> Claim {
    Claim { deployment: deployment.id, attempt: attempt.id, fence: attempt.fence }
}

/// An offer whose loss nobody noticed is still due: it is answered, or it lapses.
fn offer(deployment: &Deployment, attempt: &Attempt, now: Now) -> Option<Effect> {
    let lives = attempt.lease.as_ref().is_some_and(|lease| lease::lives(lease, now));
    let wanted = deployment.cancel.is_none() || attempt.readmits.is_some();
    let due = attempt.state == AttemptState::Offered && lives && wanted;
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
            claim.attempt == attempt.id && matches!(report.body, ReportBody::CancelReceived { .. })
        }
        EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
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

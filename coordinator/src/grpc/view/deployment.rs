//! A deployment, whole and on one line.

use holdfast_common::id::{AgentName, DeploymentLabel, TargetName};
use holdfast_common::outcome::StepEnd;
use holdfast_common::spec::{OrderKey, StepSpec};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::state::{
    Attempt, Away, Base, CancelCause, Cancellation, CarryState, DecisionRecord, Deployment, EventSequence, RollbackOf,
    StepRun, StepState, Undone,
};
use holdfast_proto::convert::{WireEnum, duration_to_wire, wall_to_wire};
use holdfast_proto::v1;

use super::enums::{attempt_state, deployment_state, step_state};
use super::sentence::{because, declined, quote, waits};
use super::{fence_number, fence_text, seen, text};

/// `shop@prod#12`.
#[must_use]
pub fn label(target: &TargetName, deployment: &Deployment) -> DeploymentLabel {
    DeploymentLabel { target: target.clone(), number: deployment.number }
}

/// On one line.
#[must_use]
pub fn summary(target: &TargetName, deployment: &Deployment) -> v1::DeploymentSummary {
    v1::DeploymentSummary {
        id: deployment.id.to_string(),
        label: label(target, deployment).to_string(),
        target: target.to_string(),
        number: deployment.number,
        state: deployment_state(deployment.state) as i32,
        because: because(deployment),
        submitted_at: Some(wall_to_wire(deployment.submitted_at)),
        submitted_by: deployment.submitted_by.to_string(),
        ended_at: deployment.ended.as_ref().map(|ended| wall_to_wire(ended.at)),
        undoes: deployment.kind.rollback().map(|of| undone(target, &of.undoes)).unwrap_or_default(),
    }
}

/// How long ago an agent was last heard, for people.
pub type Silence<'a> = &'a dyn Fn(&AgentName) -> Option<Millis>;

/// Whole, but for the rollbacks of it, which the store knows. `silence` is told of attempts with a live lease only.
#[must_use]
pub fn whole(
    target: &TargetName,
    deployment: &Deployment,
    sequence: EventSequence,
    silence: Silence<'_>,
) -> v1::Deployment {
    let ended = deployment.ended.as_ref();
    v1::Deployment {
        summary: Some(summary(target, deployment)),
        request_id: deployment.request.to_string(),
        plan_digest: deployment.plan.0.clone(),
        inputs: deployment.spec.inputs.clone().into_iter().collect(),
        attempts: deployment.attempts.iter().map(|attempt| attempt_view(deployment, attempt, silence)).collect(),
        cancellation: deployment.cancel.as_ref().map(cancellation),
        waiting: deployment.waiting.as_ref().map(|why| waits(deployment, why)).unwrap_or_default(),
        holds_target: deployment.reserved_at.is_some() && ended.is_none(),
        reserved_at: deployment.reserved_at.map(wall_to_wire),
        never_mutated: ended.is_some_and(|ended| ended.never_mutated),
        cancel_too_late: ended.is_some_and(|ended| ended.cancel_too_late),
        ended_by_decision: ended.is_some_and(|ended| ended.by_decision),
        evidence_count: deployment.evidence.len() as u64,
        decisions: deployment.decisions.iter().map(decision).collect(),
        event_sequence: sequence.0,
        over_deadline: deployment.over_deadline || deployment.cancel.as_ref().is_some_and(left_the_queue),
        after_deadline: ended.is_some_and(|ended| ended.after_deadline),
        not_healthy: ended.is_some_and(|ended| ended.not_healthy),
        order: deployment.spec.order.map(OrderKey::number),
        tries: deployment.tries(),
        max_tries: deployment.spec.retry.max_attempts,
        rollback: deployment.kind.rollback().map(|of| rollback(target, of)),
        rolled_back_by: Vec::new(),
    }
}

/// Like `shop@prod#12`, in their order.
#[must_use]
pub fn undone(target: &TargetName, undoes: &[Undone]) -> Vec<String> {
    let label = |undone: &Undone| DeploymentLabel { target: target.clone(), number: undone.number }.to_string();
    undoes.iter().map(label).collect()
}

fn rollback(target: &TargetName, of: &RollbackOf) -> v1::RollbackOf {
    let base = match of.base {
        Base::AtRest => v1::RollbackBase::AtRest,
        Base::Known => v1::RollbackBase::Known,
        Base::Unresolved => v1::RollbackBase::Unresolved,
    };
    v1::RollbackOf {
        undoes: undone(target, &of.undoes),
        base: base as i32,
        reason: of.reason.clone(),
        attested: of.attested.clone().unwrap_or_default(),
    }
}

fn attempt_view(deployment: &Deployment, attempt: &Attempt, silence: Silence<'_>) -> v1::Attempt {
    let lease = attempt.lease.as_ref();
    let silent = lease.and_then(|_| silence(&attempt.agent));
    v1::Attempt {
        id: attempt.id.to_string(),
        number: attempt.number,
        agent: attempt.agent.to_string(),
        incarnation: attempt.incarnation.to_string(),
        fence: attempt.fence.as_u64(),
        fence_text: attempt.fence.to_string(),
        state: attempt_state(attempt.state) as i32,
        decline_reason: declined(attempt).unwrap_or_default(),
        offered_at: Some(wall_to_wire(attempt.offered_at)),
        steps: attempt.steps.iter().map(|run| step(spec_of(deployment, run), run)).collect(),
        silent_for: silent.map(duration_to_wire),
        lease_ttl: lease.map(|lease| duration_to_wire(lease.ttl)),
        readmits: text(attempt.readmits.as_ref()),
        away: lease.and_then(|lease| lease.away.as_ref()).map(away),
    }
}

fn away(away: &Away) -> v1::Away {
    v1::Away {
        since: Some(wall_to_wire(away.since)),
        back_by: Some(wall_to_wire(away.back_by())),
        is_back: away.is_back,
    }
}

fn spec_of<'a>(deployment: &'a Deployment, run: &StepRun) -> Option<&'a StepSpec> {
    deployment.spec.steps.iter().find(|spec| spec.name == run.name)
}

fn step(spec: Option<&StepSpec>, run: &StepRun) -> v1::StepRun {
    v1::StepRun {
        name: run.name.to_string(),
        state: step_state(run.state) as i32,
        effect: spec.map_or(0, |spec| spec.effect.to_number()),
        retry: spec.map_or(0, |spec| spec.retry.to_number()),
        resource: text(spec.and_then(|spec| spec.resource.as_ref())),
        permitted_at: run.permitted_at.map(wall_to_wire),
        started: run.started.as_ref().map(seen),
        ended: run.ended.as_ref().map(seen),
        exit: run.exit.map(v1::Exit::from),
        observed_revision: text(run.observed.as_ref()),
        maybe_partial: maybe_partial(run.state),
        over_deadline: run.over_deadline,
        carry: carry(run.state) as i32,
        detail: run.detail.clone(),
        looks_at: text(spec.and_then(|spec| spec.body.check())),
        after_deadline: run.over_deadline && run.state == StepState::Ended(StepEnd::Applied),
        timeout: spec.and_then(StepSpec::stop_after).map(duration_to_wire),
    }
}

fn carry(state: StepState) -> v1::CarryState {
    match state {
        StepState::Carried { carry } => match carry {
            CarryState::NotRead => v1::CarryState::NotRead,
            CarryState::Due => v1::CarryState::Due,
            CarryState::AsLeft => v1::CarryState::AsLeft,
            CarryState::Differs => v1::CarryState::Differs,
            CarryState::Failed => v1::CarryState::Failed,
        },
        StepState::Pending | StepState::Permitted | StepState::Started | StepState::Ended(_) => {
            v1::CarryState::Unspecified
        }
    }
}

fn maybe_partial(state: StepState) -> bool {
    match state {
        StepState::Ended(StepEnd::Failed { maybe_partial, .. } | StepEnd::Stopped { maybe_partial }) => maybe_partial,
        StepState::Ended(StepEnd::Applied | StepEnd::Unknown | StepEnd::NotStarted)
        | StepState::Pending
        | StepState::Permitted
        | StepState::Started
        | StepState::Carried { .. } => false,
    }
}

fn left_the_queue(cancel: &Cancellation) -> bool {
    cancel.cause == CancelCause::QueueTimeout
}

fn cancellation(cancel: &Cancellation) -> v1::Cancellation {
    let (cause, by) = match &cancel.cause {
        CancelCause::Operator { by } => ("operator", by.to_string()),
        CancelCause::Timeout { step } => ("timeout", format!("step {step}")),
        CancelCause::QueueTimeout => ("timeout", "queue".to_owned()),
        CancelCause::DeploymentTimeout => ("timeout", "deployment".to_owned()),
    };
    v1::Cancellation {
        cause: cause.to_owned(),
        by,
        reason: cancel.reason.clone(),
        requested_at: Some(wall_to_wire(cancel.recorded_at)),
        recorded_at: Some(wall_to_wire(cancel.recorded_at)),
        delivered: cancel.delivered.as_ref().map(seen),
        acted: cancel.acted.as_ref().map(seen),
        observed: cancel.observed.as_ref().map(seen),
        held_up_at: cancel.held_up.as_ref().map(|held_up| seen(&held_up.seen)),
        held_up: cancel.held_up.as_ref().map(|held_up| quote(&held_up.why)).unwrap_or_default(),
    }
}

fn decision(record: &DecisionRecord) -> v1::DecisionRecord {
    v1::DecisionRecord {
        by: record.by.to_string(),
        at: Some(wall_to_wire(record.at)),
        kind: record.kind.to_number(),
        reason: record.reason.clone(),
        runner: record.runner.to_number(),
        target: record.target.to_number(),
        observed_revision: text(record.observed.as_ref()),
        evidence_sequence: record.shown.0,
        evidence_ids: record.evidence.iter().map(ToString::to_string).collect(),
        attested: record.attested,
        trusted: record.trusted,
    }
}

/// The fence of the last attempt, as a number and as people read it.
#[must_use]
pub fn last_fence(deployment: &Deployment) -> (u64, String) {
    let fence = deployment.attempts.last().map(|attempt| attempt.fence);
    (fence_number(fence), fence_text(fence))
}

//! From an effect and the committed state to the message that carries it out.

use std::collections::BTreeMap;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, DeploymentId, EvidenceId, OperationId, ResourceName, Revision, StepName};
use holdfast_common::report::Carry;
use holdfast_common::spec::{StepEffect, StepSpec};
use holdfast_coordinator_core::state::{Attempt, Deployment, InquiryKind, StepState};
use holdfast_coordinator_core::{Effect, TargetState, carries};
use holdfast_proto::convert::{claim_to_wire, duration_to_wire, resource_to_wire, step_to_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::connect_response::Message;

/// The message for an effect; `None` where the state no longer has what it is about, or where it is not sent.
pub(super) fn of(state: &TargetState, effect: &Effect) -> Option<Message> {
    match effect {
        Effect::Assign { .. } | Effect::Recover { .. } => None,
        Effect::Offer { claim, .. } => offer(state, *claim).map(Message::Offer),
        Effect::Cancel { claim, .. } => cancel(state, *claim).map(Message::Cancel),
        Effect::Inquire { inquiry, resource, deployment, step, kind, .. } => {
            inquire(state, *inquiry, resource, *deployment, step, *kind).map(Message::Inquiry)
        }
    }
}

fn deployment(state: &TargetState, id: DeploymentId) -> Option<&Deployment> {
    state.current.iter().chain(&state.queue).find(|deployment| deployment.id == id)
}

fn attempt(deployment: &Deployment, id: AttemptId) -> Option<&Attempt> {
    deployment.attempts.iter().find(|attempt| attempt.id == id)
}

fn offer(state: &TargetState, claim: Claim) -> Option<v1::Offer> {
    let deployment = deployment(state, claim.deployment)?;
    let attempt = attempt(deployment, claim.attempt)?;
    let lease = attempt.lease.as_ref()?;
    let carried = attempt.steps.iter().filter(|step| matches!(step.state, StepState::Carried { .. }));
    Some(v1::Offer {
        claim: Some(claim_to_wire(claim)),
        target: state.spec.name.to_string(),
        attempt_number: attempt.number,
        ttl: Some(duration_to_wire(lease.ttl)),
        plan_digest: deployment.plan.0.clone(),
        steps: steps(deployment).iter().map(step_to_wire).collect(),
        resources: state.spec.resources.iter().map(resource_to_wire).collect(),
        carried: carried.map(|step| step.name.to_string()).collect(),
        cancel_grace: Some(duration_to_wire(deployment.spec.cancel_grace)),
        goes_on: goes_on(deployment, attempt),
        carries: carries(deployment, attempt).into_iter().map(carry).collect(),
        transient_exit_codes: deployment.spec.retry.transient_exit_codes.iter().copied().map(u32::from).collect(),
    })
}

fn carry(carry: Carry) -> v1::Carry {
    v1::Carry { step: carry.step.to_string(), left: carry.left.as_ref().map(Revision::to_string).unwrap_or_default() }
}

fn goes_on(deployment: &Deployment, attempt: &Attempt) -> Option<v1::GoesOn> {
    attempt.readmits?;
    let earlier = deployment.lineage(attempt).skip(1);
    let attempts = earlier.map(|earlier| earlier.id.to_string()).collect();
    Some(v1::GoesOn { attempts, step: attempt.open_permit()?.name.to_string() })
}

/// The steps with the revision that each should find: the file's pin, else what an earlier step of the same deployment
/// leaves, else what was recorded when the deployment took its reservation.
fn steps(deployment: &Deployment) -> Vec<StepSpec> {
    let mut found: BTreeMap<ResourceName, Option<Revision>> = deployment.expected.clone();
    let mut steps = deployment.spec.steps.clone();
    for step in &mut steps {
        let Some(resource) = &step.resource else { continue };
        if step.expected_revision.is_none() {
            step.expected_revision = found.get(resource).cloned().flatten();
        }
        match step.effect {
            StepEffect::Mutates => {
                found.insert(resource.clone(), step.revision.clone());
            }
            StepEffect::None => {}
        }
    }
    steps
}

fn cancel(state: &TargetState, claim: Claim) -> Option<v1::CancelRequest> {
    let deployment = deployment(state, claim.deployment)?;
    let cancel = deployment.cancel.as_ref()?;
    Some(v1::CancelRequest {
        claim: Some(claim_to_wire(claim)),
        reason: cancel.reason.clone(),
        grace: Some(duration_to_wire(deployment.spec.cancel_grace)),
    })
}

fn inquire(
    state: &TargetState,
    inquiry: EvidenceId,
    resource: &ResourceName,
    id: DeploymentId,
    step: &StepName,
    kind: InquiryKind,
) -> Option<v1::Inquiry> {
    let spec = state.spec.resource(resource)?;
    let step = deployment(state, id)?.spec.steps.iter().find(|candidate| &candidate.name == step)?;
    let question = match kind {
        InquiryKind::Inspect => v1::inquiry::Question::Inspect(v1::Inspect {}),
        InquiryKind::FenceOff { fence } => v1::inquiry::Question::FenceOff(v1::FenceOff { fence: fence.as_u64() }),
    };
    Some(v1::Inquiry {
        id: inquiry.to_string(),
        target: state.spec.name.to_string(),
        resource: Some(resource_to_wire(spec)),
        operation: OperationId { deployment: id, step: step.name.clone() }.to_string(),
        step: Some(step_to_wire(step)),
        question: Some(question),
    })
}

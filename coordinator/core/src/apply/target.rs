//! Events about the target, its resources and what is kept beside observations.

use std::collections::{BTreeMap, VecDeque};

use holdfast_common::fence::Fence;
use holdfast_common::id::{DeploymentId, ResourceName};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;

use crate::state::{
    CancelCause, Cancellation, DecisionRecord, EventSequence, Evidence, EvidenceBody, Inquiry, InquiryKind,
    ResourceKnowledge, TargetState,
};
use crate::weigh;

pub(super) fn declared(spec: &TargetSpec) -> TargetState {
    TargetState {
        spec: spec.clone(),
        sequence: EventSequence(1),
        fence: None,
        next_number: 1,
        home: None,
        identities: BTreeMap::new(),
        floors: BTreeMap::new(),
        resources: spec.resources.iter().map(|r| (r.name.clone(), ResourceKnowledge::Never)).collect(),
        current: None,
        queue: VecDeque::new(),
        hold: None,
        order: None,
    }
}

/// What is unknown stays unknown: declaring anew is no reading. A resource that moved is another resource.
pub(super) fn declared_anew(state: &mut TargetState, spec: &TargetSpec) {
    let same = |name: &ResourceName| state.spec.resource(name) == spec.resource(name);
    let resources = spec.resources.iter().map(|resource| {
        let known = state.resources.get(&resource.name).cloned().unwrap_or_default();
        let unknown = matches!(known, ResourceKnowledge::Unknown { .. });
        let kept = if unknown || same(&resource.name) { known } else { ResourceKnowledge::Never };
        (resource.name.clone(), kept)
    });
    let resources: BTreeMap<_, _> = resources.collect();
    let mut identities = state.identities.clone();
    identities.retain(|name, _| same(name));
    let mut floors = state.floors.clone();
    floors.retain(|name, _| same(name));
    if state.spec.agents != spec.agents {
        state.home = None;
    }
    state.resources.retain(|_, known| matches!(known, ResourceKnowledge::Unknown { .. }));
    state.resources.extend(resources);
    state.identities = identities;
    state.floors = floors;
    state.spec = spec.clone();
}

pub(super) fn filed(state: &mut TargetState, id: DeploymentId, evidence: &Evidence) -> Result<(), &'static str> {
    if let EvidenceBody::Inspection { resource, reading, .. } = &evidence.body
        && !reading.resource_identity.is_empty()
        && !state.identities.contains_key(resource)
    {
        state.identities.insert(resource.clone(), reading.resource_identity.clone());
    }
    let shown = match &evidence.body {
        EvidenceBody::Inspection { resource, reading, .. } if weigh::standing(state, resource, reading).is_none() => {
            reading.highest_fence.map(|fence| (resource, fence))
        }
        EvidenceBody::FencedOff { resource, fence, .. } => Some((resource, *fence)),
        EvidenceBody::Inspection { .. }
        | EvidenceBody::LateReport { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => None,
    };
    if let Some((resource, fence)) = shown {
        self::shown(state, resource, fence);
    }
    let Some(deployment) = state.deployment_mut(id) else { return Ok(()) };
    if evidence.sequence.0 != deployment.newest_evidence().0 + 1 {
        return Err("it is not the next evidence of the deployment");
    }
    if let Some(answered) = answers(&evidence.body) {
        deployment.inquiries.retain(|inquiry| inquiry.id != answered);
    }
    deployment.evidence.push(evidence.clone());
    Ok(())
}

/// A resource has shown or confirmed a fence.
pub(super) fn shown(state: &mut TargetState, resource: &ResourceName, fence: Fence) {
    let floor = state.floors.entry(resource.clone()).or_insert(fence);
    *floor = fence.max(*floor);
}

fn answers(body: &EvidenceBody) -> Option<holdfast_common::id::EvidenceId> {
    match body {
        EvidenceBody::Inspection { inquiry, .. }
        | EvidenceBody::FencedOff { inquiry, .. }
        | EvidenceBody::InquiryFailed { inquiry, .. } => Some(*inquiry),
        EvidenceBody::LateReport { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => None,
    }
}

pub(super) fn inquired(state: &mut TargetState, id: DeploymentId, inquiry: &Inquiry) -> Result<(), &'static str> {
    if state.deployment(id).is_none() {
        return Err("the deployment is not here");
    }
    if let InquiryKind::FenceOff { fence } = inquiry.kind {
        super::raise(state, fence)?;
    }
    if let Some(deployment) = state.deployment_mut(id) {
        deployment.inquiries.push(inquiry.clone());
    }
    Ok(())
}

/// A person who asks after a deadline did is shown as who asked; what was delivered already stays.
pub(super) fn cancelled(
    state: &mut TargetState,
    at: Wall,
    id: DeploymentId,
    cause: &CancelCause,
    reason: &str,
) -> Result<(), &'static str> {
    let deployment = state.deployment_mut(id).ok_or("the deployment is not here")?;
    let (cause, reason) = (cause.clone(), reason.to_owned());
    match &mut deployment.cancel {
        Some(cancel) => (cancel.cause, cancel.reason, cancel.recorded_at) = (cause, reason, at),
        empty @ None => {
            let (delivered, acted, observed) = (None, None, None);
            *empty = Some(Cancellation { cause, reason, recorded_at: at, delivered, acted, observed, held_up: None });
        }
    }
    Ok(())
}

pub(super) fn decided(state: &mut TargetState, id: DeploymentId, record: &DecisionRecord) -> Result<(), &'static str> {
    state.deployment_mut(id).ok_or("the deployment is not here")?.decisions.push(record.clone());
    Ok(())
}

pub(super) fn revision(
    state: &mut TargetState,
    resource: &ResourceName,
    knowledge: &ResourceKnowledge,
) -> Result<(), &'static str> {
    *state.resources.get_mut(resource).ok_or("the target has no such resource")? = knowledge.clone();
    Ok(())
}

pub(super) fn hold_ended(state: &mut TargetState) -> Result<(), &'static str> {
    state.hold.take().map(|_| ()).ok_or("the target is not on hold")
}

//! A person says what they know. Kept and shown as an attestation for ever; it decides nothing by itself.

use holdfast_common::id::{DeploymentId, EvidenceId, OperatorName, ResourceName, Revision};
use holdfast_common::recovery::Attestation;

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::handlers::report::keep;
use crate::refusal::Refusal;
use crate::reservation;
use crate::state::{DeploymentState, EvidenceBody, ResourceKnowledge, RevisionSource, Waiting};

/// About an uncertain or held deployment, or about the unread resource that the head of the queue waits for: there,
/// the revision that the person saw is what lets it go on, so it must be told.
pub(crate) fn attest(
    draft: &mut Draft<'_>,
    id: DeploymentId,
    by: &OperatorName,
    attestation: &Attestation,
    evidence: EvidenceId,
) -> Result<Answer, Refusal> {
    let deployment = draft.state().deployment(id).ok_or(Refusal::DeploymentNotFound(id))?;
    let state = deployment.state;
    let unread = match (state, &deployment.waiting) {
        (DeploymentState::Uncertain | DeploymentState::Held, _) => None,
        (DeploymentState::Queued, Some(Waiting::UnreadRevision { resource })) => Some(resource.clone()),
        (state, _) => return Err(Refusal::NothingToReconcile { state }),
    };
    if let Some(resource) = unread.clone().filter(|_| attestation.observed.is_none()) {
        return Err(Refusal::ObservedMissing { resource });
    }
    let attempt = deployment.attempts.last().map(|attempt| attempt.id);
    let body = EvidenceBody::Attested { by: by.clone(), attempt, attestation: attestation.clone() };
    let last = deployment.newest_evidence();
    keep(draft, id, evidence, last, body);
    if let Some((resource, revision)) = unread.zip(attestation.observed.clone()) {
        saw(draft, by, resource, revision, &attestation.how);
    }
    Ok(Answer::Done)
}

/// About a resource while nobody holds the target: what a holder left is told with it, by [`attest`]. It says nothing of any
/// attempt. Where nobody knew the revision it lets the head of the queue go on; where one is on record that is not there any more,
/// as after a change by hand, the next deployment expects what was seen.
pub(crate) fn revision(
    draft: &mut Draft<'_>,
    by: &OperatorName,
    resource: &ResourceName,
    revision: &Revision,
    how: &str,
) -> Result<Answer, Refusal> {
    if let Some(holder) = draft.current() {
        return Err(Refusal::TargetHeld { holder: draft.state().label(holder), state: holder.state });
    }
    if draft.state().spec.resource(resource).is_none() {
        return Err(Refusal::NoSuchResource { resource: resource.clone() });
    }
    saw(draft, by, resource.clone(), revision.clone(), how);
    Ok(Answer::Done)
}

fn saw(draft: &mut Draft<'_>, by: &OperatorName, resource: ResourceName, revision: Revision, how: &str) {
    let source = Some(RevisionSource::Attested { by: by.clone(), how: how.to_owned() });
    let knowledge = ResourceKnowledge::Revision { revision: Some(revision), at: draft.now.wall, source };
    draft.record(Event::RevisionRecorded { resource, knowledge });
    reservation::next_turn(draft);
}

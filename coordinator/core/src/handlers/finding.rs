//! An agent answered an inquiry. Only the one that was asked; what was not asked changes nothing.

use holdfast_common::id::{DeploymentId, EvidenceId};
use holdfast_common::outcome::{OperationState, Reading};

use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::handlers::report::keep;
use crate::input::{Finding, Speaker};
use crate::policy;
use crate::reservation;
use crate::state::{EvidenceBody, Inquiry, InquiryKind, ResourceKnowledge, RevisionSource, Waiting};
use crate::weigh;

pub(crate) fn found(
    draft: &mut Draft<'_>,
    speaker: &Speaker,
    id: EvidenceId,
    finding: &Finding,
    evidence: EvidenceId,
) -> Answer {
    let Some((deployment, inquiry)) = asked(draft, id).filter(|(_, inquiry)| inquiry.agent == speaker.agent) else {
        return Answer::Done;
    };
    match (finding, inquiry.kind) {
        (Finding::Read(reading), InquiryKind::Inspect) => {
            // Asked when the runner was taken for out on the word of a journal that was locked since, it proves nothing.
            let still_out = inquiry.after_runner_out && !was_doubted(draft, deployment, &inquiry);
            file_reading(draft, deployment, &inquiry, reading, evidence, still_out);
            note_revision(draft, deployment, &inquiry, reading);
        }
        (Finding::Raised { reading }, InquiryKind::FenceOff { fence }) => {
            let right = weigh::is_right_resource(draft.state(), &inquiry.resource, reading);
            let confirmed = reading.highest_fence.is_none_or(|highest| highest >= fence);
            if right && confirmed {
                let body = EvidenceBody::FencedOff {
                    inquiry: id,
                    attempt: inquiry.attempt,
                    agent: speaker.agent.clone(),
                    resource: inquiry.resource.clone(),
                    step: inquiry.step.clone(),
                    fence,
                };
                file(draft, deployment, id, body);
            }
            file_reading(draft, deployment, &inquiry, reading, evidence, right && confirmed);
        }
        (Finding::Failed { detail }, _) => fail(draft, deployment, &inquiry, detail, evidence),
        (Finding::Read(_), InquiryKind::FenceOff { .. }) => {
            fail(draft, deployment, &inquiry, "answered with a look where a raise was asked for", evidence);
        }
        (Finding::Raised { .. }, InquiryKind::Inspect) => {
            fail(draft, deployment, &inquiry, "answered with a raise where a look was asked for", evidence);
        }
    }
    policy::answered(draft, deployment);
    Answer::Done
}

fn asked(draft: &Draft<'_>, id: EvidenceId) -> Option<(DeploymentId, Inquiry)> {
    let mut all = draft.state().current.iter().chain(&draft.state().queue);
    all.find_map(|deployment| {
        let inquiry = deployment.inquiries.iter().find(|inquiry| inquiry.id == id)?;
        Some((deployment.id, inquiry.clone()))
    })
}

fn was_doubted(draft: &Draft<'_>, deployment: DeploymentId, inquiry: &Inquiry) -> bool {
    let last =
        draft.state().deployment(deployment).and_then(|deployment| Some((deployment, deployment.attempts.last()?)));
    last.is_some_and(|(deployment, last)| deployment.trust(last.incarnation).doubted_until() > inquiry.after)
}

fn file(draft: &mut Draft<'_>, deployment: DeploymentId, id: EvidenceId, body: EvidenceBody) {
    let last = draft.state().deployment(deployment).map(crate::state::Deployment::newest_evidence).unwrap_or_default();
    keep(draft, deployment, id, last, body);
}

fn file_reading(
    draft: &mut Draft<'_>,
    deployment: DeploymentId,
    inquiry: &Inquiry,
    reading: &Reading,
    evidence: EvidenceId,
    after_runner_out: bool,
) {
    let body = EvidenceBody::Inspection {
        inquiry: inquiry.id,
        attempt: inquiry.attempt,
        after_runner_out,
        agent: inquiry.agent.clone(),
        resource: inquiry.resource.clone(),
        step: inquiry.step.clone(),
        reading: reading.clone(),
    };
    file(draft, deployment, evidence, body);
}

fn fail(draft: &mut Draft<'_>, deployment: DeploymentId, inquiry: &Inquiry, detail: &str, evidence: EvidenceId) {
    let (agent, detail) = (inquiry.agent.clone(), detail.to_owned());
    file(draft, deployment, evidence, EvidenceBody::InquiryFailed { inquiry: inquiry.id, agent, detail });
}

/// A reading of an unread resource lets the head of the queue go on, where it names a revision and nobody is at work.
fn note_revision(draft: &mut Draft<'_>, id: DeploymentId, inquiry: &Inquiry, reading: &Reading) {
    let waits = draft.state().deployment(id).and_then(|deployment| deployment.waiting.as_ref());
    let unread = waits == Some(&Waiting::UnreadRevision { resource: inquiry.resource.clone() });
    let quiet = reading.active.is_none() && reading.state != OperationState::Applying;
    let right = weigh::is_right_resource(draft.state(), &inquiry.resource, reading);
    if unread && quiet && right && reading.revision.is_some() {
        let source = Some(RevisionSource::Read { agent: inquiry.agent.clone() });
        let knowledge = ResourceKnowledge::Revision { revision: reading.revision.clone(), at: draft.now.wall, source };
        draft.record(Event::RevisionRecorded { resource: inquiry.resource.clone(), knowledge });
        reservation::next_turn(draft);
    }
}

//! The log of what was committed: one line for what an operator would look for, with every identity that it is about.

use holdfast_common::id::TargetName;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::state::{DeploymentState, EvidenceBody};
use tracing::{debug, info, warn};

use crate::grpc::view::enums::state_word;
use crate::grpc::view::sentence::decision_word;

/// Tells one event.
pub(super) fn tell(target: &TargetName, Recorded { event, deployment, .. }: &Recorded) {
    let deployment = deployment.map(|id| tracing::field::display(id.to_string()));
    match event {
        Event::TargetDeclared { by, .. } => info!(%target, %by, "target declared"),
        Event::Submitted { number, by, request, .. } => {
            info!(%target, deployment, number, %by, %request, "deployment submitted");
        }
        Event::LeaseGranted { attempt, number, agent, fence, .. } => {
            info!(%target, deployment, %attempt, number, %agent, %fence, "lease granted");
        }
        Event::OfferDeclined { attempt, reason, detail } => {
            warn!(%target, deployment, %attempt, ?reason, detail, "offer declined");
        }
        Event::PermitGranted { attempt, step, .. } => debug!(%target, deployment, %attempt, %step, "permit granted"),
        Event::AttemptEnded { attempt, state, because } => {
            info!(%target, deployment, %attempt, state = ?state, because, "attempt ended");
        }
        Event::EvidenceFiled { evidence, .. } => filed(target, deployment, &evidence.body),
        Event::InquiryOpened { inquiry, by, .. } => {
            info!(%target, deployment, inquiry = %inquiry.id, agent = %inquiry.agent, %by, kind = ?inquiry.kind, "inquiry opened");
        }
        Event::CancelRecorded { cause, reason, .. } => {
            info!(%target, deployment, cause = ?cause, reason, "a stop was asked for");
        }
        Event::CancelAfterEnd { by, reason, .. } => {
            info!(%target, deployment, %by, reason, "a stop was asked for after the end");
        }
        Event::DeadlinePassed { attempt, step } => {
            warn!(%target, deployment, %attempt, %step, "over its deadline, still running as far as is known");
        }
        Event::DeploymentDeadlinePassed { .. } => {
            warn!(%target, deployment, "over its own deadline, no end was seen");
        }
        Event::DeploymentMoved {
            state: state @ (DeploymentState::Uncertain | DeploymentState::Held), because, ..
        } => {
            warn!(%target, deployment, state = state_word(*state), because, "somebody must decide");
        }
        Event::RetryScheduled { after, number, step, class, delay, used, left, .. } => {
            let step = step.as_ref().map(tracing::field::display);
            info!(%target, deployment, attempt = %after, number, step, class = ?class, %delay, used, left, "another try follows");
        }
        Event::Decided { record, .. } => {
            let kind = decision_word(record.kind);
            info!(%target, deployment, by = %record.by, kind, reason = record.reason, "decided");
        }
        Event::DeploymentEnded { state, ended, .. } => {
            info!(%target, deployment, state = state_word(*state), because = ended.because, "deployment ended");
        }
        Event::DeploymentMoved { state, because, .. } => {
            debug!(%target, deployment, state = state_word(*state), because, "deployment moved");
        }
        Event::HoldPlaced { hold } => info!(%target, by = %hold.by, reason = hold.reason, "target put on hold"),
        Event::HoldEnded { how } => info!(%target, how = ?how, "hold ended"),
        Event::AgentAway { attempt, away, .. } => {
            info!(%target, deployment, %attempt, added = %away.added, "its agent goes by plan: the lease outlasts that");
        }
        Event::PolicyScheduled { .. }
        | Event::Reserved { .. }
        | Event::Waits { .. }
        | Event::LeaseRenewed { .. }
        | Event::OfferAccepted { .. }
        | Event::ReportAccepted { .. }
        | Event::RevisionRecorded { .. } => {
            debug!(%target, deployment, event = crate::metrics::facts::kind(event), "recorded");
        }
    }
}

fn filed(target: &TargetName, deployment: Option<impl tracing::Value>, body: &EvidenceBody) {
    match body {
        EvidenceBody::LateReport { claim, agent, filed, .. } => {
            let (attempt, fence) = (claim.attempt, claim.fence);
            info!(%target, deployment, %attempt, %agent, %fence, filed = ?filed, "report filed as evidence");
        }
        EvidenceBody::Inspection { agent, resource, step, reading, .. } => {
            info!(%target, deployment, %agent, %resource, %step, state = ?reading.state, "resource read");
        }
        EvidenceBody::FencedOff { agent, resource, fence, .. } => {
            info!(%target, deployment, %agent, %resource, %fence, "resource fenced off");
        }
        EvidenceBody::InquiryFailed { agent, inquiry, detail } => {
            warn!(%target, deployment, %agent, %inquiry, detail, "inquiry failed");
        }
        EvidenceBody::JournalWord { agent, attempt, runner, .. } => {
            info!(%target, deployment, %agent, %attempt, runner = ?runner, "journal spoke");
        }
        EvidenceBody::Attested { by, .. } => info!(%target, deployment, %by, "attested"),
        EvidenceBody::IdentityLocked { agent, incarnation, because } => {
            warn!(%target, deployment, %agent, %incarnation, because, "the word of a locked journal proves nothing");
        }
        EvidenceBody::IdentityUnlocked { agent, incarnation, by } => {
            info!(%target, deployment, %agent, %incarnation, %by, "the word of an unlocked journal counts from now on");
        }
        EvidenceBody::Note { by, .. } => info!(%target, deployment, %by, "noted"),
    }
}

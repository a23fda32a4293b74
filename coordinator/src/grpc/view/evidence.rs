//! Evidence, each piece with who said it, when, and how it is filed.

use holdfast_common::fence::Fence;
use holdfast_common::id::{EvidenceId, ResourceName, StepName};
use holdfast_common::outcome::Reading;
use holdfast_common::report::{FiledReason, ReportBody};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::state::{Deployment, Evidence, EvidenceBody};
use holdfast_proto::convert::{WireEnum, reading_to_wire, wall_to_wire};
use holdfast_proto::v1;

use super::sentence::evidence_words;
use super::{fence_number, fence_text, text};

/// What the kinds of evidence have in common, where they have it.
#[derive(Default)]
struct Parts<'a> {
    kind: &'static str,
    by: String,
    said_at: Option<Wall>,
    fence: Option<Fence>,
    filed: Option<FiledReason>,
    step: Option<&'a StepName>,
    resource: Option<&'a ResourceName>,
    reading: Option<&'a Reading>,
}

/// What is known, with the numbers of the evidence that it goes by: a piece that says otherwise may stand beside it.
#[must_use]
pub fn goes_by(deployment: &Deployment, because: &str, ids: &[EvidenceId]) -> String {
    let by = deployment.evidence.iter().filter(|evidence| ids.contains(&evidence.id));
    let numbers: Vec<String> = by.map(|evidence| format!("evidence {}", evidence.sequence.0)).collect();
    if numbers.is_empty() { because.to_owned() } else { format!("{because} ({})", numbers.join(", ")) }
}

/// One piece.
#[must_use]
pub fn evidence(evidence: &Evidence) -> v1::Evidence {
    let parts = parts(&evidence.body);
    v1::Evidence {
        id: evidence.id.to_string(),
        sequence: evidence.sequence.0,
        kind: parts.kind.to_owned(),
        received_at: Some(wall_to_wire(evidence.received_at)),
        said_at: parts.said_at.map(wall_to_wire),
        by: parts.by,
        fence: fence_number(parts.fence),
        fence_text: fence_text(parts.fence),
        filed_as: parts.filed.map_or(0, WireEnum::to_number),
        step: text(parts.step),
        resource: text(parts.resource),
        reading: parts.reading.map(reading_to_wire),
        sentence: evidence_words(evidence),
        body_json: serde_json::to_string(&evidence.body).expect("plain data serializes"),
    }
}

fn parts(body: &EvidenceBody) -> Parts<'_> {
    match body {
        EvidenceBody::LateReport { claim, agent, report, filed, .. } => Parts {
            kind: "late_report",
            by: agent.to_string(),
            said_at: Some(report.said_at),
            fence: Some(claim.fence),
            filed: Some(*filed),
            step: step_of(&report.body),
            ..Parts::default()
        },
        EvidenceBody::Inspection { agent, resource, step, reading, .. } => Parts {
            kind: "inspection",
            by: agent.to_string(),
            step: Some(step),
            resource: Some(resource),
            reading: Some(reading),
            ..Parts::default()
        },
        EvidenceBody::FencedOff { agent, resource, step, fence, .. } => Parts {
            kind: "fenced_off",
            by: agent.to_string(),
            fence: Some(*fence),
            step: Some(step),
            resource: Some(resource),
            ..Parts::default()
        },
        EvidenceBody::InquiryFailed { agent, .. } => {
            Parts { kind: "inquiry_failed", by: agent.to_string(), ..Parts::default() }
        }
        EvidenceBody::JournalWord { agent, .. } => {
            Parts { kind: "journal_word", by: agent.to_string(), ..Parts::default() }
        }
        EvidenceBody::IdentityLocked { agent, .. } => {
            Parts { kind: "identity_locked", by: agent.to_string(), ..Parts::default() }
        }
        EvidenceBody::IdentityUnlocked { by, .. } => {
            Parts { kind: "identity_unlocked", by: by.to_string(), ..Parts::default() }
        }
        EvidenceBody::Attested { by, .. } => Parts { kind: "attested", by: by.to_string(), ..Parts::default() },
        EvidenceBody::Note { by, .. } => Parts { kind: "note", by: by.to_string(), ..Parts::default() },
    }
}

fn step_of(body: &ReportBody) -> Option<&StepName> {
    match body {
        ReportBody::StepStarted { step } | ReportBody::StepEnded { step, .. } | ReportBody::Reread { step, .. } => {
            Some(step)
        }
        ReportBody::AttemptEnded { .. } | ReportBody::CancelReceived { .. } | ReportBody::CancelActed { .. } => None,
    }
}

/// The inquiry that a piece of evidence answers, where it answers one.
#[must_use]
pub fn answers(evidence: &Evidence) -> Option<holdfast_common::id::EvidenceId> {
    match &evidence.body {
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

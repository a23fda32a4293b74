//! An agent came back, and its journal speaks of an attempt of this target. Evidence, never authority.

use holdfast_common::claim::Claim;
use holdfast_common::id::EvidenceId;
use holdfast_common::recovery::Runner;

use crate::authority;
use crate::decision::Answer;
use crate::draft::Draft;
use crate::handlers::report;
use crate::input::Speaker;
use crate::state::{Deployment, EvidenceBody};

/// Kept only where it tells something: about an attempt of the speaker that nobody knows the end of, and not what it
/// told last. What it says of a live attempt is told by its reports and heartbeats.
pub(crate) fn spoke(
    draft: &mut Draft<'_>,
    speaker: &Speaker,
    claim: &Claim,
    runner: Runner,
    detail: &str,
    evidence: EvidenceId,
) -> Answer {
    let Some(attempt) = authority::named(draft.state(), speaker, claim) else { return Answer::Superseded };
    if attempt.state.is_live() || attempt.state.is_observed() {
        return Answer::Done;
    }
    let Some(deployment) = draft.current() else { return Answer::Superseded };
    if said_last(deployment, speaker, claim) == Some(runner) {
        return Answer::Done;
    }
    let body = EvidenceBody::JournalWord {
        agent: speaker.agent.clone(),
        incarnation: speaker.incarnation,
        attempt: claim.attempt,
        runner,
        detail: detail.to_owned(),
    };
    let (id, last) = (deployment.id, deployment.newest_evidence());
    report::keep(draft, id, evidence, last, body);
    Answer::Done
}

fn said_last(deployment: &Deployment, speaker: &Speaker, claim: &Claim) -> Option<Runner> {
    let last = deployment.attempts.last().filter(|last| deployment.is_of(last, claim.attempt));
    let since = last.map(|last| deployment.weighed_before(last)).unwrap_or_default();
    // What was said before a lock or its end is worth something else when it is said again.
    let since = since.max(deployment.trust(speaker.incarnation).changed_at());
    let news = deployment.evidence.iter().rev().take_while(|evidence| evidence.sequence > since);
    news.into_iter().find_map(|evidence| match &evidence.body {
        EvidenceBody::JournalWord { incarnation, attempt, runner, .. } => {
            (*incarnation == speaker.incarnation && *attempt == claim.attempt).then_some(*runner)
        }
        EvidenceBody::LateReport { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => None,
    })
}

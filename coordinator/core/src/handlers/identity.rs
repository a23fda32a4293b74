//! A copy of an agent was seen, or a person says which one is the agent. Kept with the deployment whose proof may rest on a word
//! of its journal: see [`crate::weigh`].

use holdfast_common::id::{AgentName, EvidenceId, IncarnationId, OperatorName};

use crate::decision::Answer;
use crate::draft::Draft;
use crate::handlers::report::keep;
use crate::state::{EvidenceBody, Trust};

pub(crate) fn locked(
    draft: &mut Draft<'_>,
    agent: &AgentName,
    incarnation: IncarnationId,
    because: &str,
    evidence: EvidenceId,
) -> Answer {
    let (agent, because) = (agent.clone(), because.to_owned());
    let body = EvidenceBody::IdentityLocked { agent, incarnation, because };
    file(draft, incarnation, evidence, body, |trust| !matches!(trust, Trust::Locked { .. }))
}

pub(crate) fn unlocked(
    draft: &mut Draft<'_>,
    agent: &AgentName,
    incarnation: IncarnationId,
    by: &OperatorName,
    evidence: EvidenceId,
) -> Answer {
    let body = EvidenceBody::IdentityUnlocked { agent: agent.clone(), incarnation, by: by.clone() };
    file(draft, incarnation, evidence, body, |trust| matches!(trust, Trust::Locked { .. }))
}

/// Once, and only where an attempt was leased to that journal.
fn file(
    draft: &mut Draft<'_>,
    incarnation: IncarnationId,
    evidence: EvidenceId,
    body: EvidenceBody,
    news: impl Fn(&Trust<'_>) -> bool,
) -> Answer {
    let Some(deployment) = draft.current() else { return Answer::Done };
    let concerned = deployment.attempts.iter().any(|attempt| attempt.incarnation == incarnation);
    if concerned && news(&deployment.trust(incarnation)) {
        let (id, last) = (deployment.id, deployment.newest_evidence());
        keep(draft, id, evidence, last, body);
    }
    Answer::Done
}

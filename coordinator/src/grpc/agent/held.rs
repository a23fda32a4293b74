//! What an agent's journal says of the attempts that it holds, when it comes back.
//!
//! A journal's word is evidence. It is filed where it helps somebody decide: on a deployment that has not ended, about
//! an attempt that is not current any more, unless the same word is there already. For a current attempt the journal's
//! reports speak.

use holdfast_common::claim::Claim;
use holdfast_common::recovery::Runner;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::input::Speaker;
use holdfast_coordinator_core::state::{Attempt, Deployment, EvidenceBody};
use holdfast_proto::convert::{Held, JournalState, claim_to_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::connect_response::Message;

use super::session::Session;
use crate::driver::Asked;

/// Tells the agent which of its attempts are over, and files what its journal says of them.
pub(super) async fn answer(session: &Session, held: &[Held]) {
    let mut superseded = Vec::new();
    for held in held {
        let target = session.shared.driver.target_of(held.claim.deployment).await;
        let state = match target.clone() {
            Some(target) => session.shared.driver.state(target).await,
            None => None,
        };
        let found = state.as_deref().and_then(|state| find(state, &session.speaker, held.claim));
        match (found, target) {
            (Some((_, attempt)), _) if attempt.state.is_live() => continue,
            (Some((deployment, attempt)), Some(target)) if !is_filed(deployment, attempt, &session.speaker, held) => {
                let asked = Asked::JournalSpoke {
                    speaker: session.speaker.clone(),
                    claim: held.claim,
                    runner: runner(held.state),
                    detail: detail(held),
                };
                if let Err(error) = session.shared.driver.ask(target, asked).await {
                    tracing::warn!(agent = %session.speaker.agent, %error, "could not file a journal's word");
                }
            }
            (Some(_) | None, _) => {}
        }
        superseded.push(v1::RenewedLease {
            claim: Some(claim_to_wire(held.claim)),
            answer: v1::LeaseAnswer::Superseded as i32,
            ttl: None,
        });
    }
    if !superseded.is_empty() {
        let answer = v1::HeartbeatAnswer { number: 0, leases: superseded };
        session.outgoing.send(Message::HeartbeatAnswer(answer));
    }
}

/// The attempt, if it is one of this agent's under this fence, in a deployment that has not ended.
fn find<'a>(state: &'a TargetState, speaker: &Speaker, claim: Claim) -> Option<(&'a Deployment, &'a Attempt)> {
    let deployment = state.current.as_ref().filter(|deployment| deployment.id == claim.deployment)?;
    let attempt = deployment.attempts.iter().find(|attempt| attempt.id == claim.attempt)?;
    (attempt.agent == speaker.agent && attempt.fence == claim.fence).then_some((deployment, attempt))
}

/// Whether the same word of the same journal is the last one on record for the attempt.
fn is_filed(deployment: &Deployment, about: &Attempt, speaker: &Speaker, held: &Held) -> bool {
    let last = deployment.evidence.iter().rev().find_map(|evidence| match &evidence.body {
        EvidenceBody::JournalWord { incarnation, attempt, runner, detail, .. } if *attempt == about.id => {
            Some((*incarnation, *runner, detail.clone()))
        }
        EvidenceBody::JournalWord { .. }
        | EvidenceBody::LateReport { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::Note { .. } => None,
    });
    last == Some((speaker.incarnation, runner(held.state), detail(held)))
}

/// What the journal's state says of the runner, and no more.
fn runner(state: JournalState) -> Runner {
    match state {
        JournalState::Running | JournalState::BetweenSteps => Runner::StillRunning,
        JournalState::Ended => Runner::Stopped,
        // It may begin yet, or its effect may go on: neither is an end.
        JournalState::Taken | JournalState::Gone => Runner::Unknown,
    }
}

fn detail(held: &Held) -> String {
    let at = held.step.as_ref().map(|step| format!(" at step {step}")).unwrap_or_default();
    let what = match held.state {
        JournalState::Taken => "it was taken and no step of it has begun",
        JournalState::Running => "a process is alive",
        JournalState::BetweenSteps => "it is between two steps",
        JournalState::Ended => "it is over",
        JournalState::Gone => "its process is gone without an exit record",
    };
    format!("{what}{at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ended_journal_says_that_the_runner_stopped() {
        assert_eq!(runner(JournalState::Ended), Runner::Stopped);
        for state in [JournalState::Taken, JournalState::Gone] {
            assert_eq!(runner(state), Runner::Unknown, "{state:?}");
        }
        for state in [JournalState::Running, JournalState::BetweenSteps] {
            assert_eq!(runner(state), Runner::StillRunning, "{state:?}");
        }
    }
}

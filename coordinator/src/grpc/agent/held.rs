//! What an agent's journal says of the attempts that it holds, when it comes back.
//!
//! A journal's word is evidence. The core files it where it tells something: about an attempt that nobody knows the end
//! of, and not twice. The agent is told which of its attempts are over.

use std::time::Duration;

use holdfast_common::claim::Claim;
use holdfast_common::id::TargetName;
use holdfast_common::recovery::Runner;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::input::Speaker;
use holdfast_proto::convert::{Held, JournalState, claim_to_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::connect_response::Message;

use super::session::Session;
use super::strangers;
use crate::driver::Asked;

/// How long a session waits for one word to be filed: without room on the disk it waits with the driver, and goes on to be
/// filed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Files what the agent's journal says of its attempts, and tells the agent which of them are over.
pub(super) async fn answer(session: &mut Session, held: &[Held]) {
    let claims: Vec<Claim> = held.iter().map(|held| held.claim).collect();
    strangers::note(session, "a journal's word", &claims).await;
    let mut superseded = Vec::new();
    for held in held {
        let current = match session.shared.driver.target_of(held.claim.deployment).await {
            Some(target) => file(session, target, held).await,
            None => false,
        };
        if !current {
            superseded.push(v1::RenewedLease {
                claim: Some(claim_to_wire(held.claim)),
                answer: v1::LeaseAnswer::Superseded as i32,
                ttl: None,
            });
        }
    }
    if !superseded.is_empty() {
        let answer = v1::HeartbeatAnswer { number: 0, leases: superseded };
        session.outgoing.send(Message::HeartbeatAnswer(answer));
    }
}

/// Whether the attempt is current, after its journal's word was taken.
async fn file(session: &mut Session, target: TargetName, held: &Held) -> bool {
    let spoke = Asked::JournalSpoke {
        speaker: session.speaker.clone(),
        claim: held.claim,
        runner: runner(held.state),
        detail: detail(held),
    };
    let filed = session.shared.driver.ask(target.clone(), spoke);
    if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, filed).await {
        tracing::warn!(agent = %session.speaker.agent, %error, "could not file a journal's word");
    }
    let state = session.shared.driver.state(target).await;
    state.is_some_and(|state| is_current(&state, &session.speaker, held.claim))
}

fn is_current(state: &TargetState, speaker: &Speaker, claim: Claim) -> bool {
    let current = state.current.as_ref().filter(|deployment| deployment.id == claim.deployment);
    let mut attempts = current.into_iter().flat_map(|deployment| &deployment.attempts);
    attempts.any(|attempt| {
        let own = attempt.agent == speaker.agent && attempt.incarnation == speaker.incarnation;
        own && attempt.id == claim.attempt && attempt.fence == claim.fence && attempt.state.is_live()
    })
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

//! What an agent says of attempts that are not its own. It is answered like what does not exist, and kept.
//!
//! Of each attempt it is read once in a session whether it is the agent's: it never becomes another's. What is not is looked at
//! again at most every second, and each message is kept once, with the first of its claims.

use std::collections::BTreeSet;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, AttemptId};

use super::message::Signs;
use super::session::Session;
use crate::store::{Error, Reader};

/// Attempts that a session remembers to be its agent's own.
const MAX_OWN: usize = 4096;

/// What a session remembers.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    own: BTreeSet<AttemptId>,
    looked_at: Signs,
}

/// Keeps it where one of the claims is no attempt of the agent.
pub(super) async fn note(session: &mut Session, what: &str, claims: &[Claim]) {
    let Strangers { own, looked_at } = &mut session.strangers;
    let new = claims.iter().filter(|claim| !own.contains(&claim.attempt) && looked_at.due(claim.attempt));
    let new: Vec<Claim> = new.copied().collect();
    if new.is_empty() {
        return;
    }
    let agent = session.speaker.agent.clone();
    let read = session.shared.reader.run(move |reader| {
        let judged = new.into_iter().map(|claim| Ok((is_own(reader, &agent, claim)?, claim)));
        judged.collect::<Result<Vec<(bool, Claim)>, Error>>()
    });
    let judged = match read.await {
        Ok(judged) => judged,
        Err(error) => {
            tracing::warn!(agent = %session.speaker.agent, %error, "could not read whose attempts an agent speaks of");
            return;
        }
    };
    if session.strangers.own.len() + judged.len() > MAX_OWN {
        session.strangers.own.clear();
    }
    session.strangers.own.extend(judged.iter().filter(|(own, _)| *own).map(|(_, claim)| claim.attempt));
    let strange: Vec<Claim> = judged.into_iter().filter(|(own, _)| !own).map(|(_, claim)| claim).collect();
    let Some(Claim { deployment, attempt, fence }) = strange.first() else { return };
    let more = match strange.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let agent = &session.speaker.agent;
    tracing::warn!(%agent, what, %deployment, %attempt, %fence, more, "of an attempt that is not the agent's");
    session.shared.driver.refused(
        format!("agent {agent}"),
        format!("{what} for attempt {attempt} of {deployment} under fence {fence}{more}"),
        "no such attempt of this agent".to_owned(),
    );
}

fn is_own(reader: &Reader, agent: &AgentName, claim: Claim) -> Result<bool, Error> {
    let row = reader.deployment(claim.deployment)?;
    let attempts = row.as_ref().map(|row| row.record.attempts.as_slice()).unwrap_or_default();
    Ok(attempts.iter().any(|attempt| attempt.id == claim.attempt && attempt.agent == *agent))
}

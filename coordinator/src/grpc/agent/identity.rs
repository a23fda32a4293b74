//! Whether a Hello is the agent's own. What is judged is written before anything is said of it.

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::spec::hex;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::{Copied, Greeting, Identity, Older, Shown};
use holdfast_proto::convert::Hello;

use super::session::{End, Session};
use crate::auth::{Hash, Secret};
use crate::driver::{self, Judged};
use crate::grpc::shared::Shared;
use crate::sessions::{Outgoing, Profile, Standing};
use crate::store::Act;

/// What an agent is told while it is not known whether the process before it is gone.
const WAITS: &str =
    "another process of this agent has a session, and has neither answered nor ended: try again in a few seconds";

/// What a Hello came to.
#[derive(Clone, Debug)]
struct Seen {
    greeting: Greeting,
    /// The identity's lock is from this Hello.
    locked_now: bool,
    standing: Standing,
}

/// The token for the Welcome, and what the agent's identity is. A copy is an error, and raised.
pub(super) async fn judge(
    shared: &Shared,
    agent: &AgentName,
    hello: &Hello,
    outgoing: &Outgoing,
) -> Result<(String, Standing), End> {
    let fresh = Secret::generate().map_err(|error| End::new(Code::Internal, error.to_string()))?;
    let fresh = fresh.reveal().to_owned();
    let shown = shown(hello, shared.directory.older(agent, &hello.instance, outgoing).await);
    let (name, offered) = (agent.clone(), hash(&fresh));
    let (written_shown, written_offered) = (shown.clone(), offered.clone());
    let judged = shared.driver.identify(agent.clone(), move |identity, now| {
        let seen = see(identity, &written_shown, written_offered.clone(), now);
        let acts = acts(&name, &seen, &written_shown, now);
        Judged { answer: seen, acts }
    });
    let (seen, token) = match judged.await {
        Ok(seen) => (seen, fresh),
        // Without room for a new token the one that it has goes on: there is nothing to write.
        Err(driver::Error::NoRoom(room)) if !hello.session_token.is_empty() => {
            let name = agent.clone();
            let known = shared.reader.run(move |reader| reader.agent_identity(&name)).await;
            let mut known = known.map_err(|error| End::new(Code::StoreFailed, error.to_string()))?.unwrap_or_default();
            tracing::warn!(%agent, %room, "there is no room for a new session token: the agent keeps its own");
            (see(&mut known, &shown, offered, shared.now()), hello.session_token.clone())
        }
        Err(error) => return Err(End::new(error.code(), error.to_string())),
    };
    match seen.greeting {
        Greeting::Known => {}
        Greeting::Moved => {
            tracing::warn!(%agent, machine = shown.machine, "an agent is on another machine than before")
        }
        Greeting::Waits => return Err(End::new(Code::NoAnswer, WAITS)),
        Greeting::Copied(copied) => return Err(raise(shared, agent, hello, copied, seen)),
    }
    Ok((token, seen.standing))
}

/// The agent's journal has the session's token.
pub(super) fn kept(session: &Session) {
    let (driver, agent, token) = (session.shared.driver.clone(), session.speaker.agent.clone(), session.token.clone());
    tokio::spawn(async move {
        let kept = driver.identify(agent.clone(), move |identity, _| Judged::quietly(identity.kept(&token))).await;
        if let Err(error) = kept {
            // Its next Hello says the same.
            tracing::debug!(%agent, %error, "that a session token is kept was not written");
        }
    });
}

/// As a token is stored.
pub(super) fn hash(token: &str) -> String {
    hex(&Hash::of(token).0)
}

fn shown(hello: &Hello, older: Older) -> Shown {
    Shown {
        incarnation: hello.incarnation,
        sequence: hello.journal_sequence,
        token: (!hello.session_token.is_empty()).then(|| hash(&hello.session_token)),
        machine: hello.machine.clone(),
        older,
    }
}

fn see(identity: &mut Identity, shown: &Shown, offered: String, now: Wall) -> Seen {
    let was_locked = identity.lock.is_some();
    let greeting = identity.greet(shown, offered, now);
    Seen { greeting, locked_now: !was_locked && identity.lock.is_some(), standing: Standing::from(&*identity) }
}

/// What is kept for ever: that it was locked, that it moved. Later Hellos of a copy are refusals.
fn acts(agent: &AgentName, seen: &Seen, shown: &Shown, now: Wall) -> Vec<Act> {
    let by = format!("agent {agent}");
    let act = |kind, detail| Act { at: now, by: by.clone(), kind, about: agent.to_string(), detail };
    match seen.greeting {
        Greeting::Known | Greeting::Waits => Vec::new(),
        Greeting::Moved => vec![act("agent_moved", format!("to machine {}", shown.machine))],
        Greeting::Copied(copied) if seen.locked_now => vec![act("agent_locked", copied.words().to_owned())],
        Greeting::Copied(_) => Vec::new(),
    }
}

fn raise(shared: &Shared, agent: &AgentName, hello: &Hello, copied: Copied, seen: Seen) -> End {
    let why = copied.words();
    tracing::error!(%agent, code = %Code::IdentityCopied, why, incarnation = %hello.incarnation,
        journal = hello.journal_sequence, machine = hello.machine, "a copy of an agent was refused, its identity is locked");
    shared.driver.refused(format!("agent {agent}"), "a session".to_owned(), format!("a copy: {why}"));
    shared.directory.remember(agent.clone(), Profile::from(hello), shared.now());
    shared.directory.stand(agent, seen.standing);
    if seen.locked_now {
        shared.driver.agents_changed();
    }
    End::new(Code::IdentityCopied, format!("a copy of agent {agent} was seen: {why}"))
}

//! The first word of a session, and what follows from it.

use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, SessionId};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::input::Speaker;
use holdfast_proto::convert::{self, Hello, Position, duration_to_wire, position_to_wire};
use holdfast_proto::{PROTOCOL_VERSION, v1};
use uuid::Uuid;

use super::session::{End, Session};
use super::{held, identity};
use crate::auth::ShownCertificate;
use crate::grpc::shared::Shared;
use crate::sessions::{Outgoing, Profile};
use crate::store::AgentRow;

/// A session that has begun.
pub(super) struct Greeted {
    pub(super) session: SessionId,
    pub(super) speaker: Speaker,
    /// Hash of the token that its Welcome carries.
    pub(super) token: String,
}

/// A whole Hello of a version that this coordinator speaks.
pub(super) fn read(first: v1::ConnectRequest) -> Result<Hello, End> {
    let Some(v1::connect_request::Message::Hello(hello)) = first.message else {
        return Err(End::new(Code::InvalidMessage, "field `message`: the first message of a session is a Hello"));
    };
    if !hello.protocol_versions.contains(&PROTOCOL_VERSION) {
        let detail = format!(
            "the agent speaks protocol {:?}, this coordinator speaks {PROTOCOL_VERSION}",
            hello.protocol_versions.iter().take(16).collect::<Vec<_>>()
        );
        return Err(End::new(Code::ProtocolVersion, detail));
    }
    Ok(convert::hello_from_wire(hello)?)
}

/// Welcomes the agent and begins its session. An older session of the agent ends. A copy is refused.
pub(super) async fn greet(
    shared: &Shared,
    agent: &AgentName,
    certificate: &ShownCertificate,
    outgoing: &Outgoing,
    hello: &mut Hello,
) -> Result<Greeted, End> {
    let position = position(shared);
    if let Some(seen) = hello.seen {
        compare(agent, seen, position);
    }
    let fingerprint = &certificate.fingerprint;
    tracing::debug!(%agent, fingerprint, incarnation = %hello.incarnation, journal = hello.journal_sequence, "hello");
    loop {
        // Where another process of the agent came first meanwhile, all is judged again.
        if let Some(greeted) = begin(shared, agent, outgoing, hello, position).await? {
            return Ok(greeted);
        }
    }
}

/// Begins its session, unless there is one of another process by then.
async fn begin(
    shared: &Shared,
    agent: &AgentName,
    outgoing: &Outgoing,
    hello: &mut Hello,
    position: Position,
) -> Result<Option<Greeted>, End> {
    let (token, standing) = identity::judge(shared, agent, hello, outgoing).await?;
    if let Some(labels) = &standing.labels {
        hello.labels.clone_from(labels);
    }
    let session = SessionId(Uuid::new_v4());
    let hash = identity::hash(&token);
    let welcome = v1::Welcome {
        protocol_version: PROTOCOL_VERSION,
        session: session.to_string(),
        session_token: token,
        position: Some(position_to_wire(position)),
        heartbeat_interval: Some(duration_to_wire(shared.limits.heartbeat_interval)),
        agent: agent.to_string(),
        max_text_bytes: shared.limits.max_text_bytes,
        max_log_bytes: shared.limits.max_log_bytes,
        reconnect_spread: Some(duration_to_wire(spread(shared.directory.count()))),
    };
    let said = (Profile::from(&*hello), standing);
    let begun = shared.directory.attach(agent, said, session, outgoing, welcome, shared.now());
    let speaker = Speaker { agent: agent.clone(), incarnation: hello.incarnation };
    Ok(begun.then_some(Greeted { session, speaker, token: hash }))
}

/// What is kept of the agent, what is due to it, and what its journal says.
pub(super) async fn settle(session: &mut Session, certificate: &ShownCertificate, hello: &Hello) {
    let shared = &session.shared;
    let row = AgentRow {
        name: session.speaker.agent.clone(),
        fingerprint: certificate.fingerprint.clone(),
        certificate_since: Some(certificate.valid_from),
        certificate_until: Some(certificate.valid_until),
        incarnation: hello.incarnation,
        labels: hello.labels.clone(),
        last_heard: shared.now(),
    };
    if let Err(error) = shared.driver.put_agent(row).await {
        tracing::warn!(agent = %session.speaker.agent, %error, "could not keep what is known of an agent");
    }
    held::answer(session, &hello.held).await;
    session.shared.driver.session_started(session.speaker.clone()).await;
}

/// Two hundred agents without work a second leave room for those with work, which are in a hurry and do not wait for this.
fn spread(agents: usize) -> Millis {
    const EACH: u64 = 5;
    const LONGEST: Millis = Millis::from_secs(15);
    Millis(u64::try_from(agents).unwrap_or(u64::MAX).saturating_mul(EACH)).min(LONGEST)
}

/// How far this coordinator's store has come.
pub(crate) fn position(shared: &Shared) -> Position {
    let commit = *shared.driver.committed().borrow();
    Position { store: shared.identity.store, epoch: shared.identity.epoch, commit }
}

fn compare(agent: &AgentName, seen: Position, own: Position) {
    if seen.store != own.store {
        tracing::warn!(%agent, seen = %seen.store, own = %own.store, "an agent comes from another store");
    } else if (seen.epoch, seen.commit) > (own.epoch, own.commit) {
        tracing::error!(%agent, ?seen, ?own, "an agent has seen this store further than it is: was it restored?");
    }
}

//! One session, from its Hello to its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, SessionId};
use holdfast_coordinator_core::input::Speaker;
use holdfast_proto::{PROTOCOL_VERSION, v1};
use tokio::sync::Semaphore;
use tonic::{Status, Streaming};

use super::hello::{self, Greeted};
use super::message;
use super::pace::{self, Meter};
use super::strangers::Strangers;
use crate::auth::ShownCertificate;
use crate::driver;
use crate::grpc::shared::Shared;
use crate::sessions::{Outgoing, Profile};

/// Longest wait for the first message.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// How long an agent may leave its answers unread while it says more.
const UNREAD: Duration = Duration::from_secs(10);

/// Messages of one agent that are given to the driver as one piece, at most.
const TOGETHER: usize = 64;

/// Messages of one agent that may wait for the driver at once. The agent's next one waits in its connection.
const UNANSWERED: usize = 256;

/// A stream that has not said its Hello.
pub(super) struct Connection {
    pub(super) shared: Shared,
    pub(super) meter: Meter,
    pub(super) agent: AgentName,
    pub(super) certificate: ShownCertificate,
    pub(super) incoming: Streaming<v1::ConnectRequest>,
    pub(super) outgoing: Outgoing,
}

/// Why a session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// Its stable code.
    pub(super) code: Code,
    /// For people.
    pub(super) detail: String,
}

impl End {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl From<holdfast_proto::convert::Invalid> for End {
    fn from(why: holdfast_proto::convert::Invalid) -> Self {
        Self::new(Code::InvalidMessage, why.to_string())
    }
}

/// Why this side ends a session.
enum FromHere {
    /// The coordinator is stopping.
    Stops,
    /// It was ended elsewhere, which told the agent.
    Over,
    /// The agent's certificate opens nothing any more.
    Barred,
}

/// A session under way, as the handlers of its messages see it.
pub(super) struct Session {
    pub(super) shared: Shared,
    pub(super) speaker: Speaker,
    pub(super) id: SessionId,
    /// Hash of the token that its Welcome carried.
    pub(super) token: String,
    pub(super) outgoing: Outgoing,
    pub(super) signs: message::Signs,
    /// What the agent said and the driver was not given yet.
    pub(super) gathered: Vec<driver::Message>,
    /// What the last message costs beside what it looked like.
    pub(super) surcharge: u64,
    /// Bounds the messages that wait for the driver.
    pub(super) room: Arc<Semaphore>,
    /// Whose attempts it speaks of.
    pub(super) strangers: Strangers,
}

impl Connection {
    pub(super) async fn run(mut self) {
        match self.first().await {
            Ok(Some(hello)) => self.serve(hello).await,
            Ok(None) => {}
            Err(end) => {
                tracing::info!(agent = %self.agent, code = %end.code, detail = %end.detail, "a session was refused");
                self.outgoing.bye(end.code, &end.detail);
            }
        }
    }

    /// The first message, which must be a Hello that this version can answer.
    async fn first(&mut self) -> Result<Option<holdfast_proto::convert::Hello>, End> {
        let first = tokio::select! {
            () = self.shared.stop.cancelled() => return Err(stopping()),
            first = tokio::time::timeout(HELLO_WITHIN, self.incoming.message()) => first,
        };
        match first {
            Err(_) => Err(End::new(Code::InvalidMessage, format!("no Hello within {} s", HELLO_WITHIN.as_secs()))),
            Ok(Err(status)) => Err(unreadable(&status)),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(first))) => {
                self.note_other_protocol(&first);
                hello::read(first).map(Some)
            }
        }
    }

    /// An agent that this version can't speak with is shown, with why, to those who wait for it.
    fn note_other_protocol(&self, first: &v1::ConnectRequest) {
        const MOST: usize = 16;
        let Some(v1::connect_request::Message::Hello(hello)) = &first.message else { return };
        if hello.protocol_versions.contains(&PROTOCOL_VERSION) {
            return;
        }
        let versions = hello.protocol_versions.iter().copied().take(MOST).collect();
        let Shared { directory, driver, .. } = &self.shared;
        if directory.speaks_otherwise(&self.agent, Profile::of_stranger(hello), versions, self.shared.now()) {
            driver.agents_changed();
        }
    }

    async fn serve(self, mut hello: holdfast_proto::convert::Hello) {
        let Connection { shared, mut meter, agent, certificate, mut incoming, outgoing } = self;
        let Greeted { session, speaker, token } =
            match hello::greet(&shared, &agent, &certificate, &outgoing, &mut hello).await {
                Ok(greeted) => greeted,
                Err(end) => {
                    tracing::error!(%agent, code = %end.code, detail = %end.detail, "an agent was not welcomed");
                    outgoing.bye(end.code, &end.detail);
                    return;
                }
            };
        tracing::info!(%agent, %session, "an agent is in contact");
        let mut session = Session {
            shared: shared.clone(),
            speaker: speaker.clone(),
            id: session,
            token,
            outgoing,
            signs: message::Signs::default(),
            gathered: Vec::new(),
            surcharge: 0,
            room: Arc::new(Semaphore::new(UNANSWERED)),
            strangers: Strangers::default(),
        };
        let end = match session.revoked(&certificate) {
            Some(end) => Some(end),
            None => {
                hello::settle(&mut session, &certificate, &hello).await;
                session.listen(&mut incoming, &certificate, &mut meter).await
            }
        };
        // What was said before the end counts.
        if let Some(end) = end.or(session.send().err()) {
            tracing::info!(%agent, session = %session.id, code = %end.code, detail = %end.detail, "a session ends");
            session.outgoing.bye(end.code, &end.detail);
        }
        let was_current = shared.directory.detach(&agent, session.id);
        drop(session);
        if was_current {
            tracing::info!(%agent, "an agent is out of contact");
            shared.driver.agents_changed();
        }
    }
}

impl Session {
    /// Gives the driver what was gathered. The agent was heard.
    pub(super) fn send(&mut self) -> Result<(), End> {
        self.shared.directory.heard(&self.speaker.agent, self.id, self.shared.now());
        self.shared.driver.send(&mut self.gathered).map_err(|error| message::end_of(&error))
    }

    /// Why the session is over, where its certificate opens nothing any more.
    fn revoked(&self, certificate: &ShownCertificate) -> Option<End> {
        let agent = &self.speaker.agent;
        let detail = || format!("this certificate of agent {agent} was revoked, or the agent was removed");
        self.shared.revocations.bar(agent, certificate).then(|| End::new(Code::CertificateRevoked, detail()))
    }

    /// What the agent is told of an end from here.
    fn end(&self, why: FromHere, certificate: &ShownCertificate) -> Option<End> {
        match why {
            FromHere::Stops => Some(stopping()),
            FromHere::Over => None,
            FromHere::Barred => self.revoked(certificate),
        }
    }

    /// Until either side ends it. What is answered is why, where the agent is to be told.
    async fn listen(
        &mut self,
        incoming: &mut Streaming<v1::ConnectRequest>,
        certificate: &ShownCertificate,
        meter: &mut Meter,
    ) -> Option<End> {
        let (stop, outgoing) = (self.shared.stop.clone(), self.outgoing.clone());
        let (revocations, agent) = (self.shared.revocations.clone(), self.speaker.agent.clone());
        let from_here = async {
            tokio::select! {
                () = stop.cancelled() => FromHere::Stops,
                () = outgoing.over() => FromHere::Over,
                () = revocations.barred(&agent, certificate) => FromHere::Barred,
            }
        };
        let mut from_here = std::pin::pin!(from_here);
        loop {
            // What came together is decided together.
            let more = if self.gathered.len() < TOGETHER { incoming.message().now_or_never() } else { None };
            let message = match more {
                Some(message) => message,
                None => {
                    if let Err(end) = self.send() {
                        return Some(end);
                    }
                    tokio::select! {
                        why = &mut from_here => return self.end(why, certificate),
                        message = incoming.message() => message,
                    }
                }
            };
            if let Some(end) = self.revoked(certificate) {
                return Some(end);
            }
            let wait = match message {
                Ok(Some(message)) => {
                    let cost = pace::cost(&message);
                    if matches!(message.message, Some(v1::connect_request::Message::Heartbeat(_))) {
                        meter.beat(self.shared.limits.heartbeat_interval.into());
                    }
                    match message::take(self, message).await {
                        Ok(message::Next::GoOn) => meter.take(cost + std::mem::take(&mut self.surcharge)),
                        Ok(message::Next::Detach) => return None,
                        Err(end) => return Some(end),
                    }
                }
                Ok(None) => return None,
                Err(status) => return lost_or_unreadable(&status),
            };
            if wait.is_some() || outgoing.is_crowded() {
                if let Err(end) = self.send() {
                    return Some(end);
                }
                tokio::select! {
                    why = &mut from_here => return self.end(why, certificate),
                    read = rest(wait.unwrap_or_default(), &outgoing) => if !read {
                        tracing::warn!(agent = %self.speaker.agent, "an agent says more and reads nothing, its session is dropped");
                        return None;
                    },
                }
            }
        }
    }
}

/// What is not read yet waits as well: whoever asks faster than it reads is read no faster. False where it reads nothing at all.
async fn rest(wait: Duration, outgoing: &Outgoing) -> bool {
    tokio::time::sleep(wait).await;
    !outgoing.is_crowded() || tokio::time::timeout(UNREAD, outgoing.until_read()).await.is_ok()
}

fn stopping() -> End {
    End::new(Code::NotServing, "the coordinator is stopping")
}

/// A frame that does not decode is the agent's fault and is told; a connection that broke is nobody's.
fn lost_or_unreadable(status: &Status) -> Option<End> {
    use tonic::Code::{Internal, InvalidArgument, OutOfRange, ResourceExhausted};
    matches!(status.code(), Internal | InvalidArgument | OutOfRange | ResourceExhausted).then(|| unreadable(status))
}

fn unreadable(status: &Status) -> End {
    End::new(Code::InvalidMessage, format!("a message could not be read: {}", status.message()))
}

//! The connection to the coordinator: one bidirectional stream at a time, made again with growing, jittered delays.
//!
//! ```text
//!   Hello ->           the driver says what it holds
//!          <- Welcome  the session begins: the driver gets its sending end
//!   ...                parsed messages go to the driver, the driver's messages go out
//!          <- Ping     another process says that it is this agent: the session answers by itself
//! ```
//!
//! The session decides nothing. Heartbeats come from the driver, so that they stop when it does.

mod message;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_common::code::Code as Stable;
use holdfast_common::id::SessionId;
use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Wall;
use holdfast_net::backoff::Backoff;
use holdfast_net::channel::{self, Addresses, Limits};
use holdfast_net::peer::Validity;
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::{ConnectRequest, ConnectResponse, Hello, Pong, connect_request, connect_response};
use holdfast_proto::{MAX_MESSAGE_BYTES, convert};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

pub use message::{Drained, FromCoordinator, Inquiry, Question, Welcome};

/// Messages that may wait to be sent: more than one batch of the driver makes. A session that falls further behind is left.
const OUTGOING: usize = 2048;

/// What the session needs of the agent.
pub trait Owner: Send + 'static {
    /// What to say first. Asked anew for every connection.
    fn hello(&mut self) -> impl Future<Output = Option<Hello>> + Send;
    /// A session began; messages for it go into `outgoing`.
    fn up(&mut self, welcome: Welcome, outgoing: mpsc::Sender<ConnectRequest>) -> impl Future<Output = ()> + Send;
    /// A message came in the session.
    fn message(&mut self, session: SessionId, message: FromCoordinator) -> impl Future<Output = ()> + Send;
    /// The coordinator refuses this agent, until a person does something about it: why.
    fn refused(&mut self, why: String);
    /// The session is over, or there was none.
    fn down(&mut self) -> impl Future<Output = Hurry> + Send;
}

/// How soon a session is needed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hurry {
    /// Nothing is lost by waiting.
    Idle,
    /// There is work whose lease wants to be renewed, or whose end is not told.
    HoldsWork,
}

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("could not reach the coordinator: {0}")]
    Dial(#[from] channel::Error),
    #[error("the coordinator ended the stream: {}: {}", .0.code(), .0.message())]
    Status(Box<Status>),
    #[error("the coordinator closed the stream")]
    Closed,
    #[error("the coordinator said goodbye: {code} {detail}")]
    Bye { code: String, detail: String },
    #[error("the coordinator broke the protocol: {0}")]
    Invalid(#[from] convert::Invalid),
    #[error("the coordinator did not answer the hello within {0:?}")]
    NoWelcome(Duration),
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Ended::Status(Box::new(status))
    }
}

impl Ended {
    /// Whether another try soon could help. What can't heal is told once and tried seldom, not in a loop.
    fn heals(&self) -> bool {
        match self {
            Ended::Status(status) => !matches!(
                status.code(),
                Code::Unauthenticated
                    | Code::PermissionDenied
                    | Code::FailedPrecondition
                    | Code::NotFound
                    | Code::InvalidArgument
                    | Code::Unimplemented
            ),
            Ended::Invalid(_) => false,
            // Also where another session took over: whoever it is, who comes back is judged anew.
            Ended::Bye { .. } => self.refuses().is_none(),
            Ended::Dial(_) | Ended::Closed | Ended::NoWelcome(_) => true,
        }
    }
}

impl Ended {
    /// Why the coordinator refuses this agent itself, in words.
    fn refuses(&self) -> Option<String> {
        let Ended::Bye { code, detail } = self else { return None };
        let why = match code {
            code if *code == Stable::IdentityCopied.to_string() => "copy",
            code if *code == Stable::CertificateRevoked.to_string() => "removed",
            _ => return None,
        };
        Some(format!("refused: {why} ({code}): {}", one_line(&bounded(detail, 300))))
    }
}

/// How the session keeps trying.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Bound of the first delay.
    pub initial: Duration,
    /// Bound of every delay.
    pub max: Duration,
    /// Bound of every delay while there is work: shorter than the leases that a returned coordinator still honours.
    pub holding: Duration,
    /// Bound of the delay after a refusal that a person has to end: short enough that nobody has to start the agent again then.
    pub refused: Duration,
    /// Longest wait for the Welcome.
    pub welcome: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(250),
            max: Duration::from_secs(15),
            holding: Duration::from_secs(2),
            refused: Duration::from_secs(30),
            welcome: Duration::from_secs(10),
        }
    }
}

/// When to end.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// The last word is said: no other session begins once the one that there is has ended.
    pub going: CancellationToken,
    /// At once.
    pub stop: CancellationToken,
}

/// Keeps one session up until told to stop.
pub async fn keep(
    addresses: &Addresses,
    tls: &ClientTls,
    pace: Pace,
    seed: u64,
    owner: &mut impl Owner,
    Ending { going, stop }: &Ending,
) {
    let mut backoff = Backoff::new(pace.initial, pace.max, seed);
    let mut last = String::new();
    loop {
        let tried = stop.run_until_cancelled(once(addresses, tls, pace, owner, &mut backoff)).await;
        if let Some(why) = tried.as_ref().and_then(Ended::refuses) {
            owner.refused(why);
        }
        let hurry = owner.down().await;
        let Some(ended) = tried.filter(|_| !going.is_cancelled()) else { return };
        // The same trouble is told once, not with every try.
        let why = reason(&ended, tls.validity(), wall_now());
        if why != last {
            last = why;
            tracing::warn!(reason = %last, "no session with the coordinator");
        }
        let delay = match (ended.heals(), hurry) {
            (false, _) => backoff.about(pace.refused),
            (true, Hurry::Idle) => backoff.next(),
            (true, Hurry::HoldsWork) => backoff.next_within(pace.holding),
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = going.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
    }
}

/// Why there is no session. An own certificate that is past its end comes first: nothing else helps before that.
fn reason(ended: &Ended, own: Option<Validity>, now: Wall) -> String {
    let over = own.map(|own| own.until).filter(|until| *until <= now);
    let over = over.and_then(|until| jiff::Timestamp::from_microsecond(until.0).ok()).map(|until| {
        format!("this agent's own certificate ended on {until:.0}, by this host's clock: set it, or join again; ")
    });
    let alert = match ended {
        Ended::Status(status) => tls_alert(status).map(|alert| format!("; the coordinator {alert}")),
        Ended::Dial(_) | Ended::Closed | Ended::Bye { .. } | Ended::Invalid(_) | Ended::NoWelcome(_) => None,
    };
    format!("{}{ended}{}", over.unwrap_or_default(), alert.unwrap_or_default())
}

/// What the other side of TLS said as it closed, in words: it says so only after the handshake, when the first call fails.
fn tls_alert(status: &Status) -> Option<String> {
    const SAID: &str = "received fatal alert: ";
    let sources = std::iter::successors(std::error::Error::source(status), |error| error.source());
    let alert =
        sources.map(ToString::to_string).find_map(|text| text.split_once(SAID).map(|(_, rest)| rest.to_owned()))?;
    let word: String = alert.chars().take_while(char::is_ascii_alphanumeric).collect();
    Some(match word.as_str() {
        "CertificateExpired" => "finds this agent's certificate expired, by its clock".to_owned(),
        "CertificateRevoked" => "finds this agent's certificate revoked".to_owned(),
        "UnknownCA" => "does not trust the authority of this agent's certificate".to_owned(),
        "CertificateRequired" => "was shown no certificate".to_owned(),
        word => format!("refused the connection by TLS ({word})"),
    })
}

fn wall_now() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

async fn once(
    addresses: &Addresses,
    tls: &ClientTls,
    pace: Pace,
    owner: &mut impl Owner,
    backoff: &mut Backoff,
) -> Ended {
    match run(addresses, tls, pace, owner, backoff).await {
        Ok(()) => Ended::Closed,
        Err(ended) => ended,
    }
}

async fn run(
    addresses: &Addresses,
    tls: &ClientTls,
    pace: Pace,
    owner: &mut impl Owner,
    backoff: &mut Backoff,
) -> Result<(), Ended> {
    let channel = channel::connect_any(addresses, tls, &Limits::default()).await?;
    let Some(hello) = owner.hello().await else { return Ok(()) };
    let (outgoing, incoming, welcome) = tokio::time::timeout(pace.welcome, open(channel, hello))
        .await
        .map_err(|_| Ended::NoWelcome(pace.welcome))??;
    // Many who lose the same coordinator do not come back at once, and those without work let the others go first.
    let spread = welcome.reconnect_spread.map_or(Duration::ZERO, Duration::from);
    backoff.reset_to(spread.max(pace.initial));
    tracing::info!(session = %welcome.session, agent = %welcome.agent, "connected");
    let session = welcome.session;
    let pongs = outgoing.downgrade();
    owner.up(welcome, outgoing).await;
    receive(session, incoming, owner, &pongs).await
}

async fn open(
    channel: Channel,
    hello: Hello,
) -> Result<(mpsc::Sender<ConnectRequest>, Streaming<ConnectResponse>, Welcome), Ended> {
    let (outgoing, outbox) = mpsc::channel(OUTGOING);
    let hello = ConnectRequest { message: Some(connect_request::Message::Hello(hello)) };
    outgoing.send(hello).await.map_err(|_| Ended::Closed)?;
    let mut client = AgentServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let mut incoming = client.connect(ReceiverStream::new(outbox)).await?.into_inner();
    let first = incoming.next().await.ok_or(Ended::Closed)??;
    match first.message {
        Some(connect_response::Message::Welcome(welcome)) => {
            Ok((outgoing, incoming, message::welcome_from_wire(welcome)?))
        }
        Some(connect_response::Message::Bye(bye)) => Err(Ended::Bye { code: bye.code, detail: bye.detail }),
        Some(_) | None => Err(Ended::Invalid(convert::Invalid::Missing { field: "welcome" })),
    }
}

/// Not by way of the driver, which may have much to do: it says that this process is there, and no more.
fn pong(pongs: &mpsc::WeakSender<ConnectRequest>, number: u64) {
    let pong = ConnectRequest { message: Some(connect_request::Message::Pong(Pong { number })) };
    if let Some(pongs) = pongs.upgrade() {
        let _asked_again_with_the_next_hello = pongs.try_send(pong);
    }
}

async fn receive(
    session: SessionId,
    mut incoming: Streaming<ConnectResponse>,
    owner: &mut impl Owner,
    pongs: &mpsc::WeakSender<ConnectRequest>,
) -> Result<(), Ended> {
    while let Some(response) = incoming.next().await {
        match message::from_wire(response?)? {
            FromCoordinator::Bye { code, detail } => return Err(Ended::Bye { code, detail }),
            FromCoordinator::Ping(number) => pong(pongs, number),
            other => owner.message(session, other).await,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_replaced_comes_back_soon_and_who_is_refused_seldom() {
        let bye = |code: Stable| Ended::Bye { code: code.to_string(), detail: String::new() };
        for code in [Stable::SessionReplaced, Stable::NoAnswer, Stable::NotServing] {
            assert!(bye(code).heals(), "{code}");
        }
        for code in [Stable::IdentityCopied, Stable::CertificateRevoked] {
            assert!(!bye(code).heals(), "{code}");
        }
    }

    #[test]
    fn a_refusal_by_tls_is_told_in_words_and_an_own_certificate_that_is_over_by_its_end() {
        let alert = std::io::Error::other("received fatal alert: CertificateExpired");
        let ended = Ended::from(Status::from_error(Box::new(std::io::Error::other(Outer(alert)))));
        let own = |until| Some(Validity { from: Wall(0), until: Wall(until) });
        let told = reason(&ended, own(2), Wall(1));
        assert!(told.ends_with("; the coordinator finds this agent's certificate expired, by its clock"), "{told}");
        assert!(!told.contains("own certificate ended"), "{told}");
        let told = reason(&ended, own(1_000_000), Wall(2_000_000));
        assert!(told.starts_with("this agent's own certificate ended on 1970-01-01T00:00:01Z"), "{told}");
        let plain = reason(&Ended::Closed, None, Wall(1));
        assert_eq!(plain, "the coordinator closed the stream");
    }

    #[derive(Debug, thiserror::Error)]
    #[error("transport error")]
    struct Outer(#[source] std::io::Error);
}

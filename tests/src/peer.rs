//! An agent's side of the protocol by hand, with a real agent's certificate: any message, as often and in any order as the
//! test likes.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::PROTOCOL_VERSION;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    AttemptEnd, AttemptEnded, Claim, ConnectRequest, ConnectResponse, Disposition, Heartbeat, HeartbeatAnswer, Hello,
    Offer, OfferAnswer, OfferAnswerKind, PermitAnswer, PermitRequest, Report, StepEnd, StepEndKind, StepEnded,
    StepStarted, Welcome,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use uuid::Uuid;

use crate::wait;

/// A session that a test holds.
#[derive(Debug)]
pub struct Peer {
    /// The coordinator's answer to the hello.
    pub welcome: Welcome,
    outgoing: mpsc::Sender<ConnectRequest>,
    incoming: Streaming<ConnectResponse>,
    /// What came while something else was waited for.
    passed: VecDeque<Hears>,
    heartbeats: u64,
}

/// The hello of a journal that was made just now, with the labels of the shop's agents.
#[must_use]
pub fn hello(incarnation: Uuid) -> Hello {
    Hello {
        protocol_versions: vec![PROTOCOL_VERSION],
        incarnation: incarnation.to_string(),
        boot_id: "a boot".to_owned(),
        labels: [("role".to_owned(), "shop".to_owned())].into(),
        adapters: vec!["command".to_owned(), "release".to_owned(), "check".to_owned()],
        version: "0.1.0".to_owned(),
        ..Hello::default()
    }
}

impl Peer {
    /// Opens a session.
    pub async fn connect(address: &str, tls: &ClientTls, hello: Hello) -> Result<Self, Status> {
        let (outgoing, mut incoming) = open(address, tls).await?;
        say(&outgoing, Says::Hello(hello)).await;
        match next_of(&mut incoming).await? {
            Some(Hears::Welcome(welcome)) => {
                Ok(Self { welcome, outgoing, incoming, passed: VecDeque::new(), heartbeats: 0 })
            }
            other => Err(Status::unknown(format!("expected a welcome, got {other:?}"))),
        }
    }

    /// Both ends of the stream, for a benchmark of its own.
    #[must_use]
    pub fn into_ends(self) -> (mpsc::Sender<ConnectRequest>, Streaming<ConnectResponse>) {
        (self.outgoing, self.incoming)
    }

    /// Sends one message.
    pub async fn say(&self, message: Says) {
        say(&self.outgoing, message).await;
    }

    /// The next message that is as described. Others are kept for later.
    pub async fn hear<T>(&mut self, what: &str, mut fits: impl FnMut(&Hears) -> Option<T>) -> T {
        for index in 0..self.passed.len() {
            if let Some(found) = self.passed.get(index).and_then(&mut fits) {
                self.passed.remove(index);
                return found;
            }
        }
        let bound = wait::SOON;
        wait::within(what, bound, async {
            loop {
                match next_of(&mut self.incoming).await {
                    Ok(Some(message)) => match fits(&message) {
                        Some(found) => return found,
                        None => self.passed.push_back(message),
                    },
                    other => panic!("waited for {what}, but the session is over: {other:?}; heard {:?}", self.passed),
                }
            }
        })
        .await
    }

    /// The next message; `None` where the session is over.
    pub async fn next(&mut self) -> Option<Hears> {
        if let Some(message) = self.passed.pop_front() {
            return Some(message);
        }
        wait::within("the next message of a coordinator", wait::SOON, next_of(&mut self.incoming)).await.ok().flatten()
    }

    /// Waits for the end of the session: the status, or `Ok` with the code of a `Bye`, or with nothing.
    pub async fn over(&mut self) -> Result<String, Status> {
        wait::within("the end of the session", wait::SOON, async {
            loop {
                match next_of(&mut self.incoming).await? {
                    Some(Hears::Bye(bye)) => return Ok(bye.code),
                    Some(other) => self.passed.push_back(other),
                    None => return Ok(String::new()),
                }
            }
        })
        .await
    }

    /// What came and was not waited for.
    #[must_use]
    pub fn passed(&self) -> &VecDeque<Hears> {
        &self.passed
    }

    /// Sends a heartbeat for these claims and waits for its answer. Everything that the coordinator had sent before is here then,
    /// so it also shows that something did not come.
    pub async fn heartbeat(&mut self, claims: &[Claim]) -> HeartbeatAnswer {
        self.heartbeats += 1;
        let number = self.heartbeats;
        self.say(Says::Heartbeat(Heartbeat { number, claims: claims.to_vec(), no_room: None })).await;
        self.hear("a heartbeat's answer", |message| match message {
            Hears::HeartbeatAnswer(answer) if answer.number == number => Some(answer.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for an offer.
    pub async fn offer(&mut self) -> Offer {
        self.hear("an offer", |message| match message {
            Hears::Offer(offer) => Some(offer.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for an offer and takes it.
    pub async fn take_offer(&mut self) -> Offer {
        let offer = self.offer().await;
        let kind = OfferAnswerKind::Accepted.into();
        self.say(Says::OfferAnswer(OfferAnswer { claim: offer.claim.clone(), kind, reason: 0, ..Default::default() }))
            .await;
        offer
    }

    /// Asks for a permit and waits for the answer.
    pub async fn permit(&mut self, offer: &Offer, step: &str) -> PermitAnswer {
        let claim = offer.claim.clone();
        self.permit_as(PermitRequest { claim, step: step.to_owned(), plan_digest: offer.plan_digest.clone() }).await
    }

    /// Sends this request for a permit and waits for the answer.
    pub async fn permit_as(&mut self, request: PermitRequest) -> PermitAnswer {
        let step = request.step.clone();
        self.say(Says::PermitRequest(request)).await;
        self.hear("a permit's answer", |message| match message {
            Hears::PermitAnswer(answer) if answer.step == step => Some(answer.clone()),
            _ => None,
        })
        .await
    }

    /// Sends a report and waits for its disposition.
    pub async fn report(&mut self, claim: Option<&Claim>, sequence: u64, body: Body) -> Disposition {
        self.say(Says::Report(report(claim, sequence, body))).await;
        self.disposition(sequence).await
    }

    /// Waits for the disposition of that report.
    pub async fn disposition(&mut self, sequence: u64) -> Disposition {
        self.hear(&format!("the disposition of report {sequence}"), |message| match message {
            Hears::Disposition(answer) if answer.sequence == sequence => Some(*answer),
            _ => None,
        })
        .await
    }
}

/// A stream on which nothing was said yet: for hellos that are none.
pub async fn open(
    address: &str,
    tls: &ClientTls,
) -> Result<(mpsc::Sender<ConnectRequest>, Streaming<ConnectResponse>), Status> {
    let channel = channel::connect_lazy(address, tls, &Limits::default()).expect("a test's address is sound");
    let (outgoing, outbox) = mpsc::channel(256);
    let mut client = AgentServiceClient::new(channel);
    let call = client.connect(ReceiverStream::new(outbox));
    let answer = tokio::time::timeout(Duration::from_secs(10), call);
    let incoming = answer.await.map_err(|_| Status::deadline_exceeded("no answer to Connect"))??.into_inner();
    Ok((outgoing, incoming))
}

async fn say(outgoing: &mpsc::Sender<ConnectRequest>, message: Says) {
    // A session that is over is seen where its messages are read.
    let _over = outgoing.send(ConnectRequest { message: Some(message) }).await;
}

async fn next_of(incoming: &mut Streaming<ConnectResponse>) -> Result<Option<Hears>, Status> {
    Ok(incoming.message().await?.and_then(|response| response.message))
}

/// A report that was said just now.
#[must_use]
pub fn report(claim: Option<&Claim>, sequence: u64, body: Body) -> Report {
    let said_at = Some(std::time::SystemTime::now().into());
    Report { claim: claim.cloned(), sequence, said_at, body: Some(body) }
}

/// A step began.
#[must_use]
pub fn started(step: &str) -> Body {
    Body::StepStarted(StepStarted { step: step.to_owned() })
}

/// A step ended as applied.
#[must_use]
pub fn applied(step: &str) -> Body {
    let end = Some(StepEnd { kind: StepEndKind::Applied.into(), maybe_partial: false, class: 0 });
    Body::StepEnded(StepEnded { step: step.to_owned(), end, ..StepEnded::default() })
}

/// The attempt ended.
#[must_use]
pub fn ended(end: AttemptEnd) -> Body {
    Body::AttemptEnded(AttemptEnded { end: end.into() })
}

//! An agent that says exactly what a test tells it to.

use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Say;
use holdfast_proto::v1::connect_response::Message as Hear;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use uuid::Uuid;

use crate::world::{World, soon};

pub(crate) struct Agent {
    say: mpsc::Sender<v1::ConnectRequest>,
    hear: Streaming<v1::ConnectResponse>,
}

pub(crate) fn hello(incarnation: u128) -> v1::Hello {
    v1::Hello {
        protocol_versions: vec![1],
        incarnation: Uuid::from_u128(incarnation).to_string(),
        labels: [("role".to_owned(), "shop".to_owned())].into(),
        adapters: vec!["command".to_owned(), "release".to_owned()],
        version: "0.0.0".to_owned(),
        ..v1::Hello::default()
    }
}

impl Agent {
    /// A stream without a Hello.
    pub(crate) async fn silent(world: &World, name: &str) -> Self {
        let (say, said) = mpsc::channel(64);
        let mut client = world.agents(name).await;
        let hear = soon("a stream", client.connect(ReceiverStream::new(said))).await.expect("let in").into_inner();
        Self { say, hear }
    }

    /// A stream over a connection that is there.
    pub(crate) async fn over(channel: tonic::transport::Channel) -> Result<Self, tonic::Status> {
        let (say, said) = mpsc::channel(64);
        let mut client = v1::agent_service_client::AgentServiceClient::new(channel);
        let hear = soon("a stream", client.connect(ReceiverStream::new(said))).await?.into_inner();
        Ok(Self { say, hear })
    }

    /// A session.
    pub(crate) async fn greeted(world: &World, name: &str, incarnation: u128) -> Self {
        let mut agent = Self::silent(world, name).await;
        agent.say(Say::Hello(hello(incarnation))).await;
        agent.welcome().await;
        agent
    }

    pub(crate) async fn say(&self, message: Say) {
        self.say.send(v1::ConnectRequest { message: Some(message) }).await.expect("the stream is open");
    }

    /// The same where the stream may be over.
    pub(crate) async fn try_say(&self, message: Say) -> bool {
        self.say.send(v1::ConnectRequest { message: Some(message) }).await.is_ok()
    }

    pub(crate) async fn say_nothing(&self) {
        self.say.send(v1::ConnectRequest { message: None }).await.expect("the stream is open");
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn hear(&mut self) -> Option<Hear> {
        let next = soon("a message", self.hear.message()).await;
        next.ok().flatten().map(|response| response.message.expect("every message says something"))
    }

    pub(crate) async fn welcome(&mut self) -> v1::Welcome {
        match self.hear().await {
            Some(Hear::Welcome(welcome)) => welcome,
            other => panic!("no welcome: {other:?}"),
        }
    }

    pub(crate) async fn offer(&mut self) -> v1::Offer {
        match self.hear().await {
            Some(Hear::Offer(offer)) => offer,
            other => panic!("no offer: {other:?}"),
        }
    }

    pub(crate) async fn heartbeat(&mut self, claims: Vec<v1::Claim>) -> Vec<v1::LeaseAnswer> {
        self.say(Say::Heartbeat(v1::Heartbeat { number: 7, claims, no_room: None })).await;
        match self.hear().await {
            Some(Hear::HeartbeatAnswer(answer)) => {
                assert_eq!(answer.number, 7);
                answer.leases.iter().map(|lease| lease.answer()).collect()
            }
            other => panic!("no answer to a heartbeat: {other:?}"),
        }
    }

    pub(crate) async fn permit(&mut self, request: v1::PermitRequest) -> v1::PermitAnswer {
        self.say(Say::PermitRequest(request)).await;
        match self.hear().await {
            Some(Hear::PermitAnswer(answer)) => answer,
            other => panic!("no answer to a permit request: {other:?}"),
        }
    }

    pub(crate) async fn report(&mut self, report: v1::Report) -> v1::Disposition {
        self.say(Say::Report(report)).await;
        match self.hear().await {
            Some(Hear::Disposition(disposition)) => disposition,
            other => panic!("no disposition: {other:?}"),
        }
    }

    /// The goodbye, after which the stream ends. Other messages before it are passed over.
    pub(crate) async fn bye(&mut self) -> v1::Bye {
        loop {
            match self.hear().await {
                Some(Hear::Bye(bye)) => {
                    assert!(self.hear().await.is_none(), "nothing follows a goodbye");
                    return bye;
                }
                Some(_) => {}
                None => panic!("the stream ended without a goodbye"),
            }
        }
    }
}

pub(crate) fn report(claim: &v1::Claim, sequence: u64, body: v1::report::Body) -> v1::Report {
    v1::Report {
        claim: Some(claim.clone()),
        sequence,
        said_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
        body: Some(body),
    }
}

pub(crate) fn started(step: &str) -> v1::report::Body {
    v1::report::Body::StepStarted(v1::StepStarted { step: step.to_owned() })
}

pub(crate) fn applied(step: &str) -> v1::report::Body {
    v1::report::Body::StepEnded(v1::StepEnded {
        step: step.to_owned(),
        end: Some(v1::StepEnd { kind: v1::StepEndKind::Applied as i32, ..v1::StepEnd::default() }),
        exit: Some(v1::Exit { kind: v1::ExitKind::Exited as i32, ..v1::Exit::default() }),
        ..v1::StepEnded::default()
    })
}

pub(crate) fn succeeded() -> v1::report::Body {
    v1::report::Body::AttemptEnded(v1::AttemptEnded { end: v1::AttemptEnd::Succeeded as i32 })
}

//! A coordinator by hand, towards a real agent: it may say anything, in any order, or refuse.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_net::serve::{self, Limits, Routes};
use holdfast_net::tls::ServerTls;
use holdfast_proto::v1::agent_service_server::{AgentService, AgentServiceServer};
use holdfast_proto::v1::connect_request::Message as Hears;
use holdfast_proto::v1::connect_response::Message as Says;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    Claim, CommandBody, CommandResource, ConnectRequest, ConnectResponse, DataEffect, Disposition, DispositionKind,
    FetchArchiveRequest, FetchArchiveResponse, Heartbeat, HeartbeatAnswer, Hello, LeaseAnswer, Offer, OfferAnswer,
    PermitAnswer, PermitAnswerKind, PermitRequest, Position, Reach, RenewedLease, Report, Resource, RetryClass, Step,
    StepEffect, UploadLogRequest, UploadLogResponse, Welcome, resource, step,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use crate::wait;

type Answers<T> = Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

/// The running server. It ends with it.
#[derive(Debug)]
pub struct Hostile {
    address: SocketAddr,
    shared: Arc<Shared>,
    sessions: mpsc::Receiver<Session>,
    server: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Answers every call with it, while it is there.
    refusal: Mutex<Option<Status>>,
    calls: AtomicUsize,
    sessions: mpsc::Sender<Session>,
}

/// One session of an agent, after its hello. It was not answered yet.
#[derive(Debug)]
pub struct Session {
    /// What the agent said first.
    pub hello: Hello,
    outgoing: mpsc::Sender<Result<ConnectResponse, Status>>,
    incoming: Streaming<ConnectRequest>,
    passed: Vec<Hears>,
}

impl Hostile {
    /// Listens on a free port.
    pub async fn start(tls: ServerTls) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, sessions) = mpsc::channel(64);
        let shared = Arc::new(Shared { refusal: Mutex::new(None), calls: AtomicUsize::new(0), sessions: sender });
        let limits = Limits::default();
        let routes = Routes::new().with(AgentServiceServer::new(Service(Arc::clone(&shared))));
        let incoming = serve::incoming(listener, tls, &limits);
        let server = tokio::spawn(async move {
            let _ended_with_the_test = serve::builder(&limits).serve_with_incoming(routes, incoming).await;
        });
        Self { address, shared, sessions, server }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on every call is answered with that status, or again with a session.
    pub fn refuse(&self, status: Option<Status>) {
        *self.shared.refusal.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// Sessions that were asked for until now, refused ones too.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// The next session, its hello not answered.
    pub async fn session(&mut self) -> Session {
        wait::within("an agent's session", wait::SOON, self.sessions.recv()).await.expect("the server lives")
    }

    /// The next session, welcomed.
    pub async fn welcomed(&mut self) -> Session {
        let session = self.session().await;
        session.say(Says::Welcome(welcome(Uuid::new_v4()))).await;
        session
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A welcome of the store that every hostile coordinator claims to be.
#[must_use]
pub fn welcome(session: Uuid) -> Welcome {
    Welcome {
        protocol_version: holdfast_proto::PROTOCOL_VERSION,
        session: session.to_string(),
        session_token: format!("token of {session}"),
        position: Some(Position { store: Uuid::from_u128(7).to_string(), epoch: 1, commit: 1 }),
        heartbeat_interval: Some(prost_types::Duration { seconds: 0, nanos: 100_000_000 }),
        agent: "web-01".to_owned(),
        max_text_bytes: 4096,
        max_log_bytes: 1024 * 1024,
        reconnect_spread: None,
    }
}

/// An offer of one deployment on the target `box@test`, which commands change, with a lease of that length.
#[must_use]
pub fn offer(claim: &Claim, ttl: Duration, steps: &[(&str, Vec<String>)]) -> Offer {
    let step = |(name, argv): &(&str, Vec<String>)| Step {
        name: (*name).to_owned(),
        effect: StepEffect::Mutates.into(),
        resource: "box".to_owned(),
        retry: RetryClass::Unsafe.into(),
        data: DataEffect::None.into(),
        body: Some(step::Body::Command(CommandBody { argv: argv.clone() })),
        ..Step::default()
    };
    let adapter = resource::Adapter::Command(CommandResource { inspect: Vec::new(), outlives: false });
    Offer {
        claim: Some(claim.clone()),
        target: "box@test".to_owned(),
        attempt_number: 1,
        ttl: prost_types::Duration::try_from(ttl).ok(),
        plan_digest: "0".repeat(64),
        steps: steps.iter().map(step).collect(),
        resources: vec![Resource { name: "box".to_owned(), reach: Reach::Shared.into(), adapter: Some(adapter) }],
        carried: Vec::new(),
        cancel_grace: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        goes_on: None,
        carries: Vec::new(),
        transient_exit_codes: Vec::new(),
    }
}

/// A claim of a new deployment and a new attempt. Fences count in the first epoch.
#[must_use]
pub fn claim(fence: u64) -> Claim {
    let (deployment, attempt) = (Uuid::now_v7().to_string(), Uuid::new_v4().to_string());
    Claim { deployment, attempt, fence: (1 << 40) + fence }
}

impl Session {
    /// Offers and waits for the answer.
    pub async fn offer(&mut self, offer: Offer) -> OfferAnswer {
        let claim = offer.claim.clone();
        self.say(Says::Offer(offer)).await;
        self.hear("the answer to an offer", |message| match message {
            Hears::OfferAnswer(answer) if answer.claim == claim => Some(answer.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until the agent asks for a permit.
    pub async fn permit_request(&mut self) -> PermitRequest {
        self.hear("a request for a permit", |message| match message {
            Hears::PermitRequest(request) => Some(request.clone()),
            _ => None,
        })
        .await
    }

    /// Grants what was asked for.
    pub async fn grant(&self, request: &PermitRequest) {
        let (claim, step) = (request.claim.clone(), request.step.clone());
        let kind = PermitAnswerKind::Granted.into();
        self.say(Says::PermitAnswer(PermitAnswer { claim, step, kind, denial: 0 })).await;
    }

    /// Waits for a report that is as described.
    pub async fn report(&mut self, what: &str, fits: impl Fn(&Body) -> bool) -> Report {
        self.hear(what, |message| match message {
            Hears::Report(report) if report.body.as_ref().is_some_and(&fits) => Some(report.clone()),
            _ => None,
        })
        .await
    }

    /// Accepts a report.
    pub async fn accept(&self, report: &Report) {
        let kind = DispositionKind::Accepted.into();
        self.say(Says::Disposition(Disposition { sequence: report.sequence, kind, reason: 0 })).await;
    }

    /// Waits for a heartbeat.
    pub async fn heartbeat(&mut self) -> Heartbeat {
        self.hear("a heartbeat", |message| match message {
            Hears::Heartbeat(heartbeat) => Some(heartbeat.clone()),
            _ => None,
        })
        .await
    }

    /// Renews what a heartbeat names for that long.
    pub async fn renew(&self, heartbeat: &Heartbeat, ttl: Duration) {
        let renewed = |claim: &Claim| RenewedLease {
            claim: Some(claim.clone()),
            answer: LeaseAnswer::Renewed.into(),
            ttl: prost_types::Duration::try_from(ttl).ok(),
        };
        let leases = heartbeat.claims.iter().map(renewed).collect();
        self.say(Says::HeartbeatAnswer(HeartbeatAnswer { number: heartbeat.number, leases })).await;
    }

    /// Sends one message.
    pub async fn say(&self, message: Says) {
        let _over = self.outgoing.send(Ok(ConnectResponse { message: Some(message) })).await;
    }

    /// Sends a response with nothing in it: an unknown message of another version.
    pub async fn say_nothing_known(&self) {
        let _over = self.outgoing.send(Ok(ConnectResponse { message: None })).await;
    }

    /// Ends the session with a status.
    pub async fn end(self, status: Status) {
        let _over = self.outgoing.send(Err(status)).await;
    }

    /// The next message that is as described. Others are kept.
    pub async fn hear<T>(&mut self, what: &str, mut fits: impl FnMut(&Hears) -> Option<T>) -> T {
        for index in 0..self.passed.len() {
            if let Some(found) = self.passed.get(index).and_then(&mut fits) {
                self.passed.remove(index);
                return found;
            }
        }
        wait::within(what, wait::SOON, async {
            loop {
                let message = match self.incoming.message().await {
                    Ok(Some(ConnectRequest { message: Some(message) })) => message,
                    other => panic!("waited for {what}, but the session is over: {other:?}; heard {:?}", self.passed),
                };
                match fits(&message) {
                    Some(found) => return found,
                    None => self.passed.push(message),
                }
            }
        })
        .await
    }

    /// The next message; `None` where the session is over.
    pub async fn next(&mut self) -> Option<Hears> {
        if !self.passed.is_empty() {
            return Some(self.passed.remove(0));
        }
        let next = wait::within("the next message of an agent", wait::SOON, self.incoming.message()).await;
        next.ok().flatten().and_then(|request| request.message)
    }

    /// Waits for the agent to end the session.
    pub async fn over(&mut self) {
        wait::within("the end of the session", wait::SOON, async {
            while let Ok(Some(_)) = self.incoming.message().await {}
        })
        .await;
    }

    /// What came and was not waited for.
    #[must_use]
    pub fn passed(&self) -> &[Hears] {
        &self.passed
    }
}

struct Service(Arc<Shared>);

#[tonic::async_trait]
impl AgentService for Service {
    type ConnectStream = Answers<ConnectResponse>;
    type FetchArchiveStream = Answers<FetchArchiveResponse>;
    type UploadLogStream = Answers<UploadLogResponse>;

    async fn connect(
        &self,
        request: Request<Streaming<ConnectRequest>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        let refusal = self.0.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(status) = refusal {
            return Err(status);
        }
        let mut incoming = request.into_inner();
        let (outgoing, answers) = mpsc::channel(256);
        let sessions = self.0.sessions.clone();
        tokio::spawn(async move {
            let first = incoming.message().await;
            if let Ok(Some(ConnectRequest { message: Some(Hears::Hello(hello)) })) = first {
                let _test_ended = sessions.send(Session { hello, outgoing, incoming, passed: Vec::new() }).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn upload_log(
        &self,
        _request: Request<Streaming<UploadLogRequest>>,
    ) -> Result<Response<Self::UploadLogStream>, Status> {
        Err(Status::unavailable("no logs are taken here"))
    }

    async fn fetch_archive(
        &self,
        _request: Request<FetchArchiveRequest>,
    ) -> Result<Response<Self::FetchArchiveStream>, Status> {
        Err(Status::unavailable("no archives are given here"))
    }
}

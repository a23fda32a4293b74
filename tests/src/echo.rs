//! A bare server of the agents' stream, with the same TLS and the same limits: it decides nothing and keeps nothing. What it
//! takes is what the wire alone takes.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;

use futures_util::{Stream, StreamExt as _};
use holdfast_net::serve::{self, Limits, Routes, Threads};
use holdfast_net::tls::{self, ServerTls};
use holdfast_proto::PROTOCOL_VERSION;
use holdfast_proto::v1::agent_service_server::{AgentService, AgentServiceServer};
use holdfast_proto::v1::connect_request::Message as Hears;
use holdfast_proto::v1::connect_response::Message as Says;
use holdfast_proto::v1::{
    ConnectRequest, ConnectResponse, FetchArchiveRequest, FetchArchiveResponse, HeartbeatAnswer, LeaseAnswer, Position,
    RenewedLease, UploadLogRequest, UploadLogResponse, Welcome,
};
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::machine;
use crate::process::{Launch, Process};
use crate::wait;

/// The first argument that makes a program such a server.
pub const COMMAND: &str = "echo";

/// The server's process.
#[derive(Debug)]
pub struct Echo {
    process: Process,
    address: SocketAddr,
}

impl Echo {
    /// Starts it with a certificate of the cluster's authority, and waits until it listens.
    pub async fn start(cluster: &Cluster) -> Self {
        let file = cluster.folder().join("echo.address");
        let _none_yet = std::fs::remove_file(&file);
        let process = Process::start(&launch(cluster, &file));
        let address = wait::until("the echo to listen", wait::SOON, async || {
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            text.parse::<SocketAddr>().map_err(|error| format!("{text:?}: {error}"))
        });
        Self { address: address.await, process }
    }

    /// Where agents connect.
    #[must_use]
    pub fn address(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

fn launch(cluster: &Cluster, file: &Path) -> Launch {
    let pair = cluster.authority().server("echo").expect("signed");
    let files: [&Path; 4] = [file, &pair.certificate, &pair.key, cluster.authority().certificate()];
    let files = files.map(|path| path.to_str().expect("a test's paths are plain text").to_owned());
    Launch {
        name: COMMAND.to_owned(),
        wrapper: Vec::new(),
        program: cluster.program().to_owned(),
        arguments: [COMMAND.to_owned()].into_iter().chain(files).collect(),
        environment: std::collections::BTreeMap::new(),
        folder: cluster.folder().path().to_owned(),
        log: cluster.folder().join("echo.log"),
    }
}

/// `echo ADDRESS-FILE CERTIFICATE KEY CLIENT-CA`: serves until it is killed.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
    let [file, certificate, key, ca] = words.as_slice() else { return ExitCode::from(2) };
    machine::raise_descriptors();
    tls::install_default();
    let tls = ServerTls::from_files(certificate, key, ca).expect("sound files");
    // As the coordinator.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("threads can be made").block_on(answer_all(tls, file));
    ExitCode::SUCCESS
}

async fn answer_all(tls: ServerTls, file: &Path) {
    let listener = serve::listen(([127, 0, 0, 1], 0).into()).expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let limits = Limits::default();
    let routes = Routes::new().with(AgentServiceServer::new(Bare));
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, address.to_string()).and_then(|()| std::fs::rename(&fresh, file)).expect("a test's folder");
    let mut serving = Threads::start().expect("threads can be made").serve(listener, &tls, &limits, move |incoming| {
        serve::builder(&limits).serve_with_incoming(routes.clone(), incoming)
    });
    serving.next_end().await.expect("there is a thread").expect("it serves until it is killed");
}

#[derive(Clone, Debug)]
struct Bare;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl AgentService for Bare {
    type ConnectStream = Answers<ConnectResponse>;
    type UploadLogStream = Answers<UploadLogResponse>;
    type FetchArchiveStream = Answers<FetchArchiveResponse>;

    async fn connect(
        &self,
        request: Request<Streaming<ConnectRequest>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let answers = request.into_inner().filter_map(async |said| said.map(answer).transpose());
        Ok(Response::new(Box::pin(answers)))
    }

    async fn upload_log(
        &self,
        _: Request<Streaming<UploadLogRequest>>,
    ) -> Result<Response<Self::UploadLogStream>, Status> {
        Err(Status::unimplemented("there are no logs here"))
    }

    async fn fetch_archive(
        &self,
        _: Request<FetchArchiveRequest>,
    ) -> Result<Response<Self::FetchArchiveStream>, Status> {
        Err(Status::unimplemented("there are no archives here"))
    }
}

/// Of the same kind and size as the coordinator's.
fn answer(said: ConnectRequest) -> Option<ConnectResponse> {
    let message = match said.message? {
        Hears::Hello(_) => Says::Welcome(welcome()),
        Hears::Heartbeat(heartbeat) => {
            let ttl = prost_types::Duration { seconds: 3600, nanos: 0 };
            let renewed =
                |claim| RenewedLease { claim: Some(claim), answer: LeaseAnswer::Renewed.into(), ttl: Some(ttl) };
            let leases = heartbeat.claims.into_iter().map(renewed).collect();
            Says::HeartbeatAnswer(HeartbeatAnswer { number: heartbeat.number, leases })
        }
        Hears::OfferAnswer(_)
        | Hears::PermitRequest(_)
        | Hears::Report(_)
        | Hears::InquiryAnswer(_)
        | Hears::WelcomeKept(_)
        | Hears::Pong(_)
        | Hears::Detach(_) => return None,
    };
    Some(ConnectResponse { message: Some(message) })
}

fn welcome() -> Welcome {
    let position = Position { store: Uuid::nil().to_string(), epoch: 1, commit: 0 };
    Welcome {
        protocol_version: PROTOCOL_VERSION,
        session: Uuid::new_v4().to_string(),
        session_token: "0".repeat(43),
        position: Some(position),
        heartbeat_interval: Some(prost_types::Duration { seconds: 5, nanos: 0 }),
        agent: "fleet-00000".to_owned(),
        max_text_bytes: 16 * 1024,
        max_log_bytes: 16 * 1024 * 1024,
        reconnect_spread: None,
    }
}

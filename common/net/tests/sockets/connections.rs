//! Real connections to a real gRPC health service whose interceptor tells who the peer is.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_net::channel;
use holdfast_net::peer::Peer;
use holdfast_net::serve::{self, Limits, Listener, Routes};
use holdfast_net::tls::{ClientTls, ServerTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::certificates::{Authority, Folder, Pair};

pub(crate) const BOUND: Duration = Duration::from_secs(5);

/// A server, its CA, and what a client needs.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) ca: Authority,
    pub(crate) address: SocketAddr,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), |listener| listener).await
    }

    async fn with<L: Listener>(limits: Limits, wrap: impl FnOnce(TcpListener) -> L) -> Self {
        let folder = Folder::new();
        let ca = Authority::new(&folder, "ca");
        let pair = ca.server(&folder, "localhost");
        let tls = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).expect("sound files");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a bound socket");
        let (stop, stopped) = oneshot::channel();
        let incoming = serve::incoming(wrap(listener), tls, &limits);
        let server =
            tokio::spawn(serve::builder(&limits).serve_with_incoming_shutdown(services(), incoming, async move {
                let _ = stopped.await;
            }));
        Self { folder, ca, address, stop: Some(stop), server }
    }

    pub(crate) fn client_tls(&self, pair: Option<&Pair>) -> ClientTls {
        ClientTls::from_files(&self.ca.file, pair.and_then(Pair::files), None).expect("sound files")
    }

    pub(crate) async fn channel(&self, tls: &ClientTls) -> Channel {
        channel::connect(&self.address.to_string(), tls, &channel::Limits::default()).await.expect("a server is there")
    }

    /// The peer that the server sees behind a client with these URIs in its certificate.
    pub(crate) async fn peer_with(&self, uris: &[&str]) -> String {
        let pair = self.ca.client(&self.folder, "client", uris);
        peer_of(self.channel(&self.client_tls(Some(&pair))).await).await.expect("answered")
    }
}

fn services() -> Routes {
    let health = HealthService::from_health_reporter(HealthReporter::new());
    Routes::new().with(HealthServer::with_interceptor(health, tell_peer))
}

/// Answers every call with the peer, in an error's text.
fn tell_peer(request: Request<()>) -> Result<Request<()>, Status> {
    let peer = request.extensions().get::<Peer>().expect("every connection has a peer");
    let agent = peer.agent.as_ref().map_or("nobody", |name| name.as_str());
    let print = peer.fingerprint.as_ref().map_or(0, String::len);
    assert!(peer.address.ip().is_loopback());
    Err(Status::failed_precondition(format!("{agent} {print}")))
}

pub(crate) async fn peer_of(channel: Channel) -> Result<String, Status> {
    let call = async { HealthClient::new(channel).check(HealthCheckRequest::default()).await };
    let status = tokio::time::timeout(BOUND, call).await.expect("an answer in time").expect_err("always an error");
    if status.code() == Code::FailedPrecondition { Ok(status.message().to_owned()) } else { Err(status) }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_nobody() {
    let world = World::new().await;
    let channel = world.channel(&world.client_tls(None)).await;
    assert_eq!(peer_of(channel).await.expect("answered"), "nobody 0");
}

#[tokio::test]
async fn an_agent_is_who_its_certificate_says() {
    let world = World::new().await;
    assert_eq!(world.peer_with(&["holdfast://agent/web-07"]).await, "web-07 64");
    assert_eq!(world.peer_with(&["https://example.org/x", "holdfast://agent/web-07"]).await, "web-07 64");
}

#[tokio::test]
async fn a_certificate_without_exactly_one_sound_agent_uri_is_nobody() {
    let world = World::new().await;
    for uris in [
        &[][..],
        &["https://example.org/web-07"],
        &["holdfast://agent/web-07", "holdfast://agent/web-08"],
        &["holdfast://agent/web-07", "holdfast://agent/web-07"],
        &["holdfast://agent/web-07", "HOLDFAST://other/x"],
        &["holdfast://agent/"],
        &["holdfast://agent/web/07"],
        &["holdfast://agent/-rf"],
        &["holdfast://operator/web-07"],
        &["HOLDFAST://agent/web-07"],
        &["holdfast://agent/web-07?x"],
    ] {
        assert_eq!(world.peer_with(uris).await, "nobody 64", "{uris:?}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_gets_no_answer() {
    let world = World::new().await;
    let stranger = Authority::new(&world.folder, "stranger");
    let pair = stranger.client(&world.folder, "client", &["holdfast://agent/web-07"]);
    let tls = world.client_tls(Some(&pair));
    let answer = match channel::connect(&world.address.to_string(), &tls, &channel::Limits::default()).await {
        // The client may be through before the server's refusal arrives.
        Ok(channel) => peer_of(channel).await.map_err(|status| status.to_string()),
        Err(error) => Err(error.to_string()),
    };
    answer.expect_err("an untrusted certificate");
    let own = world.client_tls(None);
    assert_eq!(peer_of(world.channel(&own).await).await.expect("the server goes on"), "nobody 0");
}

#[tokio::test]
async fn a_server_certificate_is_no_agent_certificate() {
    let world = World::new().await;
    let pair = world.ca.server(&world.folder, "elsewhere");
    let tls = world.client_tls(Some(&pair));
    if let Ok(channel) = channel::connect(&world.address.to_string(), &tls, &channel::Limits::default()).await {
        peer_of(channel).await.expect_err("a certificate for another purpose");
    }
}

#[tokio::test]
async fn a_server_of_another_authority_or_name_is_refused() {
    let world = World::new().await;
    let stranger = Authority::new(&world.folder, "stranger");
    let limits = channel::Limits::default();
    let untrusting = ClientTls::from_files(&stranger.file, None, None).expect("sound files");
    let misnamed = ClientTls::from_files(&world.ca.file, None, Some("deploy.example")).expect("sound files");
    for (tls, reason) in [(&untrusting, "UnknownIssuer"), (&misnamed, "not valid for name \"deploy.example\"")] {
        let error = channel::connect(&world.address.to_string(), tls, &limits).await.expect_err("refused");
        let channel::Error::Dial(dial) = &error else { panic!("{error}") };
        let next = dial.other_names(&world.address.to_string());
        assert_eq!((dial.is_of_tls(), dial.is_of_name()), (true, reason.contains("deploy.example")), "{dial}");
        assert_eq!(next.iter().any(|line| line.ends_with("ca server --host 127.0.0.1")), dial.is_of_name(), "{next:?}");
        let error = error.to_string();
        assert!(error.contains("could not agree on TLS with 127.0.0.1:") && error.contains(reason), "{error}");
        // The lazy form says the same in the call's status.
        let lazy = channel::connect_lazy(&world.address.to_string(), tls, &limits).expect("a sound address");
        let status = peer_of(lazy).await.expect_err("refused");
        assert!(status.code() == Code::Unavailable && status.message().contains(reason), "{status}");
    }
    let named = ClientTls::from_files(&world.ca.file, None, Some("localhost")).expect("sound files");
    assert_eq!(peer_of(world.channel(&named).await).await.expect("answered"), "nobody 0");
}

/// What a client of TLS 1.2 says first: no `supported_versions`, but all else that such a handshake needs.
fn client_hello_of_tls_1_2() -> Vec<u8> {
    let extensions = [
        &[0x00, 0x0a, 0, 6, 0, 4, 0x00, 0x1d, 0x00, 0x17][..], // groups: x25519, P-256
        &[0x00, 0x0b, 0, 2, 1, 0],                             // uncompressed points
        &[0x00, 0x0d, 0, 6, 0, 4, 0x04, 0x03, 0x08, 0x04],     // signatures: ECDSA and RSA-PSS with SHA-256
        &[0x00, 0x17, 0, 0],                                   // extended master secret
    ]
    .concat();
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0, 0]); // ECDHE with AES-128-GCM, no compression
    hello.push(u8::try_from(extensions.len()).expect("short"));
    hello.extend(extensions);
    let length = u8::try_from(hello.len()).expect("short");
    [&[0x16, 0x03, 0x01, 0, length + 4, 1, 0, 0, length][..], &hello].concat()
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    let world = World::new().await;
    let mut socket = TcpStream::connect(world.address).await.expect("a server is there");
    socket.write_all(&client_hello_of_tls_1_2()).await.expect("an open socket");
    let mut answer = Vec::new();
    tokio::time::timeout(BOUND, socket.read_to_end(&mut answer)).await.expect("an answer").expect("an orderly end");
    const FATAL_ALERT_PROTOCOL_VERSION: [u8; 7] = [0x15, 0x03, 0x03, 0, 2, 2, 70];
    assert_eq!(answer, FATAL_ALERT_PROTOCOL_VERSION);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unimplemented() {
    let world = World::new().await;
    let mut client = tonic::client::Grpc::new(world.channel(&world.client_tls(None)).await);
    client.ready().await.expect("connected");
    for (path, code) in [
        ("/grpc.health.v1.Health/Check", Code::FailedPrecondition),
        ("/grpc.health.v1.Other/Check", Code::Unimplemented),
        ("/", Code::Unimplemented),
    ] {
        let codec = tonic_prost::ProstCodec::<HealthCheckRequest, HealthCheckRequest>::default();
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
        let answer = client.unary(Request::new(HealthCheckRequest::default()), path.clone(), codec).await;
        client.ready().await.expect("connected");
        assert_eq!(answer.expect_err("always an error").code(), code, "{path}");
    }
}

#[tokio::test]
async fn stalled_and_broken_handshakes_delay_nobody() {
    let world = World::new().await;
    let mut stalled = Vec::new();
    for bytes in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut socket = TcpStream::connect(world.address).await.expect("a server is there");
        socket.write_all(bytes).await.expect("an open socket");
        stalled.push(socket);
    }
    for _ in 0..20 {
        let socket = TcpStream::connect(world.address).await.expect("a server is there");
        socket.set_zero_linger().expect("a socket"); // a reset instead of an orderly end
    }
    assert_eq!(world.peer_with(&["holdfast://agent/web-07"]).await, "web-07 64");
}

#[tokio::test]
async fn the_oldest_half_open_handshake_makes_room_for_the_newest() {
    let world = World::with(Limits { handshakes: 3, ..Limits::default() }, |listener| listener).await;
    let mut half_open = Vec::new();
    for _ in 0..4 {
        half_open.push(TcpStream::connect(world.address).await.expect("a server is there"));
    }
    let mut oldest = half_open.remove(0);
    let read = tokio::time::timeout(BOUND, oldest.read_u8()).await.expect("dropped before its own limit");
    read.expect_err("closed by the server");
    assert_eq!(world.peer_with(&["holdfast://agent/web-07"]).await, "web-07 64");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_ten_seconds() {
    let (_client, server) = tokio::io::duplex(64);
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let tls = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).expect("sound files");
    let start = tokio::time::Instant::now();
    let end = tls.accept(server, "127.0.0.1:1".parse().expect("an address")).await;
    assert!(matches!(end, Err(holdfast_net::tls::Handshake::TooSlow(limit)) if limit == ServerTls::HANDSHAKE_LIMIT));
    assert!(start.elapsed() >= Duration::from_secs(10));
}

/// Whoever did their handshake and then says nothing, or half a preface, has ten seconds too.
#[tokio::test(start_paused = true)]
async fn a_preface_has_ten_seconds() {
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let tls = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).expect("sound files");
    for said in [&b""[..], b"PRI * HTTP/2.0\r\n\r\n"] {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let name = rustls_pki_types::ServerName::try_from("localhost").expect("a name");
        let client_tls = ClientTls::from_files(&ca.file, None, None).expect("sound files");
        let client = client_tls.connect(name, client);
        let (client, server) = tokio::join!(client, tls.accept(server, "127.0.0.1:1".parse().expect("an address")));
        let (mut client, mut server) = (client.expect("a handshake"), server.expect("a handshake"));
        client.write_all(said).await.expect("an open stream");
        client.flush().await.expect("an open stream");
        let start = tokio::time::Instant::now();
        let error = server.read_to_end(&mut Vec::new()).await.expect_err("no preface");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}

/// Fails like a process without descriptors, then like an aborted connection, before it accepts.
struct Failing {
    listener: TcpListener,
    errors: Vec<io::Error>,
}

impl Listener for Failing {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        match self.errors.pop() {
            Some(error) => Err(error),
            None => Listener::accept(&mut self.listener).await,
        }
    }
}

#[tokio::test]
async fn accepting_survives_its_errors() {
    const EMFILE: i32 = 24;
    const ECONNABORTED: i32 = 103;
    let world = World::with(Limits::default(), |listener| Failing {
        listener,
        errors: [EMFILE, ECONNABORTED, ECONNABORTED, EMFILE].map(io::Error::from_raw_os_error).into(),
    })
    .await;
    assert_eq!(world.peer_with(&["holdfast://agent/web-07"]).await, "web-07 64");
}

#[tokio::test]
async fn a_shutdown_closes_the_port_and_a_channel_finds_the_next_server() {
    let mut world = World::new().await;
    let tls = world.client_tls(None);
    let channel = world.channel(&tls).await;
    assert_eq!(peer_of(channel.clone()).await.expect("answered"), "nobody 0");
    world.stop.take().expect("not stopped yet").send(()).expect("a running server");
    tokio::time::timeout(BOUND, &mut world.server).await.expect("ends").expect("no panic").expect("no error");
    let error = channel::connect(&world.address.to_string(), &tls, &channel::Limits::default()).await;
    assert!(error.expect_err("nobody listens").to_string().contains("could not connect to 127.0.0.1:"));
    let status = peer_of(channel.clone()).await.expect_err("nobody listens");
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().contains("could not connect to 127.0.0.1:"), "{status}");

    let listener = TcpListener::bind(world.address).await.expect("the port is free again");
    let pair = world.ca.server(&world.folder, "localhost");
    let server = ServerTls::from_files(&pair.certificate, &pair.key, &world.ca.file).expect("sound files");
    let limits = Limits::default();
    let incoming = serve::incoming(listener, server, &limits);
    tokio::spawn(serve::builder(&limits).serve_with_incoming(services(), incoming));
    assert_eq!(peer_of(channel).await.expect("dialled again"), "nobody 0");
}

#[tokio::test]
async fn a_silent_server_is_noticed_by_keepalive() {
    // Accepts, finishes TLS, and then never answers a ping.
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let tls = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).expect("sound files");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move {
        let (stream, from) = listener.accept().await.expect("a client");
        let _held = tls.accept(stream, from).await.expect("a sound handshake");
        std::future::pending::<()>().await;
    });
    let limits = channel::Limits {
        keepalive_interval: Duration::from_millis(100),
        keepalive_timeout: Duration::from_millis(100),
        ..channel::Limits::default()
    };
    let tls = ClientTls::from_files(&ca.file, None, None).expect("sound files");
    let channel = channel::connect(&address.to_string(), &tls, &limits).await.expect("a server is there");
    // `peer_of` panics when there is no end within its bound.
    peer_of(channel).await.expect_err("no answer, but an end");
}

#[tokio::test]
async fn addresses_are_tried_in_turn_and_a_silent_one_has_only_its_share() {
    let world = World::new().await;
    let tls = world.client_tls(None);
    let refuses = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("a bound socket");
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stranger = World::new().await;
    let text =
        [refuses, silent.local_addr().expect("bound"), stranger.address, world.address].map(|one| one.to_string());
    let limits = channel::Limits { connect_timeout: Duration::from_secs(4), ..channel::Limits::default() };
    let channel = channel::connect(&text.join(","), &tls, &limits).await.expect("the last one answers");
    assert_eq!(peer_of(channel).await.expect("answered"), "nobody 0");

    let error = channel::connect(&text[..3].join(","), &tls, &limits).await.expect_err("none is ours").to_string();
    for part in [
        format!("could not connect to {refuses}: "),
        format!("could not connect to {} within ", silent.local_addr().expect("bound")),
        format!("could not agree on TLS with {}: ", stranger.address),
    ] {
        assert!(error.contains(&part), "{part}: {error}");
    }
}

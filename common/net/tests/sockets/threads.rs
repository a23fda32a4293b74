//! Several threads that serve one port.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use holdfast_net::channel;
use holdfast_net::serve::{self, Error, Limits, Routes, Serving, Threads};
use holdfast_net::tls::{ClientTls, ServerTls};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::certificates::{Authority, Folder};
use crate::connections::{BOUND, peer_of};

/// A server on as many threads as there are processors, that answers every call with the thread it is answered on.
struct World {
    _folder: Folder,
    tls: ClientTls,
    address: SocketAddr,
    threads: usize,
    serving: Serving,
    stop: CancellationToken,
}

impl World {
    async fn new(routes: Routes) -> Self {
        let folder = Folder::new();
        let ca = Authority::new(&folder, "ca");
        let pair = ca.server(&folder, "localhost");
        let tls = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).unwrap();
        let listener = serve::listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let (limits, stop) = (Limits::default(), CancellationToken::new());
        let threads = Threads::start().unwrap();
        let count = threads.runtimes().len();
        let stopped = stop.clone();
        let serving = threads.serve(listener, &tls, &limits, move |incoming| {
            let stopped = stopped.clone().cancelled_owned();
            serve::builder(&limits).serve_with_incoming_shutdown(routes.clone(), incoming, stopped)
        });
        let tls = ClientTls::from_files(&ca.file, None, None).unwrap();
        Self { _folder: folder, tls, address, threads: count, serving, stop }
    }

    async fn channel(&self) -> Channel {
        channel::connect(&self.address.to_string(), &self.tls, &channel::Limits::default()).await.unwrap()
    }

    async fn is_open(&self) -> bool {
        TcpStream::connect(self.address).await.is_ok()
    }
}

fn telling_threads() -> Routes {
    let health = HealthService::from_health_reporter(HealthReporter::new());
    let tell = |_: Request<()>| -> Result<Request<()>, Status> {
        Err(Status::failed_precondition(std::thread::current().name().unwrap_or_default()))
    };
    Routes::new().with(HealthServer::with_interceptor(health, tell))
}

#[tokio::test]
async fn connections_are_dealt_out_in_turn_and_each_stays_on_its_thread() {
    let world = World::new(telling_threads()).await;
    let mut connections = BTreeMap::new();
    for _ in 0..world.threads * 2 {
        let channel = world.channel().await;
        let first = peer_of(channel.clone()).await.unwrap();
        for _ in 0..5 {
            assert_eq!(peer_of(channel.clone()).await.unwrap(), first);
        }
        *connections.entry(first).or_insert(0) += 1;
    }
    let expected: BTreeMap<_, _> = (0..world.threads).map(|number| (format!("serve-{number}"), 2)).collect();
    assert_eq!(connections, expected);
}

#[tokio::test]
async fn a_stop_ends_every_thread_and_closes_the_port() {
    let mut world = World::new(telling_threads()).await;
    for _ in 0..world.threads {
        peer_of(world.channel().await).await.unwrap();
    }
    world.stop.cancel();
    for _ in 0..world.threads {
        tokio::time::timeout(BOUND, world.serving.next_end()).await.unwrap().unwrap().unwrap();
    }
    assert!(world.serving.next_end().await.is_none());
    closed(&world).await;
}

/// A peer that says nothing in its handshake does not keep a thread from the others, and a stop does not wait for it.
#[tokio::test]
async fn a_peer_that_says_nothing_holds_up_nobody_and_no_end() {
    let mut world = World::new(telling_threads()).await;
    let mut silent = Vec::new();
    for _ in 0..world.threads * 3 {
        silent.push(TcpStream::connect(world.address).await.unwrap());
    }
    peer_of(world.channel().await).await.unwrap();
    world.stop.cancel();
    for _ in 0..world.threads {
        tokio::time::timeout(BOUND, world.serving.next_end()).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_still_served_is_cut_when_serving_is_dropped() {
    let reporter = HealthReporter::new();
    let health = HealthService::from_health_reporter(reporter.clone());
    reporter.set_service_status("", ServingStatus::Serving).await;
    let world = World::new(Routes::new().with(HealthServer::new(health))).await;
    let mut client = HealthClient::new(world.channel().await);
    let mut watch = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    let World { serving, stop, .. } = world;
    stop.cancel();
    let still = tokio::time::timeout(Duration::from_millis(200), watch.message()).await;
    assert!(still.is_err(), "a stop alone cuts no open call: {still:?}");
    drop(serving);
    tokio::time::timeout(BOUND, watch.message()).await.unwrap().unwrap_err();
}

/// A server that dies is known, and the port takes nobody in who would not be served.
#[tokio::test]
async fn a_server_that_panics_is_told_and_closes_the_port() {
    let folder = Folder::new();
    let ca = Authority::new(&folder, "ca");
    let pair = ca.server(&folder, "localhost");
    let server = ServerTls::from_files(&pair.certificate, &pair.key, &ca.file).unwrap();
    let listener = serve::listen(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = Threads::start().unwrap().serve(listener, &server, &Limits::default(), |incoming| async move {
        drop(incoming);
        panic!("as a fault would")
    });
    let tls = ClientTls::from_files(&ca.file, None, None).unwrap();
    let mut world = World { _folder: folder, tls, address, threads: 1, serving, stop: CancellationToken::new() };
    let end = tokio::time::timeout(BOUND, world.serving.next_end()).await.unwrap().unwrap();
    assert!(matches!(end, Err(Error::Panic(_))), "{end:?}");
    closed(&world).await;
}

async fn closed(world: &World) {
    let closed = async {
        while world.is_open().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(BOUND, closed).await.expect("the port is closed");
}

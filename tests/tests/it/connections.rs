//! Connections that come to nothing: resets, half handshakes, black holes.

use std::net::SocketAddr;
use std::time::Duration;

use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::DeploymentState;
use holdfast_tests::cluster::LONG;
use holdfast_tests::ops::{Metrics, Ops};
use holdfast_tests::wait;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls_pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{begun, with_box};

/// Resets and black holes; `HOLDFAST_TEST_FULL=1` for all of them.
const SOME: (usize, usize) = (4_000, 800);
const ALL: (usize, usize) = (20_000, 5_000);
/// Connections that are made at the same time.
const AT_ONCE: usize = 64;
/// Longest time until nothing of them is left: a handshake, a preface, a ping and its answer, and a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// Bytes of memory that a connection may leave between the pieces. Its TLS and HTTP/2 state is above ten thousand.
const PER_CONNECTION: f64 = 1_500.0;

const TASKS: &str = "holdfast_process_tasks";
const FDS: &str = "holdfast_process_open_fds";
const MEMORY: &str = "holdfast_process_resident_memory_bytes";
const THREADS: &str = "holdfast_process_threads";
const SESSIONS: &str = "holdfast_grpc_open_requests{method=\"holdfast.v1.AgentService/Connect\"}";
const CONNECTED: &str = "holdfast_agents{contact=\"connected\"}";

/// Whatever a peer can stop at.
#[derive(Clone, Copy)]
pub(crate) enum Hole {
    /// After TCP.
    Silent,
    /// In the middle of its first TLS record.
    HalfHello,
    /// After its handshake.
    NoPreface,
    /// After the HTTP/2 preface: it answers no ping.
    NoPong,
}

pub(crate) const HOLES: [Hole; 4] = [Hole::Silent, Hole::HalfHello, Hole::NoPreface, Hole::NoPong];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connects_and_resets_leave_nothing_behind() {
    allow_many_descriptors();
    let (resets, holes) = if std::env::var_os("HOLDFAST_TEST_FULL").is_some() { ALL } else { SOME };
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let (ops, address) = (cluster.coordinator().ops(), cluster.coordinator().address());
    let tls = cluster.tls(None);
    // The operator's own connection and the first allocations are no part of it.
    many(40, |_| reset(address)).await;
    let before = ops.until_figure(CONNECTED, 2.0).await;

    let first = round(&ops, address, &tls, &before, (resets, holes)).await;
    // What the allocator keeps of the first time is there to be used again. It comes apart a little more each time; one
    // connection's state that stayed would be many times as much.
    let after = round(&ops, address, &tls, &before, (resets, holes)).await;
    let grown = after.of(MEMORY) - first.of(MEMORY);
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let allowed = 4e6 + PER_CONNECTION * (resets + holes) as f64;
    assert!(grown < allowed, "{grown} bytes more than after the first time, {allowed} allowed");

    // And it was there for its own all the time.
    assert_eq!(after.of("holdfast_deployment_moves_total{state=\"uncertain\"}"), 0.0);
    for name in ["web-01", "web-02"] {
        let agent = cluster.agent(name).ops().metrics().await;
        assert_eq!(agent.of("holdfast_agent_reconnects_total"), 0.0, "{name} lost its session");
    }
    ledger.open_gate("go");
    operator.until_state(&label, DeploymentState::Succeeded).await;
    ledger.check_begun(1);
}

/// Resets, then black holes, and the figures once nothing of them is left.
async fn round(
    ops: &Ops,
    address: SocketAddr,
    tls: &ClientTls,
    before: &Metrics,
    (resets, holes): (usize, usize),
) -> Metrics {
    many(resets, |_| reset(address)).await;
    let (open, mut kept) = tokio::sync::mpsc::unbounded_channel();
    many(holes, |number| {
        let (tls, open) = (tls.clone(), open.clone());
        async move {
            // Refused or dropped for a newer one is as good.
            if let Ok(hole) = dig(address, &tls, HOLES[number % HOLES.len()]).await {
                let _counted = open.send(hole);
            }
        }
    })
    .await;
    let at_most = ops.metrics().await;
    assert!(at_most.of(FDS) > before.of(FDS) + 50.0, "they were never there: {} descriptors", at_most.of(FDS));

    // The holes stay open at this end: what the coordinator holds of them it must let go by itself.
    let after = wait::until("nothing to be left of them", GONE_WITHIN, async || {
        let now = ops.metrics().await;
        left(before, &now).map_or(Ok(now), Err)
    })
    .await;
    let open = std::iter::from_fn(|| kept.try_recv().ok()).count();
    assert!(open > holes / 2, "only {open} of {holes} were still open");
    after
}

/// What is there that was not before. This test's own question is one task and one descriptor.
fn left(before: &Metrics, now: &Metrics) -> Option<String> {
    const OWN: f64 = 4.0;
    for name in [TASKS, FDS] {
        if now.of(name) > before.of(name) + OWN {
            return Some(format!("{name}: {} after {}", now.of(name), before.of(name)));
        }
    }
    for name in [SESSIONS, CONNECTED] {
        if now.of(name) != before.of(name) {
            return Some(format!("{name}: {} after {}", now.of(name), before.of(name)));
        }
    }
    // Threads that looked at files rest for a while; they are few.
    (now.of(THREADS) > before.of(THREADS) + 16.0).then(|| format!("{} threads", now.of(THREADS)))
}

async fn many<F>(count: usize, make: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    for number in 0..count {
        if running.len() >= AT_ONCE {
            running.join_next().await.expect("one runs").expect("no panic");
        }
        running.spawn(make(number));
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
}

async fn reset(address: SocketAddr) {
    let socket = TcpStream::connect(address).await.expect("a coordinator listens");
    socket.set_zero_linger().expect("a socket");
}

/// A connection that is left in the middle, and stays open as long as what is given back lives.
pub(crate) async fn dig(address: SocketAddr, tls: &ClientTls, hole: Hole) -> std::io::Result<Box<dyn Send>> {
    const PREFACE_AND_SETTINGS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut socket = TcpStream::connect(address).await?;
    match hole {
        Hole::Silent => Ok(Box::new(socket)),
        Hole::HalfHello => {
            socket.write_all(b"\x16\x03\x01\x02\x00\x01").await?;
            Ok(Box::new(socket))
        }
        Hole::NoPreface | Hole::NoPong => {
            let name = ServerName::try_from("localhost").expect("a name");
            let mut stream = tls.connect(name, socket).await?;
            if matches!(hole, Hole::NoPong) {
                stream.write_all(PREFACE_AND_SETTINGS).await?;
                stream.flush().await?;
            }
            Ok(Box::new(stream))
        }
    }
}

/// The processes under test inherit it.
fn allow_many_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the maximum is allowed");
}

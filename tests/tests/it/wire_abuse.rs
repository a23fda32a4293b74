//! What was once on the wire, sent again by somebody between agent and coordinator.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use holdfast_proto::v1::{DispositionKind, Offer, PermitAnswerKind};
use holdfast_tests::api::Operator;
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::peer::{Peer, applied, hello, started};
use holdfast_tests::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, submit};

const SESSIONS: &str = "holdfast_grpc_open_requests{method=\"holdfast.v1.AgentService/Connect\"}";

/// Carries one connection, keeps what the agent says piece by piece, and can say it again.
struct Between {
    address: SocketAddr,
    said: Arc<Mutex<Vec<Vec<u8>>>>,
    up: Arc<tokio::sync::Mutex<Option<OwnedWriteHalf>>>,
}

impl Between {
    async fn start(coordinator: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let between = Self { address, said: Arc::default(), up: Arc::default() };
        let (said, up) = (Arc::clone(&between.said), Arc::clone(&between.up));
        tokio::spawn(async move {
            let (agent, _) = listener.accept().await.expect("an agent");
            let server = TcpStream::connect(coordinator).await.expect("a coordinator");
            let (mut from_agent, mut to_agent) = agent.into_split();
            let (mut from_server, to_server) = server.into_split();
            *up.lock().await = Some(to_server);
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_agent).await });
            let mut piece = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = from_agent.read(&mut piece).await {
                said.lock().expect("nobody panics").push(piece[..length].to_owned());
                let mut up = up.lock().await;
                let sent = up.as_mut().expect("it was just put there").write_all(&piece[..length]).await;
                if sent.is_err() {
                    return;
                }
            }
        });
        between
    }

    fn all(&self) -> Vec<u8> {
        self.said.lock().expect("nobody panics").concat()
    }

    /// Says the agent's last piece once more, in its own connection.
    async fn repeat_last(&self) {
        let last = self.said.lock().expect("nobody panics").last().cloned().expect("something was said");
        let mut up = self.up.lock().await;
        up.as_mut().expect("it is connected").write_all(&last).await.expect("the connection is open");
    }
}

/// A session through the middle, in which a step was permitted and has begun.
async fn recorded() -> (Cluster, Operator, Between, Peer, Offer, String) {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, false)).await;
    let between = Between::start(cluster.coordinator().address()).await;
    let address = format!("https://{}", between.address);
    let mut peer = Peer::connect(&address, &cluster.agent_tls("web-01"), hello(Uuid::new_v4())).await.expect("welcome");
    let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &["true".to_owned()]);
    let label = submit(&operator, file.text()).await;
    let offer = peer.take_offer().await;
    assert_eq!(peer.permit(&offer, "change").await.kind(), PermitAnswerKind::Granted);
    let answer = peer.report(offer.claim.as_ref(), 1, started("change")).await;
    assert_eq!(answer.kind(), DispositionKind::Accepted);
    (cluster, operator, between, peer, offer, label)
}

/// T18: the keys of a session are made anew in every handshake, so what was recorded is noise in the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_session_that_is_sent_again_yields_nothing() {
    let (mut cluster, operator, between, mut peer, offer, label) = recorded().await;
    let before = operator.events(&label).await.len();
    let (address, recording) = (cluster.coordinator().address(), between.all());
    assert!(recording.len() > 1000, "{} bytes are no session", recording.len());
    for piece in [recording.len(), 1] {
        let mut socket = TcpStream::connect(address).await.expect("somebody listens");
        socket.set_nodelay(true).expect("a socket");
        let (mut read, mut write) = socket.split();
        let send = async {
            for bytes in recording.chunks(piece) {
                // It is refused before its end.
                if write.write_all(bytes).await.is_err() {
                    return;
                }
            }
        };
        let mut answer = Vec::new();
        let (_, ended) = wait::within("the replay to be refused", wait::SOON, async {
            tokio::join!(send, read.read_to_end(&mut answer))
        })
        .await;
        // Its own first flight and an alert; or a reset, which says no more.
        assert!(ended.is_err() || answer.len() < 4096, "{} bytes of answer", answer.len());
        assert_eq!(cluster.coordinator().ops().metrics().await.of(SESSIONS), 1.0, "only the agent's own");
    }
    assert_eq!(operator.events(&label).await.len(), before);
    // The agent's own session was not touched.
    let answer = peer.report(offer.claim.as_ref(), 2, applied("change")).await;
    assert_eq!(answer.kind(), DispositionKind::Accepted);
}

/// T18: a record that comes twice in its own session is no second message: it ends the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_frame_that_is_sent_twice_ends_the_session_and_changes_nothing() {
    let (mut cluster, operator, between, mut peer, _offer, label) = recorded().await;
    let before = operator.events(&label).await.len();
    between.repeat_last().await;
    wait::within("the session to end", wait::SOON, async { while peer.next().await.is_some() {} }).await;
    cluster.coordinator().ops().until_figure(SESSIONS, 0.0).await;
    assert_eq!(operator.events(&label).await.len(), before);
}

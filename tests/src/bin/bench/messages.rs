//! Messages of a session, against a bare echo of the same messages.
//!
//! While a step runs, what its agent sends most is the heartbeat that renews its lease; every other message goes once for each
//! step. So the message is a heartbeat with one live claim, answered with the renewed lease. The bare echo gets the same one
//! and answers with one of the same size.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::{
    Claim, ConnectRequest, ConnectResponse, Disposition, DispositionKind, Heartbeat, Hello, LeaseAnswer,
};
use holdfast_tests::echo::Echo;
use holdfast_tests::files::DeploymentFile;
use holdfast_tests::fleet;
use holdfast_tests::peer::{self, Peer};
use tokio::sync::mpsc;
use tonic::Streaming;
use uuid::Uuid;

use crate::options::Options;
use crate::report::{Aim, Figure, Report};
use crate::scene::Scene;

const AIM: f64 = 0.4;
/// Longer than any measurement.
const LEASE: Duration = Duration::from_secs(3600);

/// How many messages are under way. Each stream has a connection of its own, as agents have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    streams: usize,
    window: usize,
}

pub(crate) const SHAPES: [Shape; 3] =
    [Shape { streams: 1, window: 1 }, Shape { streams: 1, window: 64 }, Shape { streams: 64, window: 16 }];

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.streams, self.window) {
            (1, 1) => f.write_str("ping-pong on one stream"),
            (1, window) => write!(f, "one stream, window {window}"),
            (streams, window) => write!(f, "{streams} streams, window {window}"),
        }
    }
}

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let scene = Scene::new(options).await;
    let span = options.span() / 2;
    let bare = echoed(&scene, span).await?;
    let mut lines = Vec::new();
    for index in 0..most_streams() {
        lines.push(Line::to_coordinator(&scene, index).await?);
    }
    let rates = rates(lines, span).await?;
    for ((shape, bare), rate) in SHAPES.into_iter().zip(bare).zip(rates) {
        let figure = Figure::new(format!("heartbeats with one claim, {shape}"), rate, "/s");
        report.put(figure.of("bare echoes/s", bare).aim(Aim::RatioAtLeast(AIM)));
    }
    Ok(())
}

/// Messages per second that a bare echo answers, shape by shape.
pub(crate) async fn echoed(scene: &Scene, span: Duration) -> anyhow::Result<Vec<f64>> {
    let echo = Echo::start(&scene.cluster).await;
    let mut lines = Vec::new();
    for index in 0..most_streams() {
        lines.push(Line::to_echo(scene, &echo, index).await?);
    }
    rates(lines, span).await
}

fn most_streams() -> usize {
    SHAPES.iter().map(|shape| shape.streams).max().unwrap_or_default()
}

async fn rates(mut lines: Vec<Line>, span: Duration) -> anyhow::Result<Vec<f64>> {
    let mut rates = Vec::new();
    for shape in SHAPES {
        let begun = Instant::now();
        let rest = lines.split_off(shape.streams);
        let tasks: Vec<_> = lines.drain(..).map(|line| tokio::spawn(line.run(shape.window, begun + span))).collect();
        let mut answered = 0;
        for task in tasks {
            let (line, count) = task.await??;
            answered += count;
            lines.push(line);
        }
        lines.extend(rest);
        rates.push(answered as f64 / begun.elapsed().as_secs_f64());
    }
    Ok(rates)
}

/// One stream, and the claim whose lease is renewed on it.
struct Line {
    outgoing: mpsc::Sender<ConnectRequest>,
    incoming: Streaming<ConnectResponse>,
    claim: Claim,
    number: u64,
}

impl Line {
    /// A session as an agent that has begun its step.
    async fn to_coordinator(scene: &Scene, index: usize) -> anyhow::Result<Self> {
        let (name, target) = (fleet::name(index), format!("line@{index}"));
        let operator = scene.cluster.operator();
        operator.apply_target(&fleet::target(&target, index)).await;
        let hello = Hello { labels: [(fleet::LABEL.to_owned(), name.clone())].into(), ..peer::hello(Uuid::new_v4()) };
        let mut peer = scene.cluster.peer(&name, hello).await?;
        let file = DeploymentFile::new(&target, LEASE).mutates("change", "idempotent", &fleet::at_once());
        operator.submit(file.text()).await;
        let offer = peer.take_offer().await;
        peer.permit(&offer, "change").await;
        let answer = peer.report(offer.claim.as_ref(), 1, peer::started("change")).await;
        Self::new(peer, answer, offer.claim)
    }

    fn new(peer: Peer, answer: Disposition, claim: Option<Claim>) -> anyhow::Result<Self> {
        anyhow::ensure!(answer.kind() == DispositionKind::Accepted, "the start was not accepted: {answer:?}");
        let (outgoing, incoming) = peer.into_ends();
        Ok(Self { outgoing, incoming, claim: claim.context("an offer has a claim")?, number: 0 })
    }

    async fn to_echo(scene: &Scene, echo: &Echo, index: usize) -> anyhow::Result<Self> {
        let (outgoing, mut incoming) =
            peer::open(&echo.address(), &scene.cluster.agent_tls(&fleet::name(index))).await?;
        let hello = Says::Hello(peer::hello(Uuid::new_v4()));
        outgoing.send(ConnectRequest { message: Some(hello) }).await?;
        incoming.message().await?.context("a welcome")?;
        let [deployment, attempt] = [Uuid::now_v7(), Uuid::new_v4()].map(|id| id.to_string());
        let claim = Claim { deployment, attempt, fence: (1 << 40) + 1 };
        Ok(Self { outgoing, incoming, claim, number: 0 })
    }

    /// Keeps so many heartbeats under way, and counts the answers that came in time.
    async fn run(mut self, window: usize, until: Instant) -> anyhow::Result<(Self, u64)> {
        for _message in 0..window {
            self.beat().await?;
        }
        let (mut answered, mut late) = (0, 0);
        while late < window {
            self.answer().await?;
            if Instant::now() < until {
                answered += 1;
                self.beat().await?;
            } else {
                late += 1;
            }
        }
        Ok((self, answered))
    }

    async fn beat(&mut self) -> anyhow::Result<()> {
        self.number += 1;
        let heartbeat = Heartbeat { number: self.number, claims: vec![self.claim.clone()], no_room: None };
        Ok(self.outgoing.send(ConnectRequest { message: Some(Says::Heartbeat(heartbeat)) }).await?)
    }

    async fn answer(&mut self) -> anyhow::Result<()> {
        loop {
            let message = self.incoming.message().await?.context("the stream ended")?.message;
            let Some(Hears::HeartbeatAnswer(answer)) = message else { continue };
            let renewed = answer.leases.iter().all(|lease| lease.answer() == LeaseAnswer::Renewed);
            anyhow::ensure!(renewed && answer.leases.len() == 1, "the lease was not renewed: {answer:?}");
            return Ok(());
        }
    }
}

//! Proxies that delay, stall and recycle connections.

use std::time::Duration;

use holdfast::proxy::{Proxy, Ways};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::folder::Folder;

use super::{Chatter, DEFAULT_LEASE, UNCERTAIN, declared, losses};
use crate::PROGRAM;

const AGENTS: [&str; 2] = ["web-01", "web-02"];

fn lines(cluster: &Cluster) -> Vec<Proxy> {
    AGENTS.iter().map(|name| cluster.line(name)).chain([cluster.operators_line().clone()]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_runs_over_300_ms_of_delay_and_stalls_without_doubt() {
    let folder = Folder::new();
    let plan = Plan::new(PROGRAM).coordinator_environment("HOLDFAST_HEARTBEAT_INTERVAL", "5s");
    let mut cluster = plan.coordinator_environment("HOLDFAST_LEASE_MARGIN", "2s").start().await;
    let operator = cluster.operator();
    declared(&operator).await;
    for line in lines(&cluster) {
        line.delay(Duration::from_millis(300));
    }
    let work = Chatter::begin(&operator, &folder, DEFAULT_LEASE).await;
    work.goes_on(20).await;
    // Some seconds of stall, shorter than a keepalive waits, in each direction.
    let line = cluster.line(&work.agent);
    for ways in [Ways::Up, Ways::Down, Ways::Both] {
        line.stall(ways);
        work.goes_on(30).await;
        line.heal().await;
        work.goes_on(10).await;
    }
    work.end_well(&operator).await;
    assert_eq!(cluster.coordinator().ops().metrics().await.of(UNCERTAIN), 0.0);
    for name in AGENTS {
        assert_eq!(losses(&cluster.folder().join(&format!("{name}.log"))), 0, "{name} lost its session");
    }
}

/// As load balancers do: at an age, whatever is under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_ends_connections_at_an_age_costs_no_work_and_no_output() {
    let folder = Folder::new();
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    declared(&operator).await;
    let work = Chatter::begin(&operator, &folder, LONG).await;
    let line = cluster.line(&work.agent);
    let log = cluster.folder().join(&format!("{}.log", work.agent));
    line.recycle(Some(Duration::from_millis(1500)), None);
    holdfast_tests::wait::until_true("three sessions to be ended", holdfast_tests::wait::SOON * 2, || {
        std::fs::read_to_string(&log).unwrap_or_default().matches(" connected").count() >= 4
    })
    .await;
    line.recycle(None, None);
    work.end_well(&operator).await;
    assert_eq!(cluster.coordinator().ops().metrics().await.of(UNCERTAIN), 0.0);
}

/// A session is never idle for longer than a heartbeat or a keepalive, so a proxy that is more patient never ends one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_ends_idle_connections_ends_no_session() {
    let folder = Folder::new();
    let plan = Plan::new(PROGRAM).coordinator_environment("HOLDFAST_HEARTBEAT_INTERVAL", "60s");
    let mut cluster = plan.start().await;
    let operator = cluster.operator();
    declared(&operator).await;
    // With heartbeats a minute apart, only the keepalive speaks on the idle agent's line.
    for line in lines(&cluster) {
        line.recycle(None, Some(super::KEEPALIVE));
    }
    let work = Chatter::begin(&operator, &folder, Duration::from_secs(300)).await;
    // Twice as long as the proxy waits.
    work.goes_on(180).await;
    work.end_well(&operator).await;
    assert_eq!(cluster.coordinator().ops().metrics().await.of(UNCERTAIN), 0.0);
    for name in AGENTS {
        assert_eq!(losses(&cluster.folder().join(&format!("{name}.log"))), 0, "{name} lost its session");
    }
}

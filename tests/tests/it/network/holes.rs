//! Connections that are dead and do not say so.

use std::net::Ipv4Addr;
use std::time::Instant;

use holdfast_proto::v1::{Contact, DeploymentState};
use holdfast_tests::api::state_of;
use holdfast_tests::cluster::{Cluster, LONG};
use holdfast_tests::netns::LINE;
use holdfast_tests::wait;

use super::{Chatter, EDGE, HUB, KEEPALIVE, NAME, Net, PORT, SESSIONS, SLACK, UNCERTAIN, declared, losses, on_the_hub};

const AGENTS: [&str; 2] = ["web-01", "web-02"];

/// Where something else listens, or nothing.
const NOBODY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const GONE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const MOVED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);

async fn sessions(cluster: &mut Cluster) -> f64 {
    cluster.coordinator().ops().metrics().await.of(SESSIONS)
}

/// Both ends of both sessions, the idle one and the one in the middle of its work, see within the bound that they are dead.
async fn noticed_by_both(cluster: &mut Cluster, before: &[usize], since: Instant) {
    let logs = AGENTS.map(|name| cluster.folder().join(&format!("{name}.log")));
    wait::until("both ends to notice", KEEPALIVE + SLACK, async || {
        let open = sessions(cluster).await;
        let agents: Vec<bool> = logs.iter().zip(before).map(|(log, before)| losses(log) > *before).collect();
        if open == 0.0 && agents.iter().all(|lost| *lost) { Ok(()) } else { Err(format!("{open} open, {agents:?}")) }
    })
    .await;
    assert!(since.elapsed() < KEEPALIVE + SLACK, "{:?}", since.elapsed());
}

/// F32: the line goes dark in the middle of work, is noticed, and comes back.
async fn dark(net: &Net, darken: impl FnOnce(), light: impl FnOnce()) {
    net.hub.cable(HUB, &net.edge, EDGE);
    let hosts = net.name_stands_for(&[HUB]);
    let mut cluster = net.plan(&format!("{NAME}:{PORT}"), &hosts).start().await;
    let operator = cluster.operator();
    declared(&operator).await;
    let work = Chatter::begin(&operator, &net.folder, LONG).await;
    let before = AGENTS.map(|name| losses(&cluster.folder().join(&format!("{name}.log"))));
    assert_eq!(sessions(&mut cluster).await, 2.0);

    let since = Instant::now();
    darken();
    noticed_by_both(&mut cluster, &before, since).await;
    work.goes_on(5).await;
    assert_eq!(state_of(&operator.deployment(&work.label).await), DeploymentState::Active);

    light();
    for name in AGENTS {
        operator.until_contact(name, Contact::Connected).await;
    }
    work.goes_on(5).await;
    work.end_well(&operator).await;
    assert_eq!(cluster.coordinator().ops().metrics().await.of(UNCERTAIN), 0.0);
}

#[test]
fn a_link_that_is_down_is_noticed_by_both_ends_and_its_work_runs_on() {
    on_the_hub(async |net| {
        dark(net, || net.hub.ip(&["link", "set", LINE, "down"]), || net.hub.ip(&["link", "set", LINE, "up"])).await;
    });
}

#[test]
fn a_black_hole_is_noticed_by_both_ends_and_its_work_runs_on() {
    on_the_hub(async |net| {
        let darken = || {
            net.hub.misdirect(EDGE);
            net.edge.misdirect(HUB);
        };
        let light = || {
            net.hub.direct(EDGE);
            net.edge.direct(HUB);
        };
        dark(net, darken, light).await;
    });
}

#[test]
fn a_line_that_loses_all_that_agents_say_is_noticed_by_both_ends() {
    on_the_hub(async |net| dark(net, || net.edge.misdirect(HUB), || net.edge.direct(HUB)).await);
}

#[test]
fn a_line_that_loses_all_that_the_coordinator_says_is_noticed_by_both_ends() {
    on_the_hub(async |net| dark(net, || net.hub.misdirect(EDGE), || net.hub.direct(EDGE)).await);
}

/// F32: the first of its addresses is silent, and its name stands for another address from now on, one of two.
#[test]
fn a_coordinator_that_moved_is_found_by_its_name_among_several_addresses() {
    on_the_hub(async |net| {
        net.hub.cable(HUB, &net.edge, EDGE);
        net.edge.misdirect(NOBODY);
        let hosts = net.name_stands_for(&[HUB]);
        let list = format!("[\"https://{NOBODY}:{PORT}\", \"https://{NAME}:{PORT}\"]");
        let mut cluster = net.plan(&list, &hosts).start().await;
        let operator = cluster.operator();
        declared(&operator).await;
        let work = Chatter::begin(&operator, &net.folder, LONG).await;
        let before = AGENTS.map(|name| losses(&cluster.folder().join(&format!("{name}.log"))));

        let since = Instant::now();
        net.hub.address("add", MOVED);
        net.hub.address("del", HUB);
        // Taking an address away takes those after it in its network.
        net.hub.ip(&["address", "replace", &format!("{MOVED}/24"), "dev", LINE]);
        noticed_by_both(&mut cluster, &before, since).await;
        assert_eq!(sessions(&mut cluster).await, 0.0, "nobody answers where they look");
        net.name_stands_for(&[GONE, MOVED]);
        for name in AGENTS {
            operator.until_contact(name, Contact::Connected).await;
        }
        work.goes_on(5).await;
        work.end_well(&operator).await;
        assert_eq!(cluster.coordinator().ops().metrics().await.of(UNCERTAIN), 0.0);
    });
}

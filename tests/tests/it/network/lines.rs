//! Lines that lose packets and are slow: nothing is taken for lost that is late.

use std::time::Duration;

use holdfast_tests::tun::{BadLine, Badness};
use holdfast_tests::wait;

use super::{Chatter, DEFAULT_LEASE, EDGE, HUB, NAME, PORT, UNCERTAIN, declared, losses, on_the_hub};

/// Packets that must have been lost: of heartbeats, of output, and of their acknowledgements.
const LOST: u64 = 8;

/// `HOLDFAST_TEST_SEED` for another.
fn seed() -> u64 {
    std::env::var("HOLDFAST_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7)
}

/// With the heartbeats and leases that one gets without saying anything.
fn over(badness: Badness) {
    on_the_hub(async |net| {
        let line = BadLine::between([&net.hub, &net.edge], [HUB, EDGE], badness);
        let hosts = net.name_stands_for(&[HUB]);
        let plan = net.plan(&format!("{NAME}:{PORT}"), &hosts);
        let plan = plan.coordinator_environment("HOLDFAST_HEARTBEAT_INTERVAL", "5s");
        let mut cluster = plan.coordinator_environment("HOLDFAST_LEASE_MARGIN", "2s").start().await;
        let operator = cluster.operator();
        declared(&operator).await;
        let work = Chatter::begin(&operator, &net.folder, DEFAULT_LEASE).await;
        // Until so many packets were lost that both heartbeats and output were among them.
        wait::until_true("packets to be lost", wait::SOON * 3, || line.counts().1 >= LOST).await;
        work.goes_on(20).await;
        work.end_well(&operator).await;
        let metrics = cluster.coordinator().ops().metrics().await;
        assert_eq!(metrics.of(UNCERTAIN), 0.0);
        for name in ["web-01", "web-02"] {
            assert_eq!(losses(&cluster.folder().join(&format!("{name}.log"))), 0, "{name} lost its session");
        }
        let (carried, lost) = line.counts();
        assert!(carried > 40 * LOST, "{carried} carried, {lost} lost: seed {}", badness.seed);
    });
}

#[test]
fn a_deployment_runs_over_a_line_that_loses_one_packet_of_a_hundred() {
    over(Badness { lost_of_thousand: 10, late: Duration::ZERO, seed: seed() });
}

#[test]
fn a_deployment_runs_over_a_line_that_is_slow_and_loses_one_packet_of_a_hundred() {
    over(Badness { lost_of_thousand: 10, late: Duration::from_millis(150), seed: seed() });
}

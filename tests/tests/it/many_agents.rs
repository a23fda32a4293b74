//! Many agents at once.

use std::path::Path;
use std::time::Duration;

use holdfast_tests::reunion::{Assembly, Reunion, Size};

use crate::PROGRAM;

/// How many, where it is not the usual number.
const AGENTS: &str = "HOLDFAST_TEST_AGENTS";
/// What a busy machine runs in a test of many.
const USUAL: usize = 300;
/// From when the coordinator listens again.
const ALL_BACK_WITHIN: Duration = Duration::from_secs(60);

/// F36: killed and started again at once, and away for 20 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_agents_return_spread_out_and_no_lease_is_lost() {
    let agents = std::env::var(AGENTS).ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL);
    let size = Size { agents, holders: agents / 10, ttl: Duration::from_secs(10) };
    let mut assembly = Assembly::gather(Path::new(PROGRAM), size).await;
    for away in [Duration::ZERO, Duration::from_secs(20)] {
        let seen = assembly.lose(away).await;
        check(&seen, agents);
    }
    assert_eq!(assembly.end().await, Vec::<String>::new(), "each ended well in its first attempt");
}

#[track_caller]
fn check(seen: &Reunion, agents: usize) {
    assert!(seen.lost.is_empty(), "leases were lost: {seen:?}");
    assert!(seen.back_within <= ALL_BACK_WITHIN, "{seen:?}");
    assert_eq!(seen.overflowed, 0, "{seen:?}");
    assert!(seen.peak() <= agents as f64 / 3.0, "they came all at once: {seen:?}");
}

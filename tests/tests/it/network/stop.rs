//! An orderly stop among connections that will never end by themselves.

use std::time::{Duration, Instant};

use holdfast_proto::v1::{Contact, DeploymentState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::{files, wait};

use crate::PROGRAM;
use crate::connections::{HOLES, dig};
use crate::support::{BOX, begun, change, other, submit};

/// Of each kind.
const DEAD: usize = 8;

/// F33.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_among_dead_connections_takes_ten_seconds_at_most_and_loses_no_result() {
    let mut cluster = Plan::new(PROGRAM).as_in_production().start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    let (address, tls) = (cluster.coordinator().address(), cluster.tls(None));
    let mut dead = Vec::new();
    for number in 0..DEAD * HOLES.len() {
        dead.push(dig(address, &tls, HOLES[number % HOLES.len()]).await.expect("somebody listens"));
    }
    // What is said to be over, and what is under way on an agent that stands still.
    let done = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    assert_eq!(state_of(&operator.until_ended(&done).await), DeploymentState::Succeeded);
    let (running, frozen) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.agent(&frozen).freeze().await;

    let asked = Instant::now();
    let status = cluster.coordinator().terminate().await;
    let took = asked.elapsed();
    assert!(status.success() && took < Duration::from_secs(10), "{status} after {took:?}");
    let told = cluster.folder().join(&format!("{}.log", other(&frozen)));
    wait::until_true("the agent that listens to be told", wait::SOON, || {
        std::fs::read_to_string(&told).unwrap_or_default().contains("the coordinator said goodbye")
    })
    .await;

    // The same port, while the dead still hold their ends.
    let asked = Instant::now();
    cluster.start_coordinator().await;
    assert_eq!(cluster.coordinator().address(), address);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let operator: Operator = cluster.operator();
    assert_eq!(state_of(&operator.deployment(&done).await), DeploymentState::Succeeded);
    cluster.agent(&frozen).thaw();
    operator.until_contact(&frozen, Contact::Connected).await;
    ledger.open_gate("go");
    assert_eq!(state_of(&operator.until_ended(&running).await), DeploymentState::Succeeded);
    ledger.check_begun(2);
    drop(dead);
}

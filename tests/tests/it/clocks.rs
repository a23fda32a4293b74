//! Clocks that jump, and machines that slept: what one service counts on its own clock is no business of another's (F29).

use holdfast_proto::v1::{AttemptState, DeploymentState};
use holdfast_tests::api::state_of;
use holdfast_tests::cluster::LONG;

use crate::support::{begun, last_attempt, with_box};

/// A day on, for whatever runs below it.
fn a_day_later() -> Vec<String> {
    ["unshare", "--time", "--boottime", "86400", "--monotonic", "86400", "--"].map(str::to_owned).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_comes_back_under_another_boot_time_finds_its_step_and_tells_its_true_end() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.agent(&agent).kill();
    cluster.agent(&agent).settings().wrapper = a_day_later();
    cluster.agent(&agent).start();
    let back = |deployment: &holdfast_proto::v1::Deployment| state_of(deployment) == DeploymentState::Active;
    operator.until(&label, "the agent to be back", back).await;
    ledger.open_gate("go");
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    assert_eq!(last_attempt(&done).state(), AttemptState::Succeeded);
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_comes_back_a_day_later_on_its_clocks_lapses_no_lease() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.coordinator().settings().wrapper = a_day_later();
    cluster.restart_coordinator().await;
    let standing = operator.deployment(&label).await;
    assert_eq!(state_of(&standing), DeploymentState::Active, "{standing:#?}");
    ledger.open_gate("go");
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    ledger.check_begun(1);
}

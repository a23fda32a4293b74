//! So many agents fall silent at once that the fault must be nearer than theirs.

use holdfast_proto::v1::{DeploymentState, PlanEntry};
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::files::{self, DeploymentFile};

use crate::PROGRAM;
use crate::support::{BOX, begun, submit};

const AGENTS: [&str; 7] = ["web-01", "web-02", "web-03", "web-04", "web-05", "web-06", "web-07"];
const TARGET: &str = "other@test";

/// What runs goes on and ends; what is new waits, and whoever looks is told why; it begins once enough are back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_many_fall_silent_at_once_nothing_new_is_handed_out_until_enough_are_back() {
    let mut cluster = Plan::new(PROGRAM).agents(&AGENTS).start().await;
    let operator = cluster.operator();
    for target in [BOX, TARGET] {
        operator.apply_target(&files::command_target(target, false)).await;
    }
    let ledger = cluster.ledger("box");
    let (running, holder) = begun(&operator, &ledger, LONG, "unsafe").await;

    let lost: Vec<&str> = AGENTS.into_iter().filter(|name| *name != holder).collect();
    lost.iter().for_each(|name| cluster.agent(name).kill());
    let ops = cluster.coordinator().ops();
    ops.until_figure("holdfast_mass_loss_suspected", 1.0).await;
    // It suspects itself from the fifth on.
    ops.until_refused("/readyz", "6 of 7 agents fell silent at once").await;

    let file = DeploymentFile::new(TARGET, LONG).mutates("change", "unsafe", &["/bin/true".to_owned()]);
    let plan = operator.plan(file.text()).await;
    assert_eq!(plan.entry(), PlanEntry::Waits, "{plan:?}");
    assert!(plan.entry_because.contains("fell silent at once"), "{plan:?}");
    let fresh = submit(&operator, file.text()).await;
    ledger.open_gate("go");
    operator.until_state(&running, DeploymentState::Succeeded).await;
    let waiting = operator.deployment(&fresh).await;
    assert!(waiting.attempts.is_empty() && waiting.waiting.contains("fell silent at once"), "{waiting:?}");

    lost.iter().for_each(|name| cluster.agent(name).start());
    operator.until_state(&fresh, DeploymentState::Succeeded).await;
    ops.until_status("/readyz", 200).await;
    ledger.check_begun(1);
}

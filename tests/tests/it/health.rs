//! What the services say of themselves: alive, ready, and why not.

use holdfast_tests::cluster::Plan;
use holdfast_tests::strace::{self, Syncs};

use crate::PROGRAM;
use crate::support::with_box;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_are_alive_and_ready_and_readiness_names_what_is_wrong() {
    let (mut cluster, _operator, _ledger) = with_box().await;
    let coordinator = cluster.coordinator().ops();
    let agent = cluster.agent("web-01").ops();
    for ops in [&coordinator, &agent] {
        assert_eq!(ops.get("/livez").await.body, "alive\n");
        let ready = ops.until_status("/readyz?verbose", 200).await.body;
        assert!(ready.contains("[ok]   work loop\n") && ready.contains("[ok]   serving\n"), "{ready}");
        assert_eq!(ops.get("/").await.status, 404);
    }

    // The store's file goes away under the coordinator, and comes back.
    let store = cluster.coordinator().store();
    let away = store.with_extension("away");
    std::fs::rename(&store, &away).expect("it was there");
    let told = coordinator.until_refused("/readyz", "store: ").await.body;
    assert!(told.contains("No such file"), "{told}");
    assert_eq!(coordinator.get("/livez").await.status, 200, "a restart would not bring the file back");
    std::fs::rename(&away, &store).expect("it was there");
    coordinator.until_status("/readyz", 200).await;

    let journal = cluster.agent("web-01").state().join("journal.sqlite");
    let away = journal.with_extension("away");
    std::fs::rename(&journal, &away).expect("it was there");
    agent.until_refused("/readyz", "journal: ").await;
    std::fs::rename(&away, &journal).expect("it was there");
    agent.until_status("/readyz", 200).await;
}

/// Readiness is not connection: an agent alone carries on with what it holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_contact_is_ready_and_says_since_when() {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let agent = cluster.agent("web-01").ops();
    agent.until_figure("holdfast_agent_connected", 1.0).await;
    let told = agent.until_status("/readyz?verbose", 200).await.body;
    assert!(told.contains("[note] coordinator: in contact"), "{told}");
    cluster.coordinator().kill();
    agent.until_figure("holdfast_agent_connected", 0.0).await;
    let told = agent.get("/readyz?verbose").await;
    assert_eq!(told.status, 200, "{}", told.body);
    assert!(told.body.contains("[note] coordinator: no contact for"), "{}", told.body);
    let one = agent.metrics().await.of("holdfast_agent_since_contact_seconds");
    agent.until_figures("silence to grow", |now| now.of("holdfast_agent_since_contact_seconds") > one).await;
    cluster.start_coordinator().await;
    agent.until_figure("holdfast_agent_connected", 1.0).await;
    assert_eq!(agent.metrics().await.of("holdfast_agent_reconnects_total"), 1.0);
}

/// A work loop that hangs in the middle of a turn, as its disk does, is not ready soon, and dead later; the rest of the process
/// answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_work_loop_that_hangs_is_not_ready_and_then_dead() {
    if !strace::can_be_had(1) {
        return;
    }
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let (coordinator, serving) = (cluster.coordinator().ops(), cluster.coordinator().pid());
    let (agent, working) = (cluster.agent("web-01").ops(), cluster.agent("web-01").pid());
    for (name, ops, pid) in [("coordinator", &coordinator, serving), ("agent", &agent, working)] {
        ops.until_status("/readyz", 200).await;
        let hung = strace::attach(Syncs::Hang, pid, &cluster.folder().join(&format!("{name}.strace"))).await;
        // A new session is something to write down, for both.
        cluster.line("web-01").reset();
        ops.until_refused("/readyz", "work loop: in the middle of a turn for").await;
        ops.until_refused("/livez", "work loop: in the middle of a turn for").await;
        assert_eq!(ops.get("/metrics").await.status, 200, "{name}");
        drop(hung);
        ops.until_status("/livez", 200).await;
        ops.until_status("/readyz", 200).await;
        agent.until_figure("holdfast_agent_connected", 1.0).await;
    }
}

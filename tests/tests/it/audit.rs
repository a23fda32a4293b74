//! The record as anybody can check it: beside a running coordinator, on a stopped one's data, and as a file.

use std::path::{Path, PathBuf};

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::cli::Ran;
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files;
use rusqlite::Connection;

use crate::PROGRAM;
use crate::support::{BOX, begun, change, submit, uncertain, with_box};

/// As somebody would who can write the store's file.
fn change_store(store: &Path, sql: &str) {
    let raw = Connection::open(store).expect("the store");
    raw.busy_timeout(holdfast_tests::wait::SOON).expect("set");
    let triggers: Vec<String> = raw
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .and_then(|mut names| names.query_map([], |row| row.get(0))?.collect())
        .expect("listed");
    triggers.iter().for_each(|name| raw.execute_batch(&format!("DROP TRIGGER {name}")).expect("dropped"));
    raw.execute_batch(sql).expect("changed");
}

async fn verified(cluster: &Cluster, data: &Path) -> Ran {
    let data = data.to_str().expect("plain text");
    cluster.cli().run(&["coordinator", "verify", "--data", data, "--json"]).await
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain text")
}

async fn exported(cluster: &Cluster, name: &str) -> PathBuf {
    let file = cluster.folder().join(name);
    cluster.cli().run(&["audit", "export", "--to", text(&file)]).await.expect(0);
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_after_real_deployments_verifies_and_its_export_is_checked_by_anybody() {
    let (mut cluster, operator, ledger) = with_box().await;
    let done = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator.until_state(&done, DeploymentState::Succeeded).await;
    let before = exported(&cluster, "before.jsonl").await;
    uncertain(&cluster, &operator, &ledger, SHORT).await;
    let waits = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let cli = cluster.cli();
    cli.run(&["token", "create", "--name", "bot", "--role", "viewer"]).await.expect(0);
    cli.run(&["token", "revoke", "bot"]).await.expect(0);
    let listed = cli.run(&["audit", "list"]).await.expect(0).stdout.clone();
    for words in
        ["admin took the token of bot back", "token_made", &format!("admin submitted {waits}"), "admin declared"]
    {
        assert!(listed.contains(words), "{words:?} is not in:\n{listed}");
    }

    let after = exported(&cluster, "after.jsonl").await;
    let told = cli.run(&["audit", "verify", text(&after), "--after", text(&before)]).await.expect(0).stdout.clone();
    assert!(told.contains("every hash and every event follows") && told.contains("it goes on from"), "{told}");
    let again = cli.run(&["audit", "export", "--to", text(&after)]).await;
    assert_eq!(again.code, 1, "an earlier file is never written over");
    cli.run(&["audit", "verify", text(&before), "--after", text(&after)]).await.expect(1);
    let changed = std::fs::read_to_string(&after).expect("it is there").replacen("admin", "edwin", 1);
    let changed = cluster.folder().write("changed.jsonl", &changed);
    let told = cli.run(&["audit", "verify", text(&changed)]).await.expect(1).stderr.clone();
    assert!(told.contains("HF-6007") && told.contains("the lines were changed"), "{told}");

    let data = cluster.coordinator().store().parent().expect("a folder").to_owned();
    for at in ["beside the running one", "stopped"] {
        let report = verified(&cluster, &data).await.expect(0).json();
        assert_eq!(report["sound"], true, "{at}: {report:#}");
        assert!(report["events"].as_u64() > Some(15) && report["acts"].as_u64() >= Some(4), "{report:#}");
        cluster.coordinator().kill();
    }
    change_store(&cluster.coordinator().store(), "UPDATE deployments SET submitted_by = 'eve' WHERE number = 1");
    let ran = verified(&cluster, &data).await;
    let report = ran.expect(1).json();
    assert_eq!(report["findings"][0]["row"], "deployments #1, submitted_by", "{report:#}");
    let told = &ran.stderr;
    assert!(told.contains("HF-6007") && told.contains("stored eve, the events lead to admin"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_difference_in_a_running_store_stops_grants_is_named_and_hurts_nothing_that_runs() {
    let mut cluster = Plan::new(PROGRAM).coordinator_environment("HOLDFAST_AUDIT_EVERY", "100ms").start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    let (first, _agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let second = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let (store, ops) = (cluster.coordinator().store(), cluster.coordinator().ops());
    ops.until_status("/readyz", 200).await;
    change_store(&store, "UPDATE deployments SET submitted_by = 'eve' WHERE number = 1");
    let told = ops.until_refused("/readyz", "nothing is granted").await.body;
    assert!(told.contains("stored eve, the events lead to admin"), "{told}");
    assert_eq!(ops.get("/livez").await.status, 200);

    ledger.open_gate("go");
    operator.until_state(&first, DeploymentState::Succeeded).await;
    let waits = operator.deployment(&second).await;
    assert_eq!(waits.attempts, [], "the end of the first one would have given it its lease");
    let log = std::fs::read_to_string(cluster.coordinator().log()).expect("its log");
    assert!(log.contains("the store differs from its events: nothing is granted"), "{log}");

    change_store(&store, "UPDATE deployments SET submitted_by = 'admin' WHERE number = 1");
    ops.until_status("/readyz", 200).await;
    operator.until_state(&second, DeploymentState::Succeeded).await;
}

//! Holds, order keys, latest queues, plans and globs, through the command line on real processes.

use holdfast_proto::v1::{DeploymentState, HoldTargetRequest, ListDeploymentsRequest};
use holdfast_tests::api::{code_of, state_of};
use holdfast_tests::cluster::LONG;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::wait;

use crate::support::{BOX, begun, change, submit, with_box};

fn written(cluster: &holdfast_tests::cluster::Cluster, name: &str, text: &str) -> String {
    let path = cluster.folder().path().join(name);
    std::fs::write(&path, text).expect("the test's own folder");
    path.to_str().expect("text").to_owned()
}

/// The file with a line before its first table.
fn with(line: &str, file: &str) -> String {
    let target = format!("target = \"{BOX}\"\n");
    assert!(file.contains(&target), "{file}");
    file.replace(&target, &format!("{target}{line}\n"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_lets_what_runs_go_on_and_nothing_new_begin() {
    let (mut cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let file = DeploymentFile::new(BOX, LONG).mutates("first", "unsafe", &ledger.gated("go")).mutates(
        "second",
        "unsafe",
        &ledger.command(),
    );
    let runs = submit(&operator, file.text()).await;
    ledger.until_begun(1).await;

    let viewer = cluster.coordinator().viewer().to_owned();
    let viewer = cluster.operator_with(&viewer);
    let hold = HoldTargetRequest { target: BOX.to_owned(), reason: "mine".to_owned(), until: None };
    let refused = viewer.client.clone().hold_target(hold).await.expect_err("a viewer may not");
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
    cli.run(&["target", "hold", BOX]).await.expect(2);
    cli.run(&["target", "hold", BOX, "--reason", "mine", "--until", "2001-01-01T00:00:00Z"]).await.expect(2);
    let held = cli.run(&["target", "hold", BOX, "--reason", "release freeze", "--until", "5h"]).await;
    assert!(held.expect(0).stdout.contains("release freeze"), "{}", held.stdout);

    let next = change(LONG, "unsafe", &ledger.command());
    let waits = submit(&operator, &next).await;
    let path = written(&cluster, "next.toml", &next);
    ledger.open_gate("go");
    let ended = operator.until_ended(&runs).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "both of its steps were permitted");
    let waiting = operator.until(&waits, "the hold to be why", |one| one.waiting.contains("release freeze")).await;
    assert_eq!((state_of(&waiting), waiting.holds_target), (DeploymentState::Queued, false));

    cli.run(&["deploy", &path, "--no-queue"]).await.expect(15);
    cli.run(&["cancel", &waits, "--reason", "to free the queue"]).await.expect(0);
    let refused = cli.run(&["deploy", &path, "--no-queue"]).await;
    assert!(refused.expect(15).stderr.contains("HF-2035"), "{}", refused.stderr);
    let planned = cli.run(&["plan", &path, "--json"]).await;
    assert_eq!(planned.expect(0).json()["entry"], "PLAN_ENTRY_WAITS");

    let waits = submit(&operator, &next).await;
    cluster.restart_coordinator().await;
    operator.until(&waits, "the hold to outlast a restart", |one| one.waiting.contains("release freeze")).await;
    ledger.check_begun(2);
    let shown = cli.run(&["targets"]).await;
    assert!(shown.expect(0).stdout.contains("on hold"), "{}", shown.stdout);
    cli.run(&["target", "unhold", BOX]).await.expect(0);
    assert_eq!(state_of(&operator.until_ended(&waits).await), DeploymentState::Succeeded);
    let again = cli.run(&["target", "unhold", BOX]).await;
    assert!(again.expect(16).stderr.contains("HF-2036"), "{}", again.stderr);
    ledger.check_begun(3);
}

/// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_order_key_never_follows_a_newer_one() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let newer = with("order = 10", &change(LONG, "unsafe", &ledger.command()));
    let older = with("order = 9", &change(LONG, "unsafe", &ledger.command()));
    let runs = submit(&operator, &change(LONG, "unsafe", &ledger.gated("go"))).await;
    ledger.until_begun(1).await;
    let (first, second) = (submit(&operator, &newer).await, submit(&operator, &older).await);
    ledger.open_gate("go");
    operator.until_ended(&runs).await;
    let ended = operator.until_ended(&second).await;
    assert_eq!((state_of(&ended), ended.never_mutated), (DeploymentState::Failed, true));
    let because = ended.summary.expect("there").because;
    assert!(
        because.contains(&format!("order key 9 is lower than 10, with which {first} held the target")),
        "{because}"
    );
    assert_eq!(state_of(&operator.until_ended(&first).await), DeploymentState::Succeeded);
    ledger.check_begun(2);

    let refused = operator.try_submit(&older, uuid::Uuid::now_v7()).await.expect_err("lower");
    assert_eq!(code_of(&refused), "HF-2012");
    let older = written(&cluster, "older.toml", &older);
    let refused = cli.run(&["deploy", &older]).await;
    assert!(refused.expect(16).stderr.contains("HF-2012"), "{}", refused.stderr);
    let planned = cli.run(&["plan", &older]).await;
    assert!(planned.expect(16).stdout.contains("would be refused (HF-2012)"), "{}", planned.stdout);
    let same = written(&cluster, "same.toml", &newer);
    cli.run(&["deploy", &same]).await.expect(0);
    ledger.check_begun(3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_a_superseded_deployment_hears_by_whom_and_exits_with_11() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    operator.apply_target(&files::command_target(BOX, false).replace("agents =", "queue = \"latest\"\nagents =")).await;
    let (holder, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let file = written(&cluster, "next.toml", &change(LONG, "unsafe", &ledger.command()));
    let watched = cli.command(&["deploy", &file]).spawn().expect("the program can be started");
    let second = format!("{BOX}#2");
    wait::until("the second one to wait", wait::SOON, async || {
        operator.try_deployment(&second).await.map(|_| ()).map_err(|status| status.to_string())
    })
    .await;
    let third = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let output = wait::within("the watch", wait::SOON, watched.wait_with_output()).await.expect("its output is read");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(11), "{told}");
    assert!(told.contains(&format!("superseded by {third} while it waited: nothing was changed")), "{told}");
    cli.run(&["wait", &second]).await.expect(11);
    assert_eq!(state_of(&operator.deployment(&holder).await), DeploymentState::Active, "the holder is never touched");
    ledger.open_gate("go");
    assert_eq!(state_of(&operator.until_ended(&third).await), DeploymentState::Succeeded);
    ledger.check_begun(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_tells_where_it_would_stand_and_records_nothing() {
    let (mut cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let file = written(&cluster, "plan.toml", &change(LONG, "unsafe", &ledger.command()));
    let planned = cli.run(&["plan", &file]).await;
    let shown = &planned.expect(0).stdout;
    for part in [
        &format!("{BOX} would be {BOX}#1 and begin at once"),
        "web-01 can run it now",
        "never read",
        "it can't be fenced off: only its own agent's word",
        "a person decides",
        "any of it: the file has no [rollback], so there is no way back over it",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in\n{shown}");
    }
    let json = cli.run(&["plan", &file, "--json"]).await.expect(0).json();
    assert_eq!(
        (json["label"].as_str(), json["steps"][0]["effect"].as_str()),
        (Some("box@test#1"), Some("STEP_EFFECT_MUTATES"))
    );
    let viewer = cluster.coordinator().viewer().to_owned();
    let viewer = cluster.operator_with(&viewer);
    let all = viewer.client.clone().list_deployments(ListDeploymentsRequest::default()).await.expect("read");
    assert!(all.into_inner().deployments.is_empty(), "nothing was recorded");
    cli.run(&["plan", &file, "--target", "nowhere@test"]).await.expect(3);
    let label = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(
        ended.plan_digest,
        json["planDigest"].as_str().expect("there"),
        "what was planned is what was permitted"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_glob_submits_once_for_each_target_that_fits_and_exits_with_the_highest() {
    let (cluster, operator, _ledger) = with_box().await;
    let cli = cluster.cli();
    for name in ["a@shop", "b@shop"] {
        operator.apply_target(&files::command_target(name, false)).await;
    }
    let sh = |script: &str| vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
    let good = written(&cluster, "good.toml", &change(LONG, "unsafe", &sh("true")));
    let half = written(&cluster, "half.toml", &change(LONG, "unsafe", &sh("test \"$HOLDFAST_TARGET\" = a@shop")));
    let request = "0193a1b2-0000-7000-8000-00000000000a";
    let line = ["deploy", &good, "--target", "*@shop", "--request-id", request, "--json"];
    let labels = |json: &serde_json::Value| -> Vec<String> {
        let all = json["deployments"].as_array().expect("a list");
        all.iter().map(|one| one["summary"]["label"].as_str().expect("a label").to_owned()).collect()
    };
    let first = cli.run(&line).await.expect(0).json();
    assert_eq!(labels(&first), ["a@shop#1", "b@shop#1"], "and not the file's own target");
    let again = cli.run(&line).await.expect(0).json();
    assert_eq!(labels(&again), labels(&first), "repeated it is the same deployments");
    let half = cli.run(&["deploy", &half, "--target", "*@shop"]).await;
    half.expect(12);
    assert!(half.stdout.contains("a@shop#2") && half.stdout.contains("b@shop#2"), "{}", half.stdout);
    assert!(!half.stderr.contains('\u{1b}'), "no cursor is moved where nobody sits");
    let detached = cli.run(&["deploy", &good, "--target", "b*", "--detach", "-o", "name"]).await;
    assert!(detached.expect(0).stdout.contains("b@shop#3") && detached.stdout.contains(BOX), "{}", detached.stdout);
    cli.run(&["deploy", &good, "--target", "*@nowhere"]).await.expect(3);
}

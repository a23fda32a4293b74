//! The main job, as an operator does it: the command line alone, its exit codes and its JSON.

use std::path::Path;

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::api::state_of;
use holdfast_tests::cli::Cli;
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::events::assert_kinds;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{site, wait};

use crate::PROGRAM;
use crate::support::{BOX, SHOP, begun, change, submit, with_box};

fn text(path: &Path) -> &str {
    path.to_str().expect("a test's paths are plain text")
}

fn write(cluster: &Cluster, name: &str, content: &str) -> String {
    text(&cluster.folder().write(name, content)).to_owned()
}

async fn until_settled(cli: &Cli, label: &str) -> i32 {
    cli.run(&["wait", label, "--for", "settled", "--timeout", "30s"]).await.code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_deployed_from_its_archive_into_its_folder() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let cli = cluster.cli();
    let root = cluster.folder().join("shop");
    let target = write(&cluster, "shop.target.toml", &files::release_target(SHOP, &root, "host"));
    cli.run(&["check", &target]).await.expect(0);
    cli.run(&["target", "apply", &target]).await.expect(0);
    for (number, version) in ["v1", "v2"].into_iter().enumerate() {
        let archive = site::archive(cluster.folder(), version);
        let file = DeploymentFile::new(SHOP, LONG)
            .looks("look", &["gzip".to_owned(), "--test".to_owned(), text(&archive.path).to_owned()]);
        let file = write(&cluster, "shop.deploy.toml", file.release("switch", &archive, version).text());
        cli.run(&["check", &file]).await.expect(0);
        cli.run(&["deploy", &file]).await.expect(0);
        let label = format!("{SHOP}#{}", number + 1);
        let shown = cli.run(&["show", &label, "--json"]).await.expect(0).json();
        assert_eq!(shown["summary"]["state"], "DEPLOYMENT_STATE_SUCCEEDED", "{shown:#}");
        let index = std::fs::read_to_string(root.join("current/index.html")).expect("it is there");
        assert_eq!(index, site::index(version));
        cli.run(&["wait", &label, "--for", "terminal"]).await.expect(0);
        cli.run(&["watch", &label]).await.expect(0);
        let expected = [
            "submitted",
            "reserved",
            "lease_granted",
            "offer_accepted",
            "report_accepted", // look has started
            "report_accepted", // look has ended
            "permit_granted",
            "report_accepted", // switch has started
            "report_accepted", // switch was applied
            "report_accepted", // the attempt has succeeded
            "attempt_ended",
            "deployment_ended",
        ];
        assert_kinds(&cluster.operator().events(&label).await, &expected);
    }
    let target = cli.run(&["target", "show", SHOP, "--json"]).await.expect(0).json();
    assert_eq!(target["resources"][0]["revision"], "v2", "{target:#}");
    let agents = cli.run(&["agents", "--json"]).await;
    assert!(agents.expect(0).stdout.contains("web-01") && agents.stdout.contains("web-02"), "{agents:?}");
    let verified = cluster.coordinator().run(&["verify"]);
    assert!(verified.contains("every hash"), "{verified}");
}

/// The reconnect case by the command line: 12 while somebody must decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_is_told_by_exit_code_12_until_somebody_has_decided() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let file = write(&cluster, "box.deploy.toml", &change(SHORT, "unsafe", &ledger.gated("go")));
    let watching = cli.command(&["deploy", &file]).spawn().expect("started");
    ledger.until_begun(1).await;
    let label = format!("{BOX}#1");
    let agent = operator.deployment(&label).await.attempts[0].agent.clone();
    cluster.line(&agent).cut().await;
    let output = wait::within("the watch to end", wait::SOON, watching.wait_with_output()).await.expect("read");
    assert_eq!(output.status.code(), Some(12), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(until_settled(&cli, &label).await, 12);

    let next = write(&cluster, "next.deploy.toml", &change(LONG, "unsafe", &ledger.command()));
    let refused = cli.run(&["deploy", &next, "--no-queue"]).await;
    assert!(refused.expect(15).stderr.contains("HF-2031"), "{refused:?}");
    cli.run(&["deploy", &next, "--detach"]).await.expect(0);
    let second = format!("{BOX}#2");
    cli.run(&["wait", &second, "--for", "terminal", "--timeout", "300ms"]).await.expect(14);

    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.line(&agent).heal().await;
    operator.until_evidence(&label, "the late end", |evidence| evidence.body_json.contains("attempt_ended")).await;
    let evidence = cli.run(&["evidence", &label]).await;
    assert!(evidence.expect(0).stdout.contains("late"), "{evidence:?}");
    assert!(cli.run(&["reconcile", "list"]).await.expect(0).stdout.contains(&label));
    cli.run(&["reconcile", "show", &label]).await.expect(0);
    let decide = ["reconcile", "decide", &label, "--as", "accept-succeeded", "--reason", "seen", "--confirm", BOX];
    assert_eq!(cli.run(&decide).await.expect(16).code, 16, "nobody has looked at the target");
    let attest = ["reconcile", "attest", &label, "--runner", "stopped", "--target-state", "applied", "--how", "looked"];
    // Off a terminal nothing is asked: without the name it is refused.
    let unnamed = cli.run(&attest).await;
    assert!(unnamed.code != 0 && unnamed.stderr.contains("--confirm"), "{unnamed:?}");
    cli.run(&[&attest[..], &["--confirm", BOX]].concat()).await.expect(0);
    cli.run(&decide).await.expect(0);
    assert_eq!(until_settled(&cli, &label).await, 0);
    assert_eq!(until_settled(&cli, &second).await, 0);
    ledger.check_begun(2);
}

/// Each outcome of a request to stop has its exit code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_exits_as_the_deployment_ended() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let cancel = async |label: &str, wait: bool| {
        let words = ["cancel", label, "--reason", "a test asks", "--wait"];
        cli.run(&words[..if wait { 5 } else { 4 }]).await
    };

    let (first, _) = begun(&operator, &ledger, LONG, "idempotent").await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    cancel(&waiting, true).await.expect(11);
    cancel(&first, true).await.expect(11);
    assert_eq!(until_settled(&cli, &first).await, 11);

    // What the stopped change left, only a person can say: until then, nothing starts on it.
    let done = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator.until(&done, "it to wait for a reading", |found| found.waiting.contains("revision")).await;
    let alone = cli.run(&["reconcile", "attest", &done, "--observed", "r1", "--how", "looked", "--confirm", BOX]).await;
    assert!(alone.expect(2).stderr.contains(&format!("holdfast target attest {BOX}")), "{alone:?}");
    let attest = ["target", "attest", BOX, "--resource", "box", "--observed", "r1", "--how", "looked"];
    let attested = cli.run(&[&attest[..], &["--confirm", BOX]].concat()).await;
    assert!(attested.expect(0).stdout.contains("r1"), "{attested:?}");
    operator.until_state(&done, DeploymentState::Succeeded).await;
    cancel(&done, false).await.expect(0);
    cancel(&done, true).await.expect(13);
    assert_eq!(until_settled(&cli, &done).await, 0, "it had succeeded before anybody asked");

    let (held, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    cancel(&held, true).await.expect(12);
    assert_eq!(state_of(&operator.deployment(&held).await), DeploymentState::Held);
    ledger.check();

    operator.apply_target(&files::command_target("other@test", false)).await;
    let failing = DeploymentFile::new("other@test", LONG).mutates("change", "idempotent", &["false".to_owned()]);
    let failing = write(&cluster, "failing.toml", failing.text());
    cli.run(&["deploy", &failing]).await.expect(10);
}

/// A success that comes after the request: 13, with contact and after it was away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_came_too_late_exits_with_13() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.line(&agent).cut().await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    let waiting = cli.command(&["cancel", &label, "--reason", "a test asks", "--wait"]).spawn().expect("started");
    operator.until(&label, "the request to be recorded", |found| found.cancellation.is_some()).await;
    cluster.line(&agent).heal().await;
    let output = wait::within("the cancel to end", wait::SOON, waiting.wait_with_output()).await.expect("read");
    assert_eq!(output.status.code(), Some(13), "{}", String::from_utf8_lossy(&output.stderr));
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_is_told_so_and_who_is_not_heard_too() {
    let (mut cluster, _operator, ledger) = with_box().await;
    let file = write(&cluster, "box.deploy.toml", &change(LONG, "unsafe", &ledger.command()));
    let viewer = cluster.coordinator().viewer().to_owned();
    let viewer = cluster.cli_with(&viewer);
    viewer.run(&["whoami"]).await.expect(0);
    viewer.run(&["targets"]).await.expect(0);
    viewer.run(&["deploy", &file, "--detach"]).await.expect(4);
    cluster.cli_with("no-such-token").run(&["whoami"]).await.expect(4);
    cluster.cli().run(&["show", "box@test#77"]).await.expect(3);
    cluster.coordinator().kill();
    let unheard = cluster.cli().run(&["whoami"]).await;
    assert!(unheard.expect(5).stderr.contains("HF-5001"), "{unheard:?}");

    // The answer is lost after the commit: the request may have been taken, and here it was.
    let crash = ("HOLDFAST_CRASH".to_owned(), "coordinator:after-submit-commit".to_owned());
    cluster.coordinator().settings().environment.extend([crash]);
    cluster.start_coordinator().await;
    let request = uuid::Uuid::now_v7().to_string();
    let lost = cluster.cli().run(&["deploy", &file, "--detach", "--request-id", &request]).await;
    assert!(lost.expect(5).stderr.contains(&request), "it says what to repeat with: {lost:?}");
    cluster.coordinator().settings().environment.clear();
    cluster.start_coordinator().await;
    let again = cluster.cli().run(&["deploy", &file, "--request-id", &request]).await;
    assert!(again.expect(0).stderr.contains("before"), "{again:?}");
    ledger.check_begun(1);
}

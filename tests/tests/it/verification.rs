//! Health verification on real processes: what must be seen before a deployment has succeeded.

use std::time::Duration;

use holdfast_proto::v1::{AttemptState, Deployment, DeploymentState, StepState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{LONG, SHORT};
use holdfast_tests::files::DeploymentFile;
use holdfast_tests::wait;

use crate::support::{BOX, last_attempt, other, submit, with_box};

const AT_ONCE: Duration = Duration::ZERO;

/// Waits until the check is at work.
async fn until_checking(operator: &Operator, label: &str) -> Deployment {
    let checking = |found: &Deployment| {
        let check = found.attempts.last().and_then(|attempt| attempt.steps.last());
        check.is_some_and(|step| step.state() == StepState::Started)
    };
    operator.until(label, "its check to be at work", checking).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_has_succeeded_only_when_its_checks_have_held() {
    let (cluster, operator, ledger) = with_box().await;
    let (up, cli) = (cluster.folder().join("up"), cluster.cli());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let file = DeploymentFile::new(BOX, LONG)
        .mutates("change", "unsafe", &ledger.command())
        .verify(&format!("tcp = {{ address = \"{address}\" }}\n"))
        .verify_file("up", &up, Duration::from_millis(300));
    let label = submit(&operator, file.text()).await;
    let active = until_checking(&operator, &label).await;
    assert_eq!(state_of(&active), DeploymentState::Active);
    let look = &last_attempt(&active).steps[2];
    assert!(look.looks_at.contains("for 300ms, within 1m") && look.permitted_at.is_none(), "{look:#?}");
    std::fs::write(&up, "").expect("a test's own folder can be written");
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded);
    let checks = &last_attempt(&ended).steps[1..];
    assert!(checks.iter().all(|step| step.state() == StepState::Applied && step.detail.contains("went well")));
    let shown = cli.run(&["show", &label]).await;
    assert!(shown.expect(0).stdout.contains("healthy by up: test -e"), "{}", shown.stdout);
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applied_and_not_healthy_has_failed_and_keeps_what_was_applied() {
    let (cluster, operator, ledger) = with_box().await;
    let cli = cluster.cli();
    let check = "http = { url = \"http://127.0.0.1:1/healthz\", expect_status = 200 }\ninterval = \"100ms\"\ntimeout = \"500ms\"\n";
    let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &ledger.command()).verify(check);
    let path = cluster.folder().write("box.deploy.toml", file.text());
    let deployed = cli.run(&["deploy", path.to_str().expect("plain text")]).await;
    let told = format!("{}{}", deployed.expect(10).stdout, deployed.stderr);
    for line in ["applied, not healthy: check verify-1 did not hold on web-0", "could not connect: Connection refused"]
    {
        assert!(told.contains(line), "{line:?} is not in\n{told}");
    }
    let label = format!("{BOX}#1");
    let ended = operator.deployment(&label).await;
    assert!(ended.not_healthy && !ended.never_mutated && !ended.ended_by_decision);
    assert_eq!(last_attempt(&ended).steps[0].state(), StepState::Applied);
    let target = operator.target(BOX).await;
    assert_eq!(target.resources[0].knowledge(), holdfast_proto::v1::RevisionKnowledge::Recorded, "not in part");
    assert!(target.holder.is_none());
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contact_lost_while_checking_repeats_the_check_and_not_the_change() {
    let (cluster, operator, ledger) = with_box().await;
    let up = cluster.folder().join("up");
    let file =
        DeploymentFile::new(BOX, SHORT).mutates("change", "unsafe", &ledger.command()).verify_file("up", &up, AT_ONCE);
    let label = submit(&operator, file.text()).await;
    let agent = last_attempt(&until_checking(&operator, &label).await).agent.clone();
    cluster.line(&agent).cut().await;
    let waits = operator.until(&label, "it to wait for that agent", |found| found.waiting.contains("belong on")).await;
    assert_eq!(last_attempt(&waits).state(), AttemptState::Interrupted);
    assert!(waits.waiting.contains(other(&agent)), "the other one is told why it can't: {}", waits.waiting);
    cluster.line(&agent).heal().await;
    std::fs::write(&up, "").expect("a test's own folder can be written");
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded);
    let last = last_attempt(&ended);
    assert_eq!(last.agent, agent);
    assert_eq!((last.steps[0].state(), last.steps[1].state()), (StepState::Carried, StepState::Applied));
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_goes_on_while_its_agent_and_the_coordinator_are_started_again() {
    let (mut cluster, operator, ledger) = with_box().await;
    let up = cluster.folder().join("up");
    let file =
        DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &ledger.command()).verify_file("up", &up, AT_ONCE);
    let label = submit(&operator, file.text()).await;
    let agent = last_attempt(&until_checking(&operator, &label).await).agent.clone();
    cluster.agent(&agent).kill();
    cluster.agent(&agent).start();
    cluster.restart_coordinator().await;
    let operator = cluster.operator();
    operator.until_contact(&agent, holdfast_proto::v1::Contact::Connected).await;
    std::fs::write(&up, "").expect("a test's own folder can be written");
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 1));
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_a_check_at_once_and_names_what_was_applied() {
    let (cluster, operator, ledger) = with_box().await;
    let never = cluster.folder().join("never");
    let file = DeploymentFile::new(BOX, LONG)
        .mutates("change", "unsafe", &ledger.command())
        .verify_file("up", &never, AT_ONCE);
    let label = submit(&operator, file.text()).await;
    let agent = last_attempt(&until_checking(&operator, &label).await).agent.clone();
    operator.cancel(&label).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.not_healthy), (DeploymentState::Cancelled, false));
    let because = ended.summary.as_ref().map(|summary| summary.because.clone()).unwrap_or_default();
    assert!(because.contains("applied before: change"), "{because}");
    assert_eq!(last_attempt(&ended).steps[1].state(), StepState::Stopped);
    wait::until_true("nothing of the check to be left", wait::SOON, || cluster.shims(&agent).is_empty()).await;
}

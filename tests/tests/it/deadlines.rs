//! F5: a policy deadline that is shorter than the work. It asks for a stop and claims none: what is observed is what is told, a
//! success under a live lease is kept and flagged, and nothing ever runs a second time.

use holdfast_proto::v1::{Cancellation, Deployment, DeploymentState, StepState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::LONG;
use holdfast_tests::files::DeploymentFile;
use holdfast_tests::ledger::Ledger;

use crate::support::{BOX, begun, last_attempt, submit, with_box};

/// Each retry class, as a step's keys write it.
const CLASSES: [&str; 3] = ["effect = \"none\"", "retry = \"idempotent\"", "retry = \"unsafe\""];
/// Shorter than any of the work here.
const SHORT: &str = "700ms";

/// One step of that class, with a deadline where one is given.
fn step(class: &str, timeout: Option<&str>, argv: &[String]) -> DeploymentFile {
    let timeout = timeout.map(|timeout| format!("timeout = \"{timeout}\"\n")).unwrap_or_default();
    DeploymentFile::new(BOX, LONG).step("change", &format!("{class}\n{timeout}run = {argv:?}\n"))
}

/// The same command, deaf to SIGTERM.
fn stubborn(argv: &[String]) -> Vec<String> {
    let words = ["sh", "-c", "trap '' TERM; exec \"$@\"", "stubborn"];
    words.map(str::to_owned).into_iter().chain(argv.iter().cloned()).collect()
}

#[track_caller]
fn request(deployment: &Deployment) -> &Cancellation {
    deployment.cancellation.as_ref().expect("the deadline asked for a stop")
}

/// A deadline asked, and all five stages were observed.
#[track_caller]
fn assert_stopped_by(deployment: &Deployment, whose: &str) {
    let cancel = request(deployment);
    assert_eq!((cancel.cause.as_str(), cancel.by.as_str()), ("timeout", whose));
    let observed = [cancel.delivered.is_some(), cancel.acted.is_some(), cancel.observed.is_some()];
    assert_eq!(observed, [true; 3], "{cancel:#?}");
}

/// Waits until it is shown as over its deadline and still running, and what that looks like to a person.
async fn until_late(operator: &Operator, label: &str, is_late: impl Fn(&Deployment) -> bool) -> Deployment {
    let late = operator.until(label, "it to be over its deadline", is_late).await;
    assert_eq!(state_of(&late), DeploymentState::Active, "a deadline ends nothing");
    let because = late.summary.as_ref().map(|summary| summary.because.clone()).unwrap_or_default();
    assert!(because.contains("over its deadline, still running"), "{because}");
    assert!(request(&late).observed.is_none() && late.holds_target);
    late
}

/// A success that came late, of one attempt and one effect.
#[track_caller]
fn assert_late_success(deployment: &Deployment, ledger: &Ledger, count: usize) {
    assert_eq!(state_of(deployment), DeploymentState::Succeeded);
    assert!(deployment.after_deadline && deployment.cancel_too_late && !deployment.ended_by_decision);
    let because = deployment.summary.as_ref().map(|summary| summary.because.clone()).unwrap_or_default();
    assert!(because.contains("after a deadline"), "{because}");
    assert_eq!(deployment.attempts.len(), 1);
    ledger.check_begun(count);
}

fn step_is_late(deployment: &Deployment) -> bool {
    deployment.attempts.iter().any(|attempt| attempt.steps[0].over_deadline && attempt.steps[0].ended.is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_of_a_step_is_a_stop_and_never_a_second_run() {
    for class in CLASSES {
        let (_cluster, operator, ledger) = with_box().await;
        let label = submit(&operator, step(class, Some(SHORT), &ledger.gated("go")).text()).await;
        let state = if class.contains("unsafe") { DeploymentState::Held } else { DeploymentState::Cancelled };
        let ended = operator.until_state(&label, state).await;
        assert_stopped_by(&ended, "step change");
        let run = &last_attempt(&ended).steps[0];
        assert_eq!((run.state(), run.over_deadline), (StepState::Stopped, true), "{class}");
        assert_eq!((ended.never_mutated, ended.attempts.len()), (class.contains("none"), 1), "{class}");
        assert!(!ended.after_deadline);
        ledger.check_begun(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_of_a_step_keeps_a_late_success_and_flags_it() {
    let (_cluster, operator, ledger) = with_box().await;
    for (count, class) in CLASSES.into_iter().enumerate() {
        let gate = format!("go-{count}");
        let argv = stubborn(&ledger.gated(&gate));
        let label = submit(&operator, step(class, Some(SHORT), &argv).grace("5m").text()).await;
        let late = until_late(&operator, &label, step_is_late).await;
        assert_eq!(request(&late).by, "step change");
        // Whoever is deaf to the signal works on, and nothing else is started meanwhile.
        operator.until(&label, "the signal", |found| request(found).acted.is_some()).await;
        ledger.check_begun(count + 1);
        ledger.open_gate(&gate);
        let ended = operator.until_ended(&label).await;
        assert!(last_attempt(&ended).steps[0].after_deadline, "{class}");
        assert_late_success(&ended, &ledger, count + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_of_the_deployment_is_a_stop_and_never_a_second_run() {
    for class in CLASSES {
        let (_cluster, operator, ledger) = with_box().await;
        let deadline = format!("deployment = \"{SHORT}\"\n");
        let file = step(class, None, &ledger.gated("go")).timeouts(&deadline);
        let label = submit(&operator, file.text()).await;
        let state = if class.contains("unsafe") { DeploymentState::Held } else { DeploymentState::Cancelled };
        let ended = operator.until_state(&label, state).await;
        assert_stopped_by(&ended, "deployment");
        assert!(ended.over_deadline && !ended.after_deadline);
        assert_eq!((ended.never_mutated, ended.attempts.len()), (class.contains("none"), 1), "{class}");
        ledger.check_begun(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_of_the_deployment_keeps_a_late_success_across_a_restart() {
    let (mut cluster, operator, ledger) = with_box().await;
    let file = step("retry = \"unsafe\"", None, &stubborn(&ledger.gated("go"))).grace("5m");
    let label = submit(&operator, file.timeouts("deployment = \"2s\"\n").text()).await;
    ledger.until_begun(1).await;
    cluster.restart_coordinator().await;
    let operator = cluster.operator();
    until_late(&operator, &label, |found| found.over_deadline).await;
    cluster.restart_coordinator().await;
    let operator = cluster.operator();
    let late = operator.until(&label, "it to be shown again", |found| found.over_deadline).await;
    assert_eq!((state_of(&late), request(&late).by.as_str()), (DeploymentState::Active, "deployment"));
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_late_success(&ended, &ledger, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_lets_no_further_step_begin() {
    let (_cluster, operator, ledger) = with_box().await;
    let file = DeploymentFile::new(BOX, LONG)
        .step("first", &format!("retry = \"idempotent\"\nrun = {:?}\n", stubborn(&ledger.gated("go"))))
        .mutates("second", "idempotent", &ledger.command())
        .grace("5m")
        .timeouts(&format!("deployment = \"{SHORT}\"\n"));
    let label = submit(&operator, file.text()).await;
    until_late(&operator, &label, |found| found.over_deadline).await;
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Cancelled, 1));
    let states: Vec<StepState> = last_attempt(&ended).steps.iter().map(|step| step.state()).collect();
    assert_eq!(states, [StepState::Applied, StepState::Pending]);
    let because = ended.summary.as_ref().map(|summary| summary.because.clone()).unwrap_or_default();
    assert!(because.contains("applied before: first"), "{because}");
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_wait_in_the_queue_cancels_on_the_spot_and_nothing_ran() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (holder, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let file = step("retry = \"unsafe\"", None, &ledger.command()).timeouts("queue = \"2s\"\n");
    let label = submit(&operator, file.text()).await;
    cluster.restart_coordinator().await;
    let operator = cluster.operator();
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Cancelled);
    assert!(ended.never_mutated && ended.attempts.is_empty() && ended.over_deadline);
    assert_eq!((request(&ended).cause.as_str(), request(&ended).by.as_str()), ("timeout", "queue"));
    assert_eq!(state_of(&operator.deployment(&holder).await), DeploymentState::Active, "the holder is not touched");
    cluster.cli().run(&["wait", &label, "--for", "terminal"]).await.expect(11);
    let shown = cluster.cli().run(&["show", &label]).await;
    assert!(shown.expect(0).stdout.contains("asked for by the end of its time in the queue"), "{shown:?}");
    ledger.open_gate("go");
    operator.until_ended(&holder).await;
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_shorter_than_the_work_of_a_check_is_applied_and_not_healthy() {
    let (cluster, operator, ledger) = with_box().await;
    let never = cluster.folder().join("never");
    let command = format!("command = [\"test\", \"-e\", {never:?}]\ninterval = \"100ms\"\ntimeout = \"{SHORT}\"\n");
    let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &ledger.command()).verify(&command);
    let label = submit(&operator, file.text()).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.not_healthy), (DeploymentState::Failed, true));
    assert_eq!(ended.attempts.len(), 1, "another try would see the same");
    assert!(ended.cancellation.is_none(), "a check keeps its own time: nobody had to ask for a stop");
    let check = &last_attempt(&ended).steps[1];
    assert!(check.detail.contains("never ok") && check.detail.contains("exit 1"), "{}", check.detail);
    ledger.check_begun(1);
}

//! Contact is lost in the middle of a change, and somebody or something decides: the same case under each policy, and a
//! process that is readmitted.

use std::time::Duration;

use holdfast_proto::v1::{AttemptState, Contact, DecisionKind, DeploymentState, RunnerState};
use holdfast_tests::api::{Operator, id_of, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ledger::Ledger;
use holdfast_tests::{process, site};

use crate::PROGRAM;
use crate::support::{BOX, SHOP, change, last_attempt, submit, uncertain, with_box};

const SOON: Duration = Duration::from_millis(200);

/// Cut off, uncertain, and back in contact while its process still runs.
async fn back_and_running(cluster: &Cluster, operator: &Operator, ledger: &Ledger) -> (String, String) {
    // Long enough for an agent to be started again within it, on a busy machine too.
    let (label, agent) = uncertain(cluster, operator, ledger, Duration::from_secs(4)).await;
    cluster.line(&agent).heal().await;
    operator
        .until_evidence(&label, "the journal to say that it still runs", |evidence| {
            evidence.kind == "journal_word" && evidence.body_json.contains("still_running")
        })
        .await;
    assert_eq!(operator.checklist(&label).await.runner(), RunnerState::StillRunning);
    (label, agent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_process_is_readmitted_and_its_end_counts_under_the_new_fence() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = back_and_running(&cluster, &operator, &ledger).await;
    let decided = operator.decide(&label, BOX, DecisionKind::Readmit).await.expect("open");
    assert_eq!(state_of(&decided), DeploymentState::Active);
    let running = operator
        .until(&label, "the new attempt to be taken", |found| last_attempt(found).state() == AttemptState::Running)
        .await;
    assert_eq!((running.attempts.len(), last_attempt(&running).agent.as_str()), (2, agent.as_str()));
    assert_eq!(last_attempt(&running).readmits, running.attempts[0].id);
    assert!(last_attempt(&running).fence > running.attempts[0].fence);
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!(ended.attempts[0].state(), AttemptState::Resolved);
    assert!(!ended.ended_by_decision, "its end was observed under a live lease");
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_came_while_the_readmission_was_under_way_is_told_under_the_new_claim() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = back_and_running(&cluster, &operator, &ledger).await;
    // The agent hears nothing of the decision before the process has ended.
    cluster.agent(&agent).kill();
    operator.until_contact(&agent, Contact::Silent).await;
    operator.decide(&label, BOX, DecisionKind::Readmit).await.expect("open on its journal's last word");
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.agent(&agent).start();
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!((ended.attempts.len(), last_attempt(&ended).state()), (2, AttemptState::Succeeded));
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_readmitted_process_is_adopted_by_the_next_agent_too() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = back_and_running(&cluster, &operator, &ledger).await;
    operator.decide(&label, BOX, DecisionKind::Readmit).await.expect("open");
    operator
        .until(&label, "the new attempt to be taken", |found| last_attempt(found).state() == AttemptState::Running)
        .await;
    cluster.agent(&agent).kill();
    cluster.agent(&agent).start();
    operator.until_contact(&agent, Contact::Connected).await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 2), "{ended:#?}");
    ledger.check_begun(1);
}

/// The reconnect case of a command under `when-proven`: nothing can be proven of a command that can't be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_proven_leaves_a_command_that_cannot_be_read_to_a_person() {
    let cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let target = files::decided_by("when-proven", SOON, &files::command_target(BOX, false));
    operator.apply_target(&target).await;
    let ledger = cluster.ledger("box");
    let (label, agent) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.line(&agent).heal().await;
    operator.until_evidence(&label, "the late end", |evidence| evidence.body_json.contains("attempt_ended")).await;
    let after = operator.deployment(&label).await;
    assert_eq!(state_of(&after), DeploymentState::Uncertain);
    assert!(after.decisions.is_empty() && after.holds_target);
    ledger.check_begun(1);
}

/// The reconnect case of a command under `trust-report`: its own agent's word is taken, and shown as just that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trust_report_ends_it_on_the_late_report_of_its_own_agent() {
    let cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let target = files::decided_by("trust-report", SOON, &files::command_target(BOX, true));
    operator.apply_target(&target).await;
    let ledger = cluster.ledger("box");
    let (label, agent) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    assert_eq!(
        state_of(&operator.deployment(&label).await),
        DeploymentState::Uncertain,
        "nobody has said anything yet"
    );
    cluster.line(&agent).heal().await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let record = ended.decisions.last().expect("a decision");
    assert_eq!((record.by.as_str(), record.trusted, record.attested), ("policy", true, false));
    assert!(ended.ended_by_decision && !record.evidence_ids.is_empty());
    ledger.check_begun(1);
}

/// The reconnect case of a release under `when-proven`: fenced off, read, and carried on by the other agent without anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_proven_fences_off_reads_and_retries_a_release_by_itself() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::decided_by("when-proven", SOON, &files::release_target(SHOP, &root, "shared"))).await;
    let archive = site::archive(cluster.folder(), "v2");
    let file = DeploymentFile::new(SHOP, SHORT).release("switch", &archive, "v2").text().to_owned();
    // The first agent's release stops itself right before it would be visible.
    cluster.halt_before("web-01", "flip");
    let label = submit(&operator, &file).await;
    let paused = cluster.standing_still("web-01").await;
    cluster.line("web-01").cut().await;
    cluster.agent("web-02").start();
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!(std::fs::read_to_string(root.join("current/index.html")).unwrap_or_default(), site::index("v2"));
    let record = ended.decisions.first().expect("a decision");
    assert_eq!((record.by.as_str(), record.kind()), ("policy", DecisionKind::Retry));
    assert_eq!((record.runner(), record.attested), (RunnerState::FencedOff, false));
    assert!(!record.evidence_ids.is_empty(), "{record:?}");
    assert_eq!(last_attempt(&ended).agent, "web-02");
    process::resume(paused);
}

/// The reconnect case under `manual`: everything waits for a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manual_decides_nothing_whatever_comes_back() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.line(&agent).heal().await;
    operator.until_evidence(&label, "the late end", |evidence| evidence.body_json.contains("attempt_ended")).await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    assert_eq!(state_of(&operator.deployment(&waiting).await), DeploymentState::Queued);
    let held = operator.deployment(&label).await;
    assert!(held.decisions.is_empty() && held.holds_target);
    assert_eq!(ledger.intervals().iter().filter(|interval| interval.deployment() == id_of(&held)).count(), 1);
}

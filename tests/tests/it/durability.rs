//! What was said is on disk: seen at the border to the kernel, with `strace`.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use holdfast_proto::v1::connect_request::Message as Hears;
use holdfast_proto::v1::connect_response::Message as Says;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{AttemptEnd, CancelRequest, Contact, DeploymentState, PermitAnswerKind, Welcome};
use holdfast_tests::api::{id_of, label_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::hostile::{Hostile, claim, offer, welcome};
use holdfast_tests::peer::{applied, ended, hello, started};
use holdfast_tests::process::Process;
use holdfast_tests::strace::{self, Syncs, Trace, mark};
use holdfast_tests::wait;
use rustix::process::Signal;
use uuid::Uuid;

use crate::PROGRAM;

const ROUNDS: usize = 3;
const STORE: &str = "holdfast.db-wal";
const JOURNAL: &str = "journal.sqlite-wal";
const BUG: &str = "HOLDFAST_BUG";

/// Every answer that the coordinator gave, and whether it left after the sync that covers it.
///
/// # Errors
/// The first that did not.
pub(crate) async fn coordinator_answers_after_its_syncs(bug: Option<&str>) -> Result<(), String> {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).prepare().await;
    let file = cluster.folder().join("coordinator.strace");
    let settings = cluster.coordinator().settings();
    settings.wrapper = strace::wrapper(&file);
    settings.environment.extend(bug.map(|bug| (BUG.to_owned(), bug.to_owned())));
    cluster.start_coordinator().await;
    let marks = answers(&mut cluster).await;
    assert!(cluster.coordinator().terminate().await.success());
    check(&Trace::read(&file), STORE, &marks)
}

/// Asks for one thing at a time, so that what is said next is its answer.
async fn answers(cluster: &mut Cluster) -> Vec<(&'static str, Duration)> {
    let operator = cluster.operator();
    operator.apply_target(&command_target("box@test", true)).await;
    let mut peer = cluster.peer("web-01", hello(Uuid::new_v4())).await.expect("a session");
    let mut marks = Vec::new();
    let mut sequence = 0;
    for _ in 0..ROUNDS {
        let argv = ["true".to_owned()];
        let job = DeploymentFile::new("box@test", LONG).mutates("change", "unsafe", &argv);
        marks.push(("submit", mark()));
        let deployment = operator.submit(job.text()).await;
        let work = peer.take_offer().await;
        // A claim is looked up by the driver: everything that was said about the offer is over when that is answered.
        peer.heartbeat(work.claim.as_slice()).await;
        peer.heartbeat(work.claim.as_slice()).await;
        marks.push(("permit", mark()));
        let permit = peer.permit(&work, "change").await;
        assert_eq!(permit.kind(), PermitAnswerKind::Granted, "a denial needs no sync: {permit:?}");
        for body in [started("change"), applied("change")] {
            sequence += 1;
            marks.push(("report", mark()));
            let _accepted = peer.report(work.claim.as_ref(), sequence, body).await;
        }
        marks.push(("cancel", mark()));
        operator.cancel(&id_of(&deployment)).await;
        sequence += 1;
        let _accepted = peer.report(work.claim.as_ref(), sequence, ended(AttemptEnd::Succeeded)).await;
        peer.heartbeat(work.claim.as_slice()).await;
    }
    marks
}

fn check(trace: &Trace, synced: &str, marks: &[(&str, Duration)]) -> Result<(), String> {
    assert!(trace.calls.iter().any(strace::Call::is_said), "nothing was traced");
    assert!(!marks.is_empty());
    for (what, mark) in marks {
        trace.says_after_sync(*mark, synced).map_err(|why| format!("{what}: {why}"))?;
    }
    Ok(())
}

/// The same for what an agent says to a coordinator that asks it one thing at a time.
///
/// # Errors
/// The first word that was not on disk.
pub(crate) async fn agent_speaks_after_its_syncs(bug: Option<&str>) -> Result<(), String> {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).prepare().await;
    let file = cluster.folder().join("web-01.strace");
    let mut hostile = Hostile::start(cluster.server_tls()).await;
    cluster.redirect(hostile.address()).await;
    let settings = cluster.agent("web-01").settings();
    settings.wrapper = strace::wrapper(&file);
    settings.environment.extend(bug.map(|bug| (BUG.to_owned(), bug.to_owned())));
    cluster.agent("web-01").start();
    let marks = words(&cluster, &mut hostile).await;
    assert!(cluster.agent("web-01").terminate().await.success());
    check(&Trace::read(&file).of_first_socket(), JOURNAL, &marks)
}

async fn words(cluster: &Cluster, hostile: &mut Hostile) -> Vec<(&'static str, Duration)> {
    let mut session = hostile.session().await;
    // No heartbeat but the first comes in between.
    let rare = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    session.say(Says::Welcome(Welcome { heartbeat_interval: rare, ..welcome(Uuid::new_v4()) })).await;
    let first = |message: &Hears| matches!(message, Hears::Heartbeat(_)).then_some(());
    session.hear("the first heartbeat", first).await;
    let ledger = cluster.ledger("box");
    let mut marks = Vec::new();
    for round in 0..ROUNDS {
        let mine = claim(10 + round as u64);
        marks.push(("offer", mark()));
        session.offer(offer(&mine, LONG, &[("change", ledger.gated("never"))])).await;
        let request = session.permit_request().await;
        session.grant(&request).await;
        let report = session.report("the start", |body| matches!(body, Body::StepStarted(_))).await;
        session.accept(&report).await;
        ledger.until_begun(round + 1).await;
        marks.push(("cancel", mark()));
        let cancel = CancelRequest { claim: Some(mine), reason: String::new(), grace: None };
        session.say(Says::Cancel(cancel)).await;
        for wanted in ["received", "acted", "step ended", "ended"] {
            let report = session.report(wanted, |_| true).await;
            session.accept(&report).await;
        }
    }
    marks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_of_the_coordinator_leaves_after_the_sync_that_covers_it() {
    if strace::can_be_had(1) {
        assert_eq!(coordinator_answers_after_its_syncs(None).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_word_of_an_agent_leaves_after_the_sync_that_covers_it() {
    if strace::can_be_had(1) {
        assert_eq!(agent_speaks_after_its_syncs(None).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_or_journal_that_does_not_wait_for_the_disk_is_noticed() {
    if strace::can_be_had(1) {
        let coordinator = coordinator_answers_after_its_syncs(Some("synchronous_off")).await;
        assert!(coordinator.is_err_and(|why| why.contains("before any sync")));
        let agent = agent_speaks_after_its_syncs(Some("agent_synchronous_off")).await;
        assert!(agent.is_err_and(|why| why.contains("before any sync")));
    }
}

/// Makes every sync of the process fail from now on.
async fn fail_syncs(cluster: &Cluster, pid: u32, name: &str) -> Process {
    strace::attach(Syncs::Fail, pid, &cluster.folder().join(&format!("{name}.strace"))).await
}

/// It failed once, and the process did not try again nor write on.
fn was_not_retried(cluster: &Cluster, name: &str) {
    let trace = Trace::read(&cluster.folder().join(&format!("{name}.strace")));
    let first = trace.calls.iter().position(strace::Call::is_sync).expect("a sync was asked for");
    assert_ne!(trace.calls[first].result, Some(0), "{:?}", trace.calls[first]);
    let later = &trace.calls[first + 1..];
    assert!(later.is_empty(), "it went on after a sync that failed: {later:#?}");
}

/// F47
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_fails_stops_the_coordinator_and_loses_nothing_that_was_acknowledged() {
    if !strace::can_be_had(1) {
        return;
    }
    let mut cluster = Plan::new(PROGRAM).agents(&[]).prepare().await;
    cluster.start_coordinator().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target("box@test", true)).await;
    let job = DeploymentFile::new("box@test", LONG).mutates("change", "unsafe", &["true".to_owned()]);
    let acknowledged = operator.submit(job.text()).await;
    let pid = cluster.coordinator().pid();
    let strace = fail_syncs(&cluster, pid, "coordinator").await;
    let request = Uuid::now_v7();
    let refused = operator.try_submit(job.text(), request).await;
    assert!(refused.is_err(), "it was acknowledged and is not on disk: {refused:?}");
    let status = cluster.coordinator().ended(wait::SOON).await;
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()), "{status}");
    drop(strace);
    was_not_retried(&cluster, "coordinator");

    cluster.start_coordinator().await;
    assert_eq!(label_of(&operator.deployment(&id_of(&acknowledged)).await), "box@test#1");
    let (again, _) = wait::until("an answer", wait::SOON, async || {
        operator.try_submit(job.text(), request).await.map_err(|status| status.to_string())
    })
    .await;
    assert_eq!(label_of(&again), "box@test#2");
    cluster.coordinator().kill();
    let _said = cluster.coordinator().run(&["verify"]);
}

/// F47: the step ends after the agent's disk has failed; the next agent tells it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sync_that_fails_stops_the_agent_and_the_next_one_tells_what_happened() {
    if !strace::can_be_had(1) {
        return;
    }
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target("box@test", true)).await;
    let ledger = cluster.ledger("box");
    let job = DeploymentFile::new("box@test", LONG).mutates("change", "unsafe", &ledger.gated("go"));
    let label = label_of(&operator.submit(job.text()).await);
    ledger.until_begun(1).await;
    operator
        .until(&label, "seen to run", |deployment| {
            deployment.attempts.iter().flat_map(|attempt| &attempt.steps).any(|step| step.started.is_some())
        })
        .await;
    let pid = cluster.agent("web-01").pid();
    let strace = fail_syncs(&cluster, pid, "web-01").await;
    ledger.open_gate("go");
    let status = cluster.agent("web-01").ended(wait::SOON).await;
    assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()), "{status}");
    drop(strace);
    was_not_retried(&cluster, "web-01");
    cluster.agent("web-01").start();
    operator.until_contact("web-01", Contact::Connected).await;
    operator.until_state(&label, DeploymentState::Succeeded).await;
    ledger.check_begun(1);
}

//! The tests can fail: each seeded fault is caught by a test that this table names. What is cheap runs here, on whole
//! processes, with the fault and without; the rest runs where it stands.

use std::pin::Pin;
use std::time::Duration;

use holdfast_agent::bugs::Bug as AgentBug;
use holdfast_agent_core::bugs::Bug as AgentCoreBug;
use holdfast_coordinator::bugs::Bug as CoordinatorBug;
use holdfast_coordinator_core::bugs::Bug as CoordinatorCoreBug;
use holdfast_proto::v1::connect_request::Message as Hears;
use holdfast_proto::v1::connect_response::Message as Says;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    AttemptEnd, AttemptState, AttestedRunner, AttestedTarget, CancelRequest, Claim, DecideRequest, DecisionKind,
    DeploymentState, Disposition, DispositionKind, FiledReason, Hello, LeaseAnswer, Offer, OfferAnswerKind,
    PermitAnswer, PermitAnswerKind, PermitDenial, PermitRequest, StepEndKind,
};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, HEARTBEAT, LONG, Plan, SHORT};
use holdfast_tests::files::command_target;
use holdfast_tests::hostile::{Hostile, Session, claim, offer};
use holdfast_tests::peer::{Peer, applied, ended, hello, report, started};
use holdfast_tests::strace;
use tokio::time::Instant;
use uuid::Uuid;

use crate::cases::Cases;
use crate::support::{BOX, change, submit};
use crate::{PROGRAM, durability};

const BUG: &str = "HOLDFAST_BUG";

/// What a check saw that must not be.
type Seen = Result<(), String>;
/// A check on whole processes, with a fault or without one.
type Check = fn(Option<&'static str>) -> Pin<Box<dyn Future<Output = Seen>>>;

/// Where a fault is caught.
enum Caught {
    /// By this check, run below.
    Here(&'static str, Check),
    /// By a test of that name in that file, which names the fault.
    There { test: &'static str, file: &'static str },
}

macro_rules! here {
    ($check:path) => {
        Caught::Here(stringify!($check), |bug| Box::pin($check(bug)))
    };
}

const DRIVER: &str = include_str!("../../../coordinator/src/driver/tests.rs");
const CORE: &str = include_str!("../../../coordinator/core/tests/core/faults.rs");
const AGENT_CORE: &str = include_str!("../../../agent/core/src/tests.rs");

const fn by_driver() -> Caught {
    Caught::There { test: "every_fault_of_the_driver_is_noticed", file: DRIVER }
}

const fn by_core(test: &'static str) -> Caught {
    Caught::There { test, file: CORE }
}

fn coordinator(bug: CoordinatorBug) -> Caught {
    match bug {
        // Between the answer and the commit lie microseconds: only a driver without a thread shows their order.
        CoordinatorBug::ReplyBeforeCommit | CoordinatorBug::SendBeforeCommit => by_driver(),
        // A crash loop of many seconds.
        CoordinatorBug::ForgetServedTime => by_driver(),
        CoordinatorBug::SynchronousOff => here!(durability::coordinator_answers_after_its_syncs),
        CoordinatorBug::SkipReportDedupe => here!(a_report_that_comes_again_is_a_duplicate),
        // The service looks a request up too.
        CoordinatorBug::SkipRequestLookup => by_driver(),
        CoordinatorBug::LoseLeaseOnRestart => here!(a_restart_lapses_no_live_lease),
        CoordinatorBug::SendOnlyOnce => here!(a_new_session_gets_what_is_due),
    }
}

fn coordinator_core(bug: CoordinatorCoreBug) -> Caught {
    use CoordinatorCoreBug as B;
    match bug {
        B::SkipPermitCheck => here!(a_permit_for_another_plan_is_denied),
        B::SkipFenceCompare => here!(a_report_under_another_fence_is_filed),
        B::FreeOnExpiry | B::LapseAsFailed | B::RetryUncertainByTimer => here!(silence_under_a_permit_holds_the_target),
        // The driver's own timer is faster than any report.
        B::AcceptAfterLapse => by_core("a_report_accepted_after_its_lease_is_caught"),
        B::CancelWins => here!(a_success_after_a_cancel_stays_a_success),
        B::EvidenceMovedIgnored => here!(a_decision_on_old_evidence_is_refused),
        // An end without an observation is an event that no state takes.
        B::TimeoutEnds => by_core("a_timeout_that_ends_is_caught"),
        B::DeploymentTimeoutEnds => by_core("a_deadline_of_the_whole_that_ends_is_caught"),
        B::VerifyIgnored => by_core("a_failed_check_told_as_success_is_caught"),
        B::VerifyCarried => by_core("a_check_carried_over_is_caught"),
        B::DuplicateAccepted => here!(a_report_that_comes_again_is_a_duplicate),
        B::TombstoneIgnored => by_core("a_missing_tombstone_is_caught"),
        B::SecondPermit => by_core("a_second_permit_is_caught"),
        B::ForgetFenceOnRequeue => by_core("a_fence_that_does_not_grow_is_caught"),
        B::ReadingBeforeRunnerOut => by_core("a_reading_before_the_runner_was_out_is_caught"),
        B::StartUnderHold => by_core("a_start_under_hold_is_caught"),
        // An honest agent asks for nothing before it has looked.
        B::CarryUnread => by_core("a_change_over_what_was_not_read_again_is_caught"),
        B::RollbackFreesUnresolved => by_core("a_rollback_that_frees_the_unresolved_is_caught"),
        B::DecideOverRunner => by_core("a_decision_over_a_runner_is_caught"),
        B::OutlivingCountsAsOut => by_core("an_outliving_effect_that_counts_as_out_is_caught"),
        B::OtherResourceCounts => by_core("a_reading_of_another_resource_is_caught"),
        B::ReadmitBelowFence => by_core("a_readmission_below_a_fence_is_caught"),
        B::RetryOverCancel => by_core("a_retry_over_a_cancel_is_caught"),
        B::RepeatUnsafe => by_core("a_repeated_unsafe_step_is_caught"),
        B::AwayAgain => by_core("a_second_absence_is_caught"),
    }
}

fn agent(bug: AgentBug) -> Caught {
    match bug {
        AgentBug::SynchronousOff => here!(durability::agent_speaks_after_its_syncs),
        AgentBug::OutboxAfterSend => here!(every_report_is_said_as_journaled),
        AgentBug::TombstoneNotDurable => here!(a_tombstone_that_is_told_of_stands),
        AgentBug::JournalForgotten => here!(the_next_agent_remembers_what_was_taken),
    }
}

fn agent_core(bug: AgentCoreBug) -> Caught {
    match bug {
        AgentCoreBug::PermitNotAsked => here!(nothing_begins_without_a_permit),
        AgentCoreBug::FenceNotCompared => here!(an_offer_below_the_highest_fence_is_declined),
        // The shim looks at the clock too.
        AgentCoreBug::PermitUsedAfterLease => {
            Caught::There { test: "permit_used_after_lease_is_caught", file: AGENT_CORE }
        }
        AgentCoreBug::GoneIsFailed => here!(an_end_that_nobody_saw_is_unknown),
    }
}

/// Every fault: its name, its name in code, and where it is caught.
fn every_fault() -> Vec<(&'static str, String, Caught)> {
    let mut all = Vec::new();
    all.extend(CoordinatorBug::ALL.iter().map(|bug| (bug.name(), format!("{bug:?}"), coordinator(*bug))));
    all.extend(CoordinatorCoreBug::ALL.iter().map(|bug| (bug.name(), format!("{bug:?}"), coordinator_core(*bug))));
    all.extend(AgentBug::ALL.iter().map(|bug| (bug.name(), format!("{bug:?}"), agent(*bug))));
    all.extend(AgentCoreBug::ALL.iter().map(|bug| (bug.name(), format!("{bug:?}"), agent_core(*bug))));
    all
}

fn can_run(check: &str) -> bool {
    !check.starts_with("durability") || strace::is_there()
}

#[test]
fn each_fault_is_seen_by_its_check_on_whole_processes() {
    let mut cases = Cases::default();
    for (name, _, caught) in every_fault() {
        let Caught::Here(check, run) = caught else { continue };
        if can_run(check) {
            cases.add(&format!("{name} {check}"), async move || {
                let seen = run(Some(name)).await;
                assert!(seen.is_err(), "{name} went unnoticed by {check}");
            });
        }
    }
    cases.run();
}

#[test]
fn each_check_passes_without_a_fault() {
    let mut checks = std::collections::BTreeMap::new();
    for (_, _, caught) in every_fault() {
        if let Caught::Here(check, run) = caught {
            checks.insert(check, run);
        }
    }
    let mut cases = Cases::default();
    for (check, run) in checks.into_iter().filter(|(check, _)| can_run(check)) {
        cases.add(check, async move || assert_eq!(run(None).await, Ok(())));
    }
    cases.run();
}

#[test]
fn each_fault_has_a_name_of_its_own_and_a_test_that_names_it() {
    let all = every_fault();
    assert!(all.len() >= 12);
    for (index, (name, code, caught)) in all.iter().enumerate() {
        assert!(all[..index].iter().all(|(other, ..)| other != name), "{name} is the name of two faults");
        if let Caught::There { test, file } = caught {
            assert!(file.contains(test), "{name}: there is no test {test}");
            assert!(
                file.contains(&format!("Bug::{code}")) || file.contains(&format!("{test}: {code}")),
                "{name}: {code}"
            );
        }
    }
}

/// A peer with a running attempt, in the hands of the test.
struct Scene {
    cluster: Cluster,
    operator: Operator,
    peer: Peer,
    incarnation: Uuid,
    label: String,
    offer: Offer,
    claim: Claim,
}

async fn cluster(bug: Option<&str>, agents: &[&str]) -> Plan {
    let plan = Plan::new(PROGRAM).agents(agents);
    match bug {
        Some(bug) => plan.coordinator_environment(BUG, bug).agent_environment(BUG, bug),
        None => plan,
    }
}

async fn scene(bug: Option<&str>, ttl: Duration) -> Scene {
    scene_of(bug, &change(ttl, "unsafe", &["true".to_owned()])).await
}

async fn scene_of(bug: Option<&str>, file: &str) -> Scene {
    let cluster = cluster(bug, &[]).await.start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, true)).await;
    let incarnation = Uuid::new_v4();
    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("a session");
    let label = submit(&operator, file).await;
    let offer = peer.take_offer().await;
    let claim = offer.claim.clone().expect("an offer has its claim");
    peer.heartbeat(std::slice::from_ref(&claim)).await;
    Scene { cluster, operator, peer, incarnation, label, offer, claim }
}

impl Scene {
    async fn permitted(bug: Option<&str>, ttl: Duration) -> Self {
        let mut scene = scene(bug, ttl).await;
        let permit = scene.peer.permit(&scene.offer, "change").await;
        assert_eq!(permit.kind(), PermitAnswerKind::Granted);
        scene
    }

    /// A new session of the same agent.
    async fn reconnect(&mut self) {
        let again = Hello {
            session_token: self.peer.welcome.session_token.clone(),
            journal_sequence: 100,
            ..hello(self.incarnation)
        };
        self.peer = self.cluster.peer("web-01", again).await.expect("the same identity is welcome");
    }

    /// Says nothing until the lease has lapsed, and gives how the deployment stands then.
    async fn lapsed(&self) -> DeploymentState {
        let is_over = |state: AttemptState| !matches!(state, AttemptState::Offered | AttemptState::Running);
        let after = self.operator.until(&self.label, "silent for too long", |deployment| {
            deployment.attempts.first().is_some_and(|attempt| is_over(attempt.state()))
        });
        state_of(&after.await)
    }
}

fn wanted<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, wanted: T) -> Seen {
    if seen == wanted { Ok(()) } else { Err(format!("{what}: {seen:?}, not {wanted:?}")) }
}

async fn a_report_that_comes_again_is_a_duplicate(bug: Option<&'static str>) -> Seen {
    let mut scene = Scene::permitted(bug, LONG).await;
    let once = report(Some(&scene.claim), 1, started("change"));
    scene.peer.say(hears(&once)).await;
    let first = scene.peer.disposition(1).await;
    assert_eq!(first.kind(), DispositionKind::Accepted);
    scene.peer.say(hears(&once)).await;
    let second = loop {
        match scene.peer.next().await {
            Some(Says::Disposition(answer)) => break answer.kind(),
            Some(Says::Bye(bye)) => return Err(format!("{}: {}", bye.code, bye.detail)),
            Some(_) => {}
            None => return Err("the session ended".to_owned()),
        }
    };
    wanted("the second answer", second, DispositionKind::Duplicate)
}

fn hears(report: &holdfast_proto::v1::Report) -> Hears {
    Hears::Report(report.clone())
}

async fn a_restart_lapses_no_live_lease(bug: Option<&'static str>) -> Seen {
    let mut scene = Scene::permitted(bug, SHORT).await;
    // Longer than one lease after the renewal that is written.
    let begun = Instant::now();
    let mut pace = tokio::time::interval(HEARTBEAT);
    while begun.elapsed() < SHORT * 2 {
        pace.tick().await;
        scene.peer.heartbeat(std::slice::from_ref(&scene.claim)).await;
    }
    scene.cluster.restart_coordinator().await;
    scene.reconnect().await;
    let answer = scene.peer.heartbeat(std::slice::from_ref(&scene.claim)).await;
    wanted("the lease after a restart", answer.leases[0].answer(), LeaseAnswer::Renewed)
}

async fn a_new_session_gets_what_is_due(bug: Option<&'static str>) -> Seen {
    let cluster = cluster(bug, &[]).await.start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, true)).await;
    // It waits for the agent before the session begins: assigned while the session is only about to stand, the first offer would
    // be handed to nobody, and the fault would lose that one.
    submit(&operator, &change(LONG, "unsafe", &["true".to_owned()])).await;
    let incarnation = Uuid::new_v4();
    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("a session");
    let offer = peer.offer().await;
    let again =
        Hello { session_token: peer.welcome.session_token.clone(), journal_sequence: 100, ..hello(incarnation) };
    let mut peer = cluster.peer("web-01", again).await.expect("the same identity is welcome");
    // A claim is looked up by the driver: what the session began with has been said when the second answer comes.
    peer.heartbeat(offer.claim.as_slice()).await;
    peer.heartbeat(offer.claim.as_slice()).await;
    let offered =
        peer.passed().iter().any(|message| matches!(message, Says::Offer(found) if found.claim == offer.claim));
    wanted("the offer came again", offered, true)
}

async fn a_permit_for_another_plan_is_denied(bug: Option<&'static str>) -> Seen {
    let mut scene = scene(bug, LONG).await;
    let request = PermitRequest { claim: Some(scene.claim), step: "change".to_owned(), plan_digest: "0".repeat(64) };
    let answer = scene.peer.permit_as(request).await;
    wanted("the permit", (answer.kind(), answer.denial()), (PermitAnswerKind::Denied, PermitDenial::PlanDiffers))
}

async fn a_report_under_another_fence_is_filed(bug: Option<&'static str>) -> Seen {
    let mut scene = Scene::permitted(bug, LONG).await;
    let other = Claim { fence: scene.claim.fence + 1, ..scene.claim.clone() };
    let answer = scene.peer.report(Some(&other), 1, applied("change")).await;
    wanted("the report", (answer.kind(), answer.reason()), (DispositionKind::Filed, FiledReason::WrongFence))
}

async fn silence_under_a_permit_holds_the_target(bug: Option<&'static str>) -> Seen {
    let scene = Scene::permitted(bug, SHORT).await;
    wanted("after the lapse", scene.lapsed().await, DeploymentState::Uncertain)?;
    let target = scene.operator.target(BOX).await;
    wanted("the target is held", target.holder.is_some(), true)
}

async fn a_success_after_a_cancel_stays_a_success(bug: Option<&'static str>) -> Seen {
    let mut scene = Scene::permitted(bug, LONG).await;
    scene.operator.cancel(&scene.label).await;
    for (sequence, body) in [(1, started("change")), (2, applied("change")), (3, ended(AttemptEnd::Succeeded))] {
        let _accepted = scene.peer.report(Some(&scene.claim), sequence, body).await;
    }
    let after = scene.operator.until_ended(&scene.label).await;
    wanted("the end", state_of(&after), DeploymentState::Succeeded)?;
    wanted("the request came too late", after.cancel_too_late, true)
}

async fn a_decision_on_old_evidence_is_refused(bug: Option<&'static str>) -> Seen {
    let scene = Scene::permitted(bug, SHORT).await;
    wanted("after the lapse", scene.lapsed().await, DeploymentState::Uncertain)?;
    let (operator, label) = (&scene.operator, &scene.label);
    let shown = operator.checklist(label).await.evidence_sequence;
    let attested = operator.attest(label, BOX, AttestedRunner::HostGone, AttestedTarget::Applied).await;
    attested.expect("recorded");
    let request = DecideRequest {
        deployment: label.clone(),
        kind: DecisionKind::Abandon.into(),
        reason: "a test decides".to_owned(),
        evidence_sequence: shown,
        confirm: BOX.to_owned(),
    };
    let answer = operator.client.clone().decide(request).await;
    wanted("the decision was refused", answer.is_err(), true)
}

async fn every_report_is_said_as_journaled(bug: Option<&'static str>) -> Seen {
    let cluster = cluster(bug, &["web-01"]).await.start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, false)).await;
    let label = submit(&operator, &change(LONG, "unsafe", &["true".to_owned()])).await;
    operator.until_ended(&label).await;
    let filed: Vec<FiledReason> = operator.evidence(&label).await.iter().map(|one| one.filed_as()).collect();
    wanted("reports that were filed", filed, Vec::new())
}

/// A coordinator in the hands of the test, and an agent that has a session with it.
async fn alone(bug: Option<&str>) -> (Cluster, Hostile, Session) {
    let mut cluster = cluster(bug, &["web-01"]).await.prepare().await;
    let mut hostile = Hostile::start(cluster.server_tls()).await;
    cluster.redirect(hostile.address()).await;
    cluster.agent("web-01").start();
    let session = hostile.welcomed().await;
    (cluster, hostile, session)
}

fn step_end(body: &Body) -> Option<StepEndKind> {
    match body {
        Body::StepEnded(ended) => ended.end.as_ref().map(holdfast_proto::v1::StepEnd::kind),
        Body::StepStarted(_)
        | Body::AttemptEnded(_)
        | Body::CancelReceived(_)
        | Body::CancelActed(_)
        | Body::Reread(_) => None,
    }
}

/// The first word about the step itself.
async fn word_of_step(session: &mut Session) -> Body {
    let about = |body: &Body| matches!(body, Body::StepStarted(_) | Body::StepEnded(_));
    session.report("a word about the step", about).await.body.expect("a report says something")
}

async fn a_tombstone_that_is_told_of_stands(bug: Option<&'static str>) -> Seen {
    let (mut cluster, _hostile, mut session) = alone(bug).await;
    let mine = claim(10);
    session.offer(offer(&mine, LONG, &[("change", vec!["true".to_owned()])])).await;
    let request = session.permit_request().await;
    session.say(Says::Cancel(CancelRequest { claim: Some(mine.clone()), reason: String::new(), grace: None })).await;
    session.grant(&request).await;
    let word = word_of_step(&mut session).await;
    wanted("the step", step_end(&word), Some(StepEndKind::NotStarted))?;
    let step = cluster.agent("web-01").state().join("attempts").join(&mine.attempt).join("steps/change/start.json");
    wanted("its tombstone stands", step.exists(), true)
}

async fn the_next_agent_remembers_what_was_taken(bug: Option<&'static str>) -> Seen {
    let (mut cluster, mut hostile, mut session) = alone(bug).await;
    let ledger = cluster.ledger("box");
    let mine = claim(10);
    session.offer(offer(&mine, LONG, &[("change", ledger.gated("never"))])).await;
    let request = session.permit_request().await;
    session.grant(&request).await;
    ledger.until_begun(1).await;
    cluster.agent("web-01").start();
    let next = hostile.session().await;
    let held: Vec<Claim> = next.hello.held.iter().filter_map(|held| held.claim.clone()).collect();
    wanted("what the next agent holds", held, vec![mine])
}

async fn nothing_begins_without_a_permit(bug: Option<&'static str>) -> Seen {
    let (_cluster, _hostile, mut session) = alone(bug).await;
    session.offer(offer(&claim(10), LONG, &[("change", vec!["true".to_owned()])])).await;
    let asked = session.hear("a request for a permit, or a report", |message| match message {
        Hears::PermitRequest(_) => Some(true),
        Hears::Report(_) => Some(false),
        _ => None,
    });
    wanted("a permit was asked for", asked.await, true)
}

async fn an_offer_below_the_highest_fence_is_declined(bug: Option<&'static str>) -> Seen {
    let (_cluster, _hostile, mut session) = alone(bug).await;
    session.offer(offer(&claim(10), LONG, &[("change", vec!["true".to_owned()])])).await;
    let request = session.permit_request().await;
    let denied = PermitAnswer {
        claim: request.claim.clone(),
        step: request.step.clone(),
        kind: PermitAnswerKind::Denied.into(),
        denial: PermitDenial::PlanDiffers.into(),
    };
    session.say(Says::PermitAnswer(denied)).await;
    let over = session.report("the end", |body| matches!(body, Body::AttemptEnded(_))).await;
    session
        .say(Says::Disposition(Disposition {
            sequence: over.sequence,
            kind: DispositionKind::Accepted.into(),
            reason: 0,
        }))
        .await;
    while !session.heartbeat().await.claims.is_empty() {}
    session.say(Says::Offer(offer(&claim(9), LONG, &[("change", vec!["true".to_owned()])]))).await;
    let answer = loop {
        match session.next().await {
            Some(Hears::OfferAnswer(answer)) => break answer.kind(),
            Some(_) => {}
            None => return Err("the agent ended".to_owned()),
        }
    };
    wanted("the answer to a lower fence", answer, OfferAnswerKind::Declined)
}

async fn an_end_that_nobody_saw_is_unknown(bug: Option<&'static str>) -> Seen {
    let (_cluster, _hostile, mut session) = alone(bug).await;
    // The step ends its own shim.
    let argv = ["sh", "-c", "kill -9 $PPID"].map(str::to_owned).to_vec();
    session.offer(offer(&claim(10), LONG, &[("change", argv)])).await;
    let request = session.permit_request().await;
    session.grant(&request).await;
    let over = session.report("the step's end", |body| step_end(body).is_some()).await;
    wanted("the step", over.body.as_ref().and_then(step_end), Some(StepEndKind::Unknown))
}

//! A stop is asked for: before the start, during a slow change, right after success; with contact and without.
//!
//! | when | contact | the deployment | `delivered`, `acted`, `observed` |
//! | --- | --- | --- | --- |
//! | while it waits | - | cancelled | -, -, - |
//! | during a change that may be repeated | yes | cancelled | yes, yes, yes |
//! | during a change that may not | yes | held | yes, yes, yes |
//! | during a change | no | uncertain, then what a person accepts | late, late, - |
//! | success on its way | yes | succeeded, too late | no, no, yes |
//! | after success | yes | succeeded, too late | no request on record but in its history |
//! | after success, not told yet | no | uncertain, then what a person accepts | -, -, - |

use std::time::Duration;

use holdfast::proxy::Ways;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    AttestedRunner, AttestedTarget, CancelAnswer, Cancellation, DecisionKind, Deployment, DeploymentState,
    PermitAnswerKind, StepState,
};
use holdfast_tests::api::{Operator, id_of, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::events::assert_kinds;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::peer::{Peer, hello, started};
use holdfast_tests::process;
use rand::Rng as _;
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, begun, change, last_attempt, submit, with_box};

/// The request's timeline: delivered, acted, observed.
fn stages(deployment: &Deployment) -> [bool; 3] {
    let cancel = cancellation(deployment);
    [cancel.delivered.is_some(), cancel.acted.is_some(), cancel.observed.is_some()]
}

#[track_caller]
fn cancellation(deployment: &Deployment) -> &Cancellation {
    deployment.cancellation.as_ref().expect("a request is on record")
}

/// That it was asked for by the admin, and that its five times are in order, as far as they were observed.
#[track_caller]
fn assert_in_order(deployment: &Deployment) {
    let cancel = cancellation(deployment);
    assert_eq!((cancel.cause.as_str(), cancel.by.as_str()), ("operator", "admin"));
    let key = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    let received = |seen: &Option<holdfast_proto::v1::Seen>| seen.and_then(|seen| seen.received_at);
    let times = [cancel.requested_at, cancel.recorded_at, received(&cancel.delivered), received(&cancel.acted)];
    let mut times: Vec<_> = times.iter().flatten().map(key).collect();
    // The end may have been on its way before anybody acted; it was observed after the request was recorded.
    if let (Some(recorded), Some(observed)) = (&cancel.recorded_at, &received(&cancel.observed)) {
        assert!(key(recorded) <= key(observed), "{cancel:#?}");
    }
    let told = times.clone();
    times.sort_unstable();
    assert_eq!(told, times, "{cancel:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_start_it_is_cancelled_on_the_spot() {
    let (_cluster, operator, ledger) = with_box().await;
    let (holder, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    assert_eq!(operator.cancel(&waiting).await, CancelAnswer::Cancelled);
    let cancelled = operator.deployment(&waiting).await;
    assert_eq!(state_of(&cancelled), DeploymentState::Cancelled);
    assert!(cancelled.never_mutated && cancelled.attempts.is_empty());
    assert_eq!(stages(&cancelled), [false; 3]);
    assert_in_order(&cancelled);
    assert_kinds(&operator.events(&waiting).await, &["submitted", "waits", "cancel_recorded", "deployment_ended"]);
    ledger.open_gate("go");
    assert_eq!(state_of(&operator.until_ended(&holder).await), DeploymentState::Succeeded);
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_agent_it_is_cancelled_on_the_spot_and_frees_the_target() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    for agent in ["web-01", "web-02"] {
        cluster.agent(agent).kill();
        operator.until_contact(agent, holdfast_proto::v1::Contact::Silent).await;
    }
    let label = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let waiting = operator.until(&label, "it to wait for an agent", |found| found.waiting.contains("web-01")).await;
    assert!(waiting.holds_target);
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Cancelled);
    let cancelled = operator.deployment(&label).await;
    assert!(cancelled.never_mutated && !cancelled.holds_target);
    assert_kinds(
        &operator.events(&label).await,
        &["submitted", "reserved", "waits", "cancel_recorded", "deployment_ended"],
    );
    assert!(operator.target(BOX).await.holder.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_a_change_the_process_is_stopped_and_what_that_means_is_told() {
    let cases = [("idempotent", DeploymentState::Cancelled), ("unsafe", DeploymentState::Held)];
    for (retry, state) in cases {
        let (_cluster, operator, ledger) = with_box().await;
        let (label, _) = begun(&operator, &ledger, LONG, retry).await;
        assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
        let ended = operator.until_state(&label, state).await;
        assert_eq!(stages(&ended), [true; 3], "{retry}");
        assert_in_order(&ended);
        let step = &last_attempt(&ended).steps[0];
        assert_eq!((step.state(), step.maybe_partial), (StepState::Stopped, true), "{retry}");
        assert!(!ended.never_mutated, "{retry}: it had begun");
        assert_eq!(ended.holds_target, state == DeploymentState::Held);
        let last = match state {
            DeploymentState::Held => "deployment_moved",
            _ => "deployment_ended",
        };
        let expected = [
            "submitted",
            "reserved",
            "lease_granted",
            "offer_accepted",
            "permit_granted",
            "report_accepted", // the step has started
            "cancel_recorded",
            "report_accepted", // cancel received
            "report_accepted", // cancel acted
            "report_accepted", // the step was stopped
            "report_accepted", // the attempt was stopped
            "attempt_ended",
            last,
        ];
        assert_kinds(&operator.events(&label).await, &expected);
        ledger.check_begun(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_a_change_without_contact_it_is_uncertain_and_the_request_is_delivered_late() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, SHORT, "unsafe").await;
    cluster.line(&agent).cut().await;
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
    let uncertain = operator.until_state(&label, DeploymentState::Uncertain).await;
    assert_eq!(stages(&uncertain), [false; 3], "nothing was observed");
    assert!(uncertain.holds_target);
    let refused = operator.decide(&label, BOX, DecisionKind::AcceptCancelled).await.expect_err("nobody knows");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused:?}");

    cluster.line(&agent).heal().await;
    operator
        .until_evidence(&label, "the late stop", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("step_ended")
        })
        .await;
    let after = operator.deployment(&label).await;
    assert_eq!(state_of(&after), DeploymentState::Uncertain, "a late report is no authority");
    operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::Partial).await.expect("attested");
    let refused = operator.decide(&label, BOX, DecisionKind::Retry).await.expect_err("a stop was asked for");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused:?}");
    let decided = operator.decide(&label, BOX, DecisionKind::AcceptCancelled).await.expect("allowed");
    assert_eq!(state_of(&decided), DeploymentState::Cancelled);
    assert!(decided.ended_by_decision);
    let expected = [
        "submitted",
        "reserved",
        "lease_granted",
        "offer_accepted",
        "permit_granted",
        "report_accepted", // the step has started
        "cancel_recorded",
        "attempt_ended",    // uncertain
        "deployment_moved", // uncertain
        "evidence_filed",   // the journal says that it still runs
        "evidence_filed",   // late: cancel received
        "evidence_filed",   // late: cancel acted
        "evidence_filed",   // late: the step was stopped
        "evidence_filed",   // late: the attempt was stopped
        "evidence_filed",   // attested
        "decided",
        "attempt_ended", // resolved
        "revision_recorded?",
        "deployment_ended",
    ];
    assert_kinds(&operator.events(&label).await, &expected);
    ledger.check_begun(1);
}

/// F16, F55, F60: the success is on its way when the request is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_success_that_arrives_after_the_request_stays_a_success() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.line(&agent).stall(Ways::Both);
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
    cluster.line(&agent).heal().await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded);
    assert!(ended.cancel_too_late);
    assert!(cancellation(&ended).observed.is_some());
    assert_in_order(&ended);
    cluster.restart_coordinator().await;
    let again = operator.until_state(&label, DeploymentState::Succeeded).await;
    // What the agent says of the stop afterwards is filed beside it, and changes nothing of it.
    let without_evidence = |deployment: &Deployment| Deployment { evidence_count: 0, ..deployment.clone() };
    assert_eq!(without_evidence(&again), without_evidence(&ended), "a recorded fact is not computed away");
    assert!(again.evidence_count >= ended.evidence_count);
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_after_success_the_request_is_recorded_and_changes_nothing() {
    let (_cluster, operator, ledger) = with_box().await;
    let label = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator.until_state(&label, DeploymentState::Succeeded).await;
    for _ in 0..2 {
        assert_eq!(operator.cancel(&label).await, CancelAnswer::TooLate);
    }
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Succeeded);
    let expected = [
        "submitted",
        "reserved",
        "lease_granted",
        "offer_accepted",
        "permit_granted",
        "report_accepted",
        "report_accepted",
        "report_accepted",
        "attempt_ended",
        "deployment_ended",
        "cancel_after_end",
        "cancel_after_end",
    ];
    assert_kinds(&operator.events(&label).await, &expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_after_a_success_that_nobody_heard_of_it_is_uncertain() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, SHORT, "unsafe").await;
    cluster.line(&agent).cut().await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
    let uncertain = operator.until_state(&label, DeploymentState::Uncertain).await;
    assert_eq!(stages(&uncertain), [false; 3]);
    cluster.line(&agent).heal().await;
    operator
        .until_evidence(&label, "the late success", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("succeeded")
        })
        .await;
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Uncertain);
    operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("attested");
    let decided = operator.decide(&label, BOX, DecisionKind::AcceptSucceeded).await.expect("allowed");
    assert_eq!(state_of(&decided), DeploymentState::Succeeded);
    ledger.check_begun(1);
}

/// F15. `HOLDFAST_ROUNDS` asks for more rounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn around_the_start_every_request_has_one_true_outcome() {
    let rounds = std::env::var("HOLDFAST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let (cluster, operator, _) = with_box().await;
    let mut outcomes = std::collections::BTreeMap::new();
    for round in 0..rounds {
        // A target of its own: a change that was stopped in the middle keeps the next one waiting.
        let (target, ledger) = (format!("box-{round}@test"), cluster.ledger(&format!("box-{round}")));
        operator.apply_target(&files::command_target(&target, false)).await;
        let argv = ledger.command_with(&["--seconds", "0.03"]);
        let file = DeploymentFile::new(&target, LONG).mutates("change", "idempotent", &argv);
        // Slow lines make the start last as long as the time in which the request falls.
        let trip = Duration::from_micros(rand::rng().random_range(0..20_000));
        for agent in ["web-01", "web-02"] {
            cluster.line(agent).delay(trip);
        }
        let label = submit(&operator, file.text()).await;
        // The fault itself: an instant at random.
        let after = Duration::from_micros(rand::rng().random_range(0..50_000));
        tokio::time::sleep(after).await;
        let answer = operator.cancel(&label).await;
        let ended = operator.until_ended(&label).await;
        let id = id_of(&ended);
        let ran = ledger.intervals().iter().filter(|interval| interval.deployment() == id).count();
        assert!(ran <= 1, "{label} ran {ran} times");
        *outcomes.entry((answer.as_str_name(), state_of(&ended).as_str_name(), ran)).or_insert(0) += 1;
        check_round(&operator, &label, answer, &ended, ran).await;
        ledger.check();
    }
    let reached = |ran: usize| outcomes.keys().any(|(_, _, found)| *found == ran);
    assert!(reached(0) && reached(1), "the rounds reached too little: {outcomes:?}");
}

async fn check_round(operator: &Operator, label: &str, answer: CancelAnswer, ended: &Deployment, ran: usize) {
    let state = state_of(ended);
    match answer {
        CancelAnswer::Unspecified => panic!("{label}: no answer"),
        CancelAnswer::Cancelled => assert_eq!((state, ran), (DeploymentState::Cancelled, 0), "{label}"),
        CancelAnswer::TooLate => {
            assert_eq!((state, ran), (DeploymentState::Succeeded, 1), "{label}");
            let events = operator.events(label).await;
            assert_eq!(events.last().map(|event| event.kind.as_str()), Some("cancel_after_end"), "{label}");
        }
        CancelAnswer::Recorded => {
            assert_in_order(ended);
            assert_eq!(ended.cancel_too_late, state == DeploymentState::Succeeded, "{label}");
            if ended.never_mutated {
                assert_eq!(ran, 0, "{label} is told as never mutated");
            }
            if state == DeploymentState::Cancelled && !stages(ended)[0] {
                assert_eq!(ran, 0, "{label}: the agent never heard of the stop");
            }
        }
    }
}

/// F54
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_the_request_is_delivered_in_the_next_session() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "idempotent").await;
    cluster.line(&agent).cut().await;
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
    cluster.restart_coordinator().await;
    operator.until(&label, "the coordinator to be back", |found| stages(found) == [false; 3]).await;
    cluster.line(&agent).heal().await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Cancelled);
    assert_eq!(stages(&ended), [true; 3]);
    assert_in_order(&ended);
}

/// The shim that is to send the signal stands still: that is told, and nothing is claimed before it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_whose_shim_stands_still_is_told_as_held_up_and_acted_on_once_it_goes_on() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "idempotent").await;
    let shim = cluster.shims(&agent).into_iter().find(|pid| is_shim(*pid)).expect("the step has a shim");
    process::pause(shim);
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
    let told = |found: &Deployment| !cancellation(found).held_up.is_empty();
    let held_up = operator.until(&label, "the stop to be told as held up", told).await;
    let why = &cancellation(&held_up).held_up;
    assert!(why.contains("stands still") && why.contains(&format!("kill -CONT {shim}")), "{why}");
    assert_eq!(stages(&held_up), [true, false, false], "nothing was acted on");
    assert_eq!(state_of(&held_up), DeploymentState::Active);
    ledger.check_begun(1);
    let shown = cluster.cli().run(&["show", &label]).await;
    let acted = shown.expect(0).stdout.lines().find(|line| line.contains(" acted ")).unwrap_or_default();
    assert!(acted.contains("not observed, as told ") && acted.contains("stands still"), "{}", shown.stdout);

    process::resume(shim);
    let ended = operator.until_state(&label, DeploymentState::Cancelled).await;
    assert_eq!(stages(&ended), [true; 3]);
    assert_in_order(&ended);
}

fn is_shim(pid: i32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == b"shim")
}

/// F17
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_does_not_say_of_a_stop_is_shown_as_not_observed() {
    for says in 0..3 {
        let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
        let operator = cluster.operator();
        operator.apply_target(&files::command_target(BOX, false)).await;
        let mut peer = cluster.peer("web-01", hello(Uuid::new_v4())).await.expect("welcome");
        let label = submit(&operator, &change(SHORT, "idempotent", &["true".to_owned()])).await;
        let offer = peer.take_offer().await;
        let claim = offer.claim.clone().expect("an offer has a claim");
        assert_eq!(peer.permit(&offer, "change").await.kind(), PermitAnswerKind::Granted);
        peer.report(Some(&claim), 1, started("change")).await;
        assert_eq!(operator.cancel(&label).await, CancelAnswer::Recorded);
        hear_cancel(&mut peer).await;
        if says >= 1 {
            let body = Body::CancelReceived(holdfast_proto::v1::CancelReceived::default());
            peer.report(Some(&claim), 2, body).await;
        }
        if says >= 2 {
            let detail = "a signal was sent, a child is left".to_owned();
            peer.report(Some(&claim), 3, Body::CancelActed(holdfast_proto::v1::CancelActed { detail })).await;
        }
        let during = operator.deployment(&label).await;
        assert_eq!(stages(&during), [says >= 1, says >= 2, false]);
        assert_eq!(state_of(&during), DeploymentState::Active, "a request is no outcome");
        // Silence then holds the target, cancel or not.
        let after = operator.until_state(&label, DeploymentState::Uncertain).await;
        assert_eq!(stages(&after), [says >= 1, says >= 2, false]);
        assert!(after.holds_target);
        // What was not confirmed is asked again in the next session, what was is not.
        let token = peer.welcome.session_token.clone();
        let incarnation = offer_incarnation(&after);
        drop(peer);
        let again = holdfast_proto::v1::Hello { session_token: token, journal_sequence: 9, ..hello(incarnation) };
        let mut peer = cluster.peer("web-01", again).await.expect("welcome");
        if says == 0 {
            hear_cancel(&mut peer).await;
        } else {
            peer.heartbeat(std::slice::from_ref(&claim)).await;
            assert!(peer.passed().is_empty(), "{:?}", peer.passed());
        }
    }
}

fn offer_incarnation(deployment: &Deployment) -> Uuid {
    last_attempt(deployment).incarnation.parse().expect("a UUID")
}

async fn hear_cancel(peer: &mut Peer) {
    peer.hear("a request to stop", |message| match message {
        holdfast_proto::v1::connect_response::Message::Cancel(cancel) => cancel.claim.clone(),
        _ => None,
    })
    .await;
}

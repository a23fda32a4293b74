//! What an agent does, whatever a coordinator says.

use std::time::Duration;

use holdfast_agent::crash::CrashPoint;

use holdfast_proto::v1::connect_request::Message as Hears;
use holdfast_proto::v1::connect_response::Message as Says;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    AttemptEnd, CancelRequest, Claim, DeclineReason, Disposition, DispositionKind, HeartbeatAnswer, LeaseAnswer, Offer,
    OfferAnswerKind, PermitAnswer, PermitAnswerKind, RenewedLease, StepEndKind,
};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::hostile::{Hostile, Session, claim, offer, welcome};
use holdfast_tests::process::kill;
use holdfast_tests::wait;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::PROGRAM;

/// How long to wait for a session of an agent that may have crashed.
const PATIENCE: Duration = Duration::from_millis(500);

async fn alone() -> (Cluster, Hostile) {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).prepare().await;
    let hostile = Hostile::start(cluster.server_tls()).await;
    cluster.redirect(hostile.address()).await;
    cluster.agent("web-01").start();
    (cluster, hostile)
}

fn ended(body: &Body) -> bool {
    matches!(body, Body::AttemptEnded(_))
}

fn step_ended_as(body: &Body) -> Option<StepEndKind> {
    match body {
        Body::StepEnded(ended) => ended.end.as_ref().map(holdfast_proto::v1::StepEnd::kind),
        _ => None,
    }
}

/// Whoever never began a permitted step, or can't tell how it ended, says just that and no more.
fn is_last_word(body: &Body) -> bool {
    matches!(step_ended_as(body), Some(StepEndKind::NotStarted | StepEndKind::Unknown))
}

/// F18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_heal_is_tried_once_and_what_can_again_and_again() {
    let refusals = [
        ("web-01", Code::PermissionDenied),
        ("web-02", Code::FailedPrecondition),
        ("web-03", Code::NotFound),
        ("web-04", Code::Unavailable),
    ];
    let mut cluster = Plan::new(PROGRAM).agents(&refusals.map(|(name, _)| name)).prepare().await;
    let mut coordinators = Vec::new();
    for (name, code) in refusals {
        let hostile = Hostile::start(cluster.server_tls()).await;
        hostile.refuse(Some(Status::new(code, "not now")));
        cluster.line(name).redirect(hostile.address());
        cluster.agent(name).start();
        coordinators.push(hostile);
    }
    let calls = || coordinators.iter().map(Hostile::calls).collect::<Vec<_>>();
    wait::until("the unavailable one to be called five times", wait::SOON, async || match calls()[..] {
        [denied, failed, missing, again] if denied * failed * missing > 0 && again >= 5 => Ok(()),
        _ => Err(format!("{:?}", calls())),
    })
    .await;
    assert_eq!(calls()[..3], [1, 1, 1], "a refusal that can't heal was tried again");
    // Told once each, with the reason.
    for (name, code) in refusals {
        let log = std::fs::read_to_string(cluster.folder().join(&format!("{name}.log"))).expect("a log");
        assert_eq!(log.matches("no session with the coordinator").count(), 1, "{name}: {log}");
        assert!(log.contains("not now") || log.contains(code.description()), "{name}: {log}");
    }
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_assignment_never_touches_running_work() {
    let (cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    let mine = claim(10);
    let taken = offer(&mine, LONG, &[("change", ledger.gated("go"))]);
    assert_eq!(session.offer(taken.clone()).await.kind(), OfferAnswerKind::Accepted);
    let request = session.permit_request().await;
    session.grant(&request).await;
    ledger.until_begun(1).await;

    let same = session.offer(taken.clone()).await;
    assert_eq!(same.kind(), OfferAnswerKind::Accepted, "the same again is no news");
    let higher = Claim { fence: mine.fence + 1, ..mine.clone() };
    let refused = session.offer(offer(&higher, LONG, &[("change", ledger.command())])).await;
    assert_eq!(refused.reason(), DeclineReason::Conflict, "the same attempt under another fence");
    let next = Claim { attempt: Uuid::new_v4().to_string(), fence: mine.fence + 2, ..mine.clone() };
    let refused = session.offer(offer(&next, LONG, &[("change", ledger.command())])).await;
    assert_eq!(refused.reason(), DeclineReason::Conflict, "another attempt of the same deployment");
    let other = claim(20);
    let refused = session.offer(offer(&other, LONG, &[("change", ledger.command())])).await;
    assert_eq!(refused.reason(), DeclineReason::Busy, "another deployment");

    ledger.open_gate("go");
    let report = session.report("the end", ended).await;
    assert_eq!(report.claim, Some(mine));
    ledger.check_begun(1);
}

/// F22: the agent's side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_but_unexpected_messages_end_neither_agent_nor_child() {
    let (mut cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    let first = claim(10);
    assert_eq!(
        session.offer(offer(&first, LONG, &[("change", ledger.command())])).await.kind(),
        OfferAnswerKind::Accepted
    );
    let request = session.permit_request().await;
    session.grant(&request).await;
    for wanted in ["started", "step ended", "ended"] {
        let report = session.report(wanted, |_| true).await;
        session.accept(&report).await;
    }

    let second = claim(11);
    session.offer(offer(&second, LONG, &[("change", ledger.gated("go"))])).await;
    let request = session.permit_request().await;
    session.grant(&request).await;
    ledger.until_begun(2).await;

    let stranger = claim(99);
    let step = "change".to_owned();
    let granted = PermitAnswerKind::Granted.into();
    let superseded = LeaseAnswer::Superseded.into();
    session
        .say(Says::Disposition(Disposition { sequence: 999, kind: DispositionKind::Accepted.into(), reason: 0 }))
        .await;
    session
        .say(Says::Disposition(Disposition { sequence: 1, kind: DispositionKind::Duplicate.into(), reason: 0 }))
        .await;
    for claim in [&first, &second, &stranger] {
        let claim = Some(claim.clone());
        session.say(Says::PermitAnswer(PermitAnswer { claim, step: step.clone(), kind: granted, denial: 0 })).await;
    }
    for claim in [&first, &stranger] {
        let cancel = CancelRequest { claim: Some(claim.clone()), reason: "x".to_owned(), grace: None };
        session.say(Says::Cancel(cancel)).await;
        let leases = vec![RenewedLease { claim: Some(claim.clone()), answer: superseded, ttl: None }];
        session.say(Says::HeartbeatAnswer(HeartbeatAnswer { number: 77_777, leases })).await;
    }
    let finished = session.offer(offer(&first, LONG, &[("change", ledger.command())])).await;
    assert_eq!(finished.kind(), OfferAnswerKind::Declined, "an offer of a finished attempt");
    // A second welcome breaks the protocol: the session ends, the work does not.
    session.say(Says::Welcome(welcome(Uuid::new_v4()))).await;
    session.over().await;
    assert_eq!(cluster.agent("web-01").status(), None, "the agent lives");
    ledger.open_gate("go");
    ledger.until_ended(1).await;
    ledger.check_begun(2);
}

/// A permit is usable only while the agent's own count of the lease is live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_comes_after_the_lease_ran_out_is_met_with_a_tombstone() {
    let (cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    let ttl = Duration::from_millis(700);
    let mine = claim(10);
    session.offer(offer(&mine, ttl, &[("change", ledger.command())])).await;
    let asked = tokio::time::Instant::now();
    let request = session.permit_request().await;
    wait::until_true("the lease to run out", wait::SOON, || asked.elapsed() > ttl).await;
    session.grant(&request).await;
    let report = session.report("the step's end", |body| step_ended_as(body).is_some()).await;
    assert_eq!(report.body.as_ref().and_then(step_ended_as), Some(StepEndKind::NotStarted));
    ledger.check_begun(0);
    // The record that says so was made first.
    let start = cluster.folder().join(&format!("web-01/attempts/{}/steps/change/start.json", mine.attempt));
    let record = std::fs::read_to_string(start).expect("the tombstone stands");
    assert!(record.contains("never"), "{record}");
}

/// I3, the agent's part of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_begins_without_a_permit_or_under_another_ones() {
    let (cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    let mine = claim(10);
    session.offer(offer(&mine, LONG, &[("change", ledger.command()), ("more", ledger.command())])).await;
    let request = session.permit_request().await;
    assert_eq!(request.step, "change");
    let kind = PermitAnswerKind::Granted.into();
    let other = Claim { fence: mine.fence + 1, ..mine.clone() };
    for (claim, step) in [(&other, "change"), (&claim(12), "change"), (&mine, "more")] {
        let (claim, step) = (Some(claim.clone()), step.to_owned());
        session.say(Says::PermitAnswer(PermitAnswer { claim, step, kind, denial: 0 })).await;
    }
    // What was sent before a renewed heartbeat's answer has been taken when the next heartbeat comes.
    for _ in 0..3 {
        let heartbeat = session.heartbeat().await;
        session.renew(&heartbeat, LONG).await;
    }
    ledger.check_begun(0);
    session.grant(&request).await;
    ledger.until_begun(1).await;
}

/// F19 and F52: what ends while nobody listens is told once contact returns, also by the next agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_comes_again_until_it_is_answered_also_from_the_next_agent() {
    let (mut cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    let mine = claim(10);
    session.offer(offer(&mine, LONG, &[("change", ledger.gated("go"))])).await;
    let request = session.permit_request().await;
    session.grant(&request).await;
    let began = session.report("the start", |body| matches!(body, Body::StepStarted(_))).await;
    ledger.until_begun(1).await;
    cluster.agent("web-01").kill();
    ledger.open_gate("go");
    ledger.until_ended(0).await;

    let mut earlier: Vec<(u64, Option<Body>)> = vec![(began.sequence, began.body)];
    for _ in 0..2 {
        cluster.agent("web-01").start();
        let mut session = hostile.welcomed().await;
        let last = session.report("the attempt's end", ended).await;
        let mut reports: Vec<(u64, Option<Body>)> = session
            .passed()
            .iter()
            .filter_map(|message| match message {
                Hears::Report(report) => Some((report.sequence, report.body.clone())),
                _ => None,
            })
            .collect();
        reports.push((last.sequence, last.body));
        assert_eq!(reports[..earlier.len()], earlier[..], "what was said before comes again unchanged");
        earlier = reports;
        cluster.agent("web-01").kill();
    }
    let ends: Vec<_> = earlier.iter().filter_map(|(_, body)| body.as_ref().and_then(step_ended_as)).collect();
    assert_eq!(ends, [StepEndKind::Applied], "the true end, seen by nobody but the shim");
    assert!(
        matches!(&earlier[earlier.len() - 1].1, Some(Body::AttemptEnded(end)) if end.end() == AttemptEnd::Succeeded)
    );
    ledger.check_begun(1);
}

/// The highest fence seen is kept, also by the next agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_at_or_below_the_highest_fence_seen_is_declined() {
    let (mut cluster, mut hostile) = alone().await;
    let ledger = cluster.ledger("box");
    let mut session = hostile.welcomed().await;
    session.offer(offer(&claim(10), LONG, &[("change", ledger.command())])).await;
    let request = session.permit_request().await;
    session.grant(&request).await;
    for wanted in ["started", "step ended", "ended"] {
        let report = session.report(wanted, |_| true).await;
        session.accept(&report).await;
    }
    // Until the last answer is in its journal, the agent still holds the first.
    while session.offer(offer(&claim(10), LONG, &[("change", ledger.command())])).await.reason()
        == DeclineReason::Conflict
    {}
    for round in ["the same agent", "the next agent"] {
        for fence in [10, 9, 1] {
            let answer = session.offer(offer(&claim(fence), LONG, &[("change", ledger.command())])).await;
            assert_eq!(answer.kind(), OfferAnswerKind::Declined, "{round}, fence {fence}");
            assert_eq!(answer.reason(), DeclineReason::FenceRegression, "{round}, fence {fence}");
        }
        cluster.agent("web-01").start();
        session = hostile.welcomed().await;
    }
    let answer = session.offer(offer(&claim(11), LONG, &[("change", ledger.command())])).await;
    assert_eq!(answer.kind(), OfferAnswerKind::Accepted);
}

/// F26, F52: nobody saw the end, so nobody tells one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_whose_shim_was_killed_is_told_as_unknown() {
    for restart in [false, true] {
        let (mut cluster, mut hostile) = alone().await;
        let ledger = cluster.ledger("box");
        let mut session = hostile.welcomed().await;
        session.offer(offer(&claim(10), LONG, &[("change", ledger.gated("go"))])).await;
        let request = session.permit_request().await;
        session.grant(&request).await;
        ledger.until_begun(1).await;
        session.report("the start", |body| matches!(body, Body::StepStarted(_))).await;
        if restart {
            cluster.agent("web-01").kill();
        }
        let shims = cluster.shims("web-01");
        assert!(shims.len() >= 2, "a shim and its body: {shims:?}");
        shims.iter().copied().for_each(kill);
        if restart {
            cluster.agent("web-01").start();
            session = hostile.welcomed().await;
        }
        let report = session.report("the step's end", |body| step_ended_as(body).is_some()).await;
        assert_eq!(report.body.as_ref().and_then(step_ended_as), Some(StepEndKind::Unknown), "restart: {restart}");
    }
}

/// I8, the agent's part of it: a report is in the journal before anybody hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_heard_before_a_crash_comes_again_unchanged() {
    let mut crashed = 0;
    for point in [CrashPoint::BeforeJournalCommit, CrashPoint::AfterJournalCommit] {
        for pass in 1..=9 {
            crashed += usize::from(crash_at(&format!("{}:{pass}", point.name())).await);
        }
    }
    assert!(crashed >= 8, "the points were reached {crashed} times only");
}

/// Whether the agent passed the point.
async fn crash_at(point: &str) -> bool {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).agent_environment("HOLDFAST_CRASH", point).prepare().await;
    let mut hostile = Hostile::start(cluster.server_tls()).await;
    cluster.redirect(hostile.address()).await;
    cluster.agent("web-01").start();
    let ledger = cluster.ledger("box");
    let work = offer(&claim(10), LONG, &[("change", ledger.command())]);
    let mut heard = Vec::new();
    let mut is_over = false;
    while !is_over && cluster.agent("web-01").status().is_none() {
        let Ok(session) = tokio::time::timeout(PATIENCE, hostile.welcomed()).await else { continue };
        is_over = converse(session, &work, &mut heard).await;
    }
    let crashed = cluster.agent("web-01").status().is_some();
    cluster.agent("web-01").settings().environment.clear();
    cluster.agent("web-01").start();
    let mut again = Vec::new();
    let session = hostile.welcomed().await;
    assert!(converse(session, &work, &mut again).await, "{point}: after the crash the work comes to its end");
    for report in &heard {
        assert!(again.contains(report), "{point}: heard {report:?}, and then {again:#?}");
    }
    ledger.check();
    assert!(ledger.intervals().len() <= 1, "{point}: {:#?}", ledger.intervals());
    crashed
}

/// Offers the work, renews its lease, grants what is asked for, and writes down every report until the last word or the session's end. Answers
/// no report.
async fn converse(mut session: Session, work: &Offer, heard: &mut Vec<(u64, Option<Body>)>) -> bool {
    session.say(Says::Offer(work.clone())).await;
    let begun = tokio::time::Instant::now();
    while let Some(message) = session.next().await {
        assert!(begun.elapsed() < wait::SOON, "the work does not come to its end: heard {heard:#?}");
        match message {
            Hears::PermitRequest(request) => session.grant(&request).await,
            Hears::Report(report) => {
                let is_end = report.body.as_ref().is_some_and(|body| ended(body) || is_last_word(body));
                heard.push((report.sequence, report.body));
                if is_end {
                    return true;
                }
            }
            Hears::Heartbeat(heartbeat) => session.renew(&heartbeat, LONG).await,
            Hears::Hello(_)
            | Hears::OfferAnswer(_)
            | Hears::InquiryAnswer(_)
            | Hears::WelcomeKept(_)
            | Hears::Pong(_)
            | Hears::Detach(_) => {}
        }
    }
    false
}

//! Duplicated, reordered, replayed, stolen and broken messages, by an agent's side of the protocol that a test holds.

use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    AttemptEnd, CancelActed, CancelReceived, Claim, DeploymentState, DispositionKind, FiledReason, Heartbeat, Hello,
    LeaseAnswer, Offer, OfferAnswer, OfferAnswerKind, PermitAnswerKind, PermitDenial, PermitRequest,
};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::peer::{self, Peer, applied, ended, hello, report, started};
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, last_attempt, submit};

/// One deployment of two steps, offered to a peer and taken.
struct Scene {
    cluster: Cluster,
    operator: Operator,
    peer: Peer,
    incarnation: Uuid,
    label: String,
    offer: Offer,
    claim: Claim,
}

async fn scene() -> Scene {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let incarnation = Uuid::new_v4();
    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("welcome");
    let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &["true".to_owned()]).mutates(
        "more",
        "unsafe",
        &["true".to_owned()],
    );
    let label = submit(&operator, file.text()).await;
    let offer = peer.take_offer().await;
    let claim = offer.claim.clone().expect("an offer has a claim");
    // Its answer comes after everything before it was taken.
    peer.heartbeat(std::slice::from_ref(&claim)).await;
    Scene { cluster, operator, peer, incarnation, label, offer, claim }
}

impl Scene {
    async fn reconnect(&mut self) {
        let again = Hello {
            session_token: self.peer.welcome.session_token.clone(),
            journal_sequence: 100,
            ..hello(self.incarnation)
        };
        self.peer = self.cluster.peer("web-01", again).await.expect("the same identity is welcome");
    }
}

/// What was sent twice, in any session, changes nothing the second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_comes_again_is_a_duplicate() {
    let mut scene = scene().await;
    let claim = scene.claim.clone();
    assert_eq!(scene.peer.permit(&scene.offer, "change").await.kind(), PermitAnswerKind::Granted);
    assert_eq!(scene.peer.permit(&scene.offer, "change").await.kind(), PermitAnswerKind::Granted, "the same permit");
    let reports = [report(Some(&claim), 1, started("change")), report(Some(&claim), 2, applied("change"))];
    for report in &reports {
        scene.peer.say(Says::Report(report.clone())).await;
        assert_eq!(scene.peer.disposition(report.sequence).await.kind(), DispositionKind::Accepted);
    }
    let before = (scene.operator.deployment(&scene.label).await, scene.operator.events(&scene.label).await);
    for round in 0..3 {
        for report in reports.iter().rev() {
            scene.peer.say(Says::Report(report.clone())).await;
            let answer = scene.peer.disposition(report.sequence).await;
            assert_eq!(answer.kind(), DispositionKind::Duplicate, "round {round}");
        }
        // An answered offer, answered again and the other way round.
        for kind in [OfferAnswerKind::Accepted, OfferAnswerKind::Declined] {
            let reason = if kind == OfferAnswerKind::Declined { 1 } else { 0 };
            let answer = OfferAnswer { claim: Some(claim.clone()), kind: kind.into(), reason, ..Default::default() };
            scene.peer.say(Says::OfferAnswer(answer)).await;
        }
        scene.peer.heartbeat(std::slice::from_ref(&claim)).await;
        if round == 1 {
            scene.cluster.restart_coordinator().await;
            scene.operator.until_state(&scene.label, DeploymentState::Active).await;
        }
        scene.reconnect().await;
    }
    let after = scene.operator.events(&scene.label).await;
    let new: Vec<&str> = after[before.1.len()..].iter().map(|event| event.kind.as_str()).collect();
    assert!(new.iter().all(|kind| *kind == "lease_renewed"), "{new:?}");
    let deployment = scene.operator.deployment(&scene.label).await;
    assert_eq!(last_attempt(&deployment).steps, last_attempt(&before.0).steps);
}

/// The same sequence with another content is no duplicate and no news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_content_under_the_same_sequence_is_filed() {
    let mut scene = scene().await;
    let claim = scene.claim.clone();
    scene.peer.permit(&scene.offer, "change").await;
    assert_eq!(scene.peer.report(Some(&claim), 1, started("change")).await.kind(), DispositionKind::Accepted);
    let answer = scene.peer.report(Some(&claim), 1, applied("change")).await;
    assert_eq!((answer.kind(), answer.reason()), (DispositionKind::Filed, FiledReason::SequenceConflict));
    let evidence = scene.operator.evidence(&scene.label).await;
    assert!(evidence.iter().any(|found| found.filed_as() == FiledReason::SequenceConflict), "{evidence:?}");
    let deployment = scene.operator.deployment(&scene.label).await;
    assert!(last_attempt(&deployment).steps[0].ended.is_none());
}

/// What can't follow on what was told before is filed, never believed: nothing is lost, nothing jumps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_out_of_order_are_evidence() {
    let mut scene = scene().await;
    let claim = scene.claim.clone();
    let cases = [
        (1, started("change"), FiledReason::NotPermitted),
        (2, applied("change"), FiledReason::NotPermitted),
        (3, ended(AttemptEnd::Succeeded), FiledReason::StepOutOfOrder),
        (4, started("no-such-step"), FiledReason::UnknownStep),
        (5, Body::CancelReceived(CancelReceived::default()), FiledReason::StepOutOfOrder),
        (6, Body::CancelActed(CancelActed { detail: "?".to_owned() }), FiledReason::StepOutOfOrder),
    ];
    for (sequence, body, reason) in cases {
        let answer = scene.peer.report(Some(&claim), sequence, body.clone()).await;
        assert_eq!((answer.kind(), answer.reason()), (DispositionKind::Filed, reason), "{body:?}");
    }
    let denied = scene.peer.permit(&scene.offer, "more").await;
    assert_eq!(denied.denial(), PermitDenial::OutOfOrder);
    let other_plan =
        PermitRequest { claim: Some(claim.clone()), step: "change".to_owned(), plan_digest: "0".repeat(64) };
    assert_eq!(scene.peer.permit_as(other_plan).await.denial(), PermitDenial::PlanDiffers);
    assert_eq!(scene.peer.permit(&scene.offer, "no-such-step").await.denial(), PermitDenial::NoSuchMutation);

    assert_eq!(scene.peer.permit(&scene.offer, "change").await.kind(), PermitAnswerKind::Granted);
    assert_eq!(scene.peer.permit(&scene.offer, "more").await.kind(), PermitAnswerKind::Denied, "one permit at a time");
    // The end before the start is news all the same: it began, since it ended.
    assert_eq!(scene.peer.report(Some(&claim), 10, applied("change")).await.kind(), DispositionKind::Accepted);
    let answer = scene.peer.report(Some(&claim), 11, started("change")).await;
    assert_eq!((answer.kind(), answer.reason()), (DispositionKind::Filed, FiledReason::StepOutOfOrder));
    let evidence = scene.operator.evidence(&scene.label).await;
    assert_eq!(evidence.iter().filter(|found| found.kind == "late_report").count(), 7, "none is lost: {evidence:#?}");
}

/// F38, T8, T9: a valid agent without the lease gets the answer of what does not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_agents_word_changes_nothing_and_learns_nothing() {
    let mut scene = scene().await;
    let mut stranger = scene.cluster.peer("web-66", hello(Uuid::new_v4())).await.expect("welcome");
    scene.peer.permit(&scene.offer, "change").await;
    let before = (
        scene.operator.deployment(&scene.label).await,
        scene.operator.events(&scene.label).await,
        scene.operator.evidence(&scene.label).await,
    );
    let nothing =
        Claim { deployment: Uuid::now_v7().to_string(), attempt: Uuid::new_v4().to_string(), fence: scene.claim.fence };
    let bodies = [
        started("change"),
        applied("change"),
        ended(AttemptEnd::Succeeded),
        Body::CancelReceived(CancelReceived::default()),
    ];
    let mut sequence = 0;
    for body in bodies {
        let mut answers = Vec::new();
        for claim in [&scene.claim, &nothing] {
            sequence += 1;
            let answer = stranger.report(Some(claim), sequence, body.clone()).await;
            answers.push((answer.kind(), answer.reason()));
        }
        assert_eq!(answers[0], answers[1], "what exists is told apart from what does not: {body:?}");
        assert_eq!(answers[0].0, DispositionKind::Filed);
    }
    let mut denials = Vec::new();
    for claim in [&scene.claim, &nothing] {
        let plan_digest = scene.offer.plan_digest.clone();
        let request = PermitRequest { claim: Some(claim.clone()), step: "change".to_owned(), plan_digest };
        let answer = stranger.permit_as(request).await;
        denials.push((answer.kind(), answer.denial()));
        let answer = OfferAnswer {
            claim: Some(claim.clone()),
            kind: OfferAnswerKind::Declined.into(),
            reason: 1,
            ..Default::default()
        };
        stranger.say(Says::OfferAnswer(answer)).await;
    }
    assert_eq!(denials[0], denials[1]);
    assert_eq!(denials[0].0, PermitAnswerKind::Denied);
    let renewed = stranger.heartbeat(&[scene.claim.clone(), nothing]).await;
    assert!(renewed.leases.iter().all(|lease| lease.answer() == LeaseAnswer::Superseded));
    let after = (
        scene.operator.deployment(&scene.label).await,
        scene.operator.events(&scene.label).await,
        scene.operator.evidence(&scene.label).await,
    );
    assert_eq!(before.1, after.1);
    assert_eq!(before.2, after.2);
    assert_eq!(last_attempt(&before.0).steps, last_attempt(&after.0).steps);
}

/// F49: a message without a fence, or with a part of its claim missing, is refused and never given the current one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_with_a_part_missing_ends_the_session_and_changes_nothing() {
    let mut scene = scene().await;
    scene.peer.permit(&scene.offer, "change").await;
    let before = scene.operator.events(&scene.label).await;
    let whole = scene.claim.clone();
    let parts = [
        None,
        Some(Claim { fence: 0, ..whole.clone() }),
        Some(Claim { attempt: String::new(), ..whole.clone() }),
        Some(Claim { deployment: String::new(), ..whole.clone() }),
        Some(Claim { attempt: "x".repeat(4096), ..whole.clone() }),
    ];
    for claim in parts {
        let plan_digest = scene.offer.plan_digest.clone();
        let messages = [
            Says::Report(report(claim.as_ref(), 1, applied("change"))),
            Says::PermitRequest(PermitRequest { claim: claim.clone(), step: "change".to_owned(), plan_digest }),
            Says::OfferAnswer(OfferAnswer { claim: claim.clone(), kind: 1, reason: 0, ..Default::default() }),
            Says::Heartbeat(Heartbeat { number: 1, claims: vec![claim.clone().unwrap_or_default()], no_room: None }),
        ];
        for message in messages {
            scene.peer.say(message).await;
            let over = scene.peer.over().await;
            assert!(matches!(&over, Ok(code) if code.starts_with("HF-")), "{claim:?}: {over:?}");
            scene.reconnect().await;
        }
    }
    assert_eq!(scene.operator.events(&scene.label).await, before);
}

/// F50: each element of a batch by itself; a broken one spoils all, a foreign one only itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_claim_of_a_heartbeat_is_judged_by_itself() {
    let mut scene = scene().await;
    let own = scene.claim.clone();
    let foreign = Claim { attempt: Uuid::new_v4().to_string(), ..own.clone() };
    let older = Claim { fence: own.fence - 1, ..own.clone() };
    let newer = Claim { fence: own.fence + 1, ..own.clone() };
    let answer = scene.peer.heartbeat(&[own.clone(), foreign, older, newer, own.clone()]).await;
    let answers: Vec<LeaseAnswer> = answer.leases.iter().map(holdfast_proto::v1::RenewedLease::answer).collect();
    let (yes, no) = (LeaseAnswer::Renewed, LeaseAnswer::Superseded);
    assert_eq!(answers, [yes, no, no, no, yes]);
}

/// F22: the coordinator's side of what is valid but not expected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unexpected_messages_end_the_session_and_not_the_coordinator() {
    let mut scene = scene().await;
    let before = scene.operator.events(&scene.label).await;
    let odd = [
        Says::Hello(hello(scene.incarnation)),
        Says::OfferAnswer(OfferAnswer { claim: Some(scene.claim.clone()), kind: 99, reason: 0, ..Default::default() }),
        Says::OfferAnswer(OfferAnswer { claim: Some(scene.claim.clone()), kind: 2, reason: 0, ..Default::default() }),
        Says::Report(holdfast_proto::v1::Report { body: None, ..report(Some(&scene.claim), 1, started("change")) }),
        Says::Report(report(Some(&scene.claim), 0, started("change"))),
        Says::Report(report(Some(&scene.claim), 1, started("not a\nname"))),
        Says::Report(report(Some(&scene.claim), 1, ended(AttemptEnd::Unspecified))),
        Says::PermitRequest(PermitRequest { claim: Some(scene.claim.clone()), ..PermitRequest::default() }),
    ];
    for message in odd {
        let told = format!("{message:?}");
        scene.peer.say(message).await;
        let over = scene.peer.over().await;
        assert!(matches!(&over, Ok(code) if code.starts_with("HF-")), "{told}: {over:?}");
        scene.reconnect().await;
    }
    assert_eq!(scene.operator.events(&scene.label).await, before);
    // An answer to a question that nobody asked, and a first message that is no hello.
    let answer = holdfast_proto::v1::InquiryAnswer {
        id: Uuid::new_v4().to_string(),
        finding: Some(holdfast_proto::v1::inquiry_answer::Finding::Failed(holdfast_proto::v1::InquiryFailed {
            detail: "x".to_owned(),
        })),
    };
    scene.peer.say(Says::InquiryAnswer(answer)).await;
    scene.peer.heartbeat(std::slice::from_ref(&scene.claim)).await;
    let address = format!("https://{}", scene.cluster.coordinator().address());
    let (outgoing, mut incoming) = peer::open(&address, &scene.cluster.agent_tls("web-09")).await.expect("a stream");
    let heartbeat = Says::Heartbeat(Heartbeat { number: 1, claims: vec![scene.claim.clone()], no_room: None });
    outgoing.send(holdfast_proto::v1::ConnectRequest { message: Some(heartbeat) }).await.expect("sent");
    let first = incoming.message().await;
    let refused = match &first {
        Ok(Some(response)) => matches!(&response.message, Some(Hears::Bye(_))),
        Ok(None) | Err(_) => true,
    };
    assert!(refused, "{first:?}");
    assert_eq!(state_of(&scene.operator.deployment(&scene.label).await), DeploymentState::Active);
    assert_eq!(scene.cluster.coordinator().status(), None);
}

/// Everything that a session had said, replayed after the end: the same answers, no new fact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replayed_session_changes_nothing() {
    let mut scene = scene().await;
    let claim = scene.claim.clone();
    let mut said = Vec::new();
    for (sequence, step) in [(1, "change"), (3, "more")] {
        assert_eq!(scene.peer.permit(&scene.offer, step).await.kind(), PermitAnswerKind::Granted);
        said.push(report(Some(&claim), sequence, started(step)));
        said.push(report(Some(&claim), sequence + 1, applied(step)));
        for report in &said[said.len() - 2..] {
            scene.peer.say(Says::Report(report.clone())).await;
            assert_eq!(scene.peer.disposition(report.sequence).await.kind(), DispositionKind::Accepted);
        }
    }
    said.push(report(Some(&claim), 5, ended(AttemptEnd::Succeeded)));
    scene.peer.say(Says::Report(said[4].clone())).await;
    assert_eq!(scene.peer.disposition(5).await.kind(), DispositionKind::Accepted);
    let done = scene.operator.until_state(&scene.label, DeploymentState::Succeeded).await;
    let before = scene.operator.events(&scene.label).await;
    scene.reconnect().await;
    for step in ["change", "more"] {
        let answer = scene.peer.permit(&scene.offer, step).await;
        assert_eq!(answer.kind(), PermitAnswerKind::Denied, "a permit is not given again");
    }
    for report in said.iter().rev() {
        scene.peer.say(Says::Report(report.clone())).await;
        assert_eq!(scene.peer.disposition(report.sequence).await.kind(), DispositionKind::Duplicate);
    }
    let renewed = scene.peer.heartbeat(std::slice::from_ref(&claim)).await;
    assert_eq!(renewed.leases[0].answer(), LeaseAnswer::Superseded);
    // A new report on what has ended is filed.
    let late = scene.peer.report(Some(&claim), 6, ended(AttemptEnd::Failed)).await;
    assert_eq!(late.kind(), DispositionKind::Filed);
    let after = scene.operator.events(&scene.label).await;
    let new: Vec<&str> = after[before.len()..].iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(new, ["evidence_filed"]);
    assert_eq!(state_of(&scene.operator.deployment(&scene.label).await), state_of(&done));
}

/// F56: an offer that was lost is offered again to the same journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_that_was_lost_comes_again() {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let incarnation = Uuid::new_v4();
    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("welcome");
    let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &["true".to_owned()]);
    submit(&operator, file.text()).await;
    let lost = peer.offer().await;
    let again = Hello { session_token: peer.welcome.session_token.clone(), journal_sequence: 3, ..hello(incarnation) };
    drop(peer);
    let mut peer = cluster.peer("web-01", again).await.expect("welcome");
    assert_eq!(peer.take_offer().await.claim, lost.claim);
}

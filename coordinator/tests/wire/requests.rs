//! What operators ask for, and how agents' messages about it are joined with who sent them.

use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Say;
use tonic::Code;
use uuid::Uuid;

use crate::agent::{Agent, applied, report, started, succeeded};
use crate::world::{Operators, World, problem, soon};

pub(crate) const TARGET: &str = r#"
schema = "holdfast/v1"
name   = "shop@prod"
agents = { role = "shop" }

[reconcile]
policy = "manual"

[[resource]]
name    = "site"
adapter = "command"
reach   = "shared"
with    = { outlives = false }
"#;

pub(crate) const FILE: &str = r#"
schema = "holdfast/v1"
target = "shop@prod"

[lease]
ttl = "30s"

[[step]]
name = "switch"
run  = ["true"]
"#;

pub(crate) fn submission(request: u128) -> v1::SubmitRequest {
    v1::SubmitRequest {
        request_id: Uuid::from_u128(request).to_string(),
        file: FILE.to_owned(),
        ..v1::SubmitRequest::default()
    }
}

pub(crate) async fn declare(admin: &mut Operators) {
    admin.apply_target(v1::ApplyTargetRequest { file: TARGET.to_owned() }).await.expect("declared");
}

pub(crate) async fn submit(admin: &mut Operators, request: u128) -> v1::Deployment {
    let answer = admin.submit(submission(request)).await.expect("taken").into_inner();
    answer.deployment.expect("a deployment")
}

/// An agent that has taken the offer of a first deployment.
pub(crate) async fn at_work(world: &World, admin: &mut Operators) -> (Agent, v1::Offer) {
    declare(admin).await;
    let mut agent = Agent::greeted(world, "web-07", 7).await;
    submit(admin, 1).await;
    let offer = agent.offer().await;
    let kind = v1::OfferAnswerKind::Accepted as i32;
    agent
        .say(Say::OfferAnswer(v1::OfferAnswer { claim: offer.claim.clone(), kind, reason: 0, ..Default::default() }))
        .await;
    (agent, offer)
}

pub(crate) fn permit(offer: &v1::Offer, step: &str) -> v1::PermitRequest {
    v1::PermitRequest { claim: offer.claim.clone(), step: step.to_owned(), plan_digest: offer.plan_digest.clone() }
}

async fn get(admin: &mut Operators, deployment: &str) -> v1::Deployment {
    let request = v1::GetDeploymentRequest { deployment: deployment.to_owned() };
    admin.get_deployment(request).await.expect("there").into_inner().deployment.expect("a deployment")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_goes_from_its_submission_to_its_success_and_every_event_is_told_once() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.clone().expect("a claim");
    assert_eq!((offer.target.as_str(), offer.steps[0].name.as_str()), ("shop@prod", "switch"));
    let watch = v1::WatchEventsRequest { deployment: "shop@prod#1".to_owned(), from_sequence: 0, follow: true };
    let mut events = admin.watch_events(watch).await.expect("watched").into_inner();

    assert_eq!(agent.heartbeat(vec![claim.clone()]).await, [v1::LeaseAnswer::Renewed]);
    let granted = agent.permit(permit(&offer, "switch")).await;
    assert_eq!(granted.kind(), v1::PermitAnswerKind::Granted);
    for (sequence, body) in [(1, started("switch")), (2, applied("switch")), (3, succeeded())] {
        let disposition = agent.report(report(&claim, sequence, body)).await;
        assert_eq!(disposition.kind(), v1::DispositionKind::Accepted, "{sequence}");
    }
    let again = agent.report(report(&claim, 3, succeeded())).await;
    assert_eq!(again.kind(), v1::DispositionKind::Duplicate);

    let mut told = Vec::new();
    loop {
        let event = soon("an event", events.message()).await.expect("a stream").expect("more").event.expect("one");
        let over = event.state_after() == v1::DeploymentState::Succeeded;
        told.push(event);
        if over {
            break;
        }
    }
    let sequences: Vec<u64> = told.iter().map(|event| event.sequence).collect();
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
    assert!(told.iter().all(|event| event.hash.len() == 64 && !event.sentence.is_empty() && !event.kind.is_empty()));
    let from = sequences[2];
    let rest = v1::WatchEventsRequest { deployment: "shop@prod#1".to_owned(), from_sequence: from, follow: false };
    let mut rest = admin.watch_events(rest).await.expect("watched").into_inner();
    let mut later = Vec::new();
    while let Some(event) = soon("an event", rest.message()).await.expect("a stream") {
        later.push(event.event.expect("one"));
    }
    assert_eq!(later[..told.len() - 2], told[2..]);

    let shown = get(&mut admin, "shop@prod#1").await;
    assert_eq!(shown.summary.expect("there").state(), v1::DeploymentState::Succeeded);
    assert!(!shown.holds_target);
    world.stop().await;
}

/// Between the Welcome and the driver's word of the session both could hand out the offer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_comes_while_a_session_settles_is_offered_once() {
    for _ in 0..10 {
        let world = World::new().await;
        let mut admin = world.admin().await;
        let (mut agent, offer) = at_work(&world, &mut admin).await;
        // The next thing that is heard is the answer, not the offer again.
        assert_eq!(agent.heartbeat(offer.claim.into_iter().collect()).await, [v1::LeaseAnswer::Renewed]);
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_id_is_the_same_deployment_and_never_another_request() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    let one = admin.submit(submission(1)).await.expect("taken").into_inner();
    let same = admin.submit(submission(1)).await.expect("taken").into_inner();
    assert!(!one.existed && same.existed);
    let id = |answer: &v1::SubmitResponse| answer.deployment.clone().unwrap().summary.unwrap().id;
    assert_eq!(id(&one), id(&same));
    let other = v1::SubmitRequest { file: FILE.replace("true", "false"), ..submission(1) };
    let status = admin.submit(other).await.expect_err("another request");
    assert_eq!(problem(&status).code.to_string(), "HF-2010");
    let changed = TARGET.replace("\"site\"", "\"other\"").replace("role = \"shop\"", "role = \"mail\"");
    admin.cancel(v1::CancelDeploymentRequest { deployment: id(&one), reason: "done".to_owned() }).await.unwrap();
    for change in [v1::TargetChange::Anew, v1::TargetChange::None] {
        let file = changed.clone();
        let told = admin.apply_target(v1::ApplyTargetRequest { file }).await.expect("declared anew").into_inner();
        assert_eq!(told.change(), change);
    }
    let later = admin.submit(submission(1)).await.expect("the same, whatever the target is now").into_inner();
    assert!(later.existed && id(&later) == id(&one));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_at_once_under_one_request_id_are_one_deployment() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    let twenty = (0..20).map(|_| {
        let mut client = admin.clone();
        tokio::spawn(async move { client.submit(submission(9)).await.expect("taken").into_inner() })
    });
    let mut ids = Vec::new();
    let mut fresh = 0;
    for answer in twenty.collect::<Vec<_>>() {
        let answer = soon("an answer", answer).await.unwrap();
        fresh += u32::from(!answer.existed);
        ids.push(answer.deployment.unwrap().summary.unwrap().id);
    }
    ids.dedup();
    assert_eq!((fresh, ids.len()), (1, 1));
    let all = admin.list_deployments(v1::ListDeploymentsRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.deployments.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_agent_with_the_right_claim_gets_what_does_not_exist_and_changes_nothing() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut owner, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.clone().expect("a claim");
    owner.permit(permit(&offer, "switch")).await;
    let before = get(&mut admin, "shop@prod#1").await;

    let mut thief = Agent::greeted(&world, "web-66", 66).await;
    let made_up =
        v1::Claim { deployment: Uuid::from_u128(5).to_string(), attempt: Uuid::from_u128(6).to_string(), fence: 3 };
    let mut answers = Vec::new();
    for claim in [&claim, &made_up] {
        let lease = thief.heartbeat(vec![claim.clone()]).await;
        let denied = thief.permit(v1::PermitRequest { claim: Some(claim.clone()), ..permit(&offer, "switch") }).await;
        let end = thief.report(report(claim, 1 + answers.len() as u64 * 2, applied("switch"))).await;
        let over = thief.report(report(claim, 2 + answers.len() as u64 * 2, succeeded())).await;
        answers.push((lease, denied.denial(), end.kind(), end.reason(), over.kind(), over.reason()));
    }
    assert_eq!(answers[0], answers[1], "the same answer as for what does not exist");
    assert_eq!(answers[0].0, [v1::LeaseAnswer::Superseded]);
    assert_eq!(answers[0].1, v1::PermitDenial::NotYours);
    assert_eq!(answers[0].3, v1::FiledReason::UnknownAttempt);
    let cancelled = report(&claim, 9, v1::report::Body::CancelReceived(v1::CancelReceived::default()));
    assert_eq!(thief.report(cancelled).await.kind(), v1::DispositionKind::Filed);

    let after = get(&mut admin, "shop@prod#1").await;
    assert_eq!(after.attempts[0].steps, before.attempts[0].steps);
    assert_eq!(after.summary.unwrap().state(), v1::DeploymentState::Active);
    assert_eq!(after.evidence_count, 0, "not even evidence in another's deployment");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_claim_of_a_heartbeat_is_judged_by_itself() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut agent, offer) = at_work(&world, &mut admin).await;
    let own = offer.claim.clone().expect("a claim");
    let wrong_fence = v1::Claim { fence: own.fence + 1, ..own.clone() };
    let made_up = v1::Claim { attempt: Uuid::from_u128(6).to_string(), ..own.clone() };
    let answers = agent.heartbeat(vec![made_up, own.clone(), wrong_fence, own]).await;
    use v1::LeaseAnswer::{Renewed, Superseded};
    assert_eq!(answers, [Superseded, Renewed, Superseded, Renewed]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_target_refuses_who_will_not_wait_with_the_facts_of_its_holder() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut agent, offer) = at_work(&world, &mut admin).await;
    agent.permit(permit(&offer, "switch")).await;
    let claim = offer.claim.clone().expect("a claim");
    let unknown = v1::report::Body::StepEnded(v1::StepEnded {
        step: "switch".to_owned(),
        end: Some(v1::StepEnd { kind: v1::StepEndKind::Unknown as i32, ..v1::StepEnd::default() }),
        ..v1::StepEnded::default()
    });
    agent.report(report(&claim, 1, started("switch"))).await;
    agent.report(report(&claim, 2, unknown)).await;

    let refused = v1::SubmitRequest { no_queue: true, ..submission(2) };
    let status = admin.submit(refused).await.expect_err("held");
    assert_eq!(status.code(), Code::FailedPrecondition);
    let problem = problem(&status);
    assert_eq!(problem.code.to_string(), "HF-2031");
    assert_eq!(problem.title, "shop@prod is held by shop@prod#1, which is uncertain");
    assert!(problem.known[0].contains("step switch was permitted") && problem.known[0].contains("web-07"), "{problem}");
    assert!(problem.known[0].contains("under fence 1.1"), "{problem}");
    assert_eq!(problem.not_known, ["whether switch finished; whether web-07 is still working"]);
    assert_eq!(problem.next, ["holdfast reconcile show shop@prod#1"]);

    submit(&mut admin, 3).await;
    let target = admin.get_target(v1::GetTargetRequest { target: "shop@prod".to_owned() }).await.unwrap();
    let target = target.into_inner().target.expect("a target");
    assert_eq!(target.waiting.len(), 1);
    assert!(target.who_can_act.contains("holdfast reconcile show shop@prod#1"), "{}", target.who_can_act);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncertain_deployment_is_left_by_an_attestation_and_a_decision_and_by_nothing_less() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut agent, offer) = at_work(&world, &mut admin).await;
    agent.permit(permit(&offer, "switch")).await;
    let claim = offer.claim.clone().expect("a claim");
    let unknown = v1::StepEnded {
        step: "switch".to_owned(),
        end: Some(v1::StepEnd { kind: v1::StepEndKind::Unknown as i32, ..v1::StepEnd::default() }),
        ..v1::StepEnded::default()
    };
    agent.report(report(&claim, 1, v1::report::Body::StepEnded(unknown))).await;

    let name = "shop@prod#1".to_owned();
    let decide = |evidence_sequence, confirm: &str| v1::DecideRequest {
        deployment: name.clone(),
        kind: v1::DecisionKind::AcceptFailed as i32,
        reason: "looked".to_owned(),
        evidence_sequence,
        confirm: confirm.to_owned(),
    };
    let code = |status: tonic::Status| problem(&status).code.to_string();
    assert_eq!(code(admin.decide(decide(0, "shop")).await.unwrap_err()), "HF-3004");
    let silent = v1::DecideRequest { reason: " ".to_owned(), ..decide(0, "shop@prod") };
    assert_eq!(code(admin.decide(silent).await.unwrap_err()), "HF-3007");
    assert_eq!(code(admin.decide(decide(0, "shop@prod")).await.unwrap_err()), "HF-3002");
    let unspecified = v1::DecideRequest { kind: 0, ..decide(0, "shop@prod") };
    assert_eq!(code(admin.decide(unspecified).await.unwrap_err()), "HF-5003");
    let by_prefix = v1::DecideRequest { deployment: claim.deployment[..8].to_owned(), ..decide(0, "shop@prod") };
    assert_eq!(code(admin.decide(by_prefix).await.unwrap_err()), "HF-2002");

    let attest = v1::AttestRequest {
        deployment: name.clone(),
        runner: v1::AttestedRunner::Stopped as i32,
        target_state: v1::AttestedTarget::NotApplied as i32,
        how: "the process list".to_owned(),
        attachment: b"ps".to_vec(),
        confirm: "shop@prod".to_owned(),
        ..v1::AttestRequest::default()
    };
    let evidence = admin.attest(attest).await.expect("recorded").into_inner().evidence.expect("evidence");
    assert_eq!(evidence.kind, "attested");
    assert_eq!(std::fs::read_dir(world.data().join("attachments")).unwrap().count(), 1);
    let list = admin.get_reconciliation(v1::GetReconciliationRequest { deployment: name.clone() }).await.unwrap();
    let list = list.into_inner().reconciliation.expect("a checklist");
    assert_eq!(list.runner(), v1::RunnerState::Stopped);
    assert_eq!(list.evidence_sequence, evidence.sequence);
    assert_eq!(code(admin.decide(decide(list.evidence_sequence - 1, "shop@prod")).await.unwrap_err()), "HF-3003");
    let decided = admin.decide(decide(list.evidence_sequence, "shop@prod")).await.expect("open").into_inner();
    let deployment = decided.deployment.expect("a deployment");
    assert_eq!(deployment.summary.unwrap().state(), v1::DeploymentState::Failed);
    assert!(deployment.ended_by_decision && deployment.decisions[0].attested);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_deployment_is_cancelled_at_once_and_a_cancel_needs_a_reason() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    submit(&mut admin, 1).await;
    let cancel =
        |reason: &str| v1::CancelDeploymentRequest { deployment: "shop@prod#1".to_owned(), reason: reason.to_owned() };
    let status = admin.cancel(cancel("")).await.expect_err("no reason");
    assert_eq!(problem(&status).code.to_string(), "HF-3007");
    let answer = admin.cancel(cancel("not today")).await.expect("taken").into_inner();
    assert_eq!(answer.answer(), v1::CancelAnswer::Cancelled);
    let late = admin.cancel(cancel("again")).await.expect("taken").into_inner();
    assert_eq!(late.answer(), v1::CancelAnswer::TooLate);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_deployment_says_why_each_agent_takes_nothing() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    let mut poor = Agent::silent(&world, "web-01").await;
    poor.say(Say::Hello(v1::Hello { adapters: vec!["release".to_owned()], ..crate::agent::hello(1) })).await;
    poor.welcome().await;
    submit(&mut admin, 1).await;
    let why = soon("a reason", async {
        loop {
            let shown = get(&mut admin, "shop@prod#1").await;
            if shown.waiting.contains("web-01") {
                return shown.waiting;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    assert!(why.await.contains("does not offer the adapter command"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_files_ids_and_pages_are_refused_by_name() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let code = |status: tonic::Status| problem(&status).code.to_string();
    let unknown = v1::SubmitRequest { file: FILE.replace("[lease]", "[leese]"), ..submission(1) };
    let status = admin.submit(unknown).await.unwrap_err();
    assert!(problem(&status).metadata.contains_key("line"), "{status:?}");
    assert_eq!(code(status), "HF-1002");
    assert_eq!(code(admin.submit(submission(1)).await.unwrap_err()), "HF-2001", "the target is not declared");
    declare(&mut admin).await;
    let nameless = v1::SubmitRequest { request_id: "x".to_owned(), ..submission(1) };
    assert_eq!(code(admin.submit(nameless).await.unwrap_err()), "HF-5003");
    for deployment in ["shop@prod#9", "nonsense", "", "../x", "0000"] {
        let request = v1::GetDeploymentRequest { deployment: deployment.to_owned() };
        assert_eq!(code(admin.get_deployment(request).await.unwrap_err()), "HF-2002", "{deployment}");
    }
    let states = v1::ListDeploymentsRequest { states: vec![99], ..v1::ListDeploymentsRequest::default() };
    assert_eq!(code(admin.list_deployments(states).await.unwrap_err()), "HF-5003");
    let page = v1::ListDeploymentsRequest { page_token: "x".to_owned(), ..v1::ListDeploymentsRequest::default() };
    assert_eq!(code(admin.list_deployments(page).await.unwrap_err()), "HF-5003");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_come_in_pages_without_loss_and_reads_take_a_unique_prefix() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    for request in 1..=5 {
        submit(&mut admin, request).await;
    }
    let mut labels = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListDeploymentsRequest { page_size: 2, page_token, ..v1::ListDeploymentsRequest::default() };
        let page = admin.list_deployments(request).await.expect("a page").into_inner();
        labels.extend(page.deployments.into_iter().map(|one| one.number));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(labels, [5, 4, 3, 2, 1]);
    let id = get(&mut admin, "shop@prod#3").await.summary.unwrap().id;
    assert_eq!(get(&mut admin, &id[..35]).await.summary.unwrap().number, 3);
    world.stop().await;
}

pub(crate) const RELEASE_TARGET: &str = r#"
schema = "holdfast/v1"
name   = "shop@prod"
agents = { role = "shop" }

[reconcile]
policy = "manual"

[[resource]]
name    = "site"
adapter = "release"
reach   = "host"
with    = { root = "/srv/shop", retain = 2 }
"#;

pub(crate) const RELEASE_FILE: &str = r#"
schema = "holdfast/v1"
target = "shop@prod"

[[step]]
name = "switch"
with = { archive = "/x.tar.gz", sha256 = "0000000000000000000000000000000000000000000000000000000000000000", revision = "v2" }
"#;

/// Uncertain, with the release step in question.
pub(crate) async fn uncertain_release(world: &World, admin: &mut Operators) -> (Agent, v1::Claim) {
    admin.apply_target(v1::ApplyTargetRequest { file: RELEASE_TARGET.to_owned() }).await.expect("declared");
    let mut agent = Agent::greeted(world, "web-07", 7).await;
    admin.submit(v1::SubmitRequest { file: RELEASE_FILE.to_owned(), ..submission(1) }).await.expect("taken");
    let offer = agent.offer().await;
    let claim = offer.claim.clone().expect("a claim");
    agent.permit(permit(&offer, "switch")).await;
    let unknown = v1::StepEnded {
        step: "switch".to_owned(),
        end: Some(v1::StepEnd { kind: v1::StepEndKind::Unknown as i32, ..v1::StepEnd::default() }),
        ..v1::StepEnded::default()
    };
    agent.report(report(&claim, 1, v1::report::Body::StepEnded(unknown))).await;
    (agent, claim)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_off_is_asked_of_the_agent_that_reaches_it_and_its_answer_is_awaited() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut agent, claim) = uncertain_release(&world, &mut admin).await;
    let fence_off = |confirm: &str, reason: &str| v1::FenceOffDeploymentRequest {
        deployment: "shop@prod#1".to_owned(),
        confirm: confirm.to_owned(),
        reason: reason.to_owned(),
        wait: Some(prost_types::Duration { seconds: 10, nanos: 0 }),
    };
    let code = |status: tonic::Status| problem(&status).code.to_string();
    assert_eq!(code(admin.fence_off_deployment(fence_off("", "lost")).await.unwrap_err()), "HF-3004");
    assert_eq!(code(admin.fence_off_deployment(fence_off("shop@prod", "")).await.unwrap_err()), "HF-3007");

    let mut asking = admin.clone();
    let asked = tokio::spawn(async move { asking.fence_off_deployment(fence_off("shop@prod", "lost")).await });
    let inquiry = match agent.hear().await {
        Some(v1::connect_response::Message::Inquiry(inquiry)) => inquiry,
        other => panic!("no inquiry: {other:?}"),
    };
    assert_eq!(inquiry.operation, format!("{}/switch", claim.deployment));
    let Some(v1::inquiry::Question::FenceOff(raise)) = inquiry.question else { panic!("no fence-off") };
    assert!(raise.fence > claim.fence);

    let answer = |id: &str| {
        let reading = v1::Reading {
            resource_identity: "site-1".to_owned(),
            state: v1::OperationState::NotApplied as i32,
            highest_fence: raise.fence,
            ..v1::Reading::default()
        };
        let finding = Some(v1::inquiry_answer::Finding::Raised(reading));
        Say::InquiryAnswer(v1::InquiryAnswer { id: id.to_owned(), finding })
    };
    let thief = Agent::greeted(&world, "web-66", 66).await;
    thief.say(answer(&inquiry.id)).await;
    agent.say(answer(&Uuid::from_u128(1).to_string())).await;
    agent.say(answer(&inquiry.id)).await;
    let told = soon("an answer", asked).await.unwrap().expect("taken").into_inner();
    assert_eq!(told.inquiry, inquiry.id);
    let evidence = told.answer.expect("in time");
    assert_eq!((evidence.kind.as_str(), evidence.by.as_str(), evidence.fence), ("fenced_off", "web-07", raise.fence));

    let list = admin.get_reconciliation(v1::GetReconciliationRequest { deployment: "shop@prod#1".to_owned() });
    let list = list.await.unwrap().into_inner().reconciliation.expect("a checklist");
    assert_eq!(list.runner(), v1::RunnerState::FencedOff);
    assert_eq!(list.open_steps[0].state(), v1::OperationState::NotApplied);
    assert!(list.open_steps[0].can_inspect && list.open_steps[0].can_fence_off);
    let all = admin.list_evidence(v1::ListEvidenceRequest { deployment: "shop@prod#1".to_owned() }).await.unwrap();
    assert!(all.into_inner().evidence.iter().all(|evidence| evidence.by == "web-07"), "nothing from the other agent");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inspection_that_nobody_answers_is_told_as_no_answer() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (agent, _) = uncertain_release(&world, &mut admin).await;
    let inspect = v1::InspectDeploymentRequest {
        deployment: "shop@prod#1".to_owned(),
        wait: Some(prost_types::Duration { seconds: 0, nanos: 50_000_000 }),
    };
    let told = admin.inspect_deployment(inspect.clone()).await.expect("asked").into_inner();
    assert!(!told.inquiry.is_empty() && told.answer.is_none());
    drop(agent);
    let gone = async {
        loop {
            let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
            if agents[0].contact() == v1::Contact::Silent {
                return agents;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let agents = soon("silence", gone).await;
    assert_eq!(agents[0].holds, ["shop@prod#1"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journals_word_about_a_lost_attempt_is_filed_once_and_the_attempt_stays_superseded() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (agent, claim) = uncertain_release(&world, &mut admin).await;
    drop(agent);
    for _ in 0..2 {
        let held = v1::HeldAttempt {
            claim: Some(claim.clone()),
            state: v1::JournalState::Running as i32,
            step: "switch".to_owned(),
        };
        let mut agent = Agent::silent(&world, "web-07").await;
        agent.say(Say::Hello(v1::Hello { held: vec![held], ..crate::agent::hello(7) })).await;
        agent.welcome().await;
        match agent.hear().await {
            Some(v1::connect_response::Message::HeartbeatAnswer(answer)) => {
                assert_eq!(answer.leases[0].answer(), v1::LeaseAnswer::Superseded);
            }
            other => panic!("nothing about the held attempt: {other:?}"),
        }
    }
    let all = admin.list_evidence(v1::ListEvidenceRequest { deployment: "shop@prod#1".to_owned() }).await.unwrap();
    let words: Vec<_> = all.into_inner().evidence.into_iter().filter(|one| one.kind == "journal_word").collect();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].sentence.contains("still running"), "{}", words[0].sentence);
    assert_eq!(get(&mut admin, "shop@prod#1").await.summary.unwrap().state(), v1::DeploymentState::Uncertain);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_has_nothing_to_reconcile_and_refusals_name_the_deployment_at_hand() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    declare(&mut admin).await;
    submit(&mut admin, 1).await;
    let deployment = || "shop@prod#1".to_owned();
    let inspect = || v1::InspectDeploymentRequest { deployment: deployment(), wait: None };
    let waits = problem(&admin.inspect_deployment(inspect()).await.expect_err("it only waits"));
    assert_eq!((waits.code.to_string().as_str(), waits.title.contains("shop@prod#1 is queued")), ("HF-3001", true));
    let decide = || v1::DecideRequest {
        deployment: deployment(),
        kind: v1::DecisionKind::Note as i32,
        reason: "seen".to_owned(),
        evidence_sequence: 0,
        confirm: String::new(),
    };
    admin
        .cancel(v1::CancelDeploymentRequest { deployment: deployment(), reason: "x".to_owned() })
        .await
        .expect("ended");
    let fence = v1::FenceOffDeploymentRequest {
        deployment: deployment(),
        confirm: "shop@prod".to_owned(),
        reason: "x".to_owned(),
        wait: None,
    };
    let attest = v1::AttestRequest {
        deployment: deployment(),
        runner: v1::AttestedRunner::Stopped as i32,
        target_state: v1::AttestedTarget::Applied as i32,
        how: "x".to_owned(),
        confirm: "shop@prod".to_owned(),
        ..v1::AttestRequest::default()
    };
    for status in [
        admin.inspect_deployment(inspect()).await.expect_err("ended"),
        admin.fence_off_deployment(fence).await.expect_err("ended"),
        admin.attest(attest).await.expect_err("ended"),
        admin.decide(decide()).await.expect_err("ended"),
    ] {
        let problem = problem(&status);
        assert_eq!(problem.code.to_string(), "HF-3001", "{problem:?}");
        assert!(problem.title.contains("shop@prod#1") && !format!("{problem:?}").contains("DEPLOYMENT"), "{problem:?}");
    }
    world.stop().await;
}

//! Contact is lost in the middle of a change and comes back.

use holdfast_proto::v1::{
    AttemptEnd, AttemptState, AttestedRunner, AttestedTarget, Claim, Contact, DecisionKind, DeploymentState,
    DispositionKind, Evidence, FiledReason, LeaseAnswer, OperationState, PermitAnswerKind, PermitDenial, PermitRequest,
    RunnerState,
};
use holdfast_tests::api::{code_of, id_of, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::events::assert_kinds;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::peer::{applied, ended, hello, started};
use holdfast_tests::{process, site};
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, SHOP, change, last_attempt, lost, lost_before, other, submit, uncertain, with_box};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_cut_off_holds_its_target_until_a_person_decides() {
    let (cluster, operator, ledger) = with_box().await;
    let (first, holder) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let second = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;

    // The other agent is idle and gets nothing.
    let held = operator.until_state(&first, DeploymentState::Uncertain).await;
    assert!(held.holds_target);
    let agents = operator.try_agents().await.expect("an answer");
    let idle = agents.iter().find(|agent| agent.name == other(&holder)).expect("it is there");
    assert!(idle.holds.is_empty(), "{idle:?}");
    let waiting = operator.deployment(&second).await;
    assert_eq!(state_of(&waiting), DeploymentState::Queued);
    assert!(waiting.attempts.is_empty() && waiting.waiting.contains(&first), "{waiting:?}");

    // The command ends while nobody hears it; then the original identity comes back.
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.line(&holder).heal().await;
    let late = operator
        .until_evidence(&first, "the late end", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("attempt_ended")
        })
        .await;
    assert_eq!(late.filed_as(), FiledReason::LeaseExpired);
    let after = operator.deployment(&first).await;
    assert_eq!(state_of(&after), DeploymentState::Uncertain, "a late report is evidence, never authority");
    assert_eq!((after.attempts.len(), last_attempt(&after).state()), (1, AttemptState::Uncertain));
    assert_eq!(state_of(&operator.deployment(&second).await), DeploymentState::Queued);
    ledger.check_begun(1);

    // The journal's word proves the runner out; what it left, only a person can say.
    let checklist = operator.checklist(&first).await;
    assert_eq!(checklist.runner(), RunnerState::Stopped, "{}", checklist.runner_because);
    let refused = operator.decide(&first, BOX, DecisionKind::AcceptSucceeded).await.expect_err("nobody has looked");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused:?}");
    operator.attest(&first, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("attested");
    ledger.attested(&id_of(&after));
    let decided = operator.decide(&first, BOX, DecisionKind::AcceptSucceeded).await.expect("allowed now");
    assert_eq!(state_of(&decided), DeploymentState::Succeeded);
    assert!(decided.ended_by_decision && decided.decisions.iter().any(|decision| decision.attested));

    let done = operator.until_ended(&second).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded);
    ledger.check_begun(2);
    let expected = [
        "submitted",
        "reserved",
        "lease_granted",
        "offer_accepted",
        "permit_granted",
        "report_accepted",  // the step has started
        "attempt_ended",    // uncertain
        "deployment_moved", // uncertain
        "evidence_filed",   // the journal says that it is over
        "evidence_filed",   // late: the step was applied
        "evidence_filed",   // late: the attempt is over
        "evidence_filed",   // attested
        "decided",
        "attempt_ended", // resolved
        "deployment_ended",
    ];
    assert_kinds(&operator.events(&first).await, &expected);
}

/// F9, F13, and the whole way of a release: fence off, inspect, decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_was_cut_off_is_fenced_off_and_its_stale_flip_refused() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::release_target(SHOP, &root, "shared")).await;
    let file = |version: &str, ttl| {
        let archive = site::archive(cluster.folder(), version);
        DeploymentFile::new(SHOP, ttl).release("switch", &archive, version).text().to_owned()
    };
    let (v1, v2, v3) = (file("v1", LONG), file("v2", SHORT), file("v3", LONG));
    let current = || std::fs::read_to_string(root.join("current/index.html")).unwrap_or_default();
    operator.until_ended(&submit(&operator, &v1).await).await;
    assert_eq!(current(), site::index("v1"));

    // From now on the first agent's releases stop themselves right before they would be visible.
    let (second, paused) = lost_before(&mut cluster, &operator, "flip", &v2).await;
    let third = submit(&operator, &v3).await;

    // A look sees nothing at work, and that alone frees nothing: the old process is merely paused.
    operator.inspect(&second).await.expect("the other agent reaches it");
    let refused = operator.decide(&second, SHOP, DecisionKind::Retry).await.expect_err("the runner is not out");
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused:?}");
    assert_eq!(state_of(&operator.deployment(&third).await), DeploymentState::Queued);

    let refused = operator.fence_off(&second, "another@name").await.expect_err("the name is not the target's");
    assert!(!code_of(&refused).is_empty(), "{refused:?}");
    operator.fence_off(&second, SHOP).await.expect("the other agent raises the fence");
    let checklist = operator.checklist(&second).await;
    assert_eq!(checklist.runner(), RunnerState::FencedOff, "{}", checklist.runner_because);
    operator.decide(&second, SHOP, DecisionKind::Retry).await.expect("allowed now");
    let done = operator.until_ended(&second).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
    assert_eq!(done.attempts.len(), 2);
    assert_eq!(current(), site::index("v2"));
    assert_eq!(state_of(&operator.until_ended(&third).await), DeploymentState::Succeeded);
    assert_eq!(current(), site::index("v3"));

    // The paused one wakes: the resource refuses it, and that is evidence.
    process::resume(paused);
    cluster.line("web-01").heal().await;
    let late = operator
        .until_evidence(&second, "the refusal", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("step_ended")
        })
        .await;
    assert!(late.body_json.contains(r#""exit":{"exited":73}"#), "its process was refused: {}", late.body_json);
    assert_eq!(current(), site::index("v3"), "the stale flip changed nothing");
    assert_eq!(state_of(&operator.deployment(&second).await), DeploymentState::Succeeded);
}

/// Attempt B is current while A reports success, with real agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_success_of_an_older_attempt_completes_nothing() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, first) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    operator.attest(&label, BOX, AttestedRunner::HostGone, AttestedTarget::NotApplied).await.expect("attested");
    ledger.attested(&id_of(&operator.deployment(&label).await));
    operator.decide(&label, BOX, DecisionKind::Retry).await.expect("allowed on an attestation");
    ledger.until_begun(2).await;
    let during = operator
        .until(&label, "attempt 2 to be at work", |deployment| {
            deployment.attempts.len() == 2 && last_attempt(deployment).steps[0].started.is_some()
        })
        .await;
    assert_eq!(last_attempt(&during).agent, other(&first));

    // Both wait at the same gate. The second agent's word is held back until the first agent's has come.
    cluster.line(other(&first)).stall(holdfast::proxy::Ways::Up);
    ledger.open_gate("go");
    cluster.line(&first).heal().await;
    let late = operator
        .until_evidence(&label, "the success of attempt 1", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("attempt_ended")
        })
        .await;
    assert!(matches!(late.filed_as(), FiledReason::SupersededFence | FiledReason::LeaseExpired), "{late:?}");
    let after = operator.deployment(&label).await;
    assert!(state_of(&after) == DeploymentState::Active || last_attempt(&after).state() == AttemptState::Uncertain);
    assert_ne!(state_of(&after), DeploymentState::Succeeded, "B was completed by A");
    ledger.check_begun(2);
    cluster.line(other(&first)).heal().await;
}

/// The same message by message, so that each refusal is seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_attempt_gets_no_renewal_no_permit_and_no_authority() {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let (one, two) = (Uuid::new_v4(), Uuid::new_v4());
    let mut a = cluster.peer("web-01", hello(one)).await.expect("welcome");
    let file = DeploymentFile::new(BOX, SHORT).mutates("change", "unsafe", &["true".to_owned()]);
    let file = file.mutates("more", "unsafe", &["true".to_owned()]);
    let label = submit(&operator, file.text()).await;
    let old = a.take_offer().await;
    assert_eq!(a.permit(&old, "change").await.kind(), PermitAnswerKind::Granted);
    let claim: Claim = old.claim.clone().expect("an offer has a claim");
    let token = a.welcome.session_token.clone();
    drop(a);
    operator.until_state(&label, DeploymentState::Uncertain).await;

    let mut b = cluster.peer("web-02", hello(two)).await.expect("welcome");
    operator.attest(&label, BOX, AttestedRunner::HostGone, AttestedTarget::NotApplied).await.expect("attested");
    operator.decide(&label, BOX, DecisionKind::Retry).await.expect("allowed");
    let new = b.take_offer().await;
    let current: Claim = new.claim.clone().expect("an offer has a claim");
    assert!(current.fence > claim.fence && current.attempt != claim.attempt);
    assert_eq!(b.permit(&new, "change").await.kind(), PermitAnswerKind::Granted);

    let again = holdfast_proto::v1::Hello { session_token: token, journal_sequence: 5, ..hello(one) };
    let mut a = cluster.peer("web-01", again).await.expect("the original identity is welcome");
    let answer = a.heartbeat(std::slice::from_ref(&claim)).await;
    assert_eq!(answer.leases[0].answer(), LeaseAnswer::Superseded);
    for step in ["change", "more"] {
        let denied = a.permit(&old, step).await;
        assert_eq!(denied.kind(), PermitAnswerKind::Denied);
        assert_eq!(denied.denial(), PermitDenial::NotCurrent);
    }
    for (sequence, body) in [(1, started("change")), (2, applied("change")), (3, ended(AttemptEnd::Succeeded))] {
        let answer = a.report(Some(&claim), sequence, body).await;
        assert_eq!(answer.kind(), DispositionKind::Filed);
        assert_eq!(answer.reason(), FiledReason::SupersededFence);
    }
    // Also under the current fence, or as the current attempt, it is not the one it was leased to.
    let stolen = [Claim { fence: current.fence, ..claim.clone() }, current.clone()];
    for (claim, sequence) in stolen.iter().zip(4..) {
        let answer = a.report(Some(claim), sequence, applied("change")).await;
        assert_eq!(answer.kind(), DispositionKind::Filed, "{claim:?}");
        let request = PermitRequest {
            claim: Some(claim.clone()),
            step: "change".to_owned(),
            plan_digest: new.plan_digest.clone(),
        };
        assert_eq!(a.permit_as(request).await.kind(), PermitAnswerKind::Denied, "{claim:?}");
    }
    let during = operator.deployment(&label).await;
    assert_eq!(state_of(&during), DeploymentState::Active);
    assert!(last_attempt(&during).steps[0].ended.is_none(), "B was completed by A: {during:#?}");

    b.report(Some(&current), 1, applied("change")).await;
    assert_eq!(b.permit(&new, "more").await.kind(), PermitAnswerKind::Granted);
    b.report(Some(&current), 2, applied("more")).await;
    let answer = b.report(Some(&current), 3, ended(AttemptEnd::Succeeded)).await;
    assert_eq!(answer.kind(), DispositionKind::Accepted);
    assert_eq!(state_of(&operator.until_ended(&label).await), DeploymentState::Succeeded);
}

/// F13: what was read before the runner was out may have changed since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_from_before_the_runner_was_out_counts_for_nothing() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::release_target(SHOP, &root, "shared")).await;
    cluster.halt_before("web-01", "flip");
    operator.until_contact("web-02", Contact::Silent).await;
    let archive = site::archive(cluster.folder(), "v1");
    let file = DeploymentFile::new(SHOP, SHORT).release("switch", &archive, "v1");
    let label = submit(&operator, file.text()).await;
    let paused = lost(&mut cluster, &operator, &label).await;
    let early = operator.inspect(&label).await.expect("the other agent reaches it");
    let seen = early.reading.expect("it was read").state();
    assert_ne!(seen, OperationState::Applied, "it is paused right before");

    // Then it goes on, and its own journal says that it is over.
    process::resume(paused);
    cluster.line("web-01").heal().await;
    let late = |evidence: &Evidence| evidence.kind == "late_report" && evidence.body_json.contains("attempt_ended");
    operator.until_evidence(&label, "the late end", late).await;
    let checklist = operator.checklist(&label).await;
    assert_eq!(checklist.runner(), RunnerState::Stopped, "{}", checklist.runner_because);
    assert_eq!(checklist.open_steps[0].state(), OperationState::Unknown, "{}", checklist.open_steps[0].because);
    operator.decide(&label, SHOP, DecisionKind::AcceptFailed).await.expect_err("nobody has read it since");

    operator.inspect(&label).await.expect("read again");
    let checklist = operator.checklist(&label).await;
    assert_eq!(checklist.open_steps[0].state(), OperationState::Applied, "{}", checklist.open_steps[0].because);
    let decided = operator.decide(&label, SHOP, DecisionKind::AcceptSucceeded).await.expect("read and applied");
    assert_eq!(state_of(&decided), DeploymentState::Succeeded);
    assert_eq!(std::fs::read_to_string(root.join("current/index.html")).expect("it is there"), site::index("v1"));
}

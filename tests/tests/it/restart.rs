//! Coordinator and agents die and come back.

use holdfast::proxy::Ways;
use holdfast_proto::v1::{
    AttestedRunner, AttestedTarget, CancelAnswer, DecisionKind, Deployment, DeploymentState, Exit, ExitKind, StepState,
};
use holdfast_tests::api::{Operator, code_of, id_of, label_of, state_of};
use holdfast_tests::cluster::{LONG, SHORT};
use holdfast_tests::wait;
use uuid::Uuid;

use crate::support::{BOX, begun, change, last_attempt, submit, uncertain, with_box};

/// F4, F19: work ends while the coordinator is away; the report is accepted once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_ends_while_the_coordinator_is_down_is_told_when_it_is_back() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.coordinator().kill();
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.start_coordinator().await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded);
    assert_eq!(ended.attempts.len(), 1);
    let events = operator.events(&label).await;
    let accepted = events.iter().filter(|event| event.kind == "report_accepted").count();
    assert_eq!(accepted, 3, "each report once: {:#?}", holdfast_tests::events::kinds(&events));
    ledger.check_begun(1);
}

/// F4: only streams break, again and again, while work goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_stream_is_not_a_lost_agent() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    for fault in 0..6 {
        let line = cluster.line(&agent);
        match fault % 3 {
            0 => line.reset(),
            1 => line.half_close(Ways::Up),
            _ => line.half_close(Ways::Down),
        }
        operator.until_contact(&agent, holdfast_proto::v1::Contact::Connected).await;
    }
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Active);
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 1));
    ledger.check_begun(1);
}

/// F3: renewals blocked while a second agent is there and the coordinator starts again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_offers_nothing_of_a_silent_holder_to_anybody() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, SHORT, "unsafe").await;
    cluster.line(&agent).black_hole(Ways::Both);
    cluster.restart_coordinator().await;
    let uncertain = operator.until_state(&label, DeploymentState::Uncertain).await;
    assert!(uncertain.cancellation.is_none(), "never cancelled without an actor");
    cluster.restart_coordinator().await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.line(&agent).heal().await;
    operator
        .until_evidence(&label, "the late end", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("succeeded")
        })
        .await;
    let after = operator.deployment(&label).await;
    assert_eq!((state_of(&after), after.attempts.len()), (DeploymentState::Uncertain, 1));
    ledger.check_begun(1);
}

/// F24 in its hard form: the agent is killed, its shim is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_outlives_its_agent_and_the_next_one_tells_how_it_ended() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.agent(&agent).kill();
    assert!(!cluster.shims(&agent).is_empty(), "the shim lives");
    cluster.agent(&agent).start();
    operator.until_contact(&agent, holdfast_proto::v1::Contact::Connected).await;
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Active);
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 1));
    ledger.check_begun(1);
}

/// F27, F52: whoever tells the end, it is the true one. The agent is away when it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_agent_tells_every_end_as_it_was() {
    let (mut cluster, operator, ledger) = with_box().await;
    let exited = |code| Exit { kind: ExitKind::Exited.into(), code, ..Exit::default() };
    let signaled = |signal| Exit { kind: ExitKind::Signaled.into(), signal, ..Exit::default() };
    let cases = [
        (["--exit", "1"], exited(1)),
        (["--exit", "137"], exited(137)),
        (["--exit", "255"], exited(255)),
        (["--signal", "15"], signaled(15)),
        (["--signal", "9"], signaled(9)),
        (["--signal", "11"], signaled(11)),
    ];
    for (index, (options, exit)) in cases.into_iter().enumerate() {
        let gate = format!("gate-{index}");
        let argv: Vec<String> = ledger.gated(&gate).into_iter().chain(options.map(str::to_owned)).collect();
        let label = submit(&operator, &change(LONG, "unsafe", &argv)).await;
        ledger.until_begun(index + 1).await;
        let agent = last_attempt(&operator.deployment(&label).await).agent.clone();
        cluster.agent(&agent).kill();
        ledger.open_gate(&gate);
        let shims_gone = || cluster.shims(&agent).is_empty();
        wait::until_true("the shim to end", wait::SOON, shims_gone).await;
        cluster.agent(&agent).start();
        // An unsafe step that may be applied in part holds its target.
        let held = operator.until_state(&label, DeploymentState::Held).await;
        let step = &last_attempt(&held).steps[0];
        assert_eq!(step.exit, Some(exit), "{options:?}");
        assert!(step.maybe_partial, "{options:?}: {step:?}");
        let state = if exit.kind() == ExitKind::Exited { StepState::Failed } else { StepState::Stopped };
        assert_eq!(step.state(), state, "{options:?}");
        operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::NotApplied).await.expect("attested");
        operator.decide(&label, BOX, DecisionKind::AcceptFailed).await.expect("allowed");
    }
    ledger.check_begun(cases.len());
}

/// F21, F24: everything dies at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_all_services_die_at_once_work_goes_on_and_is_told() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    cluster.coordinator().kill();
    for agent in ["web-01", "web-02"] {
        cluster.agent(agent).kill();
    }
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    for agent in ["web-02", "web-01"] {
        cluster.agent(agent).start();
    }
    cluster.start_coordinator().await;
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 1));
    ledger.check_begun(1);
}

/// F11: the agent is killed before, during and after the effect; nothing of it comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_gone_with_its_work_leaves_its_target_uncertain() {
    let (mut cluster, operator, ledger) = with_box().await;
    for (index, moment) in ["before", "during", "after"].into_iter().enumerate() {
        let gate = format!("gate-{index}");
        let label = submit(&operator, &change(SHORT, "unsafe", &ledger.gated(&gate))).await;
        ledger.until_begun(index + 1).await;
        let agent = last_attempt(&operator.deployment(&label).await).agent.clone();
        cluster.agent(&agent).kill();
        if moment == "after" {
            ledger.open_gate(&gate);
            ledger.until_ended(index).await;
        }
        cluster.shims(&agent).into_iter().for_each(holdfast_tests::process::kill);
        operator.until_state(&label, DeploymentState::Uncertain).await;
        let checklist = operator.checklist(&label).await;
        assert!(!checklist.open_steps[0].can_inspect, "{moment}: commands can't be read back, and that is said");
        operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::NotApplied).await.expect("attested");
        ledger.attested(&id_of(&operator.deployment(&label).await));
        operator.decide(&label, BOX, DecisionKind::AcceptFailed).await.expect("allowed");
        cluster.agent(&agent).start();
        operator.until_contact(&agent, holdfast_proto::v1::Contact::Connected).await;
    }
    ledger.check_begun(3);
}

/// I13, O8: what was told stays true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_state_is_the_same_after_a_restart() {
    let (mut cluster, operator, ledger) = with_box().await;
    let mut labels = Vec::new();
    let succeeded = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator.until_state(&succeeded, DeploymentState::Succeeded).await;
    let failed = change(LONG, "unsafe", &ledger.command_with(&["--exit", "3"]));
    let failed = submit(&operator, &failed).await;
    operator.until_state(&failed, DeploymentState::Held).await;
    let queued = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let cancelled = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    assert_eq!(operator.cancel(&cancelled).await, CancelAnswer::Cancelled);
    labels.extend([succeeded, failed, queued, cancelled]);
    let before = snapshot(&operator, &labels).await;
    let tree = operator.target(BOX).await;
    cluster.restart_coordinator().await;
    operator.until_state(&labels[0], DeploymentState::Succeeded).await;
    assert_eq!(snapshot(&operator, &labels).await, before);
    assert_eq!(operator.target(BOX).await, tree);
    let verified = cluster.coordinator().run(&["verify"]);
    assert!(verified.contains("every hash"), "{verified}");
    // An uncertain one too: that takes another target's worth of trouble.
    let (cluster2, operator, ledger) = with_box().await;
    let mut cluster = cluster2;
    let (label, _) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let before = snapshot(&operator, std::slice::from_ref(&label)).await;
    cluster.restart_coordinator().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    assert_eq!(snapshot(&operator, &[label]).await, before);
}

async fn snapshot(operator: &Operator, labels: &[String]) -> Vec<(Deployment, Vec<String>)> {
    let mut found = Vec::new();
    for label in labels {
        let hashes = operator.events(label).await.into_iter().map(|event| event.hash).collect();
        found.push((operator.deployment(label).await, hashes));
    }
    found
}

/// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_id_is_one_deployment() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (_holder, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let request = Uuid::now_v7();
    let file = change(LONG, "unsafe", &ledger.command());
    let twenty = (0..20).map(|_| operator.try_submit(&file, request));
    let answers = futures_util::future::join_all(twenty).await;
    let answers: Vec<(Deployment, bool)> = answers.into_iter().map(|answer| answer.expect("recorded")).collect();
    let first = id_of(&answers[0].0);
    assert!(answers.iter().all(|(deployment, _)| id_of(deployment) == first));
    assert_eq!(answers.iter().filter(|(_, existed)| !existed).count(), 1, "one of them made it");
    cluster.restart_coordinator().await;
    let (again, existed) = wait::until("the coordinator to be back", wait::SOON, async || {
        operator.try_submit(&file, request).await.map_err(|status| status.to_string())
    })
    .await;
    assert!(existed && id_of(&again) == first);
    let other = change(LONG, "idempotent", &ledger.command());
    let refused = operator.try_submit(&other, request).await.expect_err("another body under the same id");
    assert!(!code_of(&refused).is_empty(), "{refused:?}");
    let next = operator.submit(&file).await;
    assert_eq!(label_of(&next), format!("{BOX}#3"), "nothing was counted twice");
}

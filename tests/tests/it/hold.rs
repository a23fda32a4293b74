//! What frees a target, and what does not.

use std::time::Duration;

use holdfast_proto::v1::{
    ApplyTargetRequest, AttemptState, AttestedRunner, AttestedTarget, Contact, DecisionKind, DeploymentState,
    ListDeploymentsRequest,
};
use holdfast_tests::api::{code_of, id_of, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{process, site, wait};

use crate::PROGRAM;
use crate::support::{BOX, SHOP, begun, change, last_attempt, submit, uncertain, with_box};

/// F10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_a_decision_frees_an_uncertain_target() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let before = operator.target(BOX).await;

    // Asking for it in other words.
    let again = ApplyTargetRequest { file: files::command_target(BOX, true) };
    let refused = operator.client.clone().apply_target(again).await.expect_err("it is held");
    assert!(code_of(&refused).starts_with("HF-"), "{refused:?}");
    operator.cancel(&label).await;
    operator.decide(&label, "", DecisionKind::Note).await.expect("a note is always allowed");
    for kind in [
        DecisionKind::Retry,
        DecisionKind::AcceptSucceeded,
        DecisionKind::AcceptFailed,
        DecisionKind::AcceptCancelled,
        DecisionKind::Rollback,
        DecisionKind::Readmit,
        DecisionKind::Abandon,
    ] {
        let refused = operator.decide(&label, BOX, kind).await.expect_err("nothing is known");
        assert!(code_of(&refused).starts_with("HF-"), "{kind:?}: {refused:?}");
    }
    let attest = |confirm| operator.attest(&label, confirm, AttestedRunner::HostGone, AttestedTarget::NotApplied);
    attest("another@name").await.expect_err("the target's name is not typed");
    let viewer = cluster.coordinator().viewer().to_owned();
    let viewer = cluster.operator_with(&viewer);
    let refused = viewer.attest(&label, BOX, AttestedRunner::HostGone, AttestedTarget::NotApplied).await;
    assert_eq!(refused.expect_err("a viewer may not").code(), tonic::Code::PermissionDenied);

    // Taking things away: the agent's process, its work, its state; then everything anew.
    cluster.agent(&agent).kill();
    cluster.shims(&agent).into_iter().for_each(process::kill);
    std::fs::remove_dir_all(cluster.agent(&agent).state()).expect("it is there");
    cluster.line(&agent).heal().await;
    cluster.restart_coordinator().await;
    // A journal that was never seen is let in by a person only. It knows nothing of what the old one held.
    let unlock =
        ["agent", "unlock", &agent, "--reason", "its disk was wiped", "--admit-new-journal", "--confirm", &agent];
    let unlocked = cluster.cli().run(&unlock).await;
    assert_eq!(unlocked.code, 0, "{}", unlocked.stderr);
    cluster.agent(&agent).start();
    operator.until_contact(&agent, Contact::Connected).await;

    let after = operator.target(BOX).await;
    assert_eq!(after.holder.as_ref().map(|holder| &holder.id), before.holder.as_ref().map(|holder| &holder.id));
    assert_eq!(after.held_since, before.held_since);
    assert!(!after.who_can_act.is_empty());
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Uncertain);
    let waits = operator.deployment(&waiting).await;
    assert_eq!((state_of(&waits), waits.attempts.len()), (DeploymentState::Queued, 0));
    ledger.check_begun(1);

    operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::NotApplied).await.expect("attested");
    ledger.attested(&id_of(&operator.deployment(&label).await));
    operator.decide(&label, BOX, DecisionKind::AcceptCancelled).await.expect("allowed on an attestation");
    assert_eq!(state_of(&operator.until_ended(&waiting).await), DeploymentState::Succeeded);
    ledger.check_begun(2);
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_holders_host_is_gone_the_queue_keeps_its_order() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, SHORT, "unsafe").await;
    cluster.agent(&agent).kill();
    cluster.shims(&agent).into_iter().for_each(process::kill);
    operator.until_state(&label, DeploymentState::Uncertain).await;
    let first = submit(&operator, &change(LONG, "unsafe", &ledger.gated("second"))).await;
    let second = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;

    let target = operator.target(BOX).await;
    assert_eq!(target.holder.map(|holder| holder.label), Some(label.clone()));
    assert!(target.held_since.is_some() && !target.held_because.is_empty() && !target.who_can_act.is_empty());
    let queue: Vec<String> = target.waiting.into_iter().map(|waiting| waiting.label).collect();
    assert_eq!(queue, [first.clone(), second.clone()]);

    operator.attest(&label, BOX, AttestedRunner::HostGone, AttestedTarget::NotApplied).await.expect("attested");
    ledger.attested(&id_of(&operator.deployment(&label).await));
    operator.decide(&label, BOX, DecisionKind::AcceptFailed).await.expect("allowed");
    ledger.until_begun(2).await;
    assert_eq!(state_of(&operator.deployment(&second).await), DeploymentState::Queued);
    ledger.open_gate("second");
    operator.until_ended(&second).await;
    let order: Vec<String> = ledger.intervals().iter().map(|interval| interval.deployment().to_owned()).collect();
    let mut expected = Vec::new();
    for label in [&label, &first, &second] {
        expected.push(id_of(&operator.deployment(label).await));
    }
    assert_eq!(order, expected);
    ledger.check_begun(3);
}

/// SIGSTOP of the agent past its lease, and SIGCONT: what runs ends, and is told as evidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_frozen_past_its_lease_has_no_authority() {
    let (mut cluster, operator, ledger) = with_box().await;
    let file = DeploymentFile::new(BOX, SHORT).mutates("change", "unsafe", &ledger.gated("go")).mutates(
        "more",
        "unsafe",
        &ledger.command(),
    );
    let label = submit(&operator, file.text()).await;
    ledger.until_begun(1).await;
    let agent = last_attempt(&operator.deployment(&label).await).agent.clone();
    cluster.agent(&agent).freeze().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.agent(&agent).thaw();
    operator
        .until_evidence(&label, "the late end", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("step_ended")
        })
        .await;
    operator.until_contact(&agent, Contact::Connected).await;
    let after = operator.deployment(&label).await;
    assert_eq!(state_of(&after), DeploymentState::Uncertain);
    assert_eq!(last_attempt(&after).state(), AttemptState::Uncertain);
    assert_eq!(state_of(&operator.deployment(&waiting).await), DeploymentState::Queued);
    // The step after it never began.
    ledger.check_begun(1);
}

/// F9: everything of the old attempt is frozen in the gap between its last check and its effect, and wakes when its successor
/// is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_thaws_in_the_gap_is_refused_by_the_resource() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::release_target(SHOP, &root, "shared")).await;
    cluster.halt_before("web-01", "flip");
    operator.until_contact("web-01", Contact::Connected).await;
    let file = |version: &str, ttl| {
        let archive = site::archive(cluster.folder(), version);
        DeploymentFile::new(SHOP, ttl).release("switch", &archive, version).text().to_owned()
    };
    // The frozen one looks connected, so it may be offered the next one too, in vain.
    let (v1, v2) = (file("v1", SHORT), file("v2", SHORT));
    let label = submit(&operator, &v1).await;
    let paused = cluster.standing_still("web-01").await;
    cluster.agent("web-01").freeze().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    cluster.agent("web-02").start();
    operator.until_contact("web-02", Contact::Connected).await;
    operator.fence_off(&label, SHOP).await.expect("the other agent raises the fence");
    operator.decide(&label, SHOP, DecisionKind::AcceptFailed).await.expect("fenced off and read");
    let next = submit(&operator, &v2).await;
    assert_eq!(state_of(&operator.until_ended(&next).await), DeploymentState::Succeeded);

    cluster.agent("web-01").thaw();
    process::resume(paused);
    let late = operator
        .until_evidence(&label, "the refusal", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("step_ended")
        })
        .await;
    assert!(late.body_json.contains("failed"), "{}", late.body_json);
    let index = std::fs::read_to_string(root.join("current/index.html")).expect("it is there");
    assert_eq!(index, site::index("v2"), "the stale flip changed nothing");
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Failed);
}

/// F14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changed_by_hand_is_not_overwritten() {
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::release_target(SHOP, &root, "host")).await;
    let file = |version: &str| {
        let archive = site::archive(cluster.folder(), version);
        DeploymentFile::new(SHOP, LONG).release("switch", &archive, version).text().to_owned()
    };
    for version in ["v1", "v2"] {
        operator.until_state(&submit(&operator, &file(version)).await, DeploymentState::Succeeded).await;
    }
    // By hand: back to the release before.
    let now = std::fs::read_link(root.join("current")).expect("a link");
    let releases = std::fs::read_dir(root.join(now.parent().expect("in a folder"))).expect("releases");
    let before = releases
        .flatten()
        .map(|entry| now.with_file_name(entry.file_name()))
        .find(|path| *path != now && root.join(path).join("index.html").exists())
        .expect("the release before is kept");
    let link = root.join("by-hand");
    std::os::unix::fs::symlink(&before, &link).expect("made");
    std::fs::rename(&link, root.join("current")).expect("switched");

    let label = submit(&operator, &file("v3")).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Failed, "{ended:#?}");
    let index = std::fs::read_to_string(root.join("current/index.html")).expect("it is there");
    assert_eq!(index, site::index("v1"));
    let step = &last_attempt(&ended).steps[0];
    assert!(!step.maybe_partial, "{step:?}");
    assert!(!step.detail.is_empty(), "it is shown");
}

/// F22: connections are reset under several agents again and again. `HOLDFAST_ROUNDS` asks for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_end_no_agent_and_no_work() {
    const AGENTS: [&str; 6] = ["web-01", "web-02", "web-03", "web-04", "web-05", "web-06"];
    let rounds = std::env::var("HOLDFAST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut cluster = Plan::new(PROGRAM).agents(&AGENTS).start().await;
    let operator = cluster.operator();
    let mut work = Vec::new();
    for number in 0..AGENTS.len() {
        let (name, ledger) = (format!("box{number}@test"), cluster.ledger(&format!("box{number}")));
        operator.apply_target(&files::command_target(&name, false)).await;
        let file = DeploymentFile::new(&name, LONG).mutates("change", "unsafe", &ledger.gated("go"));
        work.push((submit(&operator, file.text()).await, ledger));
    }
    for (_, ledger) in &work {
        ledger.until_begun(1).await;
    }
    for _ in 0..rounds {
        for agent in AGENTS {
            let line = cluster.line(agent);
            line.reset();
            // Not before it is back: a reset of nothing is none.
            wait::until_true("it to connect again", Duration::from_secs(60), || line.open() > 0).await;
        }
    }
    for agent in AGENTS {
        assert_eq!(cluster.agent(agent).status(), None, "{agent} lives");
    }
    for (label, ledger) in &work {
        ledger.open_gate("go");
        let ended = operator.until_ended(label).await;
        assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 1));
        ledger.check_begun(1);
    }
}

/// F53: reading changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_changes_nothing() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, _) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let before = (operator.deployment(&label).await, operator.target(BOX).await, operator.events(&label).await);
    for _ in 0..3 {
        operator.checklist(&label).await;
        operator.evidence(&label).await;
        operator.logs(&label).await;
        operator.try_agents().await.expect("an answer");
        let list = operator.client.clone().list_deployments(ListDeploymentsRequest::default()).await;
        assert_eq!(list.expect("an answer").into_inner().deployments.len(), 1);
    }
    let after = (operator.deployment(&label).await, operator.target(BOX).await, operator.events(&label).await);
    assert_eq!(before, after);
}

/// An agent that looks connected and answers no offer does not keep work from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_ignores_offers_is_passed_over() {
    let (mut cluster, operator, ledger) = with_box().await;
    cluster.agent("web-01").freeze().await;
    let label = submit(&operator, &change(SHORT, "unsafe", &ledger.command())).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded);
    let tries: Vec<(&str, AttemptState)> =
        ended.attempts.iter().map(|attempt| (attempt.agent.as_str(), attempt.state())).collect();
    assert_eq!(tries, [("web-01", AttemptState::Lapsed), ("web-02", AttemptState::Succeeded)]);
    cluster.agent("web-01").thaw();
    operator.until_contact("web-01", Contact::Connected).await;
    ledger.check_begun(1);
}

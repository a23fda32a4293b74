//! Checklists, checks and deadlines.

use super::*;

#[test]
fn the_checklist_comes_in_order_and_a_reading_before_the_runner_is_out_is_not_final() {
    let open = v1::OpenStep {
        step: "switch".to_owned(),
        resource: "site".to_owned(),
        agent: "web-07".to_owned(),
        fence_text: "1.42".to_owned(),
        state: v1::OperationState::NotApplied as i32,
        because: "read at 14:21:00Z".to_owned(),
        can_inspect: true,
        can_fence_off: true,
        ..v1::OpenStep::default()
    };
    let option = |kind: v1::DecisionKind, allowed| v1::DecisionOption {
        kind: kind as i32,
        allowed,
        why_not: if allowed { "" } else { "the runner is not out" }.to_owned(),
        leads_to: if allowed { "evidence only" } else { "" }.to_owned(),
    };
    let mut list = v1::Reconciliation {
        deployment: uncertain().summary,
        runner: v1::RunnerState::Unknown as i32,
        runner_because: "nothing was heard since 14:20:09Z".to_owned(),
        open_steps: vec![open],
        relation: "wanted v2, read v1".to_owned(),
        evidence_sequence: 3,
        options: vec![option(v1::DecisionKind::Retry, false), option(v1::DecisionKind::Note, true)],
        who_can_act: "an admin".to_owned(),
    };
    let expected = "\
shop@prod#12  uncertain  nothing that was accepted says how it ended

1 Runner    unknown: nothing was heard since 14:20:09Z
2 Target
    step switch at site on web-07 under fence 1.42: not applied (not final: the runner is not known to be out)
      read at 14:21:00Z
3 Relation  wanted v2, read v1

DECISION  ALLOWED  WHY NOT, OR WHAT FOLLOWS
retry     no       the runner is not out
note      yes      evidence only

shown up to evidence 3 (holdfast evidence shop@prod#12); can act: an admin
  holdfast reconcile fence-off shop@prod#12 --reason TEXT --confirm shop@prod
  holdfast reconcile inspect shop@prod#12
  holdfast reconcile decide shop@prod#12 --as DECISION --reason TEXT --confirm shop@prod
  holdfast reconcile attest shop@prod#12 --runner ... --target-state ... --how TEXT --confirm shop@prod, for what nobody can prove and a person knows
";
    let shown = reconciliation(&list, canvas());
    assert_eq!(shown, expected, "\n{shown}");
    let mut waits = list.clone();
    waits.deployment.as_mut().expect("told").state = DeploymentState::Queued as i32;
    let shown = reconciliation(&waits, canvas());
    assert!(shown.ends_with("holdfast target show shop@prod, for what it waits for and who can act\n"), "{shown}");
    list.runner = v1::RunnerState::FencedOff as i32;
    assert!(!reconciliation(&list, canvas()).contains("not final"));
    let step = &mut list.open_steps[0];
    step.half_done = "the statement of one file".to_owned();
    step.look = vec!["the ledger".to_owned(), "a\u{1b}[31mb".to_owned()];
    let shown = reconciliation(&list, canvas());
    let by_hand = "      half done?  the statement of one file\n      look        the ledger\n      look        a\\u{1b}[31mb\n3 Relation";
    assert!(shown.contains(by_hand), "{shown}");
}

#[test]
fn a_revision_that_was_read_is_shown_where_the_effect_is_not_known() {
    let mut deployment = uncertain();
    let step = &mut deployment.attempts[0].steps[1];
    step.state = StepState::Unknown as i32;
    let told = |deployment: &v1::Deployment| super::deployment(deployment, canvas());
    let bare = "step switch on web-07 ended in a way that nobody can tell; its effect is not known";
    assert!(told(&deployment).contains(&format!("{bare}\n")), "{}", told(&deployment));
    deployment.attempts[0].steps[1].observed_revision = "v7".to_owned();
    let read = format!("{bare}, and revision v7 was read after it\n");
    assert!(told(&deployment).contains(&read), "{}", told(&deployment));
}

fn check(state: StepState, detail: &str) -> v1::StepRun {
    v1::StepRun {
        name: "verify-1".to_owned(),
        state: state as i32,
        effect: StepEffect::None as i32,
        looks_at: "http://127.0.0.1/ answers 200 for 30s, within 3m".to_owned(),
        started: seen(20),
        detail: detail.to_owned(),
        ..v1::StepRun::default()
    }
}

/// The change is applied, and a check behind it stands so.
fn checked(check: v1::StepRun, state: DeploymentState) -> v1::Deployment {
    let mut deployment = uncertain();
    deployment.summary.as_mut().expect("there").state = state as i32;
    let attempt = &mut deployment.attempts[0];
    attempt.steps[1].state = StepState::Applied as i32;
    attempt.steps[1].ended = seen(19);
    attempt.steps.push(check);
    deployment
}

#[test]
fn a_check_is_shown_as_one_and_what_it_saw_stands_beside_the_change() {
    let detail = "http://127.0.0.1/: status 503 (3 looks in 12s, last ok 4s ago)";
    let mut failed = check(StepState::Failed, detail);
    failed.ended = seen(40);
    failed.exit = Some(v1::Exit { kind: v1::ExitKind::Exited as i32, code: 1, ..v1::Exit::default() });
    let mut deployment = checked(failed, DeploymentState::Failed);
    (deployment.holds_target, deployment.not_healthy) = (false, true);
    let shown = super::deployment(&deployment, canvas());
    for line in [
        "Effect       observed as applied: switch\n",
        &format!("             not healthy by verify-1: {detail}\n"),
        "verify-1  failed   check",
        &format!("14:20:40Z               {detail}\n"),
    ] {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
    let shown = super::summary(&deployment, canvas());
    assert!(shown.contains("every change was applied, and a check after them failed"), "{shown}");
    assert!(shown.contains("not healthy by verify-1"), "{shown}");
    let passed = checked(check(StepState::Applied, "http://127.0.0.1/ went well"), DeploymentState::Succeeded);
    let shown = super::deployment(&passed, canvas());
    assert!(shown.contains("verify-1  passed   check") && shown.contains("healthy by verify-1"), "{shown}");
    for (attempt, said) in [
        (AttemptState::Running, "health is being looked at by verify-1"),
        (AttemptState::Interrupted, "health was being looked at by verify-1 when contact was lost"),
    ] {
        let mut looking = checked(check(StepState::Started, ""), DeploymentState::Active);
        looking.attempts[0].state = attempt as i32;
        assert!(super::deployment(&looking, canvas()).contains(said), "{said}");
    }
    let stopped = checked(check(StepState::Stopped, ""), DeploymentState::Active);
    assert!(super::deployment(&stopped, canvas()).contains("health was not seen by verify-1"));
}

#[test]
fn what_is_over_its_deadline_is_still_running_until_an_end_was_seen() {
    let mut deployment = checked(check(StepState::Started, ""), DeploymentState::Active);
    deployment.attempts[0].steps[2].over_deadline = true;
    deployment.attempts[0].state = AttemptState::Running as i32;
    deployment.cancellation = Some(v1::Cancellation {
        cause: "timeout".to_owned(),
        by: "step verify-1".to_owned(),
        reason: "step verify-1 passed its deadline".to_owned(),
        requested_at: stamp(30),
        recorded_at: stamp(30),
        ..v1::Cancellation::default()
    });
    let unseen = super::deployment(&deployment, canvas());
    assert!(unseen.contains("over its deadline, no end was seen"), "without a lease nobody knows\n{unseen}");
    deployment.attempts[0].lease_ttl = Some(duration_to_wire(Millis(30_000)));
    let shown = super::deployment(&deployment, canvas());
    for line in [
        "over its deadline, still running",
        "the deadline of step verify-1 asked for a stop 14:20:30Z",
        "Cancel  asked for by the deadline of step verify-1",
        "  ┄┄ requested  14:20:30Z\n",
        "  ├┤ observed   not observed\n",
        "  a deadline is no outcome: still running, no end was seen\n",
    ] {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
    let cancel = deployment.cancellation.as_mut().expect("there");
    cancel.by = "deployment".to_owned();
    assert!(super::deployment(&deployment, canvas()).contains("asked for by its own deadline"));
    deployment.cancellation.as_mut().expect("there").by = "queue".to_owned();
    assert!(super::deployment(&deployment, canvas()).contains("asked for by the end of its time in the queue"));
}

#[test]
fn a_success_after_its_deadline_is_a_success_and_says_so() {
    let mut deployment = checked(check(StepState::Applied, "went well"), DeploymentState::Succeeded);
    deployment.attempts[0].steps[2].over_deadline = true;
    deployment.attempts[0].steps[2].ended = seen(60);
    (deployment.after_deadline, deployment.cancel_too_late) = (true, true);
    deployment.cancellation =
        Some(v1::Cancellation { cause: "timeout".to_owned(), by: "deployment".to_owned(), ..Default::default() });
    let shown = super::deployment(&deployment, canvas());
    assert!(shown.contains("ended after its deadline"), "{shown}");
    assert!(shown.contains("it succeeded after its deadline: the stop came too late"), "{shown}");
    let shown = super::summary(&deployment, canvas());
    assert!(shown.contains("it succeeded after a deadline of it had passed"), "{shown}");
    assert!(!shown.contains("a cancel was asked for"), "{shown}");
}

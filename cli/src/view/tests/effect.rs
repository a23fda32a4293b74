//! What a deployment and its summary say: no more than was seen.

use holdfast_proto::v1::CarryState;

use super::*;

#[test]
fn a_deployment_is_shown_whole_and_what_nobody_saw_is_said() {
    let mut deployment = uncertain();
    deployment.cancellation = Some(v1::Cancellation {
        cause: "operator".to_owned(),
        by: "bob".to_owned(),
        reason: "wrong file".to_owned(),
        requested_at: stamp(30),
        recorded_at: stamp(30),
        ..v1::Cancellation::default()
    });
    let shown = super::deployment(&deployment, canvas());
    let expected = "\
shop@prod#12  uncertain  nothing that was accepted says how it ended
0193a1b2-0000-7000-8000-000000000001

Intent       alice asked for it 14:20:00Z (2m ago)
             with revision=v2
             bob asked for a stop 14:20:30Z: wrong file
Contact      no lease is live; the last was attempt 1 on web-07
Effect       step switch on web-07 has begun; its effect is not known
Reservation  shop@prod is held for it since 14:20:01Z (119s ago)
Evidence     none was filed

Attempt 1  uncertain  on web-07  under fence 1.42  offered 14:20:05Z
  STEP    STATE    EFFECT   RESOURCE  PERMITTED  STARTED       ENDED         REVISION  NOTE
  look    applied  none                          not observed  not observed
  switch  started  mutates  site      14:20:07Z  14:20:09Z     not observed

Cancel  asked for by bob: wrong file
  ◆  requested  14:20:30Z
  ■  recorded   14:20:30Z
  ├┤ delivered  not observed
  ├┤ acted      not observed
  ├┤ observed   not observed
  uncertain: whether anything stopped is not known
";
    assert_eq!(shown, expected, "\n{shown}");
    let cancel = deployment.cancellation.as_mut().expect("set above");
    (cancel.held_up, cancel.held_up_at) = ("the shim stands still\u{1b}[31m".to_owned(), seen(40));
    let told = "  ├┤ acted      not observed, as told 14:20:40Z: the shim stands still\\u{1b}[31m\n";
    let shown = super::deployment(&deployment, canvas());
    assert!(shown.contains(told), "{shown}");
    deployment.cancellation.as_mut().expect("set above").acted = seen(50);
    let shown = super::deployment(&deployment, canvas());
    assert!(shown.contains("acted      14:20:50Z\n") && !shown.contains("stands still"), "{shown}");
}

#[test]
fn a_summary_has_what_is_known_and_what_is_not() {
    let expected = "\
shop@prod#12 is uncertain: nothing that was accepted says how it ended
  known      step switch on web-07 has begun; its effect is not known
  not known  of step switch on web-07: whether it is still at work, and what it left at the target
  so         shop@prod stays held for it; nothing else starts there
  next       holdfast reconcile show shop@prod#12
";
    assert_eq!(summary(&uncertain(), canvas()), expected);
    let mut deployment = uncertain();
    deployment.attempts[0].steps[1].state = StepState::Unknown as i32;
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("not known  of step switch on web-07: what it left at the target\n"), "{shown}");
}

#[test]
fn nothing_is_said_to_be_unchanged_while_a_permit_is_on_record() {
    let mut deployment = uncertain();
    let step = &mut deployment.attempts[0].steps[1];
    step.state = StepState::NotStarted as i32;
    assert!(summary(&deployment, canvas()).contains("never started, and now never can be"));
    deployment.attempts[0].steps[1].permitted_at = None;
    assert!(summary(&deployment, canvas()).contains("no step was ever permitted to change anything"));
}

#[test]
fn a_later_word_on_a_step_replaces_an_earlier_one() {
    let mut deployment = uncertain();
    let again = |state: StepState| {
        let mut attempt = uncertain().attempts.remove(0);
        attempt.number = 2;
        attempt.state = AttemptState::Running as i32;
        attempt.steps[1].state = state as i32;
        attempt
    };
    deployment.attempts[0].state = AttemptState::Resolved as i32;
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("switch: settled by a decision"), "{shown}");
    assert!(!shown.contains("not known"), "{shown}");
    deployment.attempts.push(again(StepState::Pending));
    assert!(summary(&deployment, canvas()).contains("switch: settled by a decision"));
    for not_read in [CarryState::NotRead, CarryState::Due, CarryState::Failed] {
        deployment.attempts[1] = again(StepState::Carried);
        deployment.attempts[1].steps[1].carry = not_read as i32;
        let shown = summary(&deployment, canvas());
        assert!(shown.contains("switch: settled by a decision") && !shown.contains("observed as applied"), "{shown}");
    }
    deployment.attempts[1].steps[1].carry = CarryState::AsLeft as i32;
    assert!(summary(&deployment, canvas()).contains("observed as applied: switch"));
    deployment.attempts[1] = again(StepState::Applied);
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("observed as applied: switch") && !shown.contains("settled"), "{shown}");
}

#[test]
fn what_may_be_there_in_part_is_settled_by_the_decision_that_ended_it() {
    let mut deployment = uncertain();
    let step = &mut deployment.attempts[0].steps[1];
    (step.state, step.maybe_partial) = (StepState::Stopped as i32, true);
    assert!(summary(&deployment, canvas()).contains("ended, and may be applied in part: switch"));
    deployment.ended_by_decision = true;
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("switch: ended, perhaps in part; settled by a decision"), "{shown}");
    deployment.decisions = vec![decided(v1::OperationState::Partial, "", 60)];
    let shown = summary(&deployment, canvas());
    let line =
        "switch: ended, perhaps in part; decided as applied in part, on what was filed as evidence (dev, 14:21:00Z)";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn the_effect_says_as_what_and_on_what_ground_a_decision_settled_it() {
    let mut deployment = uncertain();
    deployment.attempts[0].state = AttemptState::Resolved as i32;
    let reading = decided(v1::OperationState::Applied, "v2", 60);
    let attested = v1::DecisionRecord { attested: true, ..decided(v1::OperationState::NotApplied, "", 60) };
    let trusted = v1::DecisionRecord { trusted: true, ..decided(v1::OperationState::Applied, "", 60) };
    let fenced = v1::DecisionRecord { runner: v1::RunnerState::FencedOff as i32, ..reading.clone() };
    let unknown = v1::DecisionRecord {
        kind: v1::DecisionKind::Abandon as i32,
        attested: true,
        ..decided(v1::OperationState::Unknown, "", 60)
    };
    for (record, line) in [
        (&reading, "switch: decided as applied, revision v2, on a reading (dev, 14:21:00Z)"),
        (&attested, "switch: decided as not applied, on a person's attestation (dev, 14:21:00Z)"),
        (&trusted, "switch: decided as applied, on its agent's own report (dev, 14:21:00Z)"),
        (&fenced, "switch: decided as applied, revision v2, on a reading, the runner fenced off (dev, 14:21:00Z)"),
        (&unknown, "switch: nobody could tell what it left; abandon was decided (dev, 14:21:00Z)"),
    ] {
        let note = v1::DecisionRecord { kind: v1::DecisionKind::Note as i32, at: stamp(70), ..unknown.clone() };
        deployment.decisions = vec![record.clone(), note];
        let shown = super::deployment(&deployment, canvas());
        assert!(shown.contains(&format!("Effect       {line}\n")), "{shown}");
        assert!(summary(&deployment, canvas()).contains(line));
    }
    // A second attempt is under way, and a decision on it says nothing about the first.
    let mut second = uncertain().attempts.remove(0);
    (second.number, second.offered_at) = (2, stamp(65));
    second.state = AttemptState::Running as i32;
    second.steps[1].state = StepState::Pending as i32;
    deployment.attempts.push(second);
    deployment.summary.as_mut().expect("set above").state = DeploymentState::Active as i32;
    deployment.decisions = vec![reading, decided(v1::OperationState::Unknown, "", 90)];
    let shown = super::deployment(&deployment, canvas());
    assert!(shown.contains("switch: decided as applied, revision v2, on a reading (dev, 14:21:00Z)\n"), "{shown}");
    assert!(!shown.contains("nobody could tell"), "{shown}");
}

#[test]
fn more_tries_follow_by_themselves_only_where_it_goes_on_by_itself() {
    let mut deployment = uncertain();
    (deployment.tries, deployment.max_tries) = (2, 3);
    for (state, more) in [
        (DeploymentState::Active, true),
        (DeploymentState::Queued, true),
        (DeploymentState::Uncertain, false),
        (DeploymentState::Held, false),
        (DeploymentState::Succeeded, false),
        (DeploymentState::Failed, false),
        (DeploymentState::Cancelled, false),
    ] {
        deployment.summary.as_mut().expect("set above").state = state as i32;
        let shown = super::deployment(&deployment, canvas());
        assert!(shown.contains("2 tries of 3 were made"), "{shown}");
        assert_eq!(shown.contains("1 more may follow by themselves"), more, "{shown}");
    }
}

#[test]
fn a_late_report_says_once_what_its_columns_say() {
    let piece = v1::Evidence {
        kind: "late_report".to_owned(),
        by: "web-07".to_owned(),
        fence_text: "1.42".to_owned(),
        filed_as: v1::FiledReason::SupersededFence as i32,
        sentence:
            "late, from web-07 under fence 1.42: step switch was applied (exit 0) (a newer fence had been allocated)"
                .to_owned(),
        ..v1::Evidence::default()
    };
    let shown = evidence(&[piece], canvas()).draw(&Terminal::PLAIN);
    assert!(shown.trim_end().ends_with("superseded fence  step switch was applied (exit 0)"), "{shown}");
}

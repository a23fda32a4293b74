//! The lines that a watch paints again and again.

use super::*;

const ASCII: Terminal = Terminal { unicode: false, ..Terminal::PLAIN };

/// At work on the second of two steps, heard two seconds ago.
fn working() -> v1::Deployment {
    let mut deployment = uncertain();
    let about = deployment.summary.as_mut().expect("set above");
    (about.state, about.because) = (DeploymentState::Active as i32, String::new());
    let attempt = &mut deployment.attempts[0];
    attempt.state = AttemptState::Running as i32;
    attempt.lease_ttl = Some(duration_to_wire(Millis::from_secs(30)));
    attempt.silent_for = Some(duration_to_wire(Millis::from_secs(2)));
    deployment
}

/// What is drawn `ago` seconds after the deployment was told.
fn frame(deployment: &v1::Deployment, ago: u64, turn: usize) -> String {
    let told = Some((deployment.clone(), std::time::Duration::from_secs(ago)));
    let canvas = Canvas { terminal: &ASCII, now: at(120) };
    Progress { told, lost: None, turn }.lines(canvas).join("\n")
}

#[test]
fn a_planned_absence_is_told_with_its_end_while_it_lasts() {
    let mut deployment = working();
    let wire = |seconds| Some(holdfast_proto::convert::wall_to_wire(at(seconds)));
    let away = v1::Away { since: wire(100), back_by: wire(160), is_back: false };
    deployment.attempts[0].away = Some(away);
    let told = |deployment: &v1::Deployment| {
        let shown = super::deployment(deployment, canvas());
        (frame(deployment, 0, 1).contains("agent away by plan since"), shown.contains("agent away by plan since"))
    };
    assert_eq!(told(&deployment), (true, true), "{}", frame(&deployment, 0, 1));
    deployment.attempts[0].away = Some(v1::Away { is_back: true, ..away });
    assert_eq!(told(&deployment), (false, false));
}

#[test]
fn a_frame_tells_the_phase_and_the_spinner_turns_only_while_somebody_is_heard() {
    let mut deployment = working();
    let expected = "\
/  shop@prod#12  active 02:00
   attempt 1 on web-07 under fence 1.42
   step 2 of 2: switch, begun 01:51 ago";
    assert_eq!(frame(&deployment, 0, 1), expected);
    assert_eq!(frame(&deployment, 0, 2), expected.replacen('/', "-", 1));
    let silent = "\
:: shop@prod#12  active 02:00
   attempt 1 on web-07 under fence 1.42, silent 00:14
   step 2 of 2: switch, begun 01:51 ago";
    assert_eq!(frame(&deployment, 12, 1), silent);
    assert_eq!(frame(&deployment, 12, 2), silent, "frozen");
    deployment.attempts[0].steps[1].started = None;
    deployment.attempts[0].steps[1].state = StepState::Permitted as i32;
    assert!(frame(&deployment, 0, 1).ends_with("step 2 of 2: switch, permitted 01:53 ago: it may have begun"));
    deployment.attempts[0].steps[0].state = StepState::Pending as i32;
    deployment.attempts[0].steps[1].state = StepState::Pending as i32;
    assert!(frame(&deployment, 0, 1).ends_with("step 1 of 2: look, comes next (changes nothing)"));
    let lost = Progress { told: None, lost: Some(std::time::Duration::from_secs(14)), turn: 0 };
    assert_eq!(
        lost.lines(Canvas { terminal: &ASCII, now: at(0) }),
        [":: no contact with the coordinator, silent 00:14; the deployment goes on"]
    );
}

#[test]
fn a_frame_of_what_waits_or_is_offered_turns_nothing_that_nobody_does() {
    let mut deployment = working();
    deployment.attempts[0].state = AttemptState::Offered as i32;
    let expected = "\
|  shop@prod#12  active 02:00
   attempt 1 on web-07 under fence 1.42, offered 01:55 ago and not taken yet";
    assert_eq!(frame(&deployment, 0, 0), expected);
    deployment.attempts.clear();
    deployment.summary.as_mut().expect("set above").state = DeploymentState::Queued as i32;
    deployment.waiting = "shop@prod#11 holds the target".to_owned();
    let expected = "   shop@prod#12  queued 02:00
   waits: shop@prod#11 holds the target";
    assert_eq!(frame(&deployment, 0, 0), expected);
    assert_eq!(frame(&deployment, 50, 7), expected, "nothing turns");
}

#[test]
fn a_frame_marks_what_is_over_its_deadline_and_how_far_a_cancel_was_seen_to_come() {
    let mut deployment = working();
    deployment.attempts[0].steps[1].over_deadline = true;
    deployment.cancellation = Some(v1::Cancellation {
        cause: "timeout".to_owned(),
        by: "switch".to_owned(),
        requested_at: stamp(60),
        recorded_at: stamp(60),
        delivered: seen(61),
        ..v1::Cancellation::default()
    });
    let expected = "\
|  shop@prod#12  active 02:00
   attempt 1 on web-07 under fence 1.42
   step 2 of 2: switch, begun 01:51 ago
-- step switch is over its deadline, and no end was seen
   cancel  -- requested  # recorded  [] delivered  . acted  . observed";
    assert_eq!(frame(&deployment, 0, 0), expected);
    assert!(!frame(&deployment, 0, 0).contains('%'), "how far it has come nobody knows");
}

#[test]
fn a_frame_is_cut_to_the_terminal_before_it_is_painted() {
    let told = Some((working(), std::time::Duration::ZERO));
    let progress = Progress { told, lost: None, turn: 0 };
    let narrow = Terminal { width: Some(24), ..ASCII };
    let plain = progress.lines(Canvas { terminal: &narrow, now: at(120) });
    assert_eq!(plain[1], "   attempt 1 on web-07 ");
    let painted = progress.lines(Canvas { terminal: &Terminal { colour: true, ..narrow }, now: at(120) });
    let stripped: Vec<String> = painted.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
    assert_eq!(stripped, plain);
    assert!(painted[0].contains('\u{1b}'));
}

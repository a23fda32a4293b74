//! Lists, a line each.

use super::*;

#[test]
fn a_target_on_hold_is_not_shown_as_held() {
    let hold =
        |until| Some(v1::TargetHold { by: "bob".to_owned(), reason: "freeze".to_owned(), since: stamp(0), until });
    let mut free = v1::Target { name: "shop@prod".to_owned(), hold: hold(stamp(60)), ..v1::Target::default() };
    let shown = target(&free, canvas());
    assert!(shown.starts_with("shop@prod  on hold\n"), "{shown}");
    let late = "by bob since 14:20:00Z (2m ago), until 14:21:00Z and as long as no coordinator served: freeze";
    assert!(shown.contains(late), "{shown}");
    free.hold = hold(None);
    assert!(target(&free, canvas()).contains("by bob since 14:20:00Z (2m ago): freeze"));
    let table = targets(&[free], canvas()).draw(&Terminal::PLAIN);
    assert!(table.contains("on hold by bob: freeze") && !table.contains("held by bob"), "{table}");
}

#[test]
fn several_deployments_are_one_line_each() {
    let mut deployment = uncertain();
    let line = "shop@prod#12         uncertain nothing that was accepted says how it ended";
    assert_eq!(one_line_of(&deployment), line);
    let drawn = |deployment: &v1::Deployment| {
        fleet_line(deployment, std::time::Duration::ZERO, None, 0, &Terminal { unicode: false, ..Terminal::PLAIN })
    };
    assert_eq!(drawn(&deployment), line, "what moves no further has no spinner");
    let about = deployment.summary.as_mut().expect("there");
    about.state = DeploymentState::Queued as i32;
    (deployment.attempts, deployment.waiting) = (Vec::new(), "shop@prod#11 holds the target".to_owned());
    assert_eq!(drawn(&deployment), "shop@prod#12            queued: shop@prod#11 holds the target");
}

#[test]
fn a_place_whose_resource_could_not_be_asked_is_not_known_to_be_open() {
    let place = |revision: &str, number: u64, asked: bool, compatible: bool| v1::RollbackCandidate {
        numbers: vec![number],
        undoes: vec![format!("shop@prod#{number}")],
        revisions: vec![v1::CandidateRevision {
            resource: "site".to_owned(),
            revision: revision.to_owned(),
            asked,
            ..v1::CandidateRevision::default()
        }],
        compatible,
        why_not: if compatible { "" } else { "the window has passed" }.to_owned(),
        may_be_attested: false,
    };
    let places = [
        place("v2", 12, true, true),
        place("v1", 11, false, true),
        place("v2", 10, true, true),
        place("v0", 9, false, false),
    ];
    let shown = candidates(&places).draw(&Terminal::PLAIN);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].contains("#12  yes ") && !lines[1].contains("nearer"), "{shown}");
    assert!(lines[2].contains("#11  not known ") && lines[2].contains("could not be asked"), "{shown}");
    assert!(lines[3].ends_with("; --to v2 takes the nearer place above"), "{shown}");
    assert!(lines[4].contains("#9   no ") && lines[4].ends_with("the window has passed"), "{shown}");
    let mut own = place("0043", 12, true, true);
    own.revisions[0].own_steps = vec!["undo".to_owned()];
    (own.revisions[0].brings, own.revisions[0].recorded) = ("0043".to_owned(), "0042".to_owned());
    let shown = candidates(&[own]).draw(&Terminal::PLAIN);
    let told =
        "its file declares the way back; site has 0042 on record, and the operator's own step undo is to bring 0043\n";
    assert!(shown.ends_with(told), "nothing keeps it, so nothing is said to have it still: {shown}");
}

#[test]
fn a_failure_says_why_and_where_to_look_next() {
    let mut deployment = uncertain();
    deployment.summary.as_mut().expect("set above").state = DeploymentState::Failed as i32;
    deployment.holds_target = false;
    let step = &mut deployment.attempts[0].steps[1];
    step.state = StepState::Failed as i32;
    step.detail = "exit 3; it has no room".to_owned();
    step.exit = Some(v1::Exit { kind: v1::ExitKind::Exited as i32, code: 3, ..v1::Exit::default() });
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("step switch failed: exit 3; it has no room\n"), "{shown}");
    assert!(shown.contains("next       holdfast logs shop@prod#12\n"), "{shown}");
    assert!(super::deployment(&deployment, canvas()).contains("step switch failed: exit 3; it has no room\n"));
    let step = &mut deployment.attempts[0].steps[1];
    step.detail = "x".repeat(10_000);
    step.exit = Some(v1::Exit { kind: v1::ExitKind::NotSpawned as i32, ..v1::Exit::default() });
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("next       holdfast show shop@prod#12\n"), "nothing was written\n{shown}");
    assert!(shown.lines().all(|line| line.len() < 400), "a bounded line\n{shown}");
    deployment.attempts[0].steps[1].detail = String::new();
    assert!(summary(&deployment, canvas()).contains("step switch failed: could not be started\n"));
    deployment.attempts.clear();
    assert!(summary(&deployment, canvas()).contains("next       holdfast show shop@prod#12\n"));
    deployment.not_healthy = true;
    let shown = summary(&deployment, canvas());
    assert!(shown.contains("holdfast rollback shop@prod, which lists where it can go back to"), "{shown}");
}

#[test]
fn a_list_tells_a_rollback_from_a_deployment() {
    let plain = uncertain().summary.expect("set above");
    let back = v1::DeploymentSummary {
        label: "shop@prod#13".to_owned(),
        undoes: vec!["shop@prod#12".to_owned(), "shop@prod#11".to_owned()],
        ..plain.clone()
    };
    let bare = v1::DeploymentSummary { because: String::new(), ..back.clone() };
    let shown = deployments(&[plain, back, bare], canvas()).draw(&Terminal::PLAIN);
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    assert!(lines[1].ends_with("  nothing that was accepted says how it ended"), "{shown}");
    assert!(lines[2].ends_with("  rollback of #12, #11: nothing that was accepted says how it ended"), "{shown}");
    assert!(lines[3].ends_with("  rollback of #12, #11"), "{shown}");
}

#[test]
fn an_audit_says_about_what_each_line_is() {
    let entry = v1::AuditEntry {
        at: stamp(0),
        by: "alice".to_owned(),
        what: "decided".to_owned(),
        about: "shop@prod#12".to_owned(),
        sentence: "retry".to_owned(),
        ..v1::AuditEntry::default()
    };
    let shown = audit(&[entry], canvas()).draw(&Terminal::PLAIN);
    assert!(shown.starts_with("WHEN       WHO    WHAT     ABOUT         TOLD\n"), "{shown}");
    assert!(shown.contains("decided  shop@prod#12  retry"), "{shown}");
}

#[test]
fn an_agent_without_room_is_listed_with_what_it_holds_back() {
    let no_room = Some(v1::NoRoom { why: "the disk is full".to_owned(), begins_no_step: true });
    let one = v1::Agent { name: "web-01".to_owned(), no_room, ..v1::Agent::default() };
    let why = "no room on its host, and no step of what it holds begins: the disk is full";
    assert!(one_agent(&one, canvas()).contains(why));
    assert!(agents(&[one], canvas()).draw(canvas().terminal).contains(why));
}

#[test]
fn a_drained_agent_is_listed_with_who_and_why() {
    let since = Some(holdfast_proto::convert::wall_to_wire(at(100)));
    let drained = Some(v1::Drained { since, by: "anna".to_owned(), reason: "new disk".to_owned() });
    let (one, other) = (v1::Agent { name: "web-01".to_owned(), drained, ..v1::Agent::default() }, v1::Agent::default());
    let shown = agents(&[one, other.clone()], canvas()).draw(&Terminal::PLAIN);
    assert!(shown.contains("NOTHING NEW BECAUSE") && shown.contains("by anna: new disk"), "{shown}");
    assert!(!agents(&[other], canvas()).draw(&Terminal::PLAIN).contains("NOTHING NEW"), "nobody said so");
}

#[test]
fn a_certificate_that_ends_soon_and_was_not_renewed_is_told_and_another_is_not() {
    let wire = |seconds: i64| {
        let wall = holdfast_common::time::Wall(canvas().now.0 + seconds * 1_000_000);
        Some(holdfast_proto::convert::wall_to_wire(wall))
    };
    let agent = |since, until, renewed: Option<i64>| v1::Agent {
        name: "web-01".to_owned(),
        fingerprint: "ab".repeat(32),
        certificate_since: wire(since),
        certificate_expires_at: wire(until),
        renewed_until: renewed.and_then(wire),
        enrolment: Some(v1::Enrolment { at: wire(since), token: "0a1b".to_owned() }),
        ..v1::Agent::default()
    };
    let table = |agent: &v1::Agent| agents(std::slice::from_ref(agent), canvas()).draw(&Terminal::PLAIN);
    let sound = agent(-10, 100, None);
    assert!(!table(&sound).contains("CERTIFICATE"), "{}", table(&sound));
    let shown = one_agent(&sound, canvas());
    for told in ["until", "sha256:abab", "with join token 0a1b", "never heard"] {
        assert!(shown.contains(told), "{told}:\n{shown}");
    }
    let late = agent(-100, 40, None);
    assert!(table(&late).contains("was not renewed") && one_agent(&late, canvas()).contains("was not renewed"));
    let renewed = agent(-100, 40, Some(400));
    assert!(
        !table(&renewed).contains("CERTIFICATE") && one_agent(&renewed, canvas()).contains("the next one was signed")
    );
    let narrow = Terminal { width: Some(60), ..Terminal::PLAIN };
    let shown = agents(std::slice::from_ref(&late), Canvas { terminal: &narrow, ..canvas() }).draw(&narrow);
    assert!(!shown.contains("VERSION") && shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    let over = agent(-100, -1, None);
    assert!(table(&over).contains("ended"), "{}", table(&over));
    for (other, told) in [(None, "no other was signed"), (Some(400), "another one was signed")] {
        let revoked = v1::Agent { certificate_revoked_at: wire(-5), ..agent(-10, 100, other) };
        let shown = one_agent(&revoked, canvas());
        assert!(table(&revoked).contains("revoked") && shown.contains(told), "{shown}");
        assert_eq!(shown.contains("holdfast agent remove web-01 --confirm web-01"), other.is_none(), "{shown}");
    }
}

use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::{duration_to_wire, wall_to_wire};
use holdfast_proto::v1::{self, AttemptState, DeploymentState, StepEffect, StepState};

use super::*;

/// 2026-11-29T14:20:00Z
const START: i64 = 1_795_962_000_000_000;

fn at(second: i64) -> Wall {
    Wall(START + second * 1_000_000)
}

fn stamp(second: i64) -> Option<prost_types::Timestamp> {
    Some(wall_to_wire(at(second)))
}

fn seen(second: i64) -> Option<v1::Seen> {
    Some(v1::Seen { said_at: stamp(second), received_at: stamp(second) })
}

fn canvas() -> Canvas<'static> {
    Canvas { terminal: &Terminal::PLAIN, now: at(120) }
}

fn uncertain() -> v1::Deployment {
    let step = v1::StepRun {
        name: "switch".to_owned(),
        state: StepState::Started as i32,
        effect: StepEffect::Mutates as i32,
        resource: "site".to_owned(),
        permitted_at: stamp(7),
        started: seen(9),
        ..v1::StepRun::default()
    };
    let look = v1::StepRun {
        name: "look".to_owned(),
        state: StepState::Applied as i32,
        effect: StepEffect::None as i32,
        ..v1::StepRun::default()
    };
    let attempt = v1::Attempt {
        number: 1,
        agent: "web-07".to_owned(),
        fence: 42,
        fence_text: "1.42".to_owned(),
        state: AttemptState::Uncertain as i32,
        offered_at: stamp(5),
        steps: vec![look, step],
        ..v1::Attempt::default()
    };
    v1::Deployment {
        summary: Some(v1::DeploymentSummary {
            id: "0193a1b2-0000-7000-8000-000000000001".to_owned(),
            label: "shop@prod#12".to_owned(),
            target: "shop@prod".to_owned(),
            state: DeploymentState::Uncertain as i32,
            because: "nothing that was accepted says how it ended".to_owned(),
            submitted_by: "alice".to_owned(),
            submitted_at: stamp(0),
            ..v1::DeploymentSummary::default()
        }),
        inputs: [("revision".to_owned(), "v2".to_owned())].into(),
        attempts: vec![attempt],
        holds_target: true,
        reserved_at: stamp(1),
        ..v1::Deployment::default()
    }
}

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

fn decided(target: v1::OperationState, revision: &str, second: i64) -> v1::DecisionRecord {
    v1::DecisionRecord {
        by: "dev".to_owned(),
        at: stamp(second),
        kind: v1::DecisionKind::Retry as i32,
        target: target as i32,
        runner: v1::RunnerState::Stopped as i32,
        observed_revision: revision.to_owned(),
        evidence_ids: vec!["0193a1b2-0000-7000-8000-000000000009".to_owned()],
        ..v1::DecisionRecord::default()
    }
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

const ASCII: Terminal = Terminal { unicode: false, ..Terminal::PLAIN };

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

/// Every text of every answer, full of what must not reach a terminal.
#[test]
fn no_text_of_an_answer_reaches_the_terminal_raw() {
    const EVIL: &str = "x\u{1b}]0;owned\u{7}\r\n\u{9b}2J\u{202e}y";
    let evil = || EVIL.to_owned();
    let mut deployment = uncertain();
    let about = deployment.summary.as_mut().expect("set above");
    (about.because, about.label, about.target, about.submitted_by, about.id) = (evil(), evil(), evil(), evil(), evil());
    deployment.inputs = [(evil(), evil())].into();
    deployment.waiting = evil();
    deployment.rolled_back_by = vec![evil()];
    let of = v1::RollbackOf { undoes: vec![evil()], reason: evil(), attested: evil(), base: 3 };
    deployment.rollback = Some(of);
    let attempt = &mut deployment.attempts[0];
    (attempt.agent, attempt.fence_text, attempt.decline_reason) = (evil(), evil(), evil());
    let step = &mut attempt.steps[1];
    (step.name, step.resource, step.detail, step.observed_revision) = (evil(), evil(), evil(), evil());
    deployment.cancellation =
        Some(v1::Cancellation { by: evil(), reason: evil(), cause: evil(), ..v1::Cancellation::default() });
    deployment.decisions = vec![v1::DecisionRecord { by: evil(), reason: evil(), ..v1::DecisionRecord::default() }];
    let open = v1::OpenStep {
        step: evil(),
        resource: evil(),
        agent: evil(),
        fence_text: evil(),
        because: evil(),
        observed_revision: evil(),
        active_operation: evil(),
        ..v1::OpenStep::default()
    };
    let list = v1::Reconciliation {
        deployment: deployment.summary.clone(),
        runner_because: evil(),
        open_steps: vec![open],
        relation: evil(),
        options: vec![v1::DecisionOption { why_not: evil(), leads_to: evil(), ..v1::DecisionOption::default() }],
        who_can_act: evil(),
        ..v1::Reconciliation::default()
    };
    let piece =
        v1::Evidence { kind: evil(), by: evil(), sentence: evil(), fence_text: evil(), ..v1::Evidence::default() };
    let resource = v1::Resource { name: evil(), ..v1::Resource::default() };
    let status = v1::ResourceStatus {
        resource: Some(resource),
        revision: evil(),
        home: evil(),
        knowledge: 2,
        recorded_at: None,
        source: evil(),
    };
    let target = v1::Target {
        name: evil(),
        agents: [(evil(), evil())].into(),
        policy: evil(),
        resources: vec![status],
        fence: 1,
        fence_text: evil(),
        holder: deployment.summary.clone(),
        held_because: evil(),
        waiting: deployment.summary.clone().into_iter().collect(),
        who_can_act: evil(),
        held_since: None,
        hold: Some(v1::TargetHold { by: evil(), reason: evil(), ..v1::TargetHold::default() }),
        queue: evil(),
    };
    let evil_step = v1::PlannedStep {
        name: evil(),
        adapter: evil(),
        resource: evil(),
        wanted_revision: evil(),
        expected_revision: evil(),
        if_contact_is_lost: evil(),
        ..v1::PlannedStep::default()
    };
    let evil_plan = v1::Plan {
        target: evil(),
        label: evil(),
        plan_digest: evil(),
        inputs: [(evil(), evil())].into(),
        policy: evil(),
        entry: v1::PlanEntry::Refused as i32,
        entry_because: evil(),
        refused_code: evil(),
        holder: deployment.summary.clone(),
        hold: target.hold.clone(),
        before: deployment.summary.clone().into_iter().collect(),
        supersedes: deployment.summary.clone().into_iter().collect(),
        agents: vec![v1::PlannedAgent { agent: evil(), why_not: evil(), declined: evil() }],
        steps: vec![evil_step],
        resources: vec![v1::PlannedResource {
            resource: evil(),
            knowledge: 2,
            revision: evil(),
            source: evil(),
            wanted_revision: evil(),
            ..v1::PlannedResource::default()
        }],
        not_undone: vec![evil()],
        ..v1::Plan::default()
    };
    let agent = v1::Agent {
        drained: Some(v1::Drained { since: None, by: evil(), reason: evil() }),
        name: evil(),
        labels: [(evil(), evil())].into(),
        adapters: vec![evil()],
        version: evil(),
        holds: vec![evil()],
        lock: Some(v1::IdentityLock { since: None, why: evil() }),
        ..v1::Agent::default()
    };
    let reading = v1::Reading {
        revision: evil(),
        active_operation: evil(),
        detail: evil(),
        retained: vec![evil()],
        ..v1::Reading::default()
    };
    let own = v1::CandidateRevision { own_steps: vec![evil()], brings: evil(), recorded: evil(), ..Default::default() };
    let had = v1::CandidateRevision { resource: evil(), revision: evil(), ..own.clone() };
    let taken = v1::CandidateRevision { own_steps: Vec::new(), ..had.clone() };
    let candidate = v1::RollbackCandidate {
        undoes: vec![evil()],
        revisions: vec![had, taken],
        compatible: true,
        why_not: evil(),
        may_be_attested: true,
        numbers: vec![12],
    };
    let refused = v1::RollbackCandidate { compatible: false, ..candidate.clone() };
    let reading = v1::ResourceReading {
        resource: evil(),
        agent: evil(),
        reading: Some(reading),
        detail: evil(),
        deployment: evil(),
        step: evil(),
    };
    let grants = vec![v1::Grant { role: 1, targets: evil() }];
    let token = v1::Token { name: evil(), grants, created_by: evil(), ..v1::Token::default() };
    let canvas = canvas();
    for shown in [
        super::deployment(&deployment, canvas),
        summary(&deployment, canvas),
        reconciliation(&list, canvas),
        evidence(std::slice::from_ref(&piece), canvas).draw(canvas.terminal),
        one_evidence(&piece, canvas),
        one_agent(&agent, canvas),
        plan(&evil_plan, canvas),
        one_line_of(&deployment),
        fleet_line(&deployment, std::time::Duration::ZERO, None, 0, canvas.terminal),
        super::target(&target, canvas),
        targets(&[target], canvas).draw(canvas.terminal),
        agents(&[agent], canvas).draw(canvas.terminal),
        deployments(&deployment.summary.clone().into_iter().collect::<Vec<_>>(), canvas).draw(canvas.terminal),
        readings(&[reading]).draw(canvas.terminal),
        candidates(&[candidate, refused]).draw(canvas.terminal),
        Progress { told: Some((deployment.clone(), std::time::Duration::ZERO)), lost: None, turn: 0 }
            .lines(canvas)
            .join("\n"),
        super::tokens(&[token], canvas).draw(canvas.terminal),
    ] {
        let bad = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{shown}");
        assert!(!shown.contains("owned\n"), "a line feed of the text broke a line:\n{shown}");
    }
}

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

fn possible(agent: &str, why_not: &str, declined: &str) -> v1::PlannedAgent {
    v1::PlannedAgent { agent: agent.to_owned(), why_not: why_not.to_owned(), declined: declined.to_owned() }
}

fn planned() -> v1::Plan {
    let step = |name: &str, effect: StepEffect, lost: &str| v1::PlannedStep {
        name: name.to_owned(),
        effect: effect as i32,
        adapter: "command".to_owned(),
        retry: v1::RetryClass::Pure as i32,
        if_contact_is_lost: lost.to_owned(),
        ..v1::PlannedStep::default()
    };
    v1::Plan {
        target: "shop@prod".to_owned(),
        label: "shop@prod#13".to_owned(),
        plan_digest: "3f2a".to_owned(),
        inputs: [("revision".to_owned(), "v2".to_owned())].into(),
        order: Some(41),
        lease_ttl: Some(duration_to_wire(Millis(30_000))),
        max_attempts: 3,
        policy: "manual".to_owned(),
        entry: v1::PlanEntry::Waits as i32,
        entry_because: "bob has put the target on hold: freeze".to_owned(),
        hold: Some(v1::TargetHold {
            by: "bob".to_owned(),
            reason: "freeze".to_owned(),
            since: stamp(0),
            until: stamp(3_600),
        }),
        before: vec![v1::DeploymentSummary {
            label: "shop@prod#12".to_owned(),
            state: DeploymentState::Queued as i32,
            ..v1::DeploymentSummary::default()
        }],
        agents: vec![
            possible("web-01", "", ""),
            possible("web-02", "no contact", ""),
            possible("web-03", "", "shop@prod#11: its host's policy forbids it"),
        ],
        steps: vec![
            step("fetch", StepEffect::None, "nothing is changed by it"),
            v1::PlannedStep {
                adapter: "release".to_owned(),
                resource: "site".to_owned(),
                retry: v1::RetryClass::Idempotent as i32,
                timeout: Some(duration_to_wire(Millis(600_000))),
                wanted_revision: "v2".to_owned(),
                expected_revision: "v1".to_owned(),
                pin: v1::PinHolds::Yes as i32,
                ..step("switch", StepEffect::Mutates, "uncertain after 30s; a fence-off; a person decides")
            },
        ],
        resources: vec![v1::PlannedResource {
            resource: "site".to_owned(),
            knowledge: v1::RevisionKnowledge::Recorded as i32,
            revision: "v1".to_owned(),
            recorded_at: stamp(0),
            source: "as shop@prod#11 left it on web-01".to_owned(),
            wanted_revision: "v2".to_owned(),
        }],
        not_undone: vec!["what the command of step migrate changes".to_owned()],
        ..v1::Plan::default()
    }
}

#[test]
fn a_plan_says_what_would_run_and_where_it_would_stand() {
    let expected = "\
shop@prod would be shop@prod#13 and wait: bob has put the target on hold: freeze
  plan       3f2a
  with       revision=v2
  order      41
  lease      30s, 3 tries
  policy     manual
  on hold    by bob since 14:20:00Z (2m ago), until 15:20:00Z: freeze
  before it  shop@prod#12 (queued)
  agents     web-01 can run it now, as far as its coordinator knows; the host's own policy is asked at the offer
             web-02 can't: no contact
             web-03 could run it now, if its host's policy lets it: it declined shop@prod#11: its host's policy forbids it

#  STEP    EFFECT   BY       ON    RETRY       TIMEOUT  WANTED  EXPECTS
1  fetch   none     command        pure
2  switch  mutates  release  site  idempotent  10m      v2      v1, as is on record

RESOURCE  NOW  WANTED  RECORDED            FROM
site      v1   v2      14:20:00Z (2m ago)  as shop@prod#11 left it on web-01

If contact is lost during
  fetch   nothing is changed by it
  switch  uncertain after 30s
          a fence-off
          a person decides

A rollback would not undo
  what the command of step migrate changes
";
    assert_eq!(plan(&planned(), canvas()), expected);
}

#[test]
fn a_plan_that_would_begin_or_be_refused_says_so_first() {
    let begins = v1::Plan { entry: v1::PlanEntry::Begins as i32, ..planned() };
    assert!(plan(&begins, canvas()).starts_with("shop@prod would be shop@prod#13 and begin at once\n"));
    let refused = v1::Plan {
        entry: v1::PlanEntry::Refused as i32,
        entry_because: "order key 9 is lower than 10\u{1b}[31m".to_owned(),
        refused_code: "HF-2012".to_owned(),
        ..planned()
    };
    let shown = plan(&refused, canvas());
    assert!(
        shown.starts_with("shop@prod would be refused (HF-2012): order key 9 is lower than 10\\u{1b}[31m\n"),
        "{shown}"
    );
}

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
    assert!(summary(&deployment, canvas()).contains("next       holdfast rollback shop@prod\n"));
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
fn words_of_decisions_failures_and_rollbacks_reach_no_terminal_raw() {
    const EVIL: &str = "x\u{1b}]0;owned\u{7}\r\n\u{9b}2J\u{202e}y";
    let mut deployment = uncertain();
    let about = deployment.summary.as_mut().expect("set above");
    about.undoes = vec![EVIL.to_owned(), format!("{EVIL}#{EVIL}")];
    let attempt = &mut deployment.attempts[0];
    attempt.state = AttemptState::Resolved as i32;
    attempt.steps[1].name = EVIL.to_owned();
    (attempt.steps[0].name, attempt.steps[0].detail) = (EVIL.to_owned(), EVIL.to_owned());
    attempt.steps[0].state = StepState::Failed as i32;
    deployment.decisions =
        vec![v1::DecisionRecord { by: EVIL.to_owned(), ..decided(v1::OperationState::Applied, EVIL, 60) }];
    let entry = v1::AuditEntry { about: EVIL.to_owned(), ..v1::AuditEntry::default() };
    let had = v1::CandidateRevision {
        resource: EVIL.to_owned(),
        revision: EVIL.to_owned(),
        asked: true,
        ..v1::CandidateRevision::default()
    };
    let place = v1::RollbackCandidate { revisions: vec![had], compatible: true, ..v1::RollbackCandidate::default() };
    let summaries: Vec<_> = deployment.summary.clone().into_iter().collect();
    for shown in [
        super::deployment(&deployment, canvas()),
        summary(&deployment, canvas()),
        deployments(&summaries, canvas()).draw(&Terminal::PLAIN),
        audit(&[entry], canvas()).draw(&Terminal::PLAIN),
        candidates(&[place.clone(), place]).draw(&Terminal::PLAIN),
    ] {
        let bad = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{shown}");
        assert!(!shown.contains("owned\n"), "a line feed of the text broke a line:\n{shown}");
    }
}

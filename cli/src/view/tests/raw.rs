//! No text of an answer reaches a terminal as it came.

use super::*;

const EVIL: &str = "x\u{1b}]0;owned\u{7}\r\n\u{9b}2J\u{202e}y";

#[track_caller]
fn assert_clean(shown: &str) {
    let bad = shown.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(bad, None, "{shown}");
    assert!(!shown.contains("owned\n"), "a line feed of the text broke a line:\n{shown}");
}

/// Every text of every answer, full of what must not reach a terminal.
#[test]
fn no_text_of_an_answer_reaches_the_terminal_raw() {
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
        assert_clean(&shown);
    }
}

#[test]
fn words_of_decisions_failures_and_rollbacks_reach_no_terminal_raw() {
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
        assert_clean(&shown);
    }
}

use std::collections::{BTreeMap, VecDeque};

use holdfast_common::fence::Epoch;
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, EvidenceId, IncarnationId, OperatorName, RequestId, ResourceName, StepName,
    TargetName,
};
use holdfast_common::outcome::StepEnd;
use holdfast_common::recovery::Policy;
use holdfast_common::report::DeclineReason;
use holdfast_common::spec::{
    DeploymentSpec, PlanDigest, QueueKind, Reach, ResourceAdapter, ResourceSpec, RetryClass, RetrySpec, StepBody,
    StepEffect, StepSpec, TargetSpec, Timeouts,
};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::state::{
    Attempt, AttemptState, Base, CancelCause, Deployment, DeploymentState, EventSequence, Evidence, EvidenceBody,
    EvidenceSequence, HoldUntil, Kind, OperatorHold, ResourceKnowledge, RevisionSource, RollbackOf, Seen, StepRun,
    StepState, Undone, Waiting,
};
use uuid::Uuid;

use super::*;

fn wall(text: &str) -> Wall {
    Wall(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

fn spec() -> DeploymentSpec {
    let step = StepSpec {
        name: StepName::new("switch").unwrap(),
        effect: StepEffect::Mutates,
        resource: Some(ResourceName::new("site").unwrap()),
        retry: RetryClass::Unsafe,
        body: StepBody::Command { argv: vec!["true".to_owned()] },
        revision: None,
        expected_revision: None,
        timeout: None,
        data: holdfast_common::rollback::DataEffect::None,
    };
    DeploymentSpec {
        target: TargetName::new("shop@prod").unwrap(),
        inputs: BTreeMap::new(),
        lease_ttl: Millis(30_000),
        steps: vec![step],
        cancel_grace: Millis(10_000),
        retry: RetrySpec {
            max_attempts: 3,
            backoff_initial: Millis(1),
            backoff_max: Millis(2),
            transient_exit_codes: Default::default(),
        },
        timeouts: Timeouts::default(),
        policy: None,
        order: None,
        rollback: None,
    }
}

/// `shop@prod#12`, whose step was permitted and said its start, and then nothing.
pub(in crate::grpc) fn uncertain() -> TargetState {
    let received = wall("2026-11-29T14:20:09.5Z");
    let run = StepRun {
        name: StepName::new("switch").unwrap(),
        state: StepState::Started,
        permitted_at: Some(wall("2026-11-29T14:20:07Z")),
        started: Some(Seen { said_at: received, received_at: received }),
        ended: None,
        deadline: None,
        over_deadline: false,
        exit: None,
        observed: None,
        detail: String::new(),
    };
    let attempt = Attempt {
        id: AttemptId(Uuid::from_u128(2)),
        number: 1,
        agent: AgentName::new("web-07").unwrap(),
        incarnation: IncarnationId(Uuid::from_u128(3)),
        fence: Fence::first(Epoch(1)).unwrap().next(Epoch(1)).unwrap(),
        state: AttemptState::Uncertain,
        lease: None,
        offered_at: wall("2026-11-29T14:20:00Z"),
        readmits: None,
        declined: String::new(),
        steps: vec![run],
    };
    let target = TargetSpec {
        name: TargetName::new("shop@prod").unwrap(),
        agents: [("role".to_owned(), "shop".to_owned())].into(),
        policy: Policy::Manual,
        patience: None,
        queue: QueueKind::Latest,
        resources: vec![ResourceSpec {
            name: ResourceName::new("site").unwrap(),
            reach: Reach::Host,
            adapter: ResourceAdapter::Command { inspect: None, outlives: true },
        }],
    };
    let deployment = Deployment {
        id: DeploymentId(Uuid::from_u128(1)),
        number: 12,
        request: RequestId(Uuid::from_u128(4)),
        kind: Kind::Deploy,
        plan: PlanDigest::of(&spec(), &target),
        spec: spec(),
        submitted_by: OperatorName::new("anna").unwrap(),
        submitted_at: wall("2026-11-29T14:19:00Z"),
        state: DeploymentState::Uncertain,
        waiting: None,
        not_before: None,
        queue_deadline: None,
        deadline: None,
        over_deadline: false,
        policy_at: None,
        held_because: None,
        reserved_at: Some(wall("2026-11-29T14:19:01Z")),
        expected: BTreeMap::new(),
        attempts: vec![attempt],
        cancel: None,
        evidence: Vec::new(),
        inquiries: Vec::new(),
        decisions: Vec::new(),
        ended: None,
    };
    TargetState {
        spec: target,
        sequence: EventSequence(9),
        fence: Fence::first(Epoch(1)),
        next_number: 13,
        home: Some(AgentName::new("web-07").unwrap()),
        identities: BTreeMap::new(),
        floors: BTreeMap::new(),
        resources: BTreeMap::new(),
        current: Some(deployment),
        queue: VecDeque::new(),
        hold: None,
        order: None,
    }
}

#[test]
fn a_held_target_says_what_is_known_what_is_not_and_what_to_do() {
    let problem = held::problem(&uncertain(), Some("shop@prod#13")).expect("held");
    assert_eq!(
        problem.to_string(),
        "\
error[HF-2031]: shop@prod is held by shop@prod#12, which is uncertain
  known      step switch was permitted 2026-11-29T14:20:07Z on web-07 under fence 1.2; last accepted word 2026-11-29T14:20:09Z
  not known  whether switch finished; whether web-07 is still working
  so         shop@prod#13 waits; nothing starts on shop@prod until shop@prod#12 is reconciled
  next       holdfast reconcile show shop@prod#12
  more       holdfast explain HF-2031"
    );
    let refused = held::problem(&uncertain(), None).expect("held");
    assert!(refused.so[0].starts_with("nothing was recorded"), "{refused}");
    let mut free = uncertain();
    free.current = None;
    assert_eq!(held::problem(&free, None), None);
}

#[test]
fn each_holding_state_has_its_code_and_its_next_command() {
    for (state, code, next) in [
        (DeploymentState::Held, "HF-2032", "holdfast reconcile show shop@prod#12"),
        (DeploymentState::Active, "HF-2033", "holdfast watch shop@prod#12"),
    ] {
        let mut target = uncertain();
        target.current.as_mut().expect("held").state = state;
        let problem = held::problem(&target, None).expect("held");
        assert_eq!((problem.code.to_string().as_str(), problem.next[0].as_str()), (code, next));
        assert!(problem.not_known.is_empty());
    }
}

#[test]
fn a_deployment_shows_its_open_step_and_never_a_result_that_nobody_saw() {
    let state = uncertain();
    let current = state.current.as_ref().expect("held");
    let shown = deployment::whole(&state.spec.name, current, state.sequence, &|_| Some(Millis(5)));
    let summary = shown.summary.expect("there");
    assert_eq!(summary.state, v1::DeploymentState::Uncertain as i32);
    assert_eq!(summary.label, "shop@prod#12");
    assert_eq!(
        summary.because,
        "step switch reported its start at 2026-11-29T14:20:09Z on web-07 under fence 1.2, and nothing that was accepted says how it ended"
    );
    let attempt = &shown.attempts[0];
    assert_eq!(attempt.silent_for, None, "no live lease, so no silence to count");
    let step = &attempt.steps[0];
    assert_eq!(step.state, v1::StepState::Started as i32);
    assert!(step.ended.is_none() && step.exit.is_none());
    assert!(shown.holds_target && !shown.never_mutated && summary.ended_at.is_none());
}

#[test]
fn a_step_that_can_not_begin_says_for_what_it_waits_and_who_can_act() {
    let no_permit = Some("none is granted");
    let room = |begins_no_step| Some(v1::NoRoom { why: "the disk is full".to_owned(), begins_no_step });
    let mut deployment = uncertain().current.expect("held");
    deployment.attempts[0].state = AttemptState::Running;
    let mut held = |state, effect, permit, room: Option<v1::NoRoom>| {
        deployment.state = DeploymentState::Active;
        deployment.attempts[0].steps[0].state = state;
        deployment.spec.steps[0].effect = effect;
        held_back::held_back(&deployment, permit, room.as_ref())
    };
    let on_permit = Some("step switch waits for a permit: none is granted".to_owned());
    let on_room = Some(
        "step switch waits until web-07 has room to begin it, which whoever runs that host can make: the disk is full"
            .to_owned(),
    );
    let (mutates, looks) = (StepEffect::Mutates, StepEffect::None);
    for (state, effect, permit, room, told) in [
        (StepState::Pending, mutates, no_permit, None, on_permit.clone()),
        (StepState::Pending, mutates, no_permit, room(true), on_permit),
        (StepState::Pending, looks, no_permit, None, None),
        (StepState::Pending, looks, no_permit, room(true), on_room.clone()),
        (StepState::Pending, mutates, None, room(true), on_room.clone()),
        (StepState::Permitted, mutates, no_permit, room(true), on_room),
        (StepState::Permitted, mutates, no_permit, None, None),
        (StepState::Pending, mutates, None, room(false), None),
        (StepState::Started, mutates, no_permit, room(true), None),
        (StepState::Pending, mutates, None, None, None),
    ] {
        assert_eq!(held(state, effect, permit, room.clone()), told, "{state:?} {effect:?} {permit:?} {room:?}");
    }
}

#[test]
fn an_end_that_nobody_can_tell_keeps_the_step_open_and_a_tombstone_closes_it() {
    let mut state = uncertain();
    let step = &mut state.current.as_mut().unwrap().attempts[0].steps[0];
    step.state = StepState::Ended(StepEnd::Unknown);
    assert!(sentence::open_step(state.current.as_ref().unwrap()).is_some());
    let step = &mut state.current.as_mut().unwrap().attempts[0].steps[0];
    step.state = StepState::Ended(StepEnd::NotStarted);
    assert!(sentence::open_step(state.current.as_ref().unwrap()).is_none());
}

#[test]
fn a_target_says_who_holds_it_since_when_why_and_who_can_act() {
    let shown = target::target(&uncertain());
    assert_eq!(shown.policy, "manual");
    assert_eq!(shown.holder.expect("held").label, "shop@prod#12");
    assert!(shown.held_since.is_some() && shown.held_because.contains("switch"));
    assert!(shown.who_can_act.ends_with("(holdfast reconcile show shop@prod#12)"), "{}", shown.who_can_act);
    assert_eq!(shown.resources[0].home, "web-07");
}

#[test]
fn what_is_known_names_the_evidence_that_it_goes_by() {
    let mut state = uncertain();
    let deployment = state.current.as_mut().unwrap();
    let note = |number: u64| Evidence {
        id: EvidenceId(Uuid::from_u128(u128::from(number))),
        sequence: EvidenceSequence(number),
        received_at: wall("2026-11-29T14:21:00Z"),
        body: EvidenceBody::Note { by: OperatorName::new("anna").unwrap(), text: "hm".to_owned() },
    };
    deployment.evidence = (1..=3).map(note).collect();
    let told = |ids: &[u128]| {
        let ids: Vec<EvidenceId> = ids.iter().map(|id| EvidenceId(Uuid::from_u128(*id))).collect();
        evidence::goes_by(deployment, "its journal says that it ended", &ids)
    };
    assert_eq!(told(&[3]), "its journal says that it ended (evidence 3)");
    assert_eq!(told(&[]), "its journal says that it ended");
}

#[test]
fn text_from_outside_is_printable_in_every_sentence() {
    let mut state = uncertain();
    let deployment = state.current.as_mut().unwrap();
    deployment.state = DeploymentState::Queued;
    deployment.waiting = Some(Waiting::NoEligibleAgent {
        agents: [(AgentName::new("web-07").unwrap(), "\u{1b}[31mno\r\n".to_owned())].into(),
    });
    let told = sentence::because(deployment);
    assert!(!told.chars().any(char::is_control), "{told:?}");
}

#[test]
fn what_an_agent_declined_says_who_why_and_not_before_when_wherever_it_waits() {
    let mut state = uncertain();
    let deployment = state.current.as_mut().unwrap();
    let attempt = &mut deployment.attempts[0];
    attempt.state = AttemptState::Declined(DeclineReason::HostPolicy);
    attempt.declined = "refused by policy.commands of this host: program /usr/bin/dash\u{1b} is not in it".to_owned();
    deployment.waiting = Some(Waiting::backoff(Millis(2_000), wall("2026-11-29T14:20:07Z")));
    let who = "web-07 declined: its host's policy forbids it: refused by policy.commands of this host: \
               program /usr/bin/dash\\u{1b} is not in it";
    let told = format!("{who}; the next attempt follows, not before 2026-11-29T14:20:09Z");
    for waits in [DeploymentState::Queued, DeploymentState::Active] {
        state.current.as_mut().unwrap().state = waits;
        let deployment = state.current.as_ref().unwrap();
        assert_eq!(deployment::summary(&state.spec.name, deployment).because, told);
        let whole = deployment::whole(&state.spec.name, deployment, state.sequence, &|_| None);
        assert_eq!(whole.waiting, told);
        assert_eq!(format!("web-07 declined: {}", whole.attempts[0].decline_reason), who);
        let target = target::target(&state);
        assert_eq!(target.held_because, told);
        assert!(target.who_can_act.starts_with("whoever administers the host of web-07"), "{}", target.who_can_act);
    }
    let deployment = state.current.as_mut().unwrap();
    (deployment.attempts[0].declined, deployment.waiting) = (String::new(), Some(Waiting::Assignment));
    let told = sentence::because(deployment);
    assert_eq!(told, "web-07 declined: its host's policy forbids it; it is about to be offered");
}

#[test]
fn a_passed_deadline_is_told_as_still_running_and_names_whose_it_is() {
    let mut state = uncertain();
    let deployment = state.current.as_mut().unwrap();
    deployment.state = DeploymentState::Active;
    deployment.attempts[0].state = AttemptState::Running;
    deployment.attempts[0].lease = Some(holdfast_coordinator_core::state::Lease {
        away: None,
        ttl: Millis(30_000),
        written_run: holdfast_coordinator_core::state::Run(1),
        heard: holdfast_common::time::Serving(1),
    });
    assert_eq!(sentence::because(deployment), "attempt 1 is running on web-07");
    deployment.over_deadline = true;
    let said = sentence::because(deployment);
    assert_eq!(said, "attempt 1 is running on web-07; it is over its deadline, still running");
    deployment.attempts[0].steps[0].over_deadline = true;
    let said = sentence::because(deployment);
    assert_eq!(said, "attempt 1 is running on web-07; step switch is over its deadline, still running");
    for (cause, by) in [
        (CancelCause::Timeout { step: StepName::new("queue").unwrap() }, "step queue"),
        (CancelCause::QueueTimeout, "queue"),
        (CancelCause::DeploymentTimeout, "deployment"),
    ] {
        deployment.cancel = Some(holdfast_coordinator_core::state::Cancellation {
            cause,
            reason: String::new(),
            recorded_at: wall("2026-11-29T14:25:00Z"),
            delivered: None,
            acted: None,
            observed: None,
            held_up: None,
        });
        let shown = deployment::whole(&state.spec.name, deployment, state.sequence, &|_| None);
        let cancel = shown.cancellation.expect("asked");
        assert_eq!((cancel.cause.as_str(), cancel.by.as_str()), ("timeout", by));
        assert!(shown.over_deadline && shown.attempts[0].steps[0].over_deadline);
    }
}

fn hold() -> OperatorHold {
    OperatorHold {
        by: OperatorName::new("bob").unwrap(),
        reason: "freeze\u{1b}[31m".to_owned(),
        since: wall("2026-11-29T14:00:00Z"),
        until: Some(HoldUntil { shown: wall("2026-11-29T18:00:00Z"), at: holdfast_common::time::Serving(1) }),
    }
}

#[test]
fn a_hold_is_told_by_whom_until_when_and_why_and_never_as_held() {
    let mut state = uncertain();
    state.hold = Some(hold());
    let shown = target::target(&state);
    let told = shown.hold.expect("on hold");
    assert_eq!((told.by.as_str(), told.reason.as_str()), ("bob", "freeze\u{1b}[31m"), "data as it was given");
    assert_eq!(shown.queue, "latest");
    let why = hold().waiting();
    assert_eq!(sentence::waiting(&why), "bob has put the target on hold until 2026-11-29T18:00:00Z: freeze\\u{1b}[31m");
    let deployment = state.current.as_mut().unwrap();
    (deployment.state, deployment.waiting) = (DeploymentState::Active, Some(why));
    let who = target::who_can_act(&state, state.current.as_ref().unwrap());
    assert_eq!(who, "bob, or an operator who may: holdfast target unhold shop@prod");
}

#[test]
fn a_declaration_under_a_deployment_is_refused_with_the_line_that_helps() {
    let mut state = uncertain();
    let mut next = |change: &dyn Fn(&mut TargetState)| {
        change(&mut state);
        let problem = held::in_use(&state).expect("in use");
        assert_eq!(problem.code.to_string(), "HF-2040");
        (problem.title.clone(), problem.next)
    };
    let set = |state: DeploymentState| move |target: &mut TargetState| target.current.as_mut().unwrap().state = state;
    assert_eq!(next(&|_| ()).1, ["holdfast reconcile show shop@prod#12"]);
    assert_eq!(next(&set(DeploymentState::Held)).1, ["holdfast reconcile show shop@prod#12"]);
    assert_eq!(next(&set(DeploymentState::Active)).1, ["holdfast wait shop@prod#12 --for terminal"]);
    let (title, lines) = next(&|target: &mut TargetState| {
        let mut waits = target.current.take().unwrap();
        (waits.state, waits.attempts) = (DeploymentState::Queued, Vec::new());
        let behind = Deployment { id: DeploymentId(Uuid::from_u128(9)), number: 13, ..waits.clone() };
        target.queue = VecDeque::from([waits, behind]);
    });
    assert_eq!(title, "shop@prod#12 waits for shop@prod: its resources and agents can't change under a deployment");
    assert_eq!(
        lines,
        [
            "holdfast cancel shop@prod#12 --reason TEXT, which ends it at once: nothing of it has begun",
            "holdfast list shop@prod --state queued, for those that wait behind it"
        ]
    );
    state.queue.clear();
    assert_eq!(held::in_use(&state), None);
}

#[test]
fn a_recorded_revision_says_from_whose_word() {
    let site = ResourceName::new("site").unwrap();
    let agent = AgentName::new("web-07").unwrap();
    let by = OperatorName::new("bob").unwrap();
    for (source, told) in [
        (None, ""),
        (
            Some(RevisionSource::Deployment { number: 11, agent: Some(agent.clone()), decided: false }),
            "as shop@prod#11 left it on web-07",
        ),
        (
            Some(RevisionSource::Deployment { number: 11, agent: Some(agent.clone()), decided: true }),
            "as decided of shop@prod#11",
        ),
        (Some(RevisionSource::Read { agent }), "read by web-07"),
        (Some(RevisionSource::Attested { by: by.clone(), how: String::new() }), "attested by bob"),
        (Some(RevisionSource::Attested { by, how: "psql\u{7}".to_owned() }), "attested by bob: psql\\u{7}"),
    ] {
        let mut state = uncertain();
        let known = ResourceKnowledge::Revision { revision: None, at: wall("2026-11-29T14:00:00Z"), source };
        state.resources.insert(site.clone(), known);
        let shown = target::target(&state).resources.remove(0);
        let unknown = (v1::RevisionKnowledge::Unknown as i32, String::new());
        assert_eq!((shown.knowledge, shown.source), unknown, "its holder may have changed it");
        state.current = None;
        let shown = target::target(&state).resources.remove(0);
        assert_eq!((shown.knowledge, shown.source.as_str()), (v1::RevisionKnowledge::Recorded as i32, told));
    }
}

#[test]
fn a_plan_names_what_a_hosts_policy_declined_last_and_nothing_that_it_took_since() {
    let mut declined = uncertain().current.unwrap();
    declined.attempts[0].state = AttemptState::Declined(DeclineReason::HostPolicy);
    declined.attempts[0].declined = "refused by policy.commands of this host".to_owned();
    let told = plan::declined(std::slice::from_ref(&declined), "web-07").expect("declined");
    assert_eq!(told, "shop@prod#12: its host's policy forbids it: refused by policy.commands of this host");
    assert_eq!(plan::declined(std::slice::from_ref(&declined), "web-08"), None);
    let taken = uncertain().current.unwrap();
    assert_eq!(plan::declined(&[taken, declined.clone()], "web-07"), None, "the newest first");
    declined.attempts[0].state = AttemptState::Declined(DeclineReason::Busy);
    assert_eq!(plan::declined(&[declined], "web-07"), None);
}

#[test]
fn a_rollback_says_on_one_line_what_it_undoes() {
    let mut state = uncertain();
    let target = state.spec.name.clone();
    let current = state.current.as_mut().unwrap();
    assert_eq!(deployment::summary(&target, current).undoes, Vec::<String>::new());
    let undone = |number| Undone { id: DeploymentId(Uuid::from_u128(number)), number: number as u64 };
    current.kind = Kind::Rollback(RollbackOf {
        undoes: vec![undone(11), undone(10)],
        base: Base::AtRest,
        reason: "worse".to_owned(),
        attested: None,
    });
    assert_eq!(deployment::summary(&target, current).undoes, ["shop@prod#11", "shop@prod#10"]);
}

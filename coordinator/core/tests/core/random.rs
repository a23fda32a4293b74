//! Random sequences on two targets and three agents, with loss, duplication, reordering and restarts: safety first, then
//! faults off, and everything converges. `HOLDFAST_SEQUENCES` sets how many, `HOLDFAST_SEED` runs one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_common::id::DeploymentId;
use holdfast_common::outcome::FailureClass;
use holdfast_common::recovery::{DecisionKind, Policy};
use holdfast_common::report::{DeclineReason, Report, ReportBody, ReportSequence};
use holdfast_common::rollback::{DataEffect, DataRange, DataRecovery, RollbackSpec, Way};
use holdfast_common::spec::*;
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::input::{Speaker, Until};
use holdfast_coordinator_core::open_decisions::KINDS;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Answer, Input, Refusal, decide};

use crate::agent::{End, Phase};
use crate::coverage::{self, Row};
use crate::ledger::Truth;
use crate::specs::*;
use crate::world::{Letter, World};

const SEQUENCES: u64 = 20_000;
const INPUTS: u64 = 40;

/// SplitMix64: the same seed is the same sequence, everywhere.
pub struct Draw(pub u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

#[test]
fn random_sequences_keep_every_invariant_and_converge() {
    let _alone = crate::scene::without_faults();
    let sequences = asked("HOLDFAST_SEQUENCES").unwrap_or(SEQUENCES);
    if let Some(seed) = asked("HOLDFAST_SEED") {
        sequence(seed, true);
        return;
    }
    let halves = [0, 1];
    let results = std::thread::scope(|scope| {
        let run = |half| scope.spawn(move || run(half, halves.len() as u64, sequences));
        halves.map(run).map(|thread| thread.join().expect("a runner catches its panics"))
    });
    let mut rows: BTreeMap<Row, u64> = BTreeMap::new();
    for result in results {
        let reached = result.unwrap_or_else(|failed| panic!("{failed}"));
        for (row, count) in reached {
            *rows.entry(row).or_default() += count;
        }
    }
    let (must, never) = coverage::expected();
    let missed: Vec<&Row> = must.iter().filter(|row| !rows.contains_key(*row)).collect();
    let strange: Vec<&Row> = rows.keys().filter(|row| !must.contains(row) || never.contains(row)).collect();
    println!("{sequences} sequences, {} rows reached of {}", must.len() - missed.len(), must.len());
    assert!(strange.is_empty(), "rows that are in no table: {strange:?}");
    assert!(missed.is_empty() || sequences < SEQUENCES, "rows that no sequence reached: {missed:?}");
}

#[allow(clippy::disallowed_methods, reason = "the core reads no environment, its test runner does")]
fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs every `of`th sequence. A failure names its seed and the command that repeats it.
pub fn run(first: u64, of: u64, sequences: u64) -> Result<BTreeMap<Row, u64>, String> {
    for seed in (first..sequences).step_by(usize::try_from(of).unwrap()) {
        catch_unwind(AssertUnwindSafe(|| sequence(seed, false))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
            let command = "cargo nextest run -p holdfast-coordinator-core random_sequences";
            format!("seed {seed}: {text}\nrepeat it with: HOLDFAST_SEED={seed} {command}")
        })?;
    }
    Ok(coverage::take())
}

/// One sequence: at least [`INPUTS`] inputs under faults, then the end of all faults.
pub fn sequence(seed: u64, trace: bool) {
    let mut draw = Draw(seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0x1405);
    let reach = |draw: &mut Draw| draw.pick(&[Reach::Host, Reach::Shared]);
    let mut specs = vec![site(reach(&mut draw)), shop(reach(&mut draw))];
    for spec in &mut specs {
        spec.policy = draw.pick(&[Policy::Manual, Policy::WhenProven, Policy::TrustReport]);
        spec.patience = draw.one_in(2).then_some(Millis(300));
    }
    let mut world = World::new(specs, 3, false);
    world.trace = trace;
    if seed % 500 == 7 {
        flood(&mut world, &mut draw);
    }
    let mut actions = 0;
    let mut doubts = Draw(seed ^ 0xd0b7);
    while world.inputs < INPUTS || actions < 60 {
        actions += 1;
        world.jitter = u16::try_from(draw.below(1_001)).unwrap();
        act(&mut world, &mut draw);
        if seed % 8 == 3 && doubts.one_in(12) {
            doubt(&mut world, &mut doubts);
        }
        assert!(actions < 5_000, "a sequence that feeds nothing");
    }
    calm(&mut world);
    if seed.is_multiple_of(3) {
        encore(&mut world, &mut draw);
    }
}

/// Once more on targets that have a past: somebody goes back, and others deploy.
fn encore(world: &mut World, draw: &mut Draw) {
    (0..2).for_each(|_| go_back(world, draw));
    (0..40).for_each(|_| act(world, draw));
    calm(world);
}

fn act(world: &mut World, draw: &mut Draw) {
    match draw.below(100) {
        0..6 => submit(world, draw),
        6 => go_back(world, draw),
        7..18 => {
            let (target, unfit) = (draw.below(2), draw.below(12));
            world.send_due(target, false);
            world.assign(target, &[unfit]);
        }
        18..50 => deliver(world, draw),
        50..80 => work(world, draw),
        80..86 => tick(world, draw),
        86..94 => operate(world, draw),
        94 if draw.one_in(3) => edit(world, draw),
        94 => junk(world, draw),
        95 => hold(world, draw),
        96 => world.restart(),
        97 => restart_agent(world, draw),
        _ => heartbeats(world, draw),
    }
}

fn submit(world: &mut World, draw: &mut Draw) {
    let target = draw.below(2);
    if world.targets[target].state.queue.len() > 3 {
        return;
    }
    let input = submission(world, draw, target);
    let _ = world.feed(target, &input);
}

/// A copy of an agent is seen, or a person says which one is the agent.
fn doubt(world: &mut World, draw: &mut Draw) {
    let (number, target) = (draw.below(world.agents.len()), draw.below(2));
    let Speaker { agent, incarnation } = world.speaker(number, world.agents[number].incarnation);
    let evidence = world.draw_evidence();
    let input = match draw.one_in(2) {
        true => Input::IdentityLocked { agent, incarnation, because: "a copy".to_owned(), evidence },
        false => Input::IdentityUnlocked { agent, incarnation, by: anna(), evidence },
    };
    world.feed(target, &input).expect("never refused");
}

/// Places, replaces or takes away a hold.
fn hold(world: &mut World, draw: &mut Draw) {
    let target = draw.below(2);
    if draw.one_in(3) {
        let held = world.targets[target].state.hold.is_some();
        let answer = world.feed(target, &Input::Unhold { by: anna() });
        assert_eq!(answer, if held { Ok(Answer::Done) } else { Err(Refusal::NotOnHold) });
        return;
    }
    let lasts = Millis(draw.pick(&[1, 60, 400, 2_000]));
    let until = (!draw.one_in(3)).then(|| Until { shown: Wall(i64::try_from(lasts.0).unwrap()), lasts });
    let reason = draw.pick(&["release freeze", "storm"]).to_owned();
    world.feed(target, &Input::Hold { by: anna(), reason, until }).expect("a hold is never refused");
    // A release freeze changes the target's queue now and then.
    let mut spec = world.targets[target].state.spec.clone();
    spec.queue = draw.pick(&[QueueKind::Fifo, QueueKind::Fifo, QueueKind::Latest]);
    world.feed(target, &Input::Declare { spec, by: anna() }).expect("the kind of a queue can change at any time");
}

fn submission(world: &World, draw: &mut Draw, target: usize) -> Input {
    let retry = draw.pick(&[RetryClass::Unsafe, RetryClass::Idempotent]);
    let to = draw.pick(&["r1", "r2", "r3"]);
    let mut steps = Vec::new();
    if draw.one_in(3) {
        steps.push(check("prepare"));
    }
    if target == 0 {
        steps.push(change("switch", "site", retry, Some(to)));
    } else {
        if draw.one_in(2) {
            steps.push(change("app", "app", retry, Some(to)));
        }
        if steps.iter().all(|step| step.resource.is_none()) || draw.one_in(2) {
            steps.push(change("migrate", "db", draw.pick(&[RetryClass::Unsafe, RetryClass::Idempotent]), None));
        }
    }
    if draw.one_in(2) {
        steps.push(if draw.one_in(2) { verify("verify") } else { check("verify") });
    }
    if draw.one_in(4) {
        steps.push(verify("verify-2"));
    }
    for step in &mut steps {
        step.timeout = draw.one_in(5).then_some(Millis(700));
        step.expected_revision = (step.resource.is_some() && draw.one_in(12)).then(|| revision("r1"));
    }
    let mut spec = deployment(&world.targets[target].state.spec, steps, 1 + u32::try_from(draw.below(3)).unwrap());
    spec.timeouts.queue = draw.one_in(6).then_some(Millis(900));
    spec.timeouts.deployment = draw.one_in(6).then_some(Millis(1_500));
    spec.rollback = draw.one_in(2).then(|| way_back(draw, target));
    if spec.rollback.is_some() && draw.one_in(8) {
        spec.steps[0].data = draw.pick(&[DataEffect::Expand, DataEffect::Destructive]);
    }
    spec.order = if draw.one_in(3) { OrderKey::new(draw.below(4) as u64) } else { None };
    let (deployment, request) = (deployment_id(world.deployments + 1), request_id(world.deployments + 1));
    Input::Submit { deployment, request, spec, by: anna(), no_queue: draw.one_in(10) }
}

/// What a file says of its own way back: within a window, with data in a range, or at any time.
fn way_back(draw: &mut Draw, target: usize) -> RollbackSpec {
    let own = vec![
        StepSpec { body: StepBody::Restore, ..change("undo-app", "app", RetryClass::Idempotent, None) },
        change("undo-db", "db", RetryClass::Unsafe, None),
    ];
    RollbackSpec {
        way: if target == 0 { Way::PreviousRevision } else { Way::Steps { steps: own } },
        until: draw.one_in(4).then(|| Wall(i64::try_from(draw.below(4_000)).unwrap() * 1_000)),
        data: draw.one_in(8).then(|| DataRange { from: "1".into(), to: "9".into() }),
        recovery: DataRecovery::NoneNeeded,
    }
}

/// Asks to go back to what may have been there.
fn go_back(world: &mut World, draw: &mut Draw) {
    let target = draw.below(2);
    let resource = resource_name(if target == 0 { "site" } else { "app" });
    let seen = draw.one_in(3).then(|| (resource, [revision("r1")].into()));
    let to = draw.pick(&["r1", "r2", "r3"]);
    let (attested, seen) = (draw.one_in(3), seen.into_iter().collect());
    let _ = match draw.one_in(6) {
        true => world.go_back_over(target, to, vec![1], attested, seen),
        false => world.go_back(target, to, attested, seen),
    };
}

/// Fills a queue to its bound, and ends all of it again.
fn flood(world: &mut World, draw: &mut Draw) {
    loop {
        let mut input = submission(world, draw, 0);
        if let Input::Submit { no_queue, spec, .. } = &mut input {
            *no_queue = false;
            spec.order = None;
            spec.steps.iter_mut().for_each(|step| step.expected_revision = None);
            spec.timeouts = Timeouts::default();
        }
        match world.feed(0, &input) {
            Ok(_) => {}
            Err(Refusal::QueueFull { .. }) => break,
            Err(other) => panic!("{other}"),
        }
    }
    for number in 2..=world.deployments {
        let (deployment, reason) = (deployment_id(number), "flood".to_owned());
        let answer = world.feed(0, &Input::Cancel { deployment, by: anna(), reason, past: None });
        assert_eq!(answer, Ok(Answer::CancelledAtOnce));
    }
}

/// Somebody changes a resource by hand, between two attempts; or the next look of every agent fails; or each asks for a permit
/// once before it has looked, as no honest agent does.
fn edit(world: &mut World, draw: &mut Draw) {
    match draw.below(4) {
        0 => world.agents.iter_mut().for_each(|agent| agent.blind = 1),
        1 => world.agents.iter_mut().for_each(|agent| agent.hasty = true),
        _ => edit_target(world, draw),
    }
}

fn edit_target(world: &mut World, draw: &mut Draw) {
    let target = draw.below(2);
    let between = |current: &Deployment| current.live().is_none() && current.state == DeploymentState::Active;
    if world.targets[target].state.current.as_ref().is_some_and(between) {
        let resource = resource_name(if target == 0 { "site" } else { "app" });
        world.ledger.edit(target, &resource, revision(draw.pick(&["by-hand", "r1", "r2"])));
    }
}

fn deliver(world: &mut World, draw: &mut Draw) {
    for _ in 0..1 + draw.below(3) {
        if world.net.is_empty() {
            return;
        }
        let at = draw.below(world.net.len());
        let letter = world.net.iter().nth(at).cloned().expect("within");
        match draw.below(12) {
            0 => {
                world.net.remove(&letter);
            }
            1 => world.deliver(&letter, true),
            _ => world.deliver(&letter, false),
        }
    }
}

/// One agent does one thing.
fn work(world: &mut World, draw: &mut Draw) {
    let number = draw.below(world.agents.len());
    let (wall, incarnation) = (world.wall(), world.agents[number].incarnation);
    for sequence in 1..=world.agents[number].journal.len() as u64 {
        if !world.agents[number].journal[sequence as usize - 1].answered && !draw.one_in(3) {
            world.net.insert(Letter::Report { agent: number, incarnation, sequence });
        }
    }
    let alive: Vec<usize> = (0..world.agents[number].works.len())
        .filter(|at| world.agents[number].works[*at].phase != Phase::Over)
        .collect();
    if alive.is_empty() || !world.agents[number].up {
        return;
    }
    let at = draw.pick(&alive);
    let World { agents, ledger, net, .. } = world;
    let agent = &mut agents[number];
    let work = &agent.works[at];
    let (target, claim, stops) = (work.target, work.claim, work.cancelled || work.failed);
    match (work.phase, work.step().cloned()) {
        (Phase::Running, _) => {
            // Only the database's effects outlive their process: there a process that is gone proves nothing.
            let outlives = work.step().is_some_and(|step| step.resource == Some(resource_name("db")));
            let end = ending(draw, work.cancelled, outlives);
            agent.end(at, end, ledger, wall);
        }
        (Phase::Asked | Phase::Permitted, _) if stops => agent.bury(at, wall),
        (Phase::Idle, _) if stops => agent.finish(at, wall),
        (Phase::Idle, _) if agent.is_to_read(at) => agent.reread(at, ledger, wall),
        (Phase::Idle, None) => agent.finish(at, wall),
        (Phase::Permitted, _) if draw.one_in(10) => agent.bury(at, wall),
        (Phase::Permitted, _) => agent.begin(at, ledger, wall),
        (Phase::Idle, Some(_)) if work.carried[work.at] => agent.works[at].at += 1,
        (Phase::Idle, Some(_)) if !work.mutates() => agent.begin(at, ledger, wall),
        (Phase::Idle | Phase::Asked, Some(step)) => {
            agent.works[at].phase = Phase::Asked;
            agent.hasty &= agent.works[at].rereads.is_empty();
            net.insert(Letter::Ask { agent: number, incarnation, target, claim, step: step.name });
        }
        (Phase::Asked, None) | (Phase::Over, _) => {}
    }
}

fn ending(draw: &mut Draw, cancelled: bool, outlives: bool) -> End {
    let class = draw.pick(&[FailureClass::Transient, FailureClass::Permanent, FailureClass::Infrastructure]);
    let partial = draw.one_in(2);
    match draw.below(20) {
        0..3 => End::Failed { partial, class },
        3 => End::Unknown {
            truth: draw.pick(&[Truth::Nothing, Truth::Part, Truth::Whole]),
            gone: !outlives || draw.one_in(2),
        },
        4..12 if cancelled => End::Stopped { partial },
        4 => End::Stopped { partial },
        _ => End::Applied,
    }
}

fn tick(world: &mut World, draw: &mut Draw) {
    world.serving += draw.pick(&[20, 100, 300, 700, TTL + MARGIN]);
    let target = draw.below(2);
    let jitter = world.jitter();
    world.feed(target, &Input::Tick { jitter }).expect("time is never refused");
}

fn heartbeats(world: &mut World, draw: &mut Draw) {
    let agent = draw.below(world.agents.len());
    beat(world, agent);
}

fn beat(world: &mut World, agent: usize) {
    let incarnation = world.agents[agent].incarnation;
    for work in world.agents[agent].works.iter().filter(|work| work.phase != Phase::Over) {
        world.net.insert(Letter::Heartbeat { agent, incarnation, target: work.target, claim: work.claim });
    }
}

fn restart_agent(world: &mut World, draw: &mut Draw) {
    let (number, wall) = (draw.below(world.agents.len()), world.wall());
    match draw.below(6) {
        4 => {
            let away = draw.pick(&[200, AWAY, 9_000]);
            (0..1 + draw.below(2)).for_each(|_| world.detach(number, away));
        }
        0 => {
            world.incarnations += 1;
            let incarnation = world.incarnations;
            world.agents[number].lose_journal(incarnation);
        }
        1 => world.agents[number].up = !world.agents[number].up,
        _ => world.agents[number].restart(wall),
    }
    speak(world, number);
}

fn speak(world: &mut World, agent: usize) {
    let incarnation = world.agents[agent].incarnation;
    for at in 0..world.agents[agent].works.len() {
        let runner = world.agents[agent].word(at);
        let work = &world.agents[agent].works[at];
        world.net.insert(Letter::Journal { agent, incarnation, target: work.target, claim: work.claim, runner });
    }
}

fn operate(world: &mut World, draw: &mut Draw) {
    if world.deployments == 0 {
        return;
    }
    let number = 1 + draw.below(usize::try_from(world.deployments).unwrap() + 1) as u64;
    let held: Vec<DeploymentId> = world.targets.iter().filter_map(|t| t.state.current.as_ref()).map(|d| d.id).collect();
    let deployment = if held.is_empty() || draw.one_in(4) { deployment_id(number) } else { draw.pick(&held) };
    let target = world.target_of(deployment).unwrap_or(0);
    match draw.below(16) {
        0..3 => {
            let past = world.targets[target].ended.get(&deployment).map(|past| {
                let (id, state) = (past.id, past.state);
                holdfast_coordinator_core::input::PastDeployment { id, state, last_evidence: past.newest_evidence() }
            });
            let _ = world.feed(target, &Input::Cancel { deployment, by: anna(), reason: "stop".into(), past });
        }
        3..5 => drop(world.inspect(target, deployment)),
        5..7 => drop(world.fence_off(target, deployment)),
        7 if draw.one_in(4) => drop(world.attest_blindly(target, deployment)),
        7 => drop(world.attest(target, deployment, draw.one_in(2))),
        8..13 => {
            if draw.one_in(3) {
                hear_journals(world);
            }
            let kinds = if draw.one_in(2) { world.open(target, deployment) } else { KINDS.into() };
            let rare = [DecisionKind::Rollback, DecisionKind::Readmit];
            let rare = rare.into_iter().find(|rare| kinds.len() < KINDS.len() && kinds.contains(rare));
            let kind = rare.filter(|_| !draw.one_in(5)).unwrap_or_else(|| draw.pick(&kinds));
            let stale = u64::from(draw.one_in(6));
            let decided = world.decide(target, deployment, kind, stale);
            if kind == DecisionKind::Rollback && decided.is_ok() && !draw.one_in(3) {
                // Somebody thinks better of it, before an agent has taken it.
                let back = deployment_id(world.deployments);
                let cancel = Input::Cancel { deployment: back, by: anna(), reason: "stop".into(), past: None };
                world.feed(target, &cancel).expect("a cancel is recorded");
            }
            if kind == DecisionKind::Readmit && decided.is_ok() && draw.one_in(2) {
                // The offer of it is lost, and the agent with it.
                world.serving += TTL + MARGIN;
                let jitter = world.jitter();
                world.feed(target, &Input::Tick { jitter }).expect("time is never refused");
            }
        }
        13 => redeclare(world, draw),
        _ => {
            let round = draw.below(6) as u64;
            if world.targets[target].state.deployment(deployment).is_some_and(unsettled) {
                world.resolve(target, deployment, round);
            }
        }
    }
}

/// Every agent that is there says what its journal holds, and that arrives.
fn hear_journals(world: &mut World) {
    for agent in 0..world.agents.len() {
        if world.agents[agent].up {
            speak(world, agent);
        }
    }
    let words: Vec<Letter> =
        world.net.iter().filter(|letter| matches!(letter, Letter::Journal { .. })).cloned().collect();
    words.iter().for_each(|letter| world.deliver(letter, false));
}

fn unsettled(deployment: &Deployment) -> bool {
    matches!(deployment.state, DeploymentState::Uncertain | DeploymentState::Held)
}

/// Declared as it is, or with another reach; and once in a while to a coordinator that knows no target.
fn redeclare(world: &mut World, draw: &mut Draw) {
    let target = draw.below(2);
    let mut spec = world.targets[target].state.spec.clone();
    if draw.one_in(2) {
        spec.resources[0].reach = draw.pick(&[Reach::Host, Reach::Shared]);
    }
    let _ = world.feed(target, &Input::Declare { spec, by: anna() });
    let input = submission(world, draw, target);
    let refusal = decide(None, world.now(), &input).expect_err("nothing is declared");
    assert_eq!(refusal, Refusal::NotDeclared);
    coverage::refusal(&refusal);
}

/// Messages that no honest agent sends: each gets its answer and changes nothing but evidence.
fn junk(world: &mut World, draw: &mut Draw) {
    let claims: Vec<(usize, usize, u64, holdfast_common::claim::Claim)> = world
        .agents
        .iter()
        .flat_map(|agent| agent.works.iter().map(|work| (agent.number, work.target, agent.incarnation, work.claim)))
        .collect();
    if claims.is_empty() {
        return;
    }
    let (agent, target, incarnation, mut claim) = draw.pick(&claims);
    let sequence = ReportSequence(900_000 + draw.below(1 << 30) as u64);
    let step = step_name(draw.pick(&["switch", "app", "migrate", "prepare", "nowhere"]));
    let mut report = Report { sequence, said_at: Wall(0), body: ReportBody::StepStarted { step: step.clone() } };
    let nonsense = step_name("nowhere");
    let before = world.targets[target].state.clone();
    match draw.below(9) {
        0 => {
            claim.fence = claim.fence.next(claim.fence.epoch()).expect("not the last");
            let disposition = world.report(agent, incarnation, target, claim, &report);
            let wrong_fence = holdfast_common::report::FiledReason::WrongFence;
            assert_eq!(disposition, holdfast_common::report::Disposition::Filed(wrong_fence), "I5: a guessed fence");
        }
        1 => drop(world.report(agent, 9_999, target, claim, &report)),
        2 => {
            let disposition = world.report((agent + 1) % 3, incarnation, target, claim, &report);
            assert_eq!(world.targets[target].state, before, "F38: a stranger's report changed something");
            let unknown = holdfast_common::report::FiledReason::UnknownAttempt;
            assert_eq!(disposition, holdfast_common::report::Disposition::Filed(unknown));
        }
        3 => {
            report.body = ReportBody::StepStarted { step: nonsense };
            let _ = world.report(agent, incarnation, target, claim, &report);
        }
        4 => {
            let earlier =
                world.agents[agent].journal.first().map(|entry| (entry.target, entry.claim, entry.report.clone()));
            if let Some((target, claim, mut earlier)) = earlier {
                earlier.body = ReportBody::cancel_received();
                earlier.said_at = Wall(-1);
                if world.agents[agent].journal[0].answered {
                    let _ = world.report(agent, incarnation, target, claim, &earlier);
                }
            }
        }
        5 => {
            let plan = world.agents[agent].works.iter().find(|work| work.claim == claim).unwrap().plan.clone();
            let _ = world.request(agent, incarnation, target, claim, &step, plan);
        }
        6 => {
            let plan = PlanDigest("another".into());
            let _ = world.request(agent, incarnation, target, claim, &step, plan);
        }
        7 => {
            let speaker = world.speaker((agent + 1) % 3, incarnation);
            let (declined, jitter) = (Some(DeclineReason::Busy.into()), world.jitter());
            let answer = world.feed(target, &Input::OfferAnswered { speaker, claim, declined, jitter });
            assert_eq!(answer, Ok(Answer::Superseded));
            let plan = PlanDigest("another".into());
            let denied = world.request((agent + 1) % 3, incarnation, target, claim, &step, plan);
            assert_eq!(denied, Err(holdfast_common::report::PermitDenial::NotYours));
        }
        _ => {
            let mut now = world.now();
            now.epoch = holdfast_common::fence::Epoch(0);
            let candidate = holdfast_coordinator_core::input::Candidate {
                agent: agent_name(0),
                incarnation: Some(incarnation_id(0)),
                unfit: None,
            };
            let attempt = attempt_id(world.attempts + 1);
            let input = Input::Assign { candidates: vec![candidate], attempt };
            let _ = world.feed_at(target, now, &input);
        }
    }
}

/// Faults off: agents run, messages arrive, a person decides. Everything ends.
fn calm(world: &mut World) {
    for agent in &mut world.agents {
        agent.up = true;
    }
    for round in 1..400_u64 {
        if settled(world) {
            break;
        }
        assert!(round < 399, "no convergence: {:#?}", world.targets.iter().map(|t| &t.state).collect::<Vec<_>>());
        world.jitter = 0;
        world.serving += if round % 20 == 0 { TTL + MARGIN } else { 60 };
        for agent in 0..world.agents.len() {
            beat(world, agent);
            speak(world, agent);
            progress(world, agent);
        }
        drain(world);
        for target in 0..world.targets.len() {
            let jitter = world.jitter();
            world.feed(target, &Input::Tick { jitter }).expect("time is never refused");
            world.send_due(target, false);
            world.assign(target, &[]);
            world.send_due(target, false);
            settle(world, target, round);
        }
        drain(world);
    }
    let pending = world.agents.iter().flat_map(|agent| &agent.journal).filter(|entry| !entry.answered).count();
    assert_eq!(pending, 0, "I8: reports without an answer");
    world.restart();
}

fn settled(world: &World) -> bool {
    let idle = world.targets.iter().all(|target| target.state.current.is_none() && target.state.queue.is_empty());
    idle && world.agents.iter().flat_map(|agent| &agent.journal).all(|entry| entry.answered) && world.net.is_empty()
}

fn settle(world: &mut World, target: usize, round: u64) {
    let state = &world.targets[target].state;
    if let Some(current) = state.current.as_ref().filter(|current| unsettled(current)) {
        let id = current.id;
        return world.resolve(target, id, round);
    }
    if state.hold.is_some() {
        world.feed(target, &Input::Unhold { by: anna() }).expect("it is on hold");
        return;
    }
    if let (None, Some(head)) = (&state.current, state.queue.front()) {
        let Some(Waiting::UnreadRevision { resource }) = head.waiting.clone() else {
            panic!("the head waits for {:?}", head.waiting)
        };
        let id = head.id;
        let asked = !head.inquiries.is_empty();
        let blind = world.attest_blindly(target, id);
        assert!(matches!(blind, Err(Refusal::ObservedMissing { .. })), "{blind:?}");
        let looked = world.inspect(target, id);
        let elsewhere = world.attest_revision(target, &resource_name("elsewhere"));
        assert!(matches!(elsewhere, Err(Refusal::NoSuchResource { .. })), "{elsewhere:?}");
        if looked.is_err() || asked || round.is_multiple_of(3) {
            let attested = match round.is_multiple_of(2) {
                true => world.attest(target, id, false),
                false => world.attest_revision(target, &resource),
            };
            attested.expect("an unread revision takes an attestation");
        }
    }
}

fn drain(world: &mut World) {
    for _ in 0..500 {
        let Some(letter) = world.net.pop_first() else { return };
        world.deliver(&letter, false);
    }
    panic!("messages without end: {:?}", world.net);
}

/// An agent on its own, without faults.
fn progress(world: &mut World, number: usize) {
    let wall = world.wall();
    let incarnation = world.agents[number].incarnation;
    for at in 0..world.agents[number].works.len() {
        let World { agents, ledger, net, .. } = world;
        let agent = &mut agents[number];
        let work = &agent.works[at];
        let (target, claim, stops) = (work.target, work.claim, work.cancelled || work.failed);
        match (work.phase, work.step().cloned()) {
            (Phase::Running, _) if work.cancelled => agent.end(at, End::Stopped { partial: false }, ledger, wall),
            (Phase::Running, _) => agent.end(at, End::Applied, ledger, wall),
            (Phase::Asked | Phase::Permitted, _) if stops => agent.bury(at, wall),
            (Phase::Idle, _) if stops => agent.finish(at, wall),
            (Phase::Idle, _) if agent.is_to_read(at) => agent.reread(at, ledger, wall),
            (Phase::Idle, None) => agent.finish(at, wall),
            (Phase::Permitted, _) => agent.begin(at, ledger, wall),
            (Phase::Idle, Some(_)) if work.carried[work.at] => agent.works[at].at += 1,
            (Phase::Idle, Some(_)) if !work.mutates() => agent.begin(at, ledger, wall),
            (Phase::Idle | Phase::Asked, Some(step)) => {
                agent.works[at].phase = Phase::Asked;
                agent.hasty &= agent.works[at].rereads.is_empty();
                net.insert(Letter::Ask { agent: number, incarnation, target, claim, step: step.name });
            }
            (Phase::Asked, None) | (Phase::Over, _) => {}
        }
    }
    for sequence in 1..=world.agents[number].journal.len() as u64 {
        if !world.agents[number].journal[sequence as usize - 1].answered {
            world.net.insert(Letter::Report { agent: number, incarnation, sequence });
        }
    }
}

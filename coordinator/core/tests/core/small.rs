//! A small world, searched breadth first to its end: two agents, one target, two attempts, one lost message, one
//! doubled message, any order of the others. Each state is visited once; each step is checked like a random one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::{Reach, RetryClass};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Effect, Input, due, open_decisions};
use serde::Serialize;

use crate::agent::{End, Phase, Work};
use crate::ledger::Truth;
use crate::specs::*;
use crate::world::{Letter, World};

/// What the search may still do.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Budget {
    pub lost: u8,
    pub doubled: u8,
    pub lapses: u8,
    pub cancels: u8,
    pub raises: u8,
    /// The deployment's own deadline passes.
    pub deadlines: u8,
    /// A check stands behind the change.
    #[serde(skip)]
    pub checked: bool,
    /// Holds that may be placed; each may be taken away again.
    pub holds: u8,
    /// Changes that somebody makes by hand between two attempts.
    pub edits: u8,
    /// How a running step may end.
    #[serde(skip)]
    pub ends: &'static [End],
}

const ATTEMPTS: u64 = 2;
/// Before a lease that was just granted lapses.
const DEADLINE_AFTER: u64 = TTL / 2;

#[derive(Clone, Serialize)]
struct Place {
    world: World,
    budget: Budget,
    /// What was sent since the last loss: the same is sent again only after one, as in a new session.
    sent: BTreeSet<String>,
}

#[derive(Clone, Debug)]
enum Move {
    Deliver(Letter),
    Double(Letter),
    Lose(Letter),
    Assign { unfit: usize },
    Lapse,
    Work { agent: usize, at: usize, how: How },
    Cancel,
    Deadline,
    Raise,
    Hold,
    Unhold,
    Edit,
    Decide(DecisionKind),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Begin,
    End(End),
}

/// 128 bits of a place. Two places that share them by accident would hide one of them: at a million places the odds of
/// that are about one in 10^26.
fn hash(place: &Place, buffer: &mut Vec<u8>) -> (u64, u64) {
    buffer.clear();
    serde_json::to_writer(&mut *buffer, place).expect("plain data serializes");
    let mut hashes = (DefaultHasher::new(), DefaultHasher::new());
    hashes.0.write(buffer);
    hashes.1.write_u8(1);
    hashes.1.write(buffer);
    (hashes.0.finish(), hashes.1.finish())
}

/// What the search found.
pub struct Found {
    pub visited: usize,
    pub steps: u64,
    pub depth: u32,
    /// How many states without a next step ended how.
    pub ends: BTreeMap<String, u64>,
}

const APPLIED: &[End] = &[End::Applied];
const APPLIED_OR_UNKNOWN: &[End] = &[End::Applied, End::Unknown { truth: Truth::Whole, gone: true }];
const APPLIED_OR_FAILED: &[End] =
    &[End::Applied, End::Failed { partial: false, class: holdfast_common::outcome::FailureClass::Permanent }];
/// One lost and one doubled message, and a lapse.
pub const LOSS: Budget = Budget {
    lost: 1,
    doubled: 1,
    lapses: 1,
    cancels: 0,
    raises: 0,
    deadlines: 0,
    checked: false,
    holds: 0,
    edits: 0,
    ends: APPLIED,
};
/// One lost message, a lapse, and a raise of the resource's fence.
pub const RAISE: Budget = Budget { doubled: 0, raises: 1, ends: APPLIED_OR_UNKNOWN, ..LOSS };
/// One lost message, a lapse, and a cancel.
pub const CANCEL: Budget = Budget { doubled: 0, cancels: 1, ..LOSS };
/// One lost message, a lapse, and a hold that is placed and taken away at any moment.
pub const HOLD: Budget = Budget { doubled: 0, holds: 1, ..LOSS };

#[test]
fn small_world_with_a_hold_is_safe_and_never_stuck() {
    explore(RetryClass::Idempotent, HOLD);
}

/// A lapse, and the deployment's own deadline.
pub const DEADLINE: Budget = Budget { lost: 0, doubled: 0, deadlines: 1, ..LOSS };
/// A lapse, a check behind the change, and a hand that changes the target between the two attempts.
pub const EDIT: Budget = Budget { lost: 0, doubled: 0, checked: true, edits: 1, ..LOSS };

#[test]
fn small_world_with_a_change_by_hand_is_safe_and_never_stuck() {
    explore(RetryClass::Idempotent, EDIT);
}

/// A lapse, and a check behind the change that may fail.
pub const CHECK: Budget = Budget { lost: 0, doubled: 0, checked: true, ends: APPLIED_OR_FAILED, ..LOSS };

#[test]
fn small_world_with_a_deadline_is_safe_and_never_stuck() {
    explore(RetryClass::Unsafe, DEADLINE);
}

#[test]
fn small_world_with_a_check_is_safe_and_never_stuck() {
    explore(RetryClass::Idempotent, CHECK);
}

#[test]
fn small_world_with_a_lost_and_a_doubled_message_is_safe_and_never_stuck() {
    explore(RetryClass::Idempotent, LOSS);
}

#[test]
fn small_world_with_a_raised_fence_is_safe_and_never_stuck() {
    explore(RetryClass::Idempotent, RAISE);
}

#[test]
fn small_world_with_a_cancel_is_safe_and_never_stuck() {
    explore(RetryClass::Unsafe, CANCEL);
}

fn explore(retry: RetryClass, budget: Budget) {
    let _alone = crate::scene::without_faults();
    let Found { visited, steps, depth, ends } = search(retry, budget);
    println!("2 agents, 1 target, {ATTEMPTS} attempts, {budget:?}: searched to closure");
    println!("{visited} states visited, {steps} steps, depth {depth}; states without a next step: {ends:?}");
    assert!(visited > 10_000, "a world that hardly moves proves nothing");
    assert!(ends.contains_key("Succeeded"), "a world in which nothing succeeds proves little");
}

/// Searches to closure. Panics where a step breaks an invariant, or a state that is not over has no next step.
pub fn search(retry: RetryClass, budget: Budget) -> Found {
    let mut world = World::new(vec![site(Reach::Shared)], 2, true);
    world.agents.iter_mut().for_each(|agent| agent.terse = true);
    world.jitter = 0;
    let mut steps = vec![change("switch", "site", retry, Some("r1"))];
    steps.extend(budget.checked.then(|| verify("verify-1")));
    let mut spec = deployment(&world.targets[0].state.spec, steps, 2);
    spec.timeouts.deployment = (budget.deadlines > 0).then_some(Millis(DEADLINE_AFTER));
    let (deployment, request) = (deployment_id(1), request_id(1));
    world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false }).expect("submits");
    let start = Place { world, budget, sent: BTreeSet::new() };
    let mut buffer = Vec::new();
    let first = hash(&start, &mut buffer);
    let mut seen = BTreeSet::from([first]);
    let mut frontier = VecDeque::from([(start, first, 0)]);
    let mut found = Found { visited: 1, steps: 0, depth: 0, ends: BTreeMap::new() };
    while let Some((place, own, depth)) = frontier.pop_front() {
        found.depth = depth;
        let mut stuck = true;
        for step in moves(&place) {
            found.steps += 1;
            let next = take(&place, &step);
            let key = hash(&next, &mut buffer);
            stuck &= key == own;
            if seen.insert(key) {
                frontier.push_back((next, key, depth + 1));
            }
        }
        if stuck {
            *found.ends.entry(end(&place)).or_default() += 1;
        }
    }
    found.visited = seen.len();
    found
}

/// Where a state without a next step stands: terminal, or waiting for a person or an agent by a named reason.
fn end(place: &Place) -> String {
    let target = &place.world.targets[0];
    match &target.state.current {
        None => format!("{:?}", target.ended.values().next().expect("it ended").state),
        Some(current) => match (&current.state, &current.waiting) {
            (DeploymentState::Uncertain | DeploymentState::Held, _) => format!("{:?}, for a person", current.state),
            (_, Some(waiting)) if place.world.attempts >= ATTEMPTS => format!("{waiting:?}, out of attempts"),
            (_, _) if place.budget.lapses == 0 && current.live().is_some() => "under way, out of lapses".to_owned(),
            (state, waiting) => panic!("stuck: {state:?}, {waiting:?}: {current:#?}"),
        },
    }
}

fn moves(place: &Place) -> Vec<Move> {
    let Place { world, budget, .. } = place;
    let mut moves = Vec::new();
    for letter in &world.net {
        moves.push(Move::Deliver(letter.clone()));
        if budget.doubled > 0 {
            moves.push(Move::Double(letter.clone()));
        }
        if budget.lost > 0 {
            moves.push(Move::Lose(letter.clone()));
        }
    }
    let state = &world.targets[0].state;
    let waits = state.current.as_ref().is_some_and(|current| current.live().is_none() && current.waiting.is_some());
    if budget.edits > 0 && waits && world.attempts == 1 {
        moves.push(Move::Edit);
    }
    if budget.holds > 0 {
        moves.push(Move::Hold);
    }
    if state.hold.is_some() {
        moves.push(Move::Unhold);
    }
    if world.attempts < ATTEMPTS && waits {
        // Checks belong on the host of the change: there any agent is fit.
        let other = usize::try_from(world.attempts).expect("few");
        moves.push(Move::Assign { unfit: if budget.checked { usize::MAX } else { other } });
    }
    if budget.lapses > 0 && state.current.as_ref().is_some_and(|current| current.live().is_some()) {
        moves.push(Move::Lapse);
    }
    for agent in &world.agents {
        for (at, work) in agent.works.iter().enumerate() {
            moves.extend(hows(work, budget.ends).into_iter().map(|how| Move::Work { agent: agent.number, at, how }));
        }
    }
    if budget.cancels > 0 {
        moves.push(Move::Cancel);
    }
    if budget.deadlines > 0 && state.current.as_ref().is_some_and(|current| current.deadline.is_some()) {
        moves.push(Move::Deadline);
    }
    if let Some(current) = &state.current {
        let list = open_decisions(state, current, Wall(0));
        let open = list.decisions.iter().filter(|open| open.why_not.is_none() && open.kind != DecisionKind::Note);
        moves.extend(open.map(|open| Move::Decide(open.kind)));
        if budget.raises > 0 && current.state == DeploymentState::Uncertain {
            moves.push(Move::Raise);
        }
    }
    moves
}

/// What an agent may choose: when a permitted step begins, and how a running one ends.
fn hows(work: &Work, ends: &[End]) -> Vec<How> {
    let stops = work.cancelled || work.failed;
    match work.phase {
        Phase::Permitted if !stops => vec![How::Begin],
        Phase::Running => ends.iter().map(|end| How::End(*end)).collect(),
        Phase::Permitted | Phase::Idle | Phase::Asked | Phase::Over => Vec::new(),
    }
}

/// What follows by itself: the shell sends what is new, agents ask, bury, finish and report. The same is sent again
/// only after a loss.
fn follow(place: &mut Place) {
    let now = place.world.now();
    let effects = due(&place.world.targets[0].state, now);
    let texts = effects.iter().filter(|effect| !matches!(effect, Effect::Assign { .. }));
    let fresh: Vec<String> = texts.map(|effect| format!("{effect:?}")).filter(|t| !place.sent.contains(t)).collect();
    if !fresh.is_empty() {
        place.sent.extend(fresh);
        place.world.send_due(0, false);
    }
    drop_dead_letters(&mut place.world);
    for number in 0..place.world.agents.len() {
        for at in 0..place.world.agents[number].works.len() {
            proceed(place, number, at);
        }
        let World { agents, net, .. } = &mut place.world;
        let (agent, incarnation) = (number, agents[number].incarnation);
        for entry in agents[number].journal.iter().filter(|entry| !entry.answered) {
            let sequence = entry.report.sequence.0;
            if place.sent.insert(format!("report {number} {sequence}")) {
                net.insert(Letter::Report { agent, incarnation, sequence });
            }
        }
    }
}

/// Letters that can't change anything any more, whenever they arrive: to an agent about work that is over, and to the
/// coordinator about a deployment that ended, reports apart.
fn drop_dead_letters(world: &mut World) {
    let ended = world.targets[0].state.current.is_none();
    let World { agents, net, .. } = world;
    let over = |agent: usize, claim: &holdfast_common::claim::Claim| {
        let agent = &agents[agent];
        agent.work(claim).is_some_and(|at| agent.works[at].phase == Phase::Over)
    };
    net.retain(|letter| match letter {
        Letter::Permit { agent, claim, .. }
        | Letter::Over { agent, claim, .. }
        | Letter::Cancel { agent, claim, .. } => !over(*agent, claim),
        Letter::Offer { .. } | Letter::Answer { .. } | Letter::Ask { .. } | Letter::Heartbeat { .. } => !ended,
        Letter::Journal { .. } | Letter::Found { .. } | Letter::Inquire { .. } => !ended,
        Letter::Report { .. } | Letter::Disposition { .. } => true,
    });
}

fn proceed(place: &mut Place, number: usize, at: usize) {
    let World { agents, net, .. } = &mut place.world;
    let agent = &mut agents[number];
    let work = &mut agent.works[at];
    let stops = work.cancelled || work.failed;
    match work.phase {
        Phase::Asked | Phase::Permitted if stops => {
            agent.bury(at, 0);
            agent.finish(at, 0);
        }
        Phase::Idle if stops => agent.finish(at, 0),
        Phase::Idle if !work.rereads.is_empty() => {
            let World { agents, ledger, .. } = &mut place.world;
            agents[number].reread(at, ledger, 0);
            proceed(place, number, at);
        }
        Phase::Idle if work.step().is_none() => agent.finish(at, 0),
        Phase::Idle if work.carried[work.at] => {
            work.at += 1;
            proceed(place, number, at);
        }
        Phase::Idle if !work.mutates() => {
            let World { agents, ledger, .. } = &mut place.world;
            agents[number].begin(at, ledger, 0);
        }
        Phase::Idle | Phase::Asked => {
            work.phase = Phase::Asked;
            let (target, claim, step) = (work.target, work.claim, work.step().expect("a step is left").name.clone());
            if place.sent.insert(format!("ask {number} {at}")) {
                let (agent, incarnation) = (number, agent.incarnation);
                net.insert(Letter::Ask { agent, incarnation, target, claim, step });
            }
        }
        Phase::Permitted | Phase::Running | Phase::Over => {}
    }
}

fn take(place: &Place, step: &Move) -> Place {
    let mut next = place.clone();
    let Place { world, budget, sent } = &mut next;
    match step {
        Move::Deliver(letter) => world.deliver(letter, false),
        Move::Double(letter) => {
            budget.doubled -= 1;
            world.deliver(letter, true);
        }
        Move::Lose(letter) => {
            budget.lost -= 1;
            world.net.remove(letter);
            sent.clear();
        }
        Move::Assign { unfit } => world.assign(0, &[*unfit]),
        Move::Lapse => {
            budget.lapses -= 1;
            world.serving += TTL + MARGIN;
            let jitter = world.jitter();
            world.feed(0, &Input::Tick { jitter }).expect("time is never refused");
        }
        Move::Work { agent, at, how } => {
            let World { agents, ledger, .. } = world;
            let agent = &mut agents[*agent];
            match how {
                How::Begin => agent.begin(*at, ledger, 0),
                How::End(end) => agent.end(*at, *end, ledger, 0),
            }
        }
        Move::Cancel => {
            budget.cancels -= 1;
            let past = world.targets[0].ended.values().next().map(|past| {
                let (id, state, last_evidence) = (past.id, past.state, past.newest_evidence());
                holdfast_coordinator_core::input::PastDeployment { id, state, last_evidence }
            });
            let input = Input::Cancel { deployment: deployment_id(1), by: anna(), reason: "stop".into(), past };
            world.feed(0, &input).expect("a cancel is recorded");
        }
        Move::Deadline => {
            budget.deadlines -= 1;
            world.serving += DEADLINE_AFTER;
            let jitter = world.jitter();
            world.feed(0, &Input::Tick { jitter }).expect("time is never refused");
        }
        Move::Raise => {
            budget.raises -= 1;
            let _ = world.fence_off(0, deployment_id(1));
        }
        Move::Hold => {
            budget.holds -= 1;
            let hold = Input::Hold { by: anna(), reason: "freeze".into(), until: None };
            world.feed(0, &hold).expect("a hold is never refused");
        }
        Move::Edit => {
            budget.edits -= 1;
            world.ledger.edit(0, &resource_name("site"), revision("by-hand"));
        }
        Move::Unhold => drop(world.feed(0, &Input::Unhold { by: anna() }).expect("it is on hold")),
        Move::Decide(kind) => drop(world.decide(0, deployment_id(1), *kind, 0).expect("an open decision is taken")),
    }
    follow(&mut next);
    next
}

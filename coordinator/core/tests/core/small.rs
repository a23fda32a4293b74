//! A small world, searched breadth first to its end: two agents, one target, two attempts, one lost message, one
//! doubled message, any order of the others. Each state is visited once; each step is checked like a random one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;

use holdfast_common::outcome::FailureClass;
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::{Reach, RetryClass};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Input, due, open_decisions};
use serde::Serialize;

use crate::agent::{End, Phase};
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
}

const ATTEMPTS: u64 = 2;

#[derive(Clone, Serialize)]
struct Place {
    world: World,
    budget: Budget,
}

#[derive(Clone, Debug)]
enum Move {
    Deliver(Letter),
    Double(Letter),
    Lose(Letter),
    Send,
    Assign { unfit: usize },
    Lapse,
    Work { agent: usize, at: usize, how: How },
    Resend { agent: usize, sequence: u64 },
    Cancel,
    Raise,
    Decide(DecisionKind),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Ask,
    Begin,
    End(End),
    Bury,
    Finish,
    Skip,
}

struct Hashing(DefaultHasher, DefaultHasher);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes);
        self.1.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hash(place: &Place) -> (u64, u64) {
    let mut hashing = Hashing(DefaultHasher::new(), DefaultHasher::new());
    hashing.1.write_u8(1);
    serde_json::to_writer(&mut hashing, place).expect("plain data serializes");
    (hashing.0.finish(), hashing.1.finish())
}

/// What the search found.
pub struct Found {
    pub visited: usize,
    pub steps: u64,
    pub depth: u32,
    /// How many states without a next step ended how.
    pub ends: BTreeMap<String, u64>,
}

#[test]
fn the_small_world_has_no_state_that_breaks_an_invariant_or_is_stuck() {
    let _alone = crate::scene::without_faults();
    for (name, retry, budget) in worlds() {
        let found = search(retry, budget);
        println!(
            "{name}: 2 agents, 1 target, {ATTEMPTS} attempts, {budget:?}: {} states, {} steps, depth {}, ends {:?}",
            found.visited, found.steps, found.depth, found.ends
        );
        assert!(found.visited > 1_000, "a world that hardly moves proves nothing");
    }
}

/// Loss and duplication with a lapse and a raise; loss and duplication with a cancel.
pub fn worlds() -> Vec<(&'static str, RetryClass, Budget)> {
    vec![
        ("lapse and raise", RetryClass::Idempotent, Budget { lost: 1, doubled: 1, lapses: 1, cancels: 0, raises: 1 }),
        ("cancel", RetryClass::Unsafe, Budget { lost: 1, doubled: 1, lapses: 1, cancels: 1, raises: 0 }),
    ]
}

/// Searches to closure. Panics where a step breaks an invariant, or a state that is not over has no next step.
pub fn search(retry: RetryClass, budget: Budget) -> Found {
    let mut world = World::new(vec![site(Reach::Shared)], 2, true);
    world.jitter = 0;
    let spec = deployment(&world.targets[0].state.spec, vec![change("switch", "site", retry, Some("r1"))], 2);
    let (deployment, request) = (deployment_id(1), request_id(1));
    world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false }).expect("submits");
    world.deployments = 1;
    let start = Place { world, budget };
    let mut seen = BTreeSet::from([hash(&start)]);
    let mut frontier = VecDeque::from([(start, 0)]);
    let mut found = Found { visited: 1, steps: 0, depth: 0, ends: BTreeMap::new() };
    while let Some((place, depth)) = frontier.pop_front() {
        found.depth = depth;
        let mut stuck = true;
        for step in moves(&place) {
            found.steps += 1;
            let next = take(&place, &step);
            let key = hash(&next);
            stuck &= key == hash(&place);
            if seen.insert(key) {
                frontier.push_back((next, depth + 1));
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
    let Place { world, budget } = place;
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
    if !due(state, world.now()).is_empty() {
        moves.push(Move::Send);
    }
    if world.attempts < ATTEMPTS {
        moves.extend([Move::Assign { unfit: 0 }, Move::Assign { unfit: 1 }]);
    }
    if budget.lapses > 0 && state.current.as_ref().is_some_and(|current| current.live().is_some()) {
        moves.push(Move::Lapse);
    }
    for agent in &world.agents {
        for (at, work) in agent.works.iter().enumerate() {
            let hows = hows(work);
            moves.extend(hows.into_iter().map(|how| Move::Work { agent: agent.number, at, how }));
        }
        let unanswered = agent.journal.iter().filter(|entry| !entry.answered).map(|entry| entry.report.sequence.0);
        moves.extend(unanswered.map(|sequence| Move::Resend { agent: agent.number, sequence }));
    }
    if budget.cancels > 0 {
        moves.push(Move::Cancel);
    }
    if let Some(current) = &state.current {
        let list = open_decisions(state, current);
        let open = list.decisions.iter().filter(|open| open.why_not.is_none() && open.kind != DecisionKind::Note);
        moves.extend(open.map(|open| Move::Decide(open.kind)));
        if budget.raises > 0 && current.state == DeploymentState::Uncertain {
            moves.push(Move::Raise);
        }
    }
    moves
}

fn hows(work: &crate::agent::Work) -> Vec<How> {
    let stops = work.cancelled || work.failed;
    match (work.phase, work.step()) {
        (Phase::Over, _) => vec![],
        (Phase::Running, _) => {
            let unknown = End::Unknown { truth: Truth::Whole, gone: true };
            let failed = End::Failed { partial: true, class: FailureClass::Transient };
            vec![How::End(End::Applied), How::End(failed), How::End(unknown)]
        }
        (Phase::Idle, None) => vec![How::Finish],
        (Phase::Idle, Some(_)) if stops => vec![How::Finish],
        (Phase::Asked | Phase::Permitted, _) if stops => vec![How::Bury],
        (Phase::Idle, Some(_)) if work.carried[work.at] => vec![How::Skip],
        (Phase::Permitted, _) => vec![How::Begin],
        (Phase::Idle | Phase::Asked, _) => vec![How::Ask],
    }
}

fn take(place: &Place, step: &Move) -> Place {
    let mut next = place.clone();
    let Place { world, budget } = &mut next;
    match step {
        Move::Deliver(letter) => world.deliver(letter, false),
        Move::Double(letter) => {
            budget.doubled -= 1;
            world.deliver(letter, true);
        }
        Move::Lose(letter) => {
            budget.lost -= 1;
            world.net.remove(letter);
        }
        Move::Send => world.send_due(0, false),
        Move::Assign { unfit } => world.assign(0, &[*unfit]),
        Move::Lapse => {
            budget.lapses -= 1;
            world.serving += TTL + MARGIN;
            let jitter = world.jitter();
            world.feed(0, &Input::Tick { jitter }).expect("time is never refused");
        }
        Move::Work { agent, at, how } => {
            let World { agents, ledger, net, .. } = world;
            let agent = &mut agents[*agent];
            match how {
                How::Ask => {
                    agent.works[*at].phase = Phase::Asked;
                    let work = &agent.works[*at];
                    let (target, claim) = (work.target, work.claim);
                    let step = work.step().expect("a step to ask for").name.clone();
                    net.insert(Letter::Ask {
                        agent: agent.number,
                        incarnation: agent.incarnation,
                        target,
                        claim,
                        step,
                    });
                }
                How::Begin => agent.begin(*at, ledger, 0),
                How::End(end) => agent.end(*at, *end, ledger, 0),
                How::Bury => agent.bury(*at, 0),
                How::Finish => agent.finish(*at, 0),
                How::Skip => agent.works[*at].at += 1,
            }
        }
        Move::Resend { agent, sequence } => {
            let incarnation = world.agents[*agent].incarnation;
            world.net.insert(Letter::Report { agent: *agent, incarnation, sequence: *sequence });
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
        Move::Raise => {
            budget.raises -= 1;
            let _ = world.fence_off(0, deployment_id(1));
        }
        Move::Decide(kind) => drop(world.decide(0, deployment_id(1), *kind, 0).expect("an open decision is taken")),
    }
    next
}

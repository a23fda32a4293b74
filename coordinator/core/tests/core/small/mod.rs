//! Small worlds, each searched breadth first to its end: two agents, one target, a few attempts, and any order of what may
//! happen within a budget. Each state is visited once; each step is checked against the invariants and the oracle, and a
//! state that is not over must have a next step or wait for somebody by a named reason.
//!
//! [`worlds`] says which worlds there are. [`counterexamples`] takes one rule of the design out at a time: the same search
//! must then stop with the shortest history that breaks something.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_common::spec::{RetryClass, TargetSpec};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::Input;
use holdfast_coordinator_core::state::*;
use serde::Serialize;

use crate::agent::End;
use crate::rollback::previous;
use crate::specs::*;
use crate::world::World;
use moves::{Move, moves, take};

#[cfg(feature = "bugs")]
pub mod counterexamples;
mod moves;
pub mod worlds;

/// One world: what stands in it from the start, and what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    pub target: fn() -> TargetSpec,
    pub change: Change,
    /// The class of every change.
    pub retry: RetryClass,
    /// A check stands behind the change.
    pub checked: bool,
    /// How a running change may end.
    pub ends: &'static [End],
    pub timed: Timed,
    /// What lapses, is cancelled or tried again is a rollback; what it undoes has all that in other worlds.
    pub rollback_first: bool,
    /// A lease lapses under an open permit alone; what lapses before one is requeued, which other worlds have.
    pub lapses_at_work: bool,
    /// The reports of an agent arrive in order, as one session brings them; in the other worlds any may overtake any.
    pub in_order: bool,
    /// Somebody decides without having seen the newest evidence, which must be refused.
    pub hurried: bool,
    /// A lease's time may pass before the coordinator looks at its clock.
    pub late_timer: bool,
    /// Attempts that are assigned or decided on, over all deployments.
    pub attempts: u64,
    pub budget: Budget,
}

/// What is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One resource, from something that nobody knows.
    Once(&'static str),
    /// One resource, from a pinned revision, with a declared way back to it.
    WithAWayBack(&'static str),
    /// An application, then its database.
    Twice,
}

/// What has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    Nothing,
    Step,
    Deployment,
}

/// What may still happen, and how often.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Budget {
    /// Messages that are lost.
    pub lost: u8,
    /// Messages that come twice.
    pub doubled: u8,
    pub lapses: u8,
    pub cancels: u8,
    /// Raises of the resource's fence.
    pub raises: u8,
    /// Looks at the resource.
    pub looks: u8,
    /// Looks and raises that reach another resource of the same name.
    pub strays: u8,
    /// Agents that come back while an end is unknown: a new session, in which the journal speaks.
    pub words: u8,
    /// People who make sure that nothing runs, and attest what is there.
    pub attests: u8,
    /// Deadlines that pass.
    pub deadlines: u8,
    /// Holds that may be placed; each may be taken away again.
    pub holds: u8,
    /// Changes that somebody makes by hand between two attempts.
    pub edits: u8,
    /// Agents that go by plan and come back.
    pub detaches: u8,
}

/// One state of a world.
#[derive(Clone, Serialize)]
struct Place {
    world: World,
    budget: Budget,
    /// What was sent since the last loss: the same is sent again only after one, as in a new session.
    sent: BTreeSet<u64>,
}

/// What a search found.
pub struct Found {
    pub visited: usize,
    pub steps: u64,
    pub depth: u32,
    /// How many states without a next step ended how.
    pub ends: BTreeMap<String, u64>,
}

/// The shortest history in which something that must hold does not.
pub struct Counterexample {
    path: Vec<Move>,
    pub broken: String,
    pub visited: usize,
}

impl Counterexample {
    /// How many moves it takes.
    #[cfg(feature = "bugs")]
    pub fn length(&self) -> usize {
        self.path.len()
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.broken.lines().next().unwrap_or_default();
        writeln!(f, "{first}\n  after {} moves, {} states visited:", self.path.len(), self.visited)?;
        self.path.iter().enumerate().try_for_each(|(at, step)| writeln!(f, "  {:>2} {step}", at + 1))
    }
}

/// Searches to closure, or to the first step that breaks something. Breadth first: no shorter history does.
pub fn search(small: &Small) -> Result<Found, Counterexample> {
    let start = start(small);
    let mut buffer = Vec::new();
    let first = hash(&start, &mut buffer);
    let mut seen = BTreeSet::from([first]);
    // By which move of which state each state was found first: a history is its way back to the start.
    let mut parents: Vec<(usize, usize)> = vec![(0, 0)];
    let mut frontier = VecDeque::from([(start, first, 0, 0)]);
    let mut found = Found { visited: 1, steps: 0, depth: 0, ends: BTreeMap::new() };
    while let Some((place, own, index, depth)) = frontier.pop_front() {
        found.depth = depth;
        let mut stuck = true;
        for (at, step) in moves(small, &place).iter().enumerate() {
            found.steps += 1;
            let next = caught(|| take(small, &place, step)).map_err(|broken| {
                let mut path = history(small, &parents, index);
                path.push(step.clone());
                Counterexample { path, broken, visited: seen.len() }
            })?;
            let key = hash(&next, &mut buffer);
            stuck &= key == own;
            if seen.insert(key) {
                frontier.push_back((next, key, parents.len(), depth + 1));
                parents.push((index, at));
            }
        }
        if stuck {
            let end = end(small, &place).map_err(|broken| {
                let path = history(small, &parents, index);
                Counterexample { path, broken, visited: seen.len() }
            })?;
            *found.ends.entry(end).or_default() += 1;
        }
    }
    found.visited = seen.len();
    Ok(found)
}

/// What an assertion says that does not hold.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// The moves from the start to a state, made once more.
fn history(small: &Small, parents: &[(usize, usize)], mut index: usize) -> Vec<Move> {
    let mut choices = Vec::new();
    while index != 0 {
        let (parent, at) = parents[index];
        choices.push(at);
        index = parent;
    }
    let mut place = start(small);
    let again = choices.into_iter().rev().map(|at| {
        let step = moves(small, &place).swap_remove(at);
        place = take(small, &place, &step);
        step
    });
    again.collect()
}

fn start(small: &Small) -> Place {
    let mut world = World::new(vec![(small.target)()], 2, true);
    world.agents.iter_mut().for_each(|agent| agent.terse = true);
    world.jitter = 0;
    let mut steps = match small.change {
        Change::Once(resource) | Change::WithAWayBack(resource) => {
            vec![change("switch", resource, small.retry, Some("r1"))]
        }
        Change::Twice => {
            vec![change("app", "app", small.retry, Some("r1")), change("migrate", "db", small.retry, None)]
        }
    };
    steps.extend(small.checked.then(|| verify("verify")));
    let mut spec = deployment(&world.targets[0].state.spec, steps, 2);
    match small.timed {
        Timed::Nothing => {}
        Timed::Step => spec.steps[0].timeout = Some(Millis(DEADLINE_AFTER)),
        Timed::Deployment => spec.timeouts.deployment = Some(Millis(DEADLINE_AFTER)),
    }
    if let Change::WithAWayBack(resource) = small.change {
        spec.steps[0].expected_revision = Some(revision("r0"));
        spec.rollback = Some(previous());
        world.ledger.edit(0, &resource_name(resource), revision("r0"));
    }
    let (deployment, request) = (deployment_id(1), request_id(1));
    world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false }).expect("submits");
    Place { world, budget: small.budget, sent: BTreeSet::new() }
}

/// Before a lease that was just granted lapses.
const DEADLINE_AFTER: u64 = TTL / 2;

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

fn short_hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Where a state without a next step stands: terminal, or waiting for a person or an agent by a named reason.
fn end(small: &Small, place: &Place) -> Result<String, String> {
    let Place { world, budget, .. } = place;
    let target = &world.targets[0];
    let Some(current) = &target.state.current else {
        let last = target.ended.values().next_back().expect("it ended");
        let what = what(last);
        return Ok(format!("{what}{:?}", last.state));
    };
    let what = what(current);
    match (&current.state, &current.waiting) {
        (DeploymentState::Uncertain | DeploymentState::Held, _) => {
            Ok(format!("{what}{:?}, for a person", current.state))
        }
        (_, Some(_)) if world.attempts >= small.attempts && current.cancel.is_none() => {
            Ok(format!("{what}waiting, out of attempts"))
        }
        (_, _) if budget.lapses == 0 && current.live().is_some() => Ok(format!("{what}under way, out of lapses")),
        (state, waiting) => Err(format!("stuck: nobody can bring it on: {what}{state:?}, {waiting:?}")),
    }
}

/// Whose end it is: a rollback says over what it goes back.
fn what(deployment: &Deployment) -> &'static str {
    match deployment.kind.rollback().map(|of| of.base) {
        None => "",
        Some(Base::AtRest) => "rollback at rest: ",
        Some(Base::Known) => "rollback over the known: ",
        Some(Base::Unresolved) => "rollback over the unresolved: ",
    }
}

//! What may happen in a small world, and what follows by itself.

use std::fmt;

use holdfast_common::claim::Claim;
use holdfast_common::id::DeploymentId;
use holdfast_common::recovery::{DecisionKind, Runner};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::PastDeployment;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Effect, Input, due, next_wakeup, open_decisions};

use super::{DEADLINE_AFTER, Place, Small, short_hash};
use crate::agent::{End, Phase, Work};
use crate::ledger::Truth;
use crate::specs::*;
use crate::world::{Letter, World};

#[derive(Clone, Debug)]
pub enum Move {
    Deliver(Letter),
    Double(Letter),
    Lose(Letter),
    /// A look or a raise reaches another resource than the one that was read before.
    Stray(Letter),
    Assign {
        unfit: usize,
    },
    /// A lease's time passes, and the coordinator records it.
    Lapse,
    /// A lease's time passes, and the coordinator has not looked at its clock yet.
    Pass,
    /// It looks at its clock.
    Tick,
    Work {
        agent: usize,
        at: usize,
        how: How,
    },
    /// An effect that outlived its process is over.
    Settle,
    /// An agent comes back in a new session, and its journal speaks.
    Speak {
        agent: usize,
    },
    /// An agent goes by plan, and says again that it is there as soon as it can.
    Detach {
        agent: usize,
    },
    Cancel,
    Deadline,
    Raise,
    Look,
    Attest,
    Hold,
    Unhold,
    Edit,
    Decide(DecisionKind),
    /// A decision by somebody who has not seen the newest evidence.
    DecideUnseen(DecisionKind),
}

#[derive(Clone, Copy, Debug)]
pub enum How {
    Begin,
    End(End),
}

pub(super) fn moves(small: &Small, place: &Place) -> Vec<Move> {
    let mut moves = Vec::new();
    by_the_net(small, place, &mut moves);
    by_agents(small, place, &mut moves);
    by_time(small, place, &mut moves);
    by_people(small, place, &mut moves);
    moves
}

fn by_the_net(small: &Small, Place { world, budget, .. }: &Place, moves: &mut Vec<Move>) {
    // Before the first reading any resource would be the right one: whoever answers first is believed.
    let astray = budget.strays > 0 && !world.targets[0].state.identities.is_empty();
    for letter in world.net.iter().filter(|letter| !small.in_order || is_next(world, letter)) {
        moves.push(Move::Deliver(letter.clone()));
        if budget.doubled > 0 {
            moves.push(Move::Double(letter.clone()));
        }
        if budget.lost > 0 {
            moves.push(Move::Lose(letter.clone()));
        }
        if astray && matches!(letter, Letter::Inquire { .. }) {
            moves.push(Move::Stray(letter.clone()));
        }
    }
}

/// Whether no report of the same agent is before that letter.
fn is_next(world: &World, letter: &Letter) -> bool {
    let Letter::Report { agent, sequence, .. } = letter else { return true };
    let before = |other: &Letter| matches!(other, Letter::Report { agent: of, sequence: earlier, .. } if of == agent && earlier < sequence);
    !world.net.iter().any(before)
}

fn by_agents(small: &Small, Place { world, budget, .. }: &Place, moves: &mut Vec<Move>) {
    for agent in &world.agents {
        let number = agent.number;
        for (at, work) in agent.works.iter().enumerate() {
            moves.extend(hows(work, small.ends).into_iter().map(|how| Move::Work { agent: number, at, how }));
        }
        if budget.words > 0 && agent.works.iter().any(|work| is_lost(world, work)) {
            moves.push(Move::Speak { agent: number });
        }
    }
    let current = world.targets[0].state.current.as_ref().and_then(Deployment::live);
    if let Some(live) = current.filter(|live| budget.detaches > 0 && live.state == AttemptState::Running) {
        moves.push(Move::Detach { agent: world.agent(&live.agent) });
    }
    if orphan(world).is_some() {
        moves.push(Move::Settle);
    }
}

/// Whether that work's attempt is the one whose end nobody knows. What a journal says of any other is told nothing by.
fn is_lost(world: &World, work: &Work) -> bool {
    let current = world.targets[0].state.current.as_ref();
    let uncertain = current.filter(|current| current.state == DeploymentState::Uncertain);
    let last = uncertain.and_then(|current| current.attempts.last());
    last.is_some_and(|last| last.id == work.claim.attempt)
}

/// An effect at work whose process nobody holds any more.
fn orphan(world: &World) -> Option<Claim> {
    let works = || world.agents.iter().flat_map(|agent| &agent.works);
    let held = |claim: &Claim| works().any(|work| work.phase == Phase::Running && work.begun_by == claim.attempt);
    world.ledger.open.iter().map(|open| open.claim).find(|claim| !held(claim))
}

/// What an agent may choose: when a permitted step begins, and how a running one ends. A check has no end that nobody knows.
fn hows(work: &Work, ends: &[End]) -> Vec<How> {
    let stops = work.cancelled || work.failed;
    let may_be = |end: &&End| work.mutates() || !matches!(end, End::Unknown { .. });
    match work.phase {
        Phase::Permitted if !stops => vec![How::Begin],
        Phase::Running => ends.iter().filter(may_be).map(|end| How::End(*end)).collect(),
        Phase::Permitted | Phase::Idle | Phase::Asked | Phase::Over => Vec::new(),
    }
}

fn by_time(small: &Small, Place { world, budget, .. }: &Place, moves: &mut Vec<Move>) {
    let state = &world.targets[0].state;
    let live = state.current.as_ref().and_then(Deployment::live);
    let lapses = live.is_some_and(|live| !small.lapses_at_work || live.open_permit().is_some());
    if budget.lapses > 0 && lapses && is_at_issue(small, world) {
        moves.push(if small.late_timer { Move::Pass } else { Move::Lapse });
    }
    if small.late_timer && next_wakeup(state, world.now()).is_some_and(|at| at <= world.now().serving) {
        moves.push(Move::Tick);
    }
    let timed = live.is_some_and(|live| live.steps.iter().any(|step| step.deadline.is_some()));
    if budget.deadlines > 0 && (timed || state.current.as_ref().is_some_and(|current| current.deadline.is_some())) {
        moves.push(Move::Deadline);
    }
}

/// Whether this world is about the deployment that holds the target.
fn is_at_issue(small: &Small, world: &World) -> bool {
    let rollback = || world.targets[0].state.current.as_ref().is_some_and(|current| current.kind.rollback().is_some());
    !small.rollback_first || rollback()
}

fn by_people(small: &Small, Place { world, budget, .. }: &Place, moves: &mut Vec<Move>) {
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
    if world.attempts < small.attempts && waits {
        // Checks belong on the host of the change: there any agent is fit.
        let other = usize::try_from(world.attempts).expect("few");
        moves.push(Move::Assign { unfit: if small.checked { usize::MAX } else { other } });
    }
    if budget.cancels > 0 && is_at_issue(small, world) {
        moves.push(Move::Cancel);
    }
    let Some(current) = &state.current else { return };
    let list = open_decisions(state, current, Wall(0));
    let open = list.decisions.iter().filter(|open| open.why_not.is_none() && open.kind != DecisionKind::Note);
    for open in open {
        let goes_on = match open.kind {
            // A decided attempt counts like an assigned one.
            DecisionKind::Readmit => world.attempts < small.attempts,
            DecisionKind::Retry => is_at_issue(small, world),
            _ => true,
        };
        if goes_on {
            moves.push(Move::Decide(open.kind));
        }
        if small.hurried && list.shown > EvidenceSequence(0) {
            moves.push(Move::DecideUnseen(open.kind));
        }
    }
    let uncertain = current.state == DeploymentState::Uncertain;
    if budget.raises > 0 && uncertain {
        moves.push(Move::Raise);
    }
    if budget.looks > 0 && (uncertain || current.state == DeploymentState::Held) {
        moves.push(Move::Look);
    }
    if budget.attests > 0 && uncertain {
        moves.push(Move::Attest);
    }
}

/// Makes one move, and what follows by itself.
pub(super) fn take(small: &Small, place: &Place, step: &Move) -> Place {
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
        Move::Stray(letter) => {
            budget.strays -= 1;
            world.deliver_astray(letter);
        }
        Move::Assign { unfit } => world.assign(0, &[*unfit]),
        Move::Lapse | Move::Pass => {
            budget.lapses -= 1;
            world.serving += TTL + MARGIN;
            if !small.late_timer {
                tick(world);
            }
        }
        Move::Tick => tick(world),
        Move::Work { agent, at, how } => {
            let World { agents, ledger, .. } = world;
            let agent = &mut agents[*agent];
            match how {
                How::Begin => agent.begin(*at, ledger, 0),
                How::End(end) => agent.end(*at, *end, ledger, 0),
            }
        }
        Move::Settle => {
            let claim = orphan(world).expect("one is left");
            let step = world.ledger.open.iter().find(|open| open.claim == claim).map(|open| open.step.clone());
            world.ledger.end(claim.attempt, &step.expect("it is at work"), Truth::Whole);
        }
        Move::Speak { agent } => {
            budget.words -= 1;
            speak(&mut next, *agent);
        }
        Move::Detach { agent } => {
            budget.detaches -= 1;
            detach(&mut next, *agent);
        }
        Move::Cancel => {
            budget.cancels -= 1;
            cancel(world);
        }
        Move::Deadline => {
            budget.deadlines -= 1;
            world.serving += DEADLINE_AFTER;
            tick(world);
        }
        Move::Raise => {
            budget.raises -= 1;
            let _ = world.fence_off(0, current(world));
        }
        Move::Look => {
            budget.looks -= 1;
            let _ = world.inspect(0, current(world));
        }
        Move::Attest => {
            budget.attests -= 1;
            world.attest(0, current(world), false).expect("an uncertain deployment takes an attestation");
        }
        Move::Hold => {
            budget.holds -= 1;
            let hold = Input::Hold { by: anna(), reason: "freeze".into(), until: None };
            world.feed(0, &hold).expect("a hold is never refused");
        }
        Move::Edit => {
            budget.edits -= 1;
            let resource = world.targets[0].state.spec.resources[0].name.clone();
            world.ledger.edit(0, &resource, revision("by-hand"));
        }
        Move::Unhold => drop(world.feed(0, &Input::Unhold { by: anna() }).expect("it is on hold")),
        Move::Decide(kind) => {
            let _answer = world.decide(0, current(world), *kind, 0).expect("an open decision is taken");
        }
        // The oracle has a word on it where it is taken all the same.
        Move::DecideUnseen(kind) => drop(world.decide(0, current(world), *kind, 1)),
    }
    follow(&mut next);
    next
}

fn current(world: &World) -> DeploymentId {
    world.targets[0].state.current.as_ref().expect("somebody holds the target").id
}

fn tick(world: &mut World) {
    let jitter = world.jitter();
    world.feed(0, &Input::Tick { jitter }).expect("time is never refused");
}

fn cancel(world: &mut World) {
    let target = &world.targets[0];
    let past = target.ended.values().next_back().map(|past| PastDeployment {
        id: past.id,
        state: past.state,
        last_evidence: past.newest_evidence(),
    });
    let deployment = target.state.current.as_ref().map(|current| current.id).or(past.as_ref().map(|past| past.id));
    let deployment = deployment.expect("one was submitted");
    let input = Input::Cancel { deployment, by: anna(), reason: "stop".into(), past };
    world.feed(0, &input).expect("a cancel is recorded");
}

/// A new session: a permit that was not used is buried, what was on its way to the old session is gone, and the journal
/// says of each attempt how it stands.
fn speak(place: &mut Place, number: usize) {
    let World { agents, net, .. } = &mut place.world;
    let agent = &mut agents[number];
    agent.restart(0);
    net.retain(|letter| !matches!(letter, Letter::Permit { agent, .. } if *agent == number));
    let incarnation = agent.incarnation;
    for at in 0..agent.works.len() {
        let (runner, work) = (agent.word(at), &agent.works[at]);
        if let Some(step) = work.step() {
            place.sent.remove(&asks_for(number, at, step.name.as_str()));
        }
        // It is no news that somebody has nothing to say.
        if runner != Runner::Unknown {
            net.insert(Letter::Journal { agent: number, incarnation, target: work.target, claim: work.claim, runner });
        }
    }
}

/// Its own session is over, so it asks again for what it was not answered, under the lease that outlasts its absence.
fn detach(place: &mut Place, agent: usize) {
    place.world.detach(agent, AWAY);
    let World { agents, net, .. } = &mut place.world;
    let incarnation = agents[agent].incarnation;
    for (at, work) in agents[agent].works.iter().enumerate().filter(|(_, work)| work.phase != Phase::Over) {
        if let Some(step) = work.step() {
            place.sent.remove(&asks_for(agent, at, step.name.as_str()));
        }
        net.insert(Letter::Heartbeat { agent, incarnation, target: work.target, claim: work.claim });
    }
}

fn asks_for(agent: usize, at: usize, step: &str) -> u64 {
    short_hash(&format!("ask {agent} {at} {step}"))
}

/// What follows by itself: the shell sends what is new, agents ask, bury, finish and report. The same is sent again
/// only after a loss.
fn follow(place: &mut Place) {
    let now = place.world.now();
    let effects = due(&place.world.targets[0].state, now);
    let keys = effects.iter().filter(|effect| !matches!(effect, Effect::Assign { .. }));
    let keys = keys.map(|effect| short_hash(&format!("{effect:?}")));
    let fresh: Vec<u64> = keys.filter(|key| !place.sent.contains(key)).collect();
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
            if place.sent.insert(short_hash(&format!("report {number} {sequence}"))) {
                net.insert(Letter::Report { agent, incarnation, sequence });
            }
        }
    }
}

/// Letters that can't change anything any more, whenever they arrive. To drop them hides nothing: the network may lose
/// any of them, and whoever would get one does the same with it and without it.
///
/// ```text
/// to an agent about work that is over                   it looks at no word about that
/// to the coordinator about a deployment that ended      it answers, and records nothing; reports apart, they stay
/// a look that nobody waits for any more, its answer     the coordinator does not know the question any more
/// a raise that nobody waits for any more                stays while somebody holds the target: it still raises
/// ```
fn drop_dead_letters(world: &mut World) {
    let World { agents, net, targets, .. } = world;
    let current = targets[0].state.current.as_ref();
    let ended = |claim: &Claim| current.is_none_or(|current| current.id != claim.deployment);
    let over = |agent: usize, claim: &Claim| {
        let agent = &agents[agent];
        agent.work(claim).is_some_and(|at| agent.works[at].phase == Phase::Over)
    };
    let asked = |id: &holdfast_common::id::EvidenceId| {
        current.is_some_and(|current| current.inquiries.iter().any(|inquiry| inquiry.id == *id))
    };
    net.retain(|letter| match letter {
        Letter::Permit { agent, claim, .. }
        | Letter::Over { agent, claim, .. }
        | Letter::Cancel { agent, claim, .. } => !over(*agent, claim),
        Letter::Offer { claim, .. }
        | Letter::Answer { claim, .. }
        | Letter::Ask { claim, .. }
        | Letter::Heartbeat { claim, .. }
        | Letter::Journal { claim, .. } => !ended(claim),
        Letter::Found { inquiry, .. } => asked(inquiry),
        Letter::Inquire { inquiry, of, .. } => asked(inquiry) || (of.fence.is_some() && current.is_some()),
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
            if place.sent.insert(asks_for(number, at, step.as_str())) {
                let (agent, incarnation) = (number, agent.incarnation);
                net.insert(Letter::Ask { agent, incarnation, target, claim, step });
            }
        }
        Phase::Permitted | Phase::Running | Phase::Over => {}
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Move::Deliver(letter) => write!(f, "arrives: {}", text(letter)),
            Move::Double(letter) => write!(f, "arrives, and will come again: {}", text(letter)),
            Move::Lose(letter) => write!(f, "is lost: {}", text(letter)),
            Move::Stray(letter) => write!(f, "reaches another resource: {}", text(letter)),
            Move::Assign { .. } => write!(f, "the next attempt is assigned"),
            Move::Lapse => write!(f, "the lease lapses"),
            Move::Pass => write!(f, "the lease's time passes, and nobody has looked at the clock"),
            Move::Tick => write!(f, "the coordinator looks at its clock"),
            Move::Work { agent, how: How::Begin, .. } => write!(f, "a{agent} begins"),
            Move::Work { agent, how: How::End(end), .. } => write!(f, "a{agent} ends: {end:?}"),
            Move::Settle => write!(f, "the effect that outlived its process is over"),
            Move::Speak { agent } => write!(f, "a{agent} comes back, and its journal speaks"),
            Move::Detach { agent } => write!(f, "a{agent} goes by plan, and comes back"),
            Move::Cancel => write!(f, "a stop is asked for"),
            Move::Deadline => write!(f, "a deadline passes"),
            Move::Raise => write!(f, "a raise of the fence is asked for"),
            Move::Look => write!(f, "a look is asked for"),
            Move::Attest => write!(f, "a person makes sure that nothing runs, looks, and attests it"),
            Move::Hold => write!(f, "the target is put on hold"),
            Move::Unhold => write!(f, "the hold is taken away"),
            Move::Edit => write!(f, "somebody changes the resource by hand"),
            Move::Decide(kind) => write!(f, "a person decides: {kind:?}"),
            Move::DecideUnseen(kind) => write!(f, "a person who has not seen the newest evidence decides: {kind:?}"),
        }
    }
}

/// A letter in words.
fn text(letter: &Letter) -> String {
    let of = |claim: &Claim| format!("attempt {}", claim.attempt.0.as_u128() as u64);
    match letter {
        Letter::Offer { agent, claim, .. } => format!("{} is offered to a{agent}", of(claim)),
        Letter::Answer { agent, claim, declined: None, .. } => format!("a{agent} takes {}", of(claim)),
        Letter::Answer { agent, claim, declined: Some(why), .. } => format!("a{agent} declines {}: {why:?}", of(claim)),
        Letter::Heartbeat { agent, claim, .. } => format!("a{agent} is at {}", of(claim)),
        Letter::Ask { agent, claim, step, .. } => format!("a{agent} asks for a permit of {step}, {}", of(claim)),
        Letter::Permit { agent, claim, step, .. } => format!("a{agent} is permitted {step}, {}", of(claim)),
        Letter::Over { agent, claim, .. } => format!("a{agent} hears that {} is over", of(claim)),
        Letter::Cancel { agent, claim, .. } => format!("a{agent} is told to stop {}", of(claim)),
        Letter::Report { agent, sequence, .. } => format!("report {sequence} of a{agent}"),
        Letter::Disposition { agent, sequence, .. } => format!("a{agent} hears of its report {sequence}"),
        Letter::Journal { agent, claim, runner, .. } => format!("the journal of a{agent} on {}: {runner:?}", of(claim)),
        Letter::Inquire { agent, of, .. } => match of.fence {
            Some(fence) => format!("a{agent} is to raise the fence to {fence}"),
            None => format!("a{agent} is to look at {}", of.step),
        },
        Letter::Found { agent, found, .. } => format!("a{agent} found {:?}", found.state),
    }
}

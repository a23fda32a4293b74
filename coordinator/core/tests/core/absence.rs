//! A planned absence: exact decisions.

use holdfast_common::id::StepName;
use holdfast_common::report::*;
use holdfast_common::spec::{Reach, RetryClass};
use holdfast_common::time::{Millis, Serving};
use holdfast_coordinator_core::input::*;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, switch};
use crate::specs::*;

/// A change at work, permitted and begun.
fn at_work() -> Scene {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.say(ReportBody::StepStarted { step: name() }), Disposition::Accepted);
    scene
}

fn name() -> StepName {
    step_name("switch")
}

fn leave(scene: &mut Scene, away: u64) -> Answer {
    let (speaker, claim) = (scene.speaker(), scene.claim());
    let input = Input::Detached { speaker, claim, away: Millis(away), bound: Millis(AWAY) };
    scene.world.feed(0, &input).expect("never refused")
}

fn beat(scene: &mut Scene) -> Answer {
    let (speaker, claim) = (scene.speaker(), scene.claim());
    scene.world.feed(0, &Input::Heard { speaker, claim, via: Via::Session }).expect("never refused")
}

/// Output that the agent sent before it went.
fn output(scene: &mut Scene) -> Answer {
    let (speaker, claim) = (scene.speaker(), scene.claim());
    scene.world.feed(0, &Input::Heard { speaker, claim, via: Via::Upload }).expect("never refused")
}

fn after(scene: &mut Scene, millis: u64) {
    scene.world.serving += millis;
    let jitter = scene.world.jitter();
    scene.world.feed(0, &Input::Tick { jitter }).expect("never refused");
}

fn lease(scene: &Scene) -> Option<Lease> {
    scene.current().attempts.last().and_then(|last| last.lease.clone())
}

fn state(scene: &Scene) -> DeploymentState {
    scene.current().state
}

#[test]
fn a_lease_outlasts_a_planned_absence_within_the_bound_and_then_lapses_as_ever() {
    let mut scene = at_work();
    let said = scene.world.serving;
    assert_eq!(leave(&mut scene, 60_000), Answer::Done);
    let away = lease(&scene).and_then(|lease| lease.away).expect("it was given");
    assert_eq!((away.added, away.until), (Millis(AWAY), Serving(said + TTL + AWAY)), "no more than the bound");
    after(&mut scene, TTL + AWAY + MARGIN - 1);
    assert_eq!(state(&scene), DeploymentState::Active);
    after(&mut scene, 1);
    assert_eq!(state(&scene), DeploymentState::Uncertain);
}

#[test]
fn less_than_the_bound_is_given_as_it_was_asked_for_and_nothing_is_nothing() {
    let mut scene = at_work();
    leave(&mut scene, 0);
    assert_eq!(lease(&scene).expect("leased").away, None);
    leave(&mut scene, 300);
    after(&mut scene, TTL + 300 + MARGIN);
    assert_eq!(state(&scene), DeploymentState::Uncertain);
}

#[test]
fn an_agent_that_is_back_has_a_lease_like_any_other() {
    let mut scene = at_work();
    leave(&mut scene, AWAY);
    after(&mut scene, 500);
    assert!(matches!(beat(&mut scene), Answer::Renewed { .. }));
    assert!(lease(&scene).and_then(|lease| lease.away).expect("it is on record").is_back);
    after(&mut scene, TTL + MARGIN);
    assert_eq!(state(&scene), DeploymentState::Uncertain, "what was left of its absence is spent");
}

#[test]
fn output_that_arrives_after_the_word_of_who_goes_does_not_bring_it_back() {
    let mut scene = at_work();
    leave(&mut scene, AWAY);
    let events = scene.world.targets[0].history.len();
    assert!(matches!(output(&mut scene), Answer::Renewed { .. }));
    assert_eq!(scene.world.targets[0].history.len(), events);
    assert!(!lease(&scene).and_then(|lease| lease.away).expect("it is on record").is_back);
    after(&mut scene, TTL + AWAY + MARGIN - 1);
    assert_eq!(state(&scene), DeploymentState::Active, "it has all of its absence");
    after(&mut scene, 1);
    assert_eq!(state(&scene), DeploymentState::Uncertain);
}

#[test]
pub fn a_second_absence_adds_nothing() {
    let mut scene = at_work();
    leave(&mut scene, AWAY);
    assert!(matches!(beat(&mut scene), Answer::Renewed { .. }));
    let events = scene.world.targets[0].history.len();
    assert_eq!(leave(&mut scene, AWAY), Answer::Done);
    assert_eq!(scene.world.targets[0].history.len(), events);
    after(&mut scene, TTL + MARGIN);
    assert_eq!(state(&scene), DeploymentState::Uncertain);
}

#[test]
fn an_offer_that_nobody_took_is_not_kept_alive() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.world.assign(0, &[]);
    assert_eq!(leave(&mut scene, AWAY), Answer::Done);
    assert_eq!(lease(&scene).expect("leased").away, None);
    after(&mut scene, TTL + MARGIN);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Lapsed);
}

#[test]
fn a_stranger_extends_nothing() {
    let mut scene = at_work();
    let claim = scene.claim();
    for (agent, incarnation) in [(1, 1), (0, 9)] {
        let speaker = scene.world.speaker(agent, incarnation);
        let input = Input::Detached { speaker, claim, away: Millis(AWAY), bound: Millis(AWAY) };
        assert_eq!(scene.world.feed(0, &input), Ok(Answer::Superseded));
    }
    assert_eq!(lease(&scene).expect("leased").away, None);
}

#[test]
fn an_absence_outlives_a_restart_of_the_coordinator() {
    let mut scene = at_work();
    leave(&mut scene, AWAY);
    scene.world.restart();
    after(&mut scene, TTL + MARGIN + 200);
    assert_eq!(state(&scene), DeploymentState::Active, "its time is not over");
    after(&mut scene, AWAY - 200);
    assert_eq!(state(&scene), DeploymentState::Uncertain);
}

#[test]
fn a_permit_that_was_asked_for_before_an_absence_is_the_same_one_after_it() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    leave(&mut scene, AWAY);
    after(&mut scene, TTL + MARGIN);
    assert!(matches!(beat(&mut scene), Answer::Renewed { .. }));
    let events = scene.world.targets[0].history.len();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.world.targets[0].history.len(), events, "no second permit is on record");
}

//! An operator's hold, row by row: what goes on, what waits, and how it ends.

use holdfast_common::outcome::{AttemptEnd, FailureClass, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind};
use holdfast_common::report::{DeclineReason, Disposition};
use holdfast_common::spec::{Reach, RetryClass, StepSpec};
use holdfast_common::time::{Millis, Serving, Wall};
use holdfast_coordinator_core::input::{Jitter, Until};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch, uncertain};
use crate::specs::*;

fn hold(scene: &mut Scene, reason: &str, lasts: Option<u64>) {
    let until = lasts.map(|lasts| Until { shown: Wall(i64::try_from(lasts).unwrap()), lasts: Millis(lasts) });
    let input = Input::Hold { by: anna(), reason: reason.into(), until };
    assert_eq!(scene.world.feed(0, &input), Ok(Answer::Done));
}

fn unhold(scene: &mut Scene) -> Result<Answer, Refusal> {
    scene.world.feed(0, &Input::Unhold { by: anna() })
}

fn for_hold(why: &str) -> Option<Waiting> {
    Some(Waiting::Hold { by: anna(), why: why.into(), until: None })
}

fn kinds(scene: &Scene, from: usize) -> Vec<String> {
    let name = |recorded: &Recorded| {
        let json = serde_json::to_value(&recorded.event).expect("plain data");
        json["event"].as_str().expect("tagged").to_owned()
    };
    scene.world.targets[0].history[from..].iter().map(name).collect()
}

fn idempotent() -> Vec<StepSpec> {
    vec![switch(RetryClass::Idempotent)]
}

#[test]
fn a_hold_on_a_free_target_lets_the_first_wait_and_those_behind_wait_for_it() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", None);
    let first = scene.submit(idempotent(), 1);
    let second = scene.submit(idempotent(), 1);
    let state = scene.state();
    assert!(state.current.is_none(), "nobody takes a target that is on hold");
    assert_eq!(state.queue[0].waiting, for_hold("freeze"));
    let after = state.label(&state.queue[0]);
    assert_eq!((state.queue[0].id, &state.queue[1].waiting), (first, &Some(Waiting::Turn { after })));
    scene.world.assign(0, &[]);
    assert_eq!(unhold(&mut scene), Ok(Answer::Done));
    assert_eq!((scene.current().id, scene.current().waiting.clone()), (first, Some(Waiting::Assignment)));
    let holder = scene.state().label(scene.current());
    assert_eq!(scene.state().queue[0].id, second);
    assert_eq!(scene.state().queue[0].waiting, Some(Waiting::Reservation { holder }));
}

#[test]
fn those_behind_the_first_wait_for_the_next_one_when_it_is_cancelled() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", None);
    let first = scene.submit(idempotent(), 1);
    let second = scene.submit(idempotent(), 1);
    let third = scene.submit(idempotent(), 1);
    assert_eq!(scene.cancel(first), Answer::CancelledAtOnce);
    let state = scene.state();
    assert_eq!((state.queue[0].id, &state.queue[0].waiting), (second, &for_hold("freeze")));
    let after = state.label(&state.queue[0]);
    assert_eq!((state.queue[1].id, &state.queue[1].waiting), (third, &Some(Waiting::Turn { after })));
}

#[test]
fn an_attempt_under_way_goes_on_under_a_hold_and_its_permits_are_granted() {
    let mut scene = Scene::on(shop(Reach::Shared));
    let app = change("app", "app", RetryClass::Unsafe, Some("r1"));
    let id = scene.submit(vec![app, change("migrate", "db", RetryClass::Unsafe, None)], 1);
    let next = scene.submit(vec![change("migrate", "db", RetryClass::Unsafe, None)], 1);
    scene.world.assign(0, &[]);
    let claim = scene.claim();
    hold(&mut scene, "freeze", None);
    assert_eq!(scene.current().waiting, None, "what is under way waits for nothing");
    let input = Input::OfferAnswered { speaker: scene.speaker(), claim, declined: None, jitter: Jitter(0) };
    assert!(matches!(scene.world.feed(0, &input), Ok(Answer::Renewed { .. })), "an offer may be taken");
    for step in ["app", "migrate"] {
        assert_eq!(scene.permit(step), Answer::Permitted);
        assert_eq!(scene.say(ended(step, StepEnd::Applied)), Disposition::Accepted);
    }
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
    let state = scene.state();
    assert!(state.current.is_none() && state.queue[0].waiting == for_hold("freeze"), "the next one waits");
    unhold(&mut scene).expect("on hold");
    assert_eq!(scene.current().id, next);
}

#[test]
fn a_deployment_between_two_attempts_keeps_the_target_and_waits_for_the_hold() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Idempotent), check("verify")], 3);
    scene.run();
    scene.permit("switch");
    let failed = StepEnd::Failed { maybe_partial: false, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", failed));
    hold(&mut scene, "freeze", None);
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!((scene.current().state, scene.current().waiting.clone()), (DeploymentState::Active, for_hold("freeze")));
    scene.pass(10_000);
    scene.world.assign(0, &[]);
    assert_eq!(scene.current().attempts.len(), 1, "no new attempt");
    assert!(due(scene.state(), scene.world.now()).is_empty());
    assert_eq!(next_wakeup(scene.state(), scene.world.now()), None, "a delay that is over wakes nobody");
    unhold(&mut scene).expect("on hold");
    assert_eq!(scene.current().waiting, Some(Waiting::Assignment));
    scene.run();
    assert_eq!(scene.current().attempts.len(), 2);
}

#[test]
fn a_deployment_that_was_never_permitted_waits_too_and_its_delay_stays() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(idempotent(), 2);
    hold(&mut scene, "freeze", None);
    assert_eq!(scene.current().waiting, for_hold("freeze"), "it holds the target and has no attempt");
    scene.world.assign(0, &[]);
    assert!(scene.current().attempts.is_empty());
    unhold(&mut scene).expect("on hold");
    scene.world.assign(0, &[]);
    hold(&mut scene, "again", None);
    let (speaker, claim, declined) = (scene.speaker(), scene.claim(), Some(DeclineReason::Busy.into()));
    scene.world.feed(0, &Input::OfferAnswered { speaker, claim, declined, jitter: Jitter(1_000) }).expect("heard");
    assert_eq!((scene.current().state, scene.current().waiting.clone()), (DeploymentState::Queued, for_hold("again")));
    scene.pass(20);
    unhold(&mut scene).expect("on hold");
    let left = Waiting::backoff(Millis(30), scene.world.now().wall);
    assert_eq!(scene.current().waiting, Some(left), "what is left of 50 ms");
}

#[test]
fn a_retry_that_a_person_decides_waits_for_the_hold() {
    let (mut scene, id, _) = uncertain();
    hold(&mut scene, "freeze", None);
    assert_eq!(scene.current().state, DeploymentState::Uncertain, "a hold settles nothing");
    scene.attest(id, AttestedTarget::NotApplied);
    scene.decide(DecisionKind::Retry).expect("open");
    assert_eq!((scene.current().state, scene.current().waiting.clone()), (DeploymentState::Active, for_hold("freeze")));
}

#[test]
fn what_waits_under_a_hold_can_be_cancelled() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(idempotent(), 1);
    hold(&mut scene, "freeze", None);
    assert_eq!(scene.cancel(id), Answer::CancelledAtOnce);
    assert!(scene.ended(id).ended.as_ref().expect("ended").never_mutated);
}

#[test]
fn the_same_hold_again_is_one_record_and_another_takes_its_place() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(idempotent(), 1);
    hold(&mut scene, "freeze", Some(500));
    let events = scene.state().sequence;
    scene.pass(100);
    hold(&mut scene, "freeze", Some(500));
    assert_eq!(scene.state().sequence, events, "the same time, named again, is the same hold");
    hold(&mut scene, "storm", None);
    assert_eq!(scene.current().waiting, for_hold("storm"));
    assert_eq!(scene.state().hold.as_ref().expect("on hold").until, None);
    unhold(&mut scene).expect("on hold");
    assert_eq!(unhold(&mut scene), Err(Refusal::NotOnHold));
}

#[test]
fn a_hold_ends_by_serving_time_and_what_waited_goes_on() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", Some(500));
    let id = scene.submit(idempotent(), 1);
    let wake = next_wakeup(scene.state(), scene.world.now());
    assert_eq!(wake, Some(Serving(scene.world.serving + 500)), "a target with nothing on it is woken too");
    scene.pass(499);
    assert!(scene.state().hold.is_some() && scene.state().current.is_none());
    let before = scene.world.targets[0].history.len();
    scene.pass(1);
    assert_eq!((scene.state().hold.clone(), scene.current().id), (None, id));
    assert_eq!(kinds(&scene, before), ["hold_ended", "reserved"]);
    assert_eq!(scene.world.targets[0].history[before].event, Event::HoldEnded { how: HoldEnd::Time });
}

#[test]
fn a_restart_shortens_no_hold() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", Some(500));
    scene.pass(300);
    scene.world.restart();
    scene.pass(199);
    assert!(scene.state().hold.is_some(), "only time that a coordinator served counts");
    scene.pass(1);
    assert!(scene.state().hold.is_none());
}

#[test]
fn a_hold_is_refused_to_whoever_does_not_want_to_wait() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", None);
    let spec = deployment(&scene.state().spec, idempotent(), 1);
    let (deployment, request) = (deployment_id(9), request_id(9));
    let refused = scene.world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: true });
    assert_eq!(refused, Err(Refusal::TargetOnHold(scene.state().hold.clone().expect("on hold"))));
}

#[test]
fn a_deployment_behind_a_holder_says_at_once_why_it_waits() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(idempotent(), 1);
    let before = scene.world.targets[0].history.len();
    scene.submit(idempotent(), 1);
    assert_eq!(kinds(&scene, before), ["submitted", "waits"]);
    let holder = scene.state().label(scene.current());
    let Event::Waits { why, .. } = &scene.world.targets[0].history[before + 1].event else { panic!("it waits") };
    assert_eq!(why, &Waiting::Reservation { holder });
}

#[test]
fn a_reservation_or_a_lease_under_a_hold_is_no_legal_event() {
    let mut scene = Scene::on(site(Reach::Shared));
    hold(&mut scene, "freeze", None);
    let deployment = scene.submit(idempotent(), 1);
    let sequence = EventSequence(scene.state().sequence.0 + 1);
    let event = Event::Reserved { deployment, expected: std::collections::BTreeMap::new() };
    let recorded = Recorded { sequence, at: Wall(0), deployment: Some(deployment), event };
    let illegal = apply(Some(scene.state().clone()), &recorded).expect_err("on hold");
    assert_eq!(illegal.because, "the target is on hold");
}

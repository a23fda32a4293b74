//! Going back: what is compatible and why not, row by row; the stack of what stands; the reservation handed over.

use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind};
use holdfast_common::report::Disposition;
use holdfast_common::rollback::{DataEffect, DataRange, DataRecovery, RollbackSpec, Way};
use holdfast_common::spec::*;
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::input::Until;
use holdfast_coordinator_core::rollback::{Candidate, Own, Retained, WhyNot, candidates};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Answer, Input, Refusal};

use crate::decisions::{Scene, ended, over, switch};
use crate::specs::*;

pub fn previous() -> RollbackSpec {
    RollbackSpec { way: Way::PreviousRevision, until: None, data: None, recovery: DataRecovery::NoneNeeded }
}

/// A release of the site, with a check, and a way back.
fn release(scene: &Scene, to: &str, way: Option<RollbackSpec>) -> DeploymentSpec {
    let steps = vec![change("switch", "site", RetryClass::Idempotent, Some(to)), verify("healthy")];
    DeploymentSpec { rollback: way, ..deployment(&scene.state().spec, steps, 2) }
}

fn submit(scene: &mut Scene, spec: DeploymentSpec) -> u64 {
    let number = scene.state().next_number;
    let (deployment, request) = (deployment_id(number), request_id(number));
    let input = Input::Submit { deployment, request, spec, by: anna(), no_queue: false };
    scene.world.feed(0, &input).expect("submits");
    number
}

/// Carries the current deployment out to its end.
fn carry_out(scene: &mut Scene) {
    scene.run();
    for step in scene.current().spec.steps.clone() {
        if step.effect == StepEffect::Mutates {
            assert_eq!(scene.permit(step.name.as_str()), Answer::Permitted);
        }
        assert_eq!(scene.say(ended(step.name.as_str(), StepEnd::Applied)), Disposition::Accepted);
    }
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
}

fn deploy(scene: &mut Scene, to: &str, way: Option<RollbackSpec>) -> u64 {
    let spec = release(scene, to, way);
    let number = submit(scene, spec);
    carry_out(scene);
    number
}

fn listed(scene: &Scene, retained: &Retained) -> Vec<Candidate> {
    candidates(scene.state(), &scene.world.past(0), retained, scene.world.now().wall)
}

/// The places to go back to: what they undo, what would be there, and why not.
fn places(scene: &Scene) -> Vec<(Vec<u64>, Option<String>, Option<WhyNot>)> {
    let place = |candidate: Candidate| {
        let undoes = candidate.undoes.iter().map(|undone| undone.number).collect();
        let site = candidate.revisions.get(&resource_name("site")).cloned().flatten();
        (undoes, site.map(|revision| revision.to_string()), candidate.why_not)
    };
    listed(scene, &Retained::new()).into_iter().map(place).collect()
}

fn two_releases() -> Scene {
    let mut scene = Scene::on(site(Reach::Shared));
    deploy(&mut scene, "v1", Some(previous()));
    deploy(&mut scene, "v2", Some(previous()));
    scene
}

fn back(scene: &mut Scene, to: &str) -> Result<Answer, Refusal> {
    scene.world.go_back(0, to, false, Retained::new())
}

#[test]
fn what_stands_is_a_stack_and_a_whole_rollback_takes_what_it_undid_off_it() {
    let mut scene = two_releases();
    let nothing_before = Some(WhyNot::NothingBefore { number: 1, resource: resource_name("site") });
    let both = [(vec![2], Some("v1".to_owned()), None), (vec![2, 1], None, nothing_before.clone())];
    assert_eq!(places(&scene), both);
    assert_eq!(back(&mut scene, "v1"), Ok(Answer::Submitted { number: 3 }));
    let rollback = scene.current();
    let undone = Undone { id: deployment_id(2), number: 2 };
    assert_eq!(rollback.kind.rollback().map(|of| (of.undoes.clone(), of.base)), Some((vec![undone], Base::AtRest)));
    let steps: Vec<_> = rollback.spec.steps.iter().map(|step| (step.name.as_str(), &step.revision)).collect();
    assert_eq!(steps, [("restore-site", &Some(revision("v1"))), ("healthy", &None)]);
    carry_out(&mut scene);
    assert_eq!(places(&scene), [(vec![1], None, nothing_before)], "v2 does not stand any more");
    deploy(&mut scene, "v3", Some(previous()));
    assert_eq!(places(&scene)[0], (vec![4], Some("v1".to_owned()), None));
}

#[test]
fn what_changed_nothing_is_no_place_to_go_back_over() {
    let mut scene = two_releases();
    let spec = release(&scene, "v3", Some(previous()));
    submit(&mut scene, DeploymentSpec { retry: RetrySpec { max_attempts: 1, ..spec.retry }, ..spec });
    scene.run();
    scene.lapse();
    assert!(scene.state().current.is_none());
    assert_eq!(places(&scene)[0].0, [2]);
}

#[test]
fn every_reason_against_going_back_is_told() {
    let number = 2;
    let step = |effect: DataEffect| move |spec: &mut DeploymentSpec| spec.steps[0].data = effect;
    type Change = Box<dyn Fn(&mut DeploymentSpec)>;
    let way = |change: fn(&mut RollbackSpec)| -> Change {
        Box::new(move |spec| change(spec.rollback.as_mut().expect("declared")))
    };
    let range = DataRange { from: "1".into(), to: "9".into() };
    let outside = |version| WhyNot::DataOutside { number, range: range.clone(), version };
    let rows: Vec<(Change, WhyNot)> = vec![
        (Box::new(|spec| spec.rollback = None), WhyNot::NoWay { number }),
        (Box::new(|spec| spec.steps.truncate(1)), WhyNot::NoCheck { number }),
        (Box::new(step(DataEffect::Destructive)), WhyNot::Destroyed { number, step: step_name("switch") }),
        (
            way(|way| way.way = Way::Steps { steps: vec![change("undo", "elsewhere", RetryClass::Idempotent, None)] }),
            WhyNot::NoReverse { number, resource: resource_name("site") },
        ),
        (way(|way| way.until = Some(Wall(1))), WhyNot::WindowOver { number, until: Wall(1) }),
        (way(|way| way.data = DataRange::parse("1..9")), outside(None)),
        (
            Box::new(move |spec| {
                step(DataEffect::Expand)(spec);
                spec.rollback.as_mut().expect("declared").data = DataRange::parse("1..9");
            }),
            outside(Some((resource_name("site"), revision("v2")))),
        ),
    ];
    for (change, expected) in rows {
        let mut scene = Scene::on(site(Reach::Shared));
        deploy(&mut scene, "v1", Some(previous()));
        let mut spec = release(&scene, "v2", Some(previous()));
        change(&mut spec);
        submit(&mut scene, spec);
        carry_out(&mut scene);
        assert_eq!(places(&scene)[0].2, Some(expected.clone()));
        assert_eq!(back(&mut scene, "v1"), Err(Refusal::CannotGoBack(expected.clone())), "{expected}");
        let attested = scene.world.go_back(0, "v1", true, Retained::new());
        assert_eq!(attested.is_ok(), expected.may_be_attested(), "{expected}: {attested:?}");
    }
}

#[test]
fn a_tested_recovery_a_wide_window_and_data_in_range_are_compatible() {
    let mut scene = Scene::on(site(Reach::Shared));
    deploy(&mut scene, "1", Some(previous()));
    let mut spec = release(&scene, "2", Some(previous()));
    spec.steps[0].data = DataEffect::Destructive;
    let way = spec.rollback.as_mut().expect("declared");
    way.recovery = DataRecovery::Restore { tested: "2026-10-01, 20 GB in 7 minutes".into() };
    (way.until, way.data) = (Some(Wall(i64::MAX)), DataRange::parse("1..9"));
    submit(&mut scene, spec);
    carry_out(&mut scene);
    assert_eq!(places(&scene)[0].2, None);
    assert_eq!(back(&mut scene, "1"), Ok(Answer::Submitted { number: 3 }));
}

#[test]
fn an_old_revision_that_is_gone_is_refused_and_one_that_could_not_be_asked_for_is_told() {
    let mut scene = two_releases();
    let seen = |revisions: &[&str]| -> Retained {
        [(resource_name("site"), revisions.iter().map(|name| revision(name)).collect())].into()
    };
    assert_eq!(listed(&scene, &Retained::new())[0].not_asked, [resource_name("site")]);
    let there = &listed(&scene, &seen(&["v1", "v2"]))[0];
    assert_eq!((&there.not_asked, &there.why_not), (&Vec::new(), &None));
    let gone = WhyNot::NotRetained { resource: resource_name("site"), revision: revision("v1") };
    assert_eq!(listed(&scene, &seen(&["v2"]))[0].why_not, Some(gone.clone()));
    assert_eq!(scene.world.go_back(0, "v1", true, seen(&["v2"])), Err(Refusal::CannotGoBack(gone)));
}

#[test]
fn to_go_back_further_the_way_over_each_must_be_compatible() {
    let mut scene = two_releases();
    deploy(&mut scene, "v3", None);
    deploy(&mut scene, "v4", Some(previous()));
    let no_way = Some(WhyNot::NoWay { number: 3 });
    let expected = [
        (vec![4], Some("v3".to_owned()), None),
        (vec![4, 3], Some("v2".to_owned()), no_way.clone()),
        (vec![4, 3, 2], Some("v1".to_owned()), no_way.clone()),
        (vec![4, 3, 2, 1], None, no_way),
    ];
    assert_eq!(places(&scene), expected);
    let nothing = Refusal::NothingToGoBackTo { revision: revision("v9") };
    assert_eq!(back(&mut scene, "v9"), Err(nothing));
}

#[test]
fn a_rollback_over_several_switches_each_release_once_and_keeps_names_unique() {
    let mut scene = two_releases();
    let restore = |name| StepSpec { body: StepBody::Restore, ..change(name, "site", RetryClass::Idempotent, None) };
    let note = StepSpec {
        body: StepBody::Command { argv: vec!["note".into()] },
        ..change("healthy", "site", RetryClass::Idempotent, None)
    };
    let own = |steps: Vec<StepSpec>| Some(RollbackSpec { way: Way::Steps { steps }, ..previous() });
    deploy(&mut scene, "v3", own(vec![note.clone(), restore("back")]));
    deploy(&mut scene, "v4", own(vec![restore("back"), note]));
    assert_eq!(back(&mut scene, "v1"), Ok(Answer::Submitted { number: 5 }));
    let steps: Vec<_> = scene.current().spec.steps.iter().map(|step| step.name.to_string()).collect();
    assert_eq!(steps, ["healthy", "healthy-3", "restore-site", "healthy-1"], "one switch, the last one");
    assert_eq!(scene.current().spec.steps[2].revision, Some(revision("v1")));
}

#[test]
fn what_steps_of_its_own_bring_is_where_it_goes_back_to() {
    let mut scene = two_releases();
    let own = vec![change("forward", "site", RetryClass::Idempotent, Some("v9"))];
    deploy(&mut scene, "v3", Some(RollbackSpec { way: Way::Steps { steps: own }, ..previous() }));
    assert_eq!(places(&scene)[0], (vec![3], Some("v9".to_owned()), None));
    assert_eq!(back(&mut scene, "v9"), Ok(Answer::Submitted { number: 4 }));
}

#[test]
fn what_steps_of_its_own_bring_is_told_apart_from_what_is_taken_back() {
    let step = |name, to| change(name, "site", RetryClass::Idempotent, to);
    let restore = StepSpec { body: StepBody::Restore, ..step("restore", None) };
    let told = |own: Vec<StepSpec>| {
        let mut scene = two_releases();
        deploy(&mut scene, "v3", Some(RollbackSpec { way: Way::Steps { steps: own }, ..previous() }));
        let places = listed(&scene, &Retained::new());
        assert_eq!(places[1].own, [].into(), "below it v2 took the place of v1, and takes that back");
        places[0].own.get(&resource_name("site")).cloned()
    };
    let own = |steps: &[&str], brings: Option<&str>| {
        Some(Own { steps: steps.iter().map(|name| step_name(name)).collect(), brings: brings.map(revision) })
    };
    assert_eq!(told(vec![step("forward", Some("v9"))]), own(&["forward"], Some("v9")));
    assert_eq!(told(vec![step("a", Some("v9")), step("b", None)]), own(&["a", "b"], None));
    assert_eq!(told(vec![step("a", Some("v9")), restore]), None);
    assert_eq!(listed(&two_releases(), &Retained::new())[0].own, [].into());
}

#[test]
fn nothing_is_undone_but_what_was_shown() {
    let mut scene = two_releases();
    deploy(&mut scene, "v1", Some(previous()));
    deploy(&mut scene, "v3", Some(previous()));
    let over =
        |scene: &mut Scene, shown: &[u64]| scene.world.go_back_over(0, "v1", shown.to_vec(), false, Retained::new());
    assert_eq!(over(&mut scene, &[4]), Ok(Answer::Submitted { number: 5 }));
    carry_out(&mut scene);
    let moved = Refusal::PlaceMoved { shown: vec![4], now: vec![3, 2] };
    assert_eq!(over(&mut scene, &[4]), Err(moved), "somebody else went back meanwhile");
}

#[test]
fn a_rollback_is_before_all_that_wait_and_refused_while_somebody_holds_the_target() {
    let mut scene = two_releases();
    let hold = Input::Hold { by: anna(), reason: "broken".into(), until: None::<Until> };
    scene.world.feed(0, &hold).expect("held");
    let spec = release(&scene, "v3", None);
    submit(&mut scene, spec);
    assert_eq!(back(&mut scene, "v1"), Ok(Answer::Submitted { number: 4 }));
    let order: Vec<_> = scene.state().queue.iter().map(|waiting| waiting.number).collect();
    assert_eq!(order, [4, 3]);
    assert!(matches!(scene.state().queue[0].waiting, Some(Waiting::Hold { .. })));
    assert!(matches!(&scene.state().queue[1].waiting, Some(Waiting::Turn { after }) if after.number == 4));
    assert!(matches!(back(&mut scene, "v1"), Err(Refusal::TargetHeld { holder, .. }) if holder.number == 4));
    scene.world.feed(0, &Input::Unhold { by: anna() }).expect("was held");
    assert_eq!(scene.current().number, 4);
    assert!(matches!(back(&mut scene, "v1"), Err(Refusal::TargetHeld { holder, .. }) if holder.number == 4));
}

/// v2 became uncertain while it was permitted; the next one waits.
fn uncertain_release() -> Scene {
    let mut scene = Scene::on(site(Reach::Shared));
    deploy(&mut scene, "v1", Some(previous()));
    let spec = release(&scene, "v2", Some(previous()));
    submit(&mut scene, spec);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let spec = release(&scene, "v3", None);
    submit(&mut scene, spec);
    scene.lapse();
    scene
}

fn raise_and_read(scene: &mut Scene, state: OperationState) {
    let raise = scene.inquiry(true);
    scene.answer(raise, true, state);
}

#[test]
fn a_decided_rollback_is_handed_the_reservation_without_a_gap() {
    let mut scene = uncertain_release();
    assert!(
        matches!(scene.decide(DecisionKind::Rollback), Err(Refusal::DecisionNotOpen { .. })),
        "the runner is not out"
    );
    raise_and_read(&mut scene, OperationState::Applied);
    let before = scene.state().sequence;
    assert_eq!(scene.decide(DecisionKind::Rollback), Ok(Answer::Decided(DeploymentState::Failed)));
    let ended = scene.ended(deployment_id(2));
    assert_eq!(ended.state, DeploymentState::Failed);
    assert!(ended.ended.as_ref().is_some_and(|end| end.by_decision && end.because.contains("site@prod#4")));
    let rollback = scene.current();
    assert_eq!((rollback.number, rollback.kind.rollback().map(|of| of.base)), (4, Some(Base::Known)));
    let history = &scene.world.targets[0].history;
    let at_once =
        history.iter().filter(|event| event.sequence > before).all(|event| event.at == history[history.len() - 1].at);
    assert!(at_once, "one decision, one transaction");
    carry_out(&mut scene);
    assert_eq!(scene.ended(deployment_id(4)).state, DeploymentState::Succeeded);
    assert_eq!(scene.current().number, 3, "whoever waited has its turn now");
}

#[test]
fn a_decided_rollback_takes_over_on_a_target_that_is_on_hold_and_begins_when_that_ends() {
    let mut scene = uncertain_release();
    raise_and_read(&mut scene, OperationState::Applied);
    let until = Some(Until { shown: Wall(9), lasts: Millis(500) });
    scene.world.feed(0, &Input::Hold { by: anna(), reason: "storm".into(), until }).expect("held");
    assert!(scene.decide(DecisionKind::Rollback).is_ok());
    assert!(matches!(scene.current().waiting, Some(Waiting::Hold { .. })));
    scene.world.assign(0, &[]);
    assert!(scene.current().attempts.is_empty(), "a hold lets nothing begin");
    scene.pass(500);
    carry_out(&mut scene);
    assert_eq!(scene.ended(deployment_id(4)).state, DeploymentState::Succeeded);
}

#[test]
fn what_changed_nothing_can_not_be_decided_to_be_rolled_back() {
    let mut scene = uncertain_release();
    raise_and_read(&mut scene, OperationState::NotApplied);
    let why = scene.list().why_not(DecisionKind::Rollback).map(str::to_owned);
    assert_eq!(why.as_deref(), Some("#2 has changed nothing"));
}

/// The rollback on top of what nobody knows, before its first attempt.
pub fn on_unresolved() -> Scene {
    let mut scene = uncertain_release();
    raise_and_read(&mut scene, OperationState::Partial);
    scene.decide(DecisionKind::Rollback).expect("open");
    assert_eq!(scene.current().kind.rollback().map(|of| of.base), Some(Base::Unresolved));
    scene
}

#[test]
pub fn a_rollback_on_something_unresolved_holds_the_target_until_a_change_of_its_own_is_applied() {
    let mut scene = on_unresolved();
    let id = scene.current().id;
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    assert_eq!((scene.current().id, scene.current().state), (id, DeploymentState::Held));
    assert!(matches!(scene.decide(DecisionKind::AcceptCancelled), Err(Refusal::DecisionNotOpen { .. })));
    scene.attest(id, AttestedTarget::Partial);
    assert_eq!(scene.decide(DecisionKind::AcceptCancelled), Ok(Answer::Decided(DeploymentState::Cancelled)));
    assert!(
        matches!(scene.state().queue[0].waiting, Some(Waiting::UnreadRevision { .. })),
        "nobody knows what is there"
    );
}

#[test]
fn its_tries_used_up_or_failed_for_good_it_is_held_all_the_same() {
    let mut scene = on_unresolved();
    for _ in 0..2 {
        scene.run();
        scene.lapse();
        scene.pass(1_000);
    }
    assert_eq!(scene.current().state, DeploymentState::Held, "used up");
    scene.decide(DecisionKind::Retry).expect("a person may try again");
    scene.run();
    assert_eq!(scene.permit("restore-site"), Answer::Permitted);
    let end = StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent };
    assert_eq!(scene.say(ended("restore-site", end)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    assert_eq!(scene.current().state, DeploymentState::Held, "failed for good");
}

#[test]
fn with_a_change_of_its_own_applied_it_ends_like_any_other() {
    let mut scene = on_unresolved();
    let id = scene.current().id;
    scene.run();
    assert_eq!(scene.permit("restore-site"), Answer::Permitted);
    assert_eq!(scene.say(ended("restore-site", StepEnd::Applied)), Disposition::Accepted);
    let end = StepEnd::Failed { maybe_partial: false, class: FailureClass::Transient };
    assert_eq!(scene.say(ended("healthy", end)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    let ended = scene.ended(id);
    assert_eq!(ended.state, DeploymentState::Failed);
    assert!(ended.ended.as_ref().is_some_and(|end| end.not_healthy));
}

#[test]
fn an_uncertain_rollback_holds_the_target_like_anything_else() {
    let mut scene = two_releases();
    back(&mut scene, "v1").expect("compatible");
    scene.run();
    assert_eq!(scene.permit("restore-site"), Answer::Permitted);
    scene.lapse();
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    raise_and_read(&mut scene, OperationState::Partial);
    let why = scene.list().why_not(DecisionKind::Rollback).map(str::to_owned);
    assert!(why.is_some_and(|why| why.contains("is a rollback itself")));
    scene.decide(DecisionKind::Retry).expect("safe to repeat");
    carry_out(&mut scene);
    assert_eq!(scene.ended(deployment_id(3)).state, DeploymentState::Succeeded);
}

#[test]
fn a_queue_that_takes_the_latest_only_leaves_a_rollback_alone() {
    let mut scene = two_releases();
    let spec = TargetSpec { queue: QueueKind::Latest, ..scene.state().spec.clone() };
    scene.world.feed(0, &Input::Declare { spec, by: anna() }).expect("any time");
    scene.world.feed(0, &Input::Hold { by: anna(), reason: "broken".into(), until: None }).expect("held");
    back(&mut scene, "v1").expect("compatible");
    let spec = release(&scene, "v3", None);
    submit(&mut scene, spec);
    let order: Vec<_> = scene.state().queue.iter().map(|waiting| waiting.number).collect();
    assert_eq!(order, [3, 4]);
}

/// Kept beside the others: the site's plain step, which declares nothing.
#[test]
fn a_file_that_says_nothing_of_going_back_is_not_gone_back_over() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Idempotent)], 1);
    carry_out(&mut scene);
    assert_eq!(places(&scene)[0].2, Some(WhyNot::NoWay { number: 1 }));
}

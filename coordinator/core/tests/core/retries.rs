//! What is tried again by itself, when, and on what: each class of step and of failure, tries used up, and what is carried over.

use holdfast_common::id::{DeploymentId, ResourceName};
use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind, Policy};
use holdfast_common::report::{Carry, Disposition, FiledReason, PermitDenial, ReportBody, Reread};
use holdfast_common::spec::{Reach, RetryClass, StepSpec};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::input::Jitter;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch};
use crate::specs::*;

fn failed(class: FailureClass) -> StepEnd {
    StepEnd::Failed { maybe_partial: false, class }
}

/// One mutating step of that class on an application whose effects do not outlive it, and then this end.
fn after(retry: RetryClass, end: StepEnd, tries: u32) -> (Scene, DeploymentId) {
    let mut scene = Scene::on(shop(Reach::Shared));
    let id = scene.submit(vec![change("app", "app", retry, Some("r2"))], tries);
    scene.run();
    assert_eq!(scene.permit("app"), Answer::Permitted);
    assert_eq!(scene.say(ended("app", end)), Disposition::Accepted);
    let attempt = if matches!(end, StepEnd::Stopped { .. }) { AttemptEnd::Stopped } else { AttemptEnd::Failed };
    assert_eq!(scene.say(over(attempt)), Disposition::Accepted);
    (scene, id)
}

fn scheduled(scene: &Scene) -> Vec<&Event> {
    let history = &scene.world.targets[0].history;
    history
        .iter()
        .map(|recorded| &recorded.event)
        .filter(|event| matches!(event, Event::RetryScheduled { .. }))
        .collect()
}

fn stands(scene: &Scene, id: DeploymentId) -> DeploymentState {
    scene.state().deployment(id).map_or_else(|| scene.ended(id).state, |current| current.state)
}

#[test]
fn what_is_tried_again_follows_from_the_class_of_the_step_and_of_the_failure() {
    use DeploymentState::{Active, Failed, Held};
    use FailureClass::{Infrastructure, Permanent, Transient};
    use RetryClass::{Idempotent, Unsafe};
    let partial = |class| StepEnd::Failed { maybe_partial: true, class };
    for (retry, end, then) in [
        (Idempotent, failed(Transient), Active),
        (Idempotent, failed(Infrastructure), Active),
        (Idempotent, failed(Permanent), Failed),
        (Idempotent, partial(Transient), Active),
        (Idempotent, partial(Permanent), Failed),
        (Idempotent, StepEnd::Stopped { maybe_partial: true }, Active),
        (Unsafe, failed(Transient), Failed),
        (Unsafe, failed(Infrastructure), Failed),
        (Unsafe, failed(Permanent), Failed),
        (Unsafe, partial(Transient), Held),
        (Unsafe, partial(Permanent), Held),
        (Unsafe, StepEnd::Stopped { maybe_partial: true }, Held),
    ] {
        let (scene, id) = after(retry, end, 3);
        assert_eq!(stands(&scene, id), then, "{retry:?} {end:?}");
        assert_eq!(scheduled(&scene).len(), usize::from(then == Active), "{retry:?} {end:?}");
    }
}

#[test]
fn a_step_without_effect_is_tried_again_unless_its_failure_is_permanent() {
    for (class, then) in [
        (FailureClass::Transient, DeploymentState::Queued),
        (FailureClass::Infrastructure, DeploymentState::Queued),
        (FailureClass::Permanent, DeploymentState::Failed),
    ] {
        let mut scene = Scene::on(shop(Reach::Shared));
        let id = scene.submit(vec![check("prepare"), change("app", "app", RetryClass::Unsafe, Some("r2"))], 3);
        scene.run();
        let _ = scene.say(ended("prepare", failed(class)));
        let _ = scene.say(over(AttemptEnd::Failed));
        assert_eq!(stands(&scene, id), then, "{class:?}");
    }
}

#[test]
fn a_listed_exit_of_a_command_after_the_changes_is_tried_again_until_the_tries_are_used_up() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe), check("warm")], 2);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(ended("warm", failed(FailureClass::Transient)));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(stands(&scene, id), DeploymentState::Active);
    scene.pass(400);
    scene.run();
    assert_eq!(scene.say(reread("switch", OperationState::Applied, "r1")), Disposition::Accepted);
    let _ = scene.say(ended("warm", failed(FailureClass::Transient)));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert!(scene.ended(id).ended.as_ref().expect("ended").not_healthy);
}

#[test]
fn each_retry_is_an_event_with_its_reason_its_delay_and_the_tries_that_are_left() {
    let (mut scene, _) = after(RetryClass::Idempotent, failed(FailureClass::Transient), 3);
    let first = scene.current().attempts[0].id;
    let expected = |after, number, class, step: Option<&str>, used, left| Event::RetryScheduled {
        deployment: deployment_id(1),
        after,
        number,
        step: step.map(step_name),
        class,
        delay: Millis(25 * u64::from(used)),
        used,
        left,
    };
    assert_eq!(scheduled(&scene), [&expected(first, 1, FailureClass::Transient, Some("app"), 1, 2)]);
    scene.pass(25);
    scene.run();
    let second = scene.current().attempts[1].id;
    scene.world.serving += TTL + MARGIN;
    scene.world.feed(0, &Input::Tick { jitter: Jitter(500) }).expect("never refused");
    assert_eq!(scheduled(&scene)[1], &expected(second, 2, FailureClass::Infrastructure, None, 2, 1));
}

#[test]
fn the_delay_doubles_up_to_its_bound_and_nothing_starts_before_it_is_over() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 100);
    let mut delays = Vec::new();
    for _ in 0..6 {
        scene.run();
        scene.world.serving += TTL + MARGIN;
        scene.world.feed(0, &Input::Tick { jitter: Jitter(1_000) }).expect("never refused");
        let Some(Waiting::Backoff { delay, .. }) = scene.current().waiting else {
            panic!("{:?}", scene.current().waiting)
        };
        delays.push(delay.0);
        scene.pass(delay.0 - 1);
        scene.world.assign(0, &[]);
        assert!(scene.current().live().is_none(), "it begins before its delay is over");
        scene.pass(1);
    }
    assert_eq!(delays, [50, 100, 200, 400, 400, 400]);
}

#[test]
fn tries_that_are_used_up_are_told_as_that() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 2);
    for _ in 0..2 {
        scene.run();
        scene.lapse();
        scene.pass(400);
    }
    let end = scene.ended(id).ended.clone().expect("ended");
    assert!(end.never_mutated && end.because.ends_with("all 2 tries are used up"), "{}", end.because);
    let (mut scene, id) = after(RetryClass::Idempotent, failed(FailureClass::Transient), 2);
    scene.pass(400);
    scene.run();
    assert_eq!(scene.permit("app"), Answer::Permitted);
    let _ = scene.say(ended("app", failed(FailureClass::Transient)));
    let _ = scene.say(over(AttemptEnd::Failed));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert!(end.because.ends_with("all 2 tries are used up"), "{}", end.because);
    let (scene, id) = after(RetryClass::Idempotent, failed(FailureClass::Permanent), 2);
    let end = scene.ended(id).ended.clone().expect("ended");
    assert!(!end.because.contains("tries"), "{}", end.because);
}

fn reading(state: OperationState, found: &str) -> Reading {
    Reading {
        resource_identity: "one".into(),
        state,
        revision: (!found.is_empty()).then(|| revision(found)),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: String::new(),
    }
}

pub fn reread(step: &str, state: OperationState, found: &str) -> ReportBody {
    ReportBody::Reread { step: step_name(step), found: Reread::Read { reading: reading(state, found) } }
}

fn unread(step: &str) -> ReportBody {
    ReportBody::Reread { step: step_name(step), found: Reread::Failed { detail: "no route".into() } }
}

fn carried(scene: &Scene, step: &str) -> StepState {
    scene.current().attempts.last().and_then(|last| last.step(&step_name(step))).expect("a step").state
}

const fn carry(carry: CarryState) -> StepState {
    StepState::Carried { carry }
}

/// Two changes of the shop: the application is applied, then contact is lost. The second attempt runs.
fn second(retry: RetryClass) -> (Scene, DeploymentId) {
    let steps = vec![change("app", "app", retry, Some("r2")), change("migrate", "db", RetryClass::Unsafe, None)];
    let mut scene = Scene::on(shop(Reach::Shared));
    let id = scene.submit(steps, 3);
    scene.run();
    assert_eq!(scene.permit("app"), Answer::Permitted);
    assert_eq!(scene.say(ended("app", StepEnd::Applied)), Disposition::Accepted);
    scene.lapse();
    scene.pass(400);
    scene.run();
    (scene, id)
}

#[test]
fn nothing_is_permitted_before_what_is_carried_over_was_read_again() {
    let (mut scene, _) = second(RetryClass::Unsafe);
    assert_eq!(carried(&scene, "app"), carry(CarryState::Due));
    let attempt = scene.current().attempts.last().expect("one");
    assert_eq!(carries(scene.current(), attempt), [Carry { step: step_name("app"), left: Some(revision("r2")) }]);
    assert_eq!(scene.permit("migrate"), Answer::Denied(PermitDenial::CarryUnread));
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Filed(FiledReason::StepOutOfOrder));
    assert_eq!(scene.say(reread("app", OperationState::Applied, "r2")), Disposition::Accepted);
    assert_eq!(carried(&scene, "app"), carry(CarryState::AsLeft));
    assert_eq!(scene.permit("migrate"), Answer::Permitted);
    let late = scene.say(reread("app", OperationState::Applied, "r2"));
    assert_eq!(late, Disposition::Filed(FiledReason::StepOutOfOrder), "the attempt's own work may be there by now");
}

#[test]
fn each_reading_of_what_is_carried_over_has_its_row() {
    use CarryState::{AsLeft, Differs, Failed};
    for (said, then) in [
        (reread("app", OperationState::Applied, "r2"), AsLeft),
        (reread("app", OperationState::Unknown, "r2"), AsLeft),
        (reread("app", OperationState::Applied, "r3"), Differs),
        (reread("app", OperationState::Unknown, "r3"), Differs),
        (reread("app", OperationState::Unknown, ""), Differs),
        (reread("app", OperationState::NotApplied, "r1"), Differs),
        (reread("app", OperationState::Partial, "r2"), Differs),
        (reread("app", OperationState::Applying, "r2"), Differs),
        (unread("app"), Failed),
    ] {
        let (mut scene, _) = second(RetryClass::Unsafe);
        assert_eq!(scene.say(said.clone()), Disposition::Accepted);
        assert_eq!(carried(&scene, "app"), carry(then), "{said:?}");
        let permit = scene.permit("migrate");
        assert_eq!(permit == Answer::Permitted, then == AsLeft, "{said:?}: {permit:?}");
    }
    let (mut scene, _) = second(RetryClass::Unsafe);
    assert_eq!(
        scene.say(reread("migrate", OperationState::Applied, "")),
        Disposition::Filed(FiledReason::StepOutOfOrder)
    );
    assert_eq!(scene.say(reread("nowhere", OperationState::Applied, "")), Disposition::Filed(FiledReason::UnknownStep));
}

#[test]
fn what_was_said_of_a_carried_step_is_said_anew_after_a_restart_and_a_difference_stays() {
    use CarryState::{AsLeft, Differs, Failed};
    let (mut scene, _) = second(RetryClass::Unsafe);
    for (said, then) in [
        (unread("app"), Failed),
        (reread("app", OperationState::Applied, "r2"), AsLeft),
        (unread("app"), Failed),
        (reread("app", OperationState::Applied, "r2"), AsLeft),
        (reread("app", OperationState::Applied, "r3"), Differs),
    ] {
        assert_eq!(scene.say(said), Disposition::Accepted);
        assert_eq!(carried(&scene, "app"), carry(then));
    }
    let again = scene.say(reread("app", OperationState::Applied, "r2"));
    assert_eq!((again, carried(&scene, "app")), (Disposition::Filed(FiledReason::StepOutOfOrder), carry(Differs)));
}

#[test]
fn a_reading_of_another_resource_differs_and_no_success_is_believed_over_it() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe), check("look")], 5);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    scene.lapse();
    let raised = scene.inquiry(true);
    scene.answer(raised, true, OperationState::Applied);
    scene.decide(DecisionKind::Retry).expect("read as applied");
    scene.run();
    let other = Reading { resource_identity: "two".into(), ..reading(OperationState::Applied, "r1") };
    let said = ReportBody::Reread { step: step_name("switch"), found: Reread::Read { reading: other } };
    assert_eq!(scene.say(said), Disposition::Accepted);
    assert_eq!(carried(&scene, "switch"), carry(CarryState::Differs));
    let _ = scene.say(ended("look", StepEnd::Applied));
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Filed(FiledReason::StepOutOfOrder));
    scene.lapse();
    assert_eq!(stands(&scene, id), DeploymentState::Held);
}

/// The second attempt found somebody else's work, and has ended.
fn disturbed(policy: Policy, retry: RetryClass) -> (Scene, DeploymentId) {
    let (mut scene, id) = second(retry);
    let mut spec = scene.state().spec.clone();
    (spec.policy, spec.patience) = (policy, Some(Millis(100)));
    if policy != Policy::Manual {
        scene.world.feed(0, &Input::Declare { spec, by: anna() }).expect("declared anew");
    }
    assert_eq!(scene.say(reread("app", OperationState::Unknown, "by-hand")), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    (scene, id)
}

#[test]
fn a_hand_edit_between_two_attempts_holds_the_deployment_and_nothing_overwrites_it() {
    let (mut scene, id) = disturbed(Policy::WhenProven, RetryClass::Idempotent);
    assert_eq!(stands(&scene, id), DeploymentState::Held);
    let waits = scene.submit(vec![change("app", "app", RetryClass::Unsafe, Some("r3"))], 3);
    scene.pass(10_000);
    assert!(due(scene.state(), scene.world.now()).is_empty(), "the policy decides nothing on somebody else's work");
    scene.world.recover(0);
    assert_eq!(stands(&scene, id), DeploymentState::Held);
    assert_eq!(stands(&scene, waits), DeploymentState::Queued);
    assert_eq!(scheduled(&scene).len(), 1);
    let list = scene.list();
    assert_eq!((list.steps[0].step.as_str(), list.steps[0].state), ("app", OperationState::Unknown));
    assert!(list.steps[0].because.contains("somebody else has changed it"), "{}", list.steps[0].because);
}

#[test]
fn a_hand_edit_is_noticed_also_where_contact_is_lost_or_a_stop_was_asked_for_right_after() {
    let (mut scene, id) = second(RetryClass::Unsafe);
    let _ = scene.say(reread("app", OperationState::Unknown, "by-hand"));
    scene.lapse();
    assert_eq!(stands(&scene, id), DeploymentState::Held);
    let (mut scene, id) = second(RetryClass::Unsafe);
    let _ = scene.say(reread("app", OperationState::Unknown, "by-hand"));
    scene.cancel(id);
    let _ = scene.say(over(AttemptEnd::Stopped));
    assert_eq!(stands(&scene, id), DeploymentState::Held);
}

#[test]
fn held_over_a_hand_edit_has_its_exits_and_each_leaves_an_honest_revision() {
    let known = |scene: &Scene| scene.state().resources[&ResourceName::new("app").unwrap()].clone();
    // Safe to repeat: a person may have the step run again.
    let (mut scene, id) = disturbed(Policy::Manual, RetryClass::Idempotent);
    scene.decide(DecisionKind::Retry).expect("open");
    scene.run();
    assert_eq!(carried(&scene, "app"), StepState::Pending);
    assert_eq!(stands(&scene, id), DeploymentState::Active);
    // Not safe to repeat, and not known: read it first.
    let (mut scene, id) = disturbed(Policy::Manual, RetryClass::Unsafe);
    assert!(scene.decide(DecisionKind::Retry).is_err() && scene.decide(DecisionKind::AcceptFailed).is_err());
    let asked = scene.inquiry(false);
    scene.answer(asked, false, OperationState::NotApplied);
    scene.decide(DecisionKind::AcceptFailed).expect("open");
    assert_eq!(stands(&scene, id), DeploymentState::Failed);
    assert!(matches!(known(&scene), ResourceKnowledge::Unknown { .. }), "{:?}", known(&scene));
    // Taken as it is: what was read is what the next attempt is to find.
    let (mut scene, _) = disturbed(Policy::Manual, RetryClass::Unsafe);
    let asked = scene.inquiry(false);
    scene.answer(asked, false, OperationState::Applied);
    scene.decide(DecisionKind::Retry).expect("open");
    scene.run();
    let attempt = scene.current().attempts.last().expect("one");
    assert_eq!(carries(scene.current(), attempt), [Carry { step: step_name("app"), left: Some(revision("r2")) }]);
    // Given up.
    let (mut scene, id) = disturbed(Policy::Manual, RetryClass::Unsafe);
    scene.attest(id, AttestedTarget::Partial);
    scene.decide(DecisionKind::Abandon).expect("open");
    assert!(matches!(known(&scene), ResourceKnowledge::Unknown { .. }), "{:?}", known(&scene));
}

#[test]
fn a_look_that_fails_is_infrastructure_and_another_try_follows() {
    let (mut scene, id) = second(RetryClass::Unsafe);
    let _ = scene.say(unread("app"));
    assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    assert_eq!(stands(&scene, id), DeploymentState::Active);
    let Some(Event::RetryScheduled { step, class, used, left, .. }) = scheduled(&scene).pop() else {
        panic!("a retry")
    };
    let expected = (Some(step_name("app")), FailureClass::Infrastructure, 2, 1);
    assert_eq!((step.clone(), *class, *used, *left), expected);
    scene.pass(400);
    scene.run();
    let _ = scene.say(reread("app", OperationState::Applied, "r2"));
    assert_eq!(scene.permit("migrate"), Answer::Permitted);
}

#[test]
fn what_cannot_be_read_or_was_changed_again_by_a_later_step_is_carried_and_told_as_not_read() {
    let again = |name: &str, resource: &str| -> StepSpec { change(name, resource, RetryClass::Idempotent, None) };
    let mut scene = Scene::on(shop(Reach::Shared));
    scene.submit(
        vec![
            again("migrate", "db"),
            change("app", "app", RetryClass::Idempotent, Some("r2")),
            change("app-2", "app", RetryClass::Idempotent, Some("r3")),
            again("more", "db"),
        ],
        5,
    );
    scene.run();
    for step in ["migrate", "app"] {
        assert_eq!(scene.permit(step), Answer::Permitted);
        let _ = scene.say(ended(step, StepEnd::Applied));
    }
    assert_eq!(scene.permit("app-2"), Answer::Permitted);
    let partial = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("app-2", partial));
    let _ = scene.say(over(AttemptEnd::Failed));
    scene.pass(400);
    scene.run();
    let states = |scene: &Scene, names: &[&str]| names.iter().map(|name| carried(scene, name)).collect::<Vec<_>>();
    let not_read = carry(CarryState::NotRead);
    assert_eq!(states(&scene, &["migrate", "app"]), [not_read, not_read], "a part of app-2 may be there");
    assert_eq!(scene.permit("app-2"), Answer::Permitted);
    let _ = scene.say(ended("app-2", StepEnd::Applied));
    scene.lapse();
    scene.pass(400);
    scene.run();
    assert_eq!(states(&scene, &["migrate", "app", "app-2"]), [not_read, not_read, carry(CarryState::Due)]);
}

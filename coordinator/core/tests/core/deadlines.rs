//! Deadlines, row by row: a step's, the queue's, the deployment's. Each asks for a stop, and none ends what may have begun.

use holdfast_common::id::DeploymentId;
use holdfast_common::outcome::{AttemptEnd, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind};
use holdfast_common::report::{DeclineReason, Disposition, PermitDenial, ReportBody};
use holdfast_common::spec::{Reach, RetryClass, StepSpec, Timeouts};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::input::{Jitter, Via};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch, uncertain};
use crate::specs::*;

fn queue(millis: u64) -> Timeouts {
    Timeouts { queue: Some(Millis(millis)), deployment: None }
}

fn whole(millis: u64) -> Timeouts {
    Timeouts { queue: None, deployment: Some(Millis(millis)) }
}

/// Time passes and the agent is heard.
fn alive(scene: &mut Scene, millis: u64) {
    for _ in 0..millis / 500 {
        let (speaker, claim) = (scene.speaker(), scene.claim());
        scene.world.feed(0, &Input::Heard { speaker, claim, via: Via::Session }).expect("heard");
        scene.pass(500);
    }
}

fn cause(deployment: &Deployment) -> Option<CancelCause> {
    deployment.cancel.as_ref().map(|cancel| cancel.cause.clone())
}

#[test]
fn a_time_in_the_queue_that_is_over_cancels_on_the_spot_and_nothing_ran() {
    let (mut scene, holder, _) = uncertain();
    let steps = vec![switch(RetryClass::Unsafe)];
    let waits = scene.submit_within(steps.clone(), 1, queue(5_000)).expect("queued");
    let patient = scene.submit(steps, 1);
    let wake = next_wakeup(scene.state(), scene.world.now()).expect("its time in the queue");
    assert_eq!(wake.0, scene.world.serving + 5_000);
    scene.world.restart();
    scene.pass(4_999);
    assert!(scene.state().deployment(waits).is_some());
    scene.pass(1);
    let past = scene.ended(waits);
    assert_eq!((past.state, cause(past)), (DeploymentState::Cancelled, Some(CancelCause::QueueTimeout)));
    let end = past.ended.clone().expect("ended");
    assert!(end.never_mutated && !end.by_decision && !end.after_deadline);
    assert_eq!(end.because, "no agent took it within its time in the queue; nothing was changed");
    assert_eq!(scene.current().id, holder, "the holder is not touched");
    assert!(scene.state().deployment(patient).is_some());
    assert_eq!(scene.cancel(waits), Answer::CancelTooLate(DeploymentState::Cancelled));
}

#[test]
fn a_time_in_the_queue_goes_on_while_no_agent_takes_what_is_reserved() {
    let mut scene = Scene::on(site(Reach::Shared));
    let steps = vec![switch(RetryClass::Unsafe)];
    let first = scene.submit_within(steps.clone(), 1, queue(2_000)).expect("reserved");
    let second = scene.submit_within(steps, 1, queue(2_000)).expect("queued");
    scene.world.assign(0, &[0, 1, 2]);
    assert!(matches!(scene.current().waiting, Some(Waiting::NoEligibleAgent { .. })));
    scene.pass(2_000);
    for id in [first, second] {
        assert_eq!(cause(scene.ended(id)), Some(CancelCause::QueueTimeout));
    }
    assert!(scene.state().current.is_none() && scene.state().queue.is_empty());
}

#[test]
fn what_is_on_offer_is_not_waiting_and_what_was_declined_is() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit_within(vec![switch(RetryClass::Unsafe)], 1, queue(500)).expect("reserved");
    scene.world.assign(0, &[]);
    scene.pass(600);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Offered, "an offer is answered or lapses");
    let (speaker, claim) = (scene.speaker(), scene.claim());
    let declined = Some(DeclineReason::Busy.into());
    scene.world.feed(0, &Input::OfferAnswered { speaker, claim, declined, jitter: Jitter(0) }).expect("heard");
    assert!(
        due(scene.state(), scene.world.now()).iter().all(|effect| !matches!(effect, Effect::Assign { .. })),
        "its time is over: nothing is offered again"
    );
    scene.pass(0);
    assert_eq!(cause(scene.ended(id)), Some(CancelCause::QueueTimeout));
}

#[test]
fn an_offer_that_is_taken_ends_the_time_in_the_queue_and_begins_the_time_at_work() {
    let mut scene = Scene::on(site(Reach::Shared));
    let both = Timeouts { queue: Some(Millis(500)), deployment: Some(Millis(5_000)) };
    let id = scene.submit_within(vec![switch(RetryClass::Idempotent)], 3, both).expect("reserved");
    scene.pass(400);
    scene.run();
    let begun = scene.world.serving;
    assert_eq!((scene.current().queue_deadline, scene.current().deadline.map(|at| at.0)), (None, Some(begun + 5_000)));
    scene.lapse();
    scene.pass(400);
    scene.run();
    assert_eq!(scene.current().id, id, "its time in the queue does not count again");
    assert_eq!(scene.current().deadline.map(|at| at.0), Some(begun + 5_000), "and its time at work goes on");
}

#[test]
fn a_deployment_over_its_deadline_is_asked_to_stop_and_a_success_is_kept_and_flagged() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit_within(vec![switch(RetryClass::Unsafe)], 3, whole(1_500)).expect("reserved");
    scene.run();
    scene.permit("switch");
    alive(&mut scene, 1_500);
    assert!(scene.current().over_deadline);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running, "over its deadline, still running");
    assert_eq!(cause(scene.current()), Some(CancelCause::DeploymentTimeout));
    let now = scene.world.now();
    assert!(due(scene.state(), now).iter().any(|effect| matches!(effect, Effect::Cancel { .. })));
    assert_eq!(scene.permit("switch"), Answer::Denied(PermitDenial::DeadlinePassed));
    let written = scene.state().sequence;
    scene.pass(0);
    assert_eq!(scene.state().sequence, written, "it is recorded once");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
    assert!(end.after_deadline && end.cancel_too_late);
    assert_eq!(
        end.because,
        "a0 reported every step as applied, after a deadline: it passed its own deadline, and the stop came too late"
    );
    assert_eq!(scene.ended(id).attempts.len(), 1);
}

#[test]
fn a_success_that_is_heard_before_anybody_looked_at_the_clock_is_flagged_too() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit_within(vec![switch(RetryClass::Unsafe)], 1, whole(500)).expect("reserved");
    scene.run();
    scene.permit("switch");
    scene.world.serving += 700;
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert!(end.after_deadline && !end.cancel_too_late);
}

#[test]
fn a_stop_that_was_observed_after_a_deadline_is_a_cancel_and_never_a_second_run() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id =
        scene.submit_within(vec![check("prepare"), switch(RetryClass::Idempotent)], 3, whole(500)).expect("reserved");
    scene.run();
    let _ = scene.say(ReportBody::StepStarted { step: step_name("prepare") });
    scene.pass(500);
    assert_eq!(scene.say(ReportBody::cancel_received()), Disposition::Accepted);
    let _ = scene.say(ended("prepare", StepEnd::Stopped { maybe_partial: false }));
    let _ = scene.say(over(AttemptEnd::Stopped));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!((scene.ended(id).state, end.never_mutated), (DeploymentState::Cancelled, true));
    assert_eq!(end.because, "it passed its own deadline, and a0 stopped; nothing was changed");
}

#[test]
fn a_deadline_that_denies_a_permit_is_recorded_with_the_denial() {
    for timeouts in [whole(500), Timeouts::default()] {
        let mut scene = Scene::on(shop(Reach::Shared));
        let app = change("app", "app", RetryClass::Idempotent, Some("r1"));
        let app = StepSpec { timeout: timeouts.deployment.is_none().then_some(Millis(500)), ..app };
        let migrate = change("migrate", "db", RetryClass::Idempotent, None);
        let id = scene.submit_within(vec![app, migrate], 3, timeouts).expect("reserved");
        scene.run();
        scene.permit("app");
        if timeouts.deployment.is_some() {
            let _ = scene.say(ended("app", StepEnd::Applied));
        }
        scene.world.serving += 500;
        let step = if timeouts.deployment.is_some() { "migrate" } else { "app" };
        assert_eq!(scene.permit(step), Answer::Denied(PermitDenial::DeadlinePassed));
        assert!(cause(scene.current()).expect("asked in the same decision").is_timeout());
        assert_eq!(scene.say(ReportBody::cancel_received()), Disposition::Accepted);
        if timeouts.deployment.is_none() {
            let _ = scene.say(ended("app", StepEnd::NotStarted));
        }
        let _ = scene.say(over(AttemptEnd::Stopped));
        assert_eq!(scene.ended(id).state, DeploymentState::Cancelled);
        assert_eq!(scene.ended(id).attempts.len(), 1);
    }
}

#[test]
fn a_deadline_between_two_attempts_ends_the_deployment_at_once() {
    let mut scene = Scene::on(site(Reach::Shared));
    let steps = vec![switch(RetryClass::Idempotent), verify("verify-1")];
    let id = scene.submit_within(steps, 3, whole(1_300)).expect("reserved");
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    scene.lapse();
    assert_eq!(scene.current().attempts[0].state, AttemptState::Interrupted);
    scene.world.assign(0, &[0]);
    scene.pass(200);
    let past = scene.ended(id);
    assert_eq!((past.state, cause(past)), (DeploymentState::Cancelled, Some(CancelCause::DeploymentTimeout)));
    let end = past.ended.clone().expect("ended");
    assert_eq!(end.because, "it passed its own deadline; applied before: switch");
}

#[test]
fn a_deadline_of_what_is_uncertain_asks_for_a_stop_and_frees_nothing() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit_within(vec![switch(RetryClass::Unsafe)], 3, whole(5_000)).expect("reserved");
    scene.run();
    scene.permit("switch");
    scene.lapse();
    scene.world.restart();
    scene.pass(5_000);
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    assert!(scene.current().over_deadline);
    let now = scene.world.now();
    assert!(due(scene.state(), now).iter().any(|effect| matches!(effect, Effect::Cancel { .. })));
    scene.attest(id, AttestedTarget::NotApplied);
    assert!(scene.list().why_not(DecisionKind::Retry).is_some(), "a stop was asked for");
    assert_eq!(scene.decide(DecisionKind::AcceptCancelled), Ok(Answer::Decided(DeploymentState::Cancelled)));
}

#[test]
fn a_person_who_asks_after_a_deadline_did_is_shown_as_who_asked() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id: DeploymentId = scene.submit_within(vec![switch(RetryClass::Unsafe)], 1, whole(500)).expect("reserved");
    scene.run();
    scene.permit("switch");
    scene.pass(500);
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    assert_eq!(cause(scene.current()), Some(CancelCause::Operator { by: anna() }));
    assert!(scene.current().over_deadline, "what was seen stays seen");
    assert_eq!(scene.permit("switch"), Answer::Denied(PermitDenial::CancelRecorded));
}

#[test]
fn a_deadline_after_a_person_asked_leaves_the_request_as_it_is() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit_within(vec![switch(RetryClass::Unsafe)], 1, whole(500)).expect("reserved");
    scene.run();
    scene.permit("switch");
    scene.cancel(id);
    scene.pass(500);
    assert!(scene.current().over_deadline);
    assert_eq!(cause(scene.current()), Some(CancelCause::Operator { by: anna() }));
}

#[test]
fn deadlines_are_counted_while_a_coordinator_serves_and_lost_by_no_restart() {
    let mut scene = Scene::on(site(Reach::Shared));
    let step = StepSpec { timeout: Some(Millis(2_000)), ..switch(RetryClass::Unsafe) };
    scene.submit_within(vec![step], 1, whole(3_000)).expect("reserved");
    scene.run();
    scene.permit("switch");
    alive(&mut scene, 1_500);
    scene.world.restart();
    alive(&mut scene, 500);
    assert!(scene.current().attempts[0].steps[0].over_deadline && !scene.current().over_deadline);
    scene.world.restart();
    alive(&mut scene, 1_000);
    assert!(scene.current().over_deadline);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running);
}

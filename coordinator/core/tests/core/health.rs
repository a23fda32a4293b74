//! Health checks, row by row: what each end of a check makes of its deployment.

use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind};
use holdfast_common::report::{Disposition, FiledReason, PermitDenial, ReportBody};
use holdfast_common::spec::{Reach, RetryClass};
use holdfast_coordinator_core::input::Via;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch};
use crate::retries::reread;
use crate::specs::*;

const NOT_HEALTHY: StepEnd = StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent };
const STOPPED: StepEnd = StepEnd::Stopped { maybe_partial: false };

/// The change is applied, and its first check has begun.
fn checking(tries: u32) -> (Scene, holdfast_common::id::DeploymentId) {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe), verify("verify-1"), verify("verify-2")], tries);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.say(ended("switch", StepEnd::Applied)), Disposition::Accepted);
    assert_eq!(scene.say(ReportBody::StepStarted { step: step_name("verify-1") }), Disposition::Accepted);
    (scene, id)
}

fn recorded(scene: &Scene) -> &ResourceKnowledge {
    &scene.state().resources[&resource_name("site")]
}

#[test]
fn success_needs_every_check_to_have_held() {
    let (mut scene, id) = checking(1);
    let early = Disposition::Filed(FiledReason::StepOutOfOrder);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), early, "no check has held yet");
    let _ = scene.say(ended("verify-1", StepEnd::Applied));
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), early, "the second check has not held yet");
    let _ = scene.say(ended("verify-2", StepEnd::Applied));
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
    assert!(!end.not_healthy && !end.after_deadline);
    assert_eq!(end.because, "a0 reported every step as applied, and that all 2 checks held");
}

#[test]
fn a_failed_check_is_applied_and_not_healthy_with_its_revision_recorded() {
    let (mut scene, id) = checking(3);
    let _ = scene.say(ended("verify-1", NOT_HEALTHY));
    assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!((scene.ended(id).state, end.not_healthy), (DeploymentState::Failed, true));
    assert_eq!(end.because, "applied, not healthy: check verify-1 did not hold on a0");
    assert!(!end.never_mutated && !end.by_decision);
    let ResourceKnowledge::Revision { revision: Some(known), .. } = recorded(&scene) else {
        panic!("{:?}", recorded(&scene))
    };
    assert_eq!(known, &revision("r1"), "nothing is applied in part");
    assert_eq!(scene.ended(id).attempts.len(), 1, "another try would see the same");
}

#[test]
fn a_transient_failure_of_a_check_is_not_tried_again_either() {
    let (mut scene, id) = checking(3);
    let transient = StepEnd::Failed { maybe_partial: false, class: FailureClass::Transient };
    let _ = scene.say(ended("verify-1", transient));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert!(scene.ended(id).ended.as_ref().expect("ended").not_healthy);
}

#[test]
fn contact_lost_while_checking_is_an_interruption_and_the_checks_run_again_where_the_change_was_made() {
    let (mut scene, id) = checking(3);
    let _ = scene.say(ended("verify-1", StepEnd::Applied));
    scene.lapse();
    assert_eq!(scene.current().attempts[0].state, AttemptState::Interrupted);
    assert_eq!(scene.current().state, DeploymentState::Active);
    scene.pass(400);
    scene.world.assign(0, &[0]);
    let Some(Waiting::NoEligibleAgent { agents }) = &scene.current().waiting else { panic!("{:?}", scene.current()) };
    assert!(agents[&agent_name(1)].contains("belong on a0"), "{agents:?}");
    scene.run();
    let second = &scene.current().attempts[1];
    assert_eq!(second.agent, agent_name(0));
    let states: Vec<StepState> = second.steps.iter().map(|step| step.state).collect();
    let again = [StepState::Carried { carry: CarryState::Due }, StepState::Pending, StepState::Pending];
    assert_eq!(states, again, "a check that held before is not carried");
    assert_eq!(scene.say(reread("switch", OperationState::Applied, "r1")), Disposition::Accepted);
    for check in ["verify-1", "verify-2"] {
        assert_eq!(scene.say(ended(check, StepEnd::Applied)), Disposition::Accepted);
    }
    let _ = scene.say(over(AttemptEnd::Succeeded));
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
}

#[test]
fn a_change_that_is_still_to_be_made_decides_where_the_checks_run() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Idempotent), verify("verify-1")], 3);
    scene.run();
    scene.lapse();
    scene.pass(400);
    scene.run();
    assert_eq!(scene.current().attempts[1].agent, agent_name(1), "nothing was made on the first one");
}

#[test]
fn a_check_that_the_agent_stopped_by_itself_says_nothing_and_runs_again() {
    let (mut scene, id) = checking(2);
    let _ = scene.say(ended("verify-1", STOPPED));
    assert_eq!(scene.say(over(AttemptEnd::Stopped)), Disposition::Accepted);
    assert_eq!(scene.current().state, DeploymentState::Active, "its own count of the lease had run out");
    scene.pass(400);
    scene.run();
    let _ = scene.say(ended("verify-1", STOPPED));
    let _ = scene.say(over(AttemptEnd::Stopped));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!((scene.ended(id).state, end.not_healthy), (DeploymentState::Failed, false));
    assert_eq!(end.because, "applied, health not known: step verify-1 did not end well on a0; all 2 tries are used up");
}

#[test]
fn a_check_whose_machinery_failed_says_nothing_and_runs_again() {
    let (mut scene, _) = checking(2);
    let machinery = StepEnd::Failed { maybe_partial: false, class: FailureClass::Infrastructure };
    let _ = scene.say(ended("verify-1", machinery));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(scene.current().state, DeploymentState::Active);
}

#[test]
fn a_check_needs_no_permit_and_gets_none() {
    let (mut scene, _) = checking(1);
    assert_eq!(scene.permit("verify-1"), Answer::Denied(PermitDenial::NoSuchMutation));
    assert!(scene.current().attempts[0].open_permit().is_none());
}

#[test]
fn a_cancel_while_checking_is_a_cancel_that_names_what_was_applied() {
    let (mut scene, id) = checking(1);
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    let _ = scene.say(ended("verify-1", STOPPED));
    let _ = scene.say(over(AttemptEnd::Stopped));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!((scene.ended(id).state, end.not_healthy), (DeploymentState::Cancelled, false));
    assert_eq!(end.because, "anna asked for a stop, and a0 stopped; applied before: switch");
}

#[test]
fn a_check_that_does_not_keep_its_own_time_is_stopped_and_not_healthy() {
    let (mut scene, id) = checking(1);
    // As long as it may take, and five seconds more.
    for _ in 0..11 {
        let (speaker, claim) = (scene.speaker(), scene.claim());
        scene.world.feed(0, &Input::Heard { speaker, claim, via: Via::Session }).expect("heard");
        scene.pass(550);
    }
    assert!(scene.current().attempts[0].steps[1].over_deadline);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running, "a deadline ends nothing");
    let cause = scene.current().cancel.as_ref().map(|cancel| cancel.cause.clone());
    assert_eq!(cause, Some(CancelCause::Timeout { step: step_name("verify-1") }));
    let _ = scene.say(ended("verify-1", STOPPED));
    let _ = scene.say(over(AttemptEnd::Stopped));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert_eq!((scene.ended(id).state, end.not_healthy), (DeploymentState::Failed, true));
}

#[test]
fn accepting_a_success_needs_the_checks_observed_or_attested() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe), verify("verify-1")], 3);
    scene.run();
    scene.permit("switch");
    scene.lapse();
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::Applied);
    let list = scene.list();
    let why_not = list.why_not(DecisionKind::AcceptSucceeded).expect("nobody has seen it healthy");
    assert!(why_not.contains("verify-1"), "{why_not}");
    assert_eq!(list.why_not(DecisionKind::Retry), None);
    scene.attest(id, AttestedTarget::Applied);
    assert_eq!(scene.list().why_not(DecisionKind::AcceptSucceeded), None);
    scene.decide(DecisionKind::Retry).expect("open");
    scene.world.assign(0, &[0]);
    assert_eq!(scene.current().attempts[1].agent, agent_name(1), "the first one was found out, and anybody may look");
    assert_eq!(scene.current().attempts[1].steps[0].state, StepState::Carried { carry: CarryState::Due });
    assert_eq!(scene.say(reread("switch", OperationState::Applied, "r1")), Disposition::Accepted);
    let _ = scene.say(ended("verify-1", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
}

#[test]
fn a_check_without_a_change_that_fails_is_a_plain_failure() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![check("look"), verify("verify-1")], 1);
    scene.run();
    let _ = scene.say(ended("look", StepEnd::Applied));
    let _ = scene.say(ended("verify-1", NOT_HEALTHY));
    let _ = scene.say(over(AttemptEnd::Failed));
    let end = scene.ended(id).ended.clone().expect("ended");
    assert!(end.never_mutated && !end.not_healthy);
    assert_eq!(end.because, "step verify-1 failed on a0; nothing was changed");
}

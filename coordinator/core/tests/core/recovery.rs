//! What an operator or the policy may decide after contact was lost, and what follows: exact decisions.

use holdfast_common::claim::Claim;
use holdfast_common::id::DeploymentId;
use holdfast_common::outcome::{AttemptEnd, OperationState, StepEnd};
use holdfast_common::recovery::{AttestedRunner, AttestedTarget, DecisionKind, Policy, Runner};
use holdfast_common::report::*;
use holdfast_common::spec::{Reach, RetryClass, TargetSpec};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::input::*;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch};
use crate::specs::*;

const PATIENCE: u64 = 5_000;

fn with_policy(mut spec: TargetSpec, policy: Policy) -> TargetSpec {
    spec.policy = policy;
    spec.patience = (policy != Policy::Manual).then_some(Millis(PATIENCE));
    spec
}

/// A step was permitted and begun, and nothing was heard since.
pub(crate) fn lost(spec: TargetSpec, step: holdfast_common::spec::StepSpec) -> (Scene, DeploymentId, Claim) {
    let mut scene = Scene::on(spec);
    let name = step.name.to_string();
    let id = scene.submit(vec![step], 3);
    let claim = scene.run();
    assert_eq!(scene.permit(&name), Answer::Permitted);
    assert_eq!(scene.say(ReportBody::StepStarted { step: step_name(&name) }), Disposition::Accepted);
    scene.lapse();
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    (scene, id, claim)
}

pub(crate) fn lost_site(policy: Policy) -> (Scene, DeploymentId, Claim) {
    lost(with_policy(site(Reach::Shared), policy), switch(RetryClass::Unsafe))
}

/// A command that nobody can read, and whose effect may outlive it.
pub(crate) fn lost_migration(policy: Policy) -> (Scene, DeploymentId, Claim) {
    lost(with_policy(shop(Reach::Shared), policy), change("migrate", "db", RetryClass::Unsafe, None))
}

pub(crate) fn journal(scene: &mut Scene, claim: Claim, runner: Runner) {
    let (speaker, evidence) = (scene.speaker(), scene.world.draw_evidence());
    let input = Input::JournalSpoke { speaker, claim, runner, detail: String::new(), evidence };
    scene.world.feed(0, &input).expect("never refused");
}

fn accept_offer(scene: &mut Scene, declined: Option<DeclineReason>) -> Answer {
    let (speaker, claim) = (scene.speaker(), scene.claim());
    let input = Input::OfferAnswered { speaker, claim, declined: declined.map(Into::into), jitter: Jitter(0) };
    scene.world.feed(0, &input).expect("never refused")
}

/// Lets the policy do what is due.
fn recover(scene: &mut Scene) {
    scene.world.recover(0);
}

fn due_recover(scene: &Scene) -> bool {
    due(scene.state(), scene.world.now()).iter().any(|effect| matches!(effect, Effect::Recover { .. }))
}

#[test]
fn a_running_process_is_readmitted_only_on_its_own_journals_word() {
    let (mut scene, _, claim) = lost_site(Policy::Manual);
    let why = |scene: &Scene| scene.list().why_not(DecisionKind::Readmit).map(str::to_owned);
    assert!(why(&scene).expect("not open").contains("has not come back"));
    journal(&mut scene, claim, Runner::StillRunning);
    assert_eq!(why(&scene), None);
    scene.decide(DecisionKind::Readmit).expect("open");
    let current = scene.current();
    assert_eq!(current.state, DeploymentState::Active);
    assert_eq!(current.attempts[0].state, AttemptState::Resolved);
    assert_eq!(current.attempts[1].readmits, Some(current.attempts[0].id));
    assert!(current.attempts[1].fence > current.attempts[0].fence);
    assert_eq!(current.attempts[1].open_permit().map(|run| run.state), Some(StepState::Started));
    assert!(matches!(accept_offer(&mut scene, None), Answer::Renewed { .. }));
    assert_eq!(scene.say(ended("switch", StepEnd::Applied)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    assert!(scene.state().current.is_none());
}

#[test]
fn what_is_told_under_the_old_claim_after_a_readmission_is_evidence_and_ends_nothing() {
    let (mut scene, _, old) = lost_site(Policy::Manual);
    let speaker = scene.speaker();
    journal(&mut scene, old, Runner::StillRunning);
    scene.decide(DecisionKind::Readmit).expect("open");
    let answer = scene.say_as(&speaker, old, ended("switch", StepEnd::Applied));
    assert!(matches!(answer, Disposition::Filed(_)), "{answer:?}");
    assert_eq!(scene.current().state, DeploymentState::Active);
    // The same end again, under the new claim, counts.
    accept_offer(&mut scene, None);
    assert_eq!(scene.say(ended("switch", StepEnd::Applied)), Disposition::Accepted);
}

#[test]
pub fn no_readmission_after_a_fence_off_an_end_or_an_attestation() {
    let (mut scene, id, claim) = lost_site(Policy::Manual);
    journal(&mut scene, claim, Runner::StillRunning);
    scene.world.fence_off(0, id).expect("asked");
    let why = scene.list().why_not(DecisionKind::Readmit).map(str::to_owned).expect("not open");
    assert!(why.contains("a fence above its own"), "{why}");
    drop(scene);

    let (mut scene, _, claim) = lost_migration(Policy::Manual);
    journal(&mut scene, claim, Runner::StillRunning);
    let speaker = scene.speaker();
    let _filed = scene.say_as(&speaker, claim, ended("migrate", StepEnd::Applied));
    let why = scene.list().why_not(DecisionKind::Readmit).map(str::to_owned).expect("not open");
    assert!(why.contains("says that the step ended"), "{why}");
    drop(scene);

    let (mut scene, id, claim) = lost_migration(Policy::Manual);
    journal(&mut scene, claim, Runner::StillRunning);
    scene.attest(id, AttestedTarget::NotApplied);
    assert!(scene.list().why_not(DecisionKind::Readmit).is_some());
}

/// What was said of a process that ran counts no longer than the process: whoever went there may then say that it stopped.
#[test]
fn still_running_counts_until_the_journal_tells_an_end_and_a_person_may_then_attest_the_stop() {
    for end in [StepEnd::Applied, StepEnd::Stopped { maybe_partial: true }, StepEnd::Unknown] {
        let (mut scene, id, claim) = lost_migration(Policy::Manual);
        journal(&mut scene, claim, Runner::StillRunning);
        scene.attest_runner(id, AttestedRunner::Stopped, AttestedTarget::Applied);
        assert_eq!(scene.list().runner, Runner::StillRunning, "nobody attests against its own word");
        let speaker = scene.speaker();
        let _filed = scene.say_as(&speaker, claim, ended("migrate", end));
        assert_eq!(scene.list().runner, Runner::Unknown, "{end:?}: what it started may outlive it");
        // Between two steps the attempt still runs, as its journal sees it.
        journal(&mut scene, claim, Runner::StillRunning);
        assert_eq!(scene.list().runner, Runner::Unknown, "{end:?}");
        scene.attest_runner(id, AttestedRunner::Stopped, AttestedTarget::Applied);
        assert_eq!(scene.list().runner, Runner::Stopped, "{end:?}");
        scene.decide(DecisionKind::AcceptSucceeded).expect("open");
    }
    for word in [Runner::Stopped, Runner::Unknown] {
        let (mut scene, id, claim) = lost_migration(Policy::Manual);
        journal(&mut scene, claim, Runner::StillRunning);
        journal(&mut scene, claim, word);
        assert_eq!(scene.list().runner, Runner::Unknown, "{word:?}");
        scene.attest_runner(id, AttestedRunner::Stopped, AttestedTarget::Applied);
        assert_eq!(scene.list().runner, Runner::Stopped, "{word:?}");
        journal(&mut scene, claim, word);
        assert_eq!(scene.list().runner, Runner::Stopped, "{word:?}: what is proven or attested stays so");
    }
}

#[test]
fn a_readmission_that_is_declined_or_not_answered_is_uncertain_again() {
    for answered in [true, false] {
        let (mut scene, _, old) = lost_site(Policy::Manual);
        journal(&mut scene, old, Runner::StillRunning);
        scene.decide(DecisionKind::Readmit).expect("open");
        if answered {
            accept_offer(&mut scene, Some(DeclineReason::Conflict));
        } else {
            scene.lapse();
        }
        assert_eq!(scene.current().state, DeploymentState::Uncertain);
        assert_eq!(scene.list().runner, Runner::Unknown, "what was said before the decision is no news");
        journal(&mut scene, old, Runner::StillRunning);
        assert_eq!(scene.list().why_not(DecisionKind::Readmit), None, "what is said after it is");
    }
}

#[test]
fn manual_never_moves() {
    let (mut scene, ..) = lost_site(Policy::Manual);
    scene.pass(1_000_000);
    assert!(!due_recover(&scene));
    recover(&mut scene);
    assert!(scene.current().inquiries.is_empty());
}

#[test]
fn when_proven_waits_for_its_patience_then_fences_off_reads_and_retries_where_nothing_was_applied() {
    let (mut scene, _, old) = lost_site(Policy::WhenProven);
    scene.pass(PATIENCE - 1);
    assert!(!due_recover(&scene), "the patience is not over");
    scene.pass(1);
    assert!(due_recover(&scene));
    recover(&mut scene);
    let inquiry = scene.current().inquiries[0].clone();
    assert!(matches!(inquiry.kind, InquiryKind::FenceOff { fence } if fence > old.fence));
    assert!(!due_recover(&scene), "an answer is awaited");
    scene.answer(inquiry.id, true, OperationState::NotApplied);
    assert!(due_recover(&scene));
    recover(&mut scene);
    let record = scene.current().decisions[0].clone();
    assert_eq!((record.by.as_str(), record.kind), ("policy", DecisionKind::Retry));
    assert_eq!((record.runner, record.target), (Runner::FencedOff, OperationState::NotApplied));
    assert!(!record.evidence.is_empty() && !record.attested && !record.trusted);
    assert_eq!(scene.current().state, DeploymentState::Active);
    let claim = scene.run();
    assert!(claim.fence > old.fence);
}

#[test]
fn when_proven_accepts_a_success_that_was_read_and_a_cancel_where_one_is_recorded() {
    for cancelled in [false, true] {
        let (mut scene, id, _) = lost_site(Policy::WhenProven);
        if cancelled {
            assert_eq!(scene.cancel(id), Answer::CancelRecorded);
        }
        scene.pass(PATIENCE);
        recover(&mut scene);
        let inquiry = scene.current().inquiries[0].id;
        scene.answer(inquiry, true, OperationState::Applied);
        recover(&mut scene);
        let end = if cancelled { DeploymentState::Cancelled } else { DeploymentState::Succeeded };
        assert_eq!(scene.ended(id).state, end);
        assert!(scene.ended(id).ended.as_ref().expect("ended").by_decision);
    }
}

#[test]
fn when_proven_leaves_to_a_person_what_it_cannot_prove() {
    // A command that can't be read, whose agent came back with a report: no proof.
    let (mut scene, _, claim) = lost_migration(Policy::WhenProven);
    let speaker = scene.speaker();
    let _filed = scene.say_as(&speaker, claim, ended("migrate", StepEnd::Applied));
    scene.pass(PATIENCE * 100);
    assert!(!due_recover(&scene));
    // An attested reading is a person's: the policy does not decide on it.
    let (mut scene, id, _) = lost_site(Policy::WhenProven);
    scene.attest(id, AttestedTarget::NotApplied);
    scene.pass(PATIENCE * 100);
    assert!(!due_recover(&scene));
    // In part, and not safe to repeat.
    let (mut scene, ..) = lost_site(Policy::WhenProven);
    scene.pass(PATIENCE);
    recover(&mut scene);
    let inquiry = scene.current().inquiries[0].id;
    scene.answer(inquiry, true, OperationState::Partial);
    assert!(!due_recover(&scene));
}

#[test]
fn a_person_who_asks_ends_the_patience() {
    let (mut scene, ..) = lost_site(Policy::WhenProven);
    let inquiry = scene.inquiry(true);
    scene.answer(inquiry, true, OperationState::NotApplied);
    assert!(due_recover(&scene), "nobody needs to wait any longer");
}

#[test]
fn an_inquiry_that_brought_nothing_is_made_again_later_and_not_at_once() {
    let (mut scene, ..) = lost_site(Policy::WhenProven);
    scene.pass(PATIENCE);
    scene.world.agents.iter_mut().for_each(|agent| agent.up = false);
    recover(&mut scene);
    assert!(scene.current().inquiries.is_empty(), "nobody reaches the resource");
    assert!(!due_recover(&scene));
    let wake = next_wakeup(scene.state(), scene.world.now()).expect("it tries again");
    scene.world.agents.iter_mut().for_each(|agent| agent.up = true);
    scene.world.serving = wake.0;
    assert!(due_recover(&scene));
    recover(&mut scene);
    assert_eq!(scene.current().inquiries.len(), 1);
}

#[test]
fn trust_report_takes_the_word_of_the_same_journal_as_long_as_no_fence_was_allocated() {
    let (mut scene, id, claim) = lost_migration(Policy::TrustReport);
    let speaker = scene.speaker();
    let stranger = Speaker { incarnation: incarnation_id(77), ..speaker.clone() };
    let evidence = scene.world.draw_evidence();
    let report = Report {
        sequence: ReportSequence(900),
        said_at: holdfast_common::time::Wall(1),
        body: ended("migrate", StepEnd::Applied),
    };
    let input =
        Input::Reported { speaker: stranger, claim, report, memory: Memory::default(), evidence, jitter: Jitter(0) };
    let _filed = scene.world.feed(0, &input).expect("never refused");
    assert!(!due_recover(&scene), "another journal's word is not taken");
    let _filed = scene.say_as(&speaker, claim, ended("migrate", StepEnd::Applied));
    assert!(due_recover(&scene), "its own is, at once");
    recover(&mut scene);
    let record = &scene.ended(id).decisions[0];
    assert_eq!((record.by.as_str(), record.kind), ("policy", DecisionKind::AcceptSucceeded));
    assert!(record.trusted && record.reason.contains("its agent's own report"), "{record:?}");
}

#[test]
fn the_stricter_of_target_and_deployment_decides() {
    let state = |policy| {
        let scene = Scene::on(with_policy(site(Reach::Shared), policy));
        scene.state().clone()
    };
    for (of_target, of_deployment, effective) in [
        (Policy::WhenProven, None, Policy::WhenProven),
        (Policy::WhenProven, Some(Policy::Manual), Policy::Manual),
        (Policy::Manual, Some(Policy::TrustReport), Policy::Manual),
        (Policy::TrustReport, Some(Policy::WhenProven), Policy::WhenProven),
    ] {
        let state = state(of_target);
        let mut spec = deployment(&state.spec, vec![switch(RetryClass::Unsafe)], 1);
        spec.policy = of_deployment;
        assert_eq!(policy::effective(&state, &spec), effective);
    }
}

#[test]
fn what_a_decision_rests_on_and_leads_to_is_told_as_it_is() {
    let mut scene = Scene::on(with_policy(site(Reach::Shared), Policy::WhenProven));
    scene.submit(vec![switch(RetryClass::Idempotent), verify("healthy")], 3);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    scene.lapse();
    let id = scene.current().id;
    assert!(scene.list().who_can_act[0].contains("the target's policy by itself"), "{:?}", scene.list().who_can_act);
    scene.attest(id, AttestedTarget::Partial);
    let list = scene.list();
    let readmit = list.why_not(DecisionKind::Readmit).expect("the runner is out").to_owned();
    assert!(readmit.contains("anna attests") && !readmit.contains("journal"), "{readmit}");
    let leads_to = |list: &Checklist, kind| {
        list.decisions.iter().find(|decision| decision.kind == kind).expect("every kind is listed").leads_to.clone()
    };
    assert!(leads_to(&list, DecisionKind::AcceptFailed).contains("the revision is unknown then"));
    scene.attest(id, AttestedTarget::Applied);
    let list = scene.list();
    assert_eq!(leads_to(&list, DecisionKind::AcceptFailed), "failed");
    assert_eq!(
        leads_to(&list, DecisionKind::AcceptSucceeded),
        "succeeded, although step healthy after the change was never seen to end well"
    );
    scene.decide(DecisionKind::AcceptFailed).expect("attested");
    let ended = scene.ended(id).ended.clone().expect("it ended");
    assert_eq!(ended.because, "anna decided on a person's attestation");
}

#[test]
fn what_was_applied_and_replaced_since_is_not_told_as_applied() {
    let (mut scene, id, _) = crate::decisions::uncertain();
    let raise = scene.inquiry(true);
    let asked = scene.current().inquiries[0].clone();
    let reading = holdfast_common::outcome::Reading {
        resource_identity: "one".into(),
        state: OperationState::Applied,
        revision: Some(revision("by-hand")),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: "applied and since replaced".into(),
    };
    let speaker = Speaker { agent: asked.agent, incarnation: incarnation_id(0) };
    let (evidence, finding) = (scene.world.draw_evidence(), Finding::Raised { reading });
    let answer = Input::InquiryAnswered { speaker, inquiry: raise, finding, evidence };
    scene.world.feed(0, &answer).expect("never refused");
    let list = scene.list();
    assert_eq!(list.steps[0].state, OperationState::Partial, "{:?}", list.steps[0]);
    assert!(list.why_not(DecisionKind::AcceptSucceeded).is_some() && list.why_not(DecisionKind::Retry).is_some());
    scene.decide(DecisionKind::AcceptFailed).expect("known to be in part");
    assert_eq!(scene.ended(id).state, DeploymentState::Failed);
    assert!(matches!(scene.state().resources[&resource_name("site")], ResourceKnowledge::Unknown { .. }));
}

#[test]
fn the_policy_is_named_only_as_long_as_something_can_be_proven_without_a_person() {
    let names_policy = |resource, end: Option<StepEnd>| {
        let step = change("change", resource, RetryClass::Unsafe, Some("v2"));
        let (scene, _, _) = lost(with_policy(shop(Reach::Shared), Policy::WhenProven), step);
        let mut state = scene.state().clone();
        let current = state.current.as_mut().expect("held");
        let run = &mut current.attempts.last_mut().expect("one").steps[0];
        run.state = end.map_or(run.state, StepState::Ended);
        let who = open_decisions::who_can_act(&state, state.current.as_ref().expect("held"));
        who.iter().any(|one| one.contains("the target's policy by itself"))
    };
    assert!(names_policy("db", None), "its agent may still tell");
    assert!(!names_policy("db", Some(StepEnd::Unknown)), "its agent can't tell, and nobody can look");
    assert!(names_policy("app", Some(StepEnd::Unknown)), "a look may tell");
}

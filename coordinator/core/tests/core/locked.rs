//! The word of a locked journal: it proves nothing, and what is recorded says why.

use holdfast_common::outcome::{OperationState, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind, Policy, Runner};
use holdfast_common::report::{Disposition, ReportBody};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended};
use crate::recovery::{journal, lost_migration, lost_site};
use crate::specs::*;

fn lock(scene: &mut Scene) {
    let (speaker, evidence) = (scene.speaker(), scene.world.draw_evidence());
    let because = "an older journal".to_owned();
    let input = Input::IdentityLocked { agent: speaker.agent, incarnation: speaker.incarnation, because, evidence };
    assert_eq!(scene.world.feed(0, &input), Ok(Answer::Done));
}

fn unlock(scene: &mut Scene) {
    let (speaker, evidence) = (scene.speaker(), scene.world.draw_evidence());
    let (agent, incarnation) = (speaker.agent, speaker.incarnation);
    let input = Input::IdentityUnlocked { agent, incarnation, by: anna(), evidence };
    assert_eq!(scene.world.feed(0, &input), Ok(Answer::Done));
}

fn tombstone() -> ReportBody {
    ended("switch", StepEnd::NotStarted)
}

fn bodies(scene: &Scene) -> Vec<&EvidenceBody> {
    scene.current().evidence.iter().map(|evidence| &evidence.body).collect()
}

#[test]
fn a_tombstone_of_a_locked_journal_is_no_proof_and_the_checklist_says_why() {
    for late_lock in [false, true] {
        let (mut scene, _, claim) = lost_site(Policy::Manual);
        let speaker = scene.speaker();
        if !late_lock {
            lock(&mut scene);
        }
        assert!(matches!(scene.say_as(&speaker, claim, tombstone()), Disposition::Filed(_)));
        if late_lock {
            assert_eq!(scene.list().runner, Runner::Stopped, "a word as any, before a copy was seen");
            lock(&mut scene);
        }
        let list = scene.list();
        assert_eq!((list.runner, list.steps[0].state), (Runner::Unknown, OperationState::Unknown));
        for said in ["what its journal reported proves nothing", "is locked", "an older journal was seen"] {
            assert!(list.runner_because.contains(said), "{}", list.runner_because);
        }
        for kind in [DecisionKind::Retry, DecisionKind::AcceptFailed, DecisionKind::Readmit] {
            assert!(list.why_not(kind).is_some(), "{kind:?}");
        }
    }
}

#[test]
fn what_an_unlocked_journal_says_again_counts_and_what_it_said_before_does_not() {
    let (mut scene, _, claim) = lost_site(Policy::Manual);
    journal(&mut scene, claim, Runner::StillRunning);
    assert_eq!(scene.list().why_not(DecisionKind::Readmit), None);
    lock(&mut scene);
    assert_eq!(scene.list().runner, Runner::Unknown);
    journal(&mut scene, claim, Runner::StillRunning);
    assert!(scene.list().why_not(DecisionKind::Readmit).is_some());
    unlock(&mut scene);
    let list = scene.list();
    assert_eq!(list.runner, Runner::Unknown);
    assert!(list.runner_because.contains("before the identity of"), "{}", list.runner_because);
    // The same word again is kept once more, and counts.
    journal(&mut scene, claim, Runner::StillRunning);
    assert_eq!(scene.list().runner, Runner::StillRunning);
    assert_eq!(scene.list().why_not(DecisionKind::Readmit), None);
}

#[test]
fn a_policy_that_trusts_reports_does_not_trust_a_locked_journals() {
    let (mut scene, _, claim) = lost_migration(Policy::TrustReport);
    let speaker = scene.speaker();
    lock(&mut scene);
    let _filed = scene.say_as(&speaker, claim, ended("migrate", StepEnd::Applied));
    let list = scene.list();
    assert_eq!((list.runner, list.trusted), (Runner::Unknown, false));
    scene.world.recover(0);
    assert_eq!(scene.current().state, DeploymentState::Uncertain, "it waits for a person");
}

#[test]
fn a_reading_that_was_asked_for_on_a_locked_journals_word_is_asked_for_again() {
    for answered_first in [false, true] {
        let (mut scene, _, claim) = lost_site(Policy::Manual);
        let speaker = scene.speaker();
        let _filed = scene.say_as(&speaker, claim, tombstone());
        let inquiry = scene.inquiry(false);
        if answered_first {
            scene.answer(inquiry, false, OperationState::NotApplied);
            lock(&mut scene);
        } else {
            lock(&mut scene);
            scene.answer(inquiry, false, OperationState::NotApplied);
        }
        // Somebody else proves the runner out: the old reading is still from when it may have been at work.
        scene.world.fence_off(0, scene.current().id).expect("asked");
        let raise = scene.current().inquiries.last().expect("open").id;
        assert_eq!(scene.list().steps[0].state, OperationState::Unknown);
        scene.answer(raise, true, OperationState::Applied);
        let known = |scene: &Scene| (scene.list().runner, scene.list().steps[0].state);
        assert_eq!(
            known(&scene),
            (Runner::FencedOff, OperationState::Applied),
            "through another agent, and after the raise"
        );
        unlock(&mut scene);
        assert_eq!(known(&scene), (Runner::FencedOff, OperationState::Applied), "no word was behind it");
    }
}

#[test]
fn a_raise_through_the_locked_agent_itself_is_no_proof() {
    let spec = site(holdfast_common::spec::Reach::Host);
    let (mut scene, ..) =
        crate::recovery::lost(spec, crate::decisions::switch(holdfast_common::spec::RetryClass::Unsafe));
    let raise = scene.inquiry(true);
    assert_eq!(scene.current().inquiries[0].agent, scene.speaker().agent, "nobody else reaches it");
    lock(&mut scene);
    scene.answer(raise, true, OperationState::NotApplied);
    let known = |scene: &Scene| (scene.list().runner, scene.list().steps[0].state);
    assert_eq!(known(&scene), (Runner::Unknown, OperationState::Unknown));
    assert!(
        scene.list().runner_because.contains("the raise through it proves nothing"),
        "{}",
        scene.list().runner_because
    );
    unlock(&mut scene);
    assert_eq!(known(&scene), (Runner::Unknown, OperationState::Unknown), "it was raised by who knows whom");
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::NotApplied);
    assert_eq!(known(&scene), (Runner::FencedOff, OperationState::NotApplied));
}

#[test]
fn a_person_may_attest_what_a_locked_journal_denies() {
    let (mut scene, id, claim) = lost_migration(Policy::Manual);
    journal(&mut scene, claim, Runner::StillRunning);
    lock(&mut scene);
    scene.attest(id, AttestedTarget::NotApplied);
    let list = scene.list();
    assert_eq!((list.runner_attested, list.runner.is_out()), (true, true));
    scene.decide(DecisionKind::AcceptFailed).expect("on the attestation");
}

#[test]
fn a_lock_is_kept_once_and_only_where_the_journal_had_a_lease() {
    let mut other = Scene::on(site(holdfast_common::spec::Reach::Shared));
    let (mut scene, ..) = lost_site(Policy::Manual);
    unlock(&mut scene);
    lock(&mut scene);
    lock(&mut scene);
    let count =
        |scene: &Scene| bodies(scene).iter().filter(|body| matches!(body, EvidenceBody::IdentityLocked { .. })).count();
    assert_eq!((count(&scene), bodies(&scene).len()), (1, 1));
    let speaker = scene.speaker();
    drop(scene);
    let evidence = other.world.draw_evidence();
    let (agent, incarnation, because) = (speaker.agent, speaker.incarnation, "a copy".to_owned());
    let input = Input::IdentityLocked { agent, incarnation, because, evidence };
    assert_eq!(other.world.feed(0, &input), Ok(Answer::Done));
    assert!(other.state().current.is_none());
}

#[test]
fn a_tombstone_of_what_its_resource_shows_as_applied_is_a_contradiction() {
    let (mut scene, _, claim) = lost_site(Policy::Manual);
    let speaker = scene.speaker();
    let inquiry = scene.inquiry(false);
    scene.answer(inquiry, false, OperationState::Applied);
    assert_eq!(contradiction(scene.state()), None, "it said nothing yet");
    let _filed = scene.say_as(&speaker, claim, tombstone());
    for (state, contradicts) in [(OperationState::NotApplied, false), (OperationState::Applied, true)] {
        let inquiry = scene.inquiry(false);
        scene.answer(inquiry, false, state);
        let found = contradiction(scene.state());
        assert_eq!(found.is_some(), contradicts, "{state:?}");
        if let Some(found) = found {
            assert_eq!((found.agent, found.incarnation), (speaker.agent.clone(), speaker.incarnation));
        }
    }
}

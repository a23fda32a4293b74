//! Order keys, and the queue of which only the newest counts.

use holdfast_common::id::{DeploymentId, ResourceName};
use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::{Attestation, AttestedRunner, AttestedTarget};
use holdfast_common::spec::{OrderKey, QueueKind, Reach, RetryClass};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch};
use crate::specs::*;

fn key(number: u64) -> OrderKey {
    OrderKey::new(number).expect("in range")
}

fn submit(scene: &mut Scene, order: Option<u64>) -> Result<DeploymentId, Refusal> {
    let mut spec = deployment(&scene.state().spec, vec![switch(RetryClass::Idempotent)], 1);
    spec.order = order.map(key);
    let number = scene.world.deployments + 1;
    let (deployment, request) = (deployment_id(number), request_id(number));
    scene.world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false })?;
    Ok(deployment)
}

/// The current deployment succeeds.
fn succeed(scene: &mut Scene) {
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
}

fn because(scene: &Scene, id: DeploymentId) -> String {
    scene.ended(id).ended.as_ref().expect("ended").because.clone()
}

#[test]
fn a_lower_order_key_than_one_that_held_the_target_is_refused() {
    let mut scene = Scene::on(site(Reach::Shared));
    submit(&mut scene, Some(10)).expect("the first key");
    let refused = submit(&mut scene, Some(9)).expect_err("lower");
    assert_eq!(refused.code().number(), 2012);
    assert_eq!(refused.to_string(), "order key 9 is lower than 10, which site@prod#1 had");
    succeed(&mut scene);
    assert!(submit(&mut scene, Some(9)).is_err(), "also when it is over");
    submit(&mut scene, Some(10)).expect("the same key may follow");
    assert_eq!(scene.state().order, Some(HighestOrder { key: key(10), number: 2 }));
    succeed(&mut scene);
    submit(&mut scene, None).expect("without a key no order is claimed");
    succeed(&mut scene);
    assert_eq!(scene.state().order, Some(HighestOrder { key: key(10), number: 2 }), "and none is changed");
}

#[test]
fn one_that_waited_ends_unchanged_when_a_higher_key_takes_the_target() {
    let mut scene = Scene::on(site(Reach::Shared));
    submit(&mut scene, None).expect("takes the target");
    let high = submit(&mut scene, Some(10)).expect("waits");
    let low = submit(&mut scene, Some(9)).expect("no higher key has held the target yet");
    let same = submit(&mut scene, Some(10)).expect("waits");
    succeed(&mut scene);
    assert_eq!(scene.current().id, high);
    assert_eq!(scene.ended(low).state, DeploymentState::Failed);
    assert_eq!(
        because(&scene, low),
        "order key 9 is lower than 10, with which site@prod#2 held the target: nothing was changed"
    );
    assert!(scene.ended(low).ended.as_ref().expect("ended").never_mutated);
    assert_eq!(scene.state().queue.front().map(|next| next.id), Some(same));
}

#[test]
fn a_key_that_only_waited_bars_nobody() {
    let mut scene = Scene::on(site(Reach::Shared));
    submit(&mut scene, None).expect("takes the target");
    let high = submit(&mut scene, Some(10)).expect("waits");
    let low = submit(&mut scene, Some(9)).expect("waits");
    assert_eq!(scene.cancel(high), Answer::CancelledAtOnce);
    succeed(&mut scene);
    assert_eq!((scene.current().id, scene.state().order.map(|order| order.key)), (low, Some(key(9))));
}

fn latest() -> Scene {
    let mut spec = site(Reach::Shared);
    spec.queue = QueueKind::Latest;
    Scene::on(spec)
}

#[test]
fn in_a_latest_queue_the_newest_takes_the_place_of_those_that_wait() {
    let mut scene = latest();
    let holder = submit(&mut scene, None).expect("takes the target");
    let second = submit(&mut scene, None).expect("waits");
    let third = submit(&mut scene, None).expect("waits");
    assert_eq!(scene.current().id, holder, "the holder is never superseded, although nothing was permitted");
    assert_eq!(scene.ended(second).state, DeploymentState::Cancelled);
    assert_eq!(because(&scene, second), "superseded by site@prod#3 while it waited: nothing was changed");
    assert!(scene.ended(second).ended.as_ref().expect("ended").never_mutated);
    assert!(scene.ended(second).cancel.is_none(), "nobody asked for a stop");
    succeed(&mut scene);
    assert_eq!(scene.current().id, third);
}

#[test]
fn in_a_latest_queue_one_that_waits_for_a_hold_is_superseded_too() {
    let mut scene = latest();
    scene.world.feed(0, &Input::Hold { by: anna(), reason: "freeze".into(), until: None }).expect("never refused");
    let first = submit(&mut scene, None).expect("waits");
    let second = submit(&mut scene, None).expect("waits");
    assert_eq!(scene.ended(first).state, DeploymentState::Cancelled);
    let state = scene.state();
    assert!(matches!(state.queue[0].waiting, Some(Waiting::Hold { .. })), "{:?}", state.queue[0].waiting);
    assert_eq!((state.queue.len(), state.queue[0].id), (1, second));
}

#[test]
fn in_a_latest_queue_nobody_takes_the_target_only_to_be_superseded() {
    let mut scene = latest();
    let failed = submit(&mut scene, None).expect("takes the target");
    scene.run();
    scene.permit("switch");
    let partial = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", partial));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(scene.ended(failed).state, DeploymentState::Failed);
    let first = submit(&mut scene, None).expect("waits for a reading");
    assert!(matches!(scene.state().queue[0].waiting, Some(Waiting::UnreadRevision { .. })));
    let Ok(Answer::InquiryOpened(inquiry)) = scene.world.inspect(0, first) else { panic!("asked") };
    let second = submit(&mut scene, None).expect("waits for a reading");
    assert_eq!(scene.ended(first).state, DeploymentState::Cancelled);
    // The answer to what the superseded one asked changes nothing.
    let reading = holdfast_common::outcome::Reading {
        resource_identity: "one".into(),
        state: OperationState::NotApplied,
        revision: Some(revision("r0")),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: String::new(),
    };
    let (speaker, evidence) = (scene.world.speaker(0, 0), scene.world.draw_evidence());
    let finding = input::Finding::Read(reading);
    scene.world.feed(0, &Input::InquiryAnswered { speaker, inquiry, finding, evidence }).expect("never refused");
    assert_eq!((scene.state().queue[0].id, scene.state().current.is_none()), (second, true));
}

#[test]
fn an_attestation_on_an_unread_revision_must_say_what_was_seen() {
    let mut scene = Scene::on(site(Reach::Shared));
    submit(&mut scene, None).expect("takes the target");
    scene.run();
    scene.permit("switch");
    let partial = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", partial));
    let _ = scene.say(over(AttemptEnd::Failed));
    let waits = submit(&mut scene, None).expect("waits for a reading");
    let mut attest = |observed: Option<&str>| {
        let attestation = Attestation {
            runner: AttestedRunner::Stopped,
            target: AttestedTarget::NotApplied,
            observed: observed.map(revision),
            how: "looked".into(),
            attachment: None,
        };
        let evidence = scene.world.draw_evidence();
        scene.world.feed(0, &Input::Attest { deployment: waits, by: anna(), attestation, evidence })
    };
    assert_eq!(attest(None), Err(Refusal::ObservedMissing { resource: resource_name("site") }));
    assert_eq!(attest(Some("r0")), Ok(Answer::Done));
    assert_eq!(scene.current().id, waits);
}

#[test]
fn a_revision_alone_is_attested_while_nobody_holds_the_target_and_the_next_deployment_expects_it() {
    let mut scene = Scene::on(site(Reach::Shared));
    let (site, elsewhere) = (resource_name("site"), resource_name("elsewhere"));
    let attest = |scene: &mut Scene, resource: &ResourceName| {
        let (resource, revision) = (resource.clone(), revision("r0"));
        scene.world.feed(0, &Input::AttestRevision { by: anna(), resource, revision, how: "looked".into() })
    };
    assert_eq!(attest(&mut scene, &site), Ok(Answer::Done), "something was there before");
    assert!(matches!(scene.state().resources[&site], ResourceKnowledge::Revision { .. }));
    let first = submit(&mut scene, None).expect("takes the target");
    scene.run();
    scene.permit("switch");
    let held = attest(&mut scene, &site);
    assert!(matches!(held, Err(Refusal::TargetHeld { holder, .. }) if holder.number == 1), "it is being changed");
    let partial = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", partial));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(scene.state().resources[&site], ResourceKnowledge::Unknown { since: first });
    let waits = submit(&mut scene, None).expect("waits for a reading");
    assert_eq!(attest(&mut scene, &elsewhere), Err(Refusal::NoSuchResource { resource: elsewhere }));
    assert_eq!(attest(&mut scene, &site), Ok(Answer::Done));
    assert_eq!((scene.current().id, scene.current().expected[&site].clone()), (waits, Some(revision("r0"))));
    assert!(scene.current().evidence.is_empty(), "nothing is said of an attempt that never was");
    let recorded = &scene.state().resources[&site];
    let ResourceKnowledge::Revision { source: Some(RevisionSource::Attested { by, how }), .. } = recorded else {
        panic!("{recorded:?}")
    };
    assert_eq!((by, how.as_str()), (&anna(), "looked"));
}

#[test]
fn the_reason_of_a_fence_off_is_on_record() {
    let (mut scene, _, _) = crate::decisions::uncertain();
    scene.inquiry(true);
    let last = scene.world.targets[0].history.last().expect("recorded").event.clone();
    let Event::InquiryOpened { reason, .. } = last else { panic!("{last:?}") };
    assert_eq!(reason, "lost");
}

//! What is told says no more than is known: whose step a look is about, what may be half done, what a stop came to.

use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::recovery::AttestedTarget;
use holdfast_common::report::{Disposition, FiledReason, ReportBody};
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{Reach, ResourceAdapter, ResourceSpec, RetryClass, StepBody, StepSpec, TargetSpec};
use holdfast_common::system::{Change, Migrate, Postgres, System};
use holdfast_coordinator_core::input::{Finding, Speaker};
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_coordinator_core::touched::last_touch;
use holdfast_coordinator_core::{Answer, Input, Refusal};

use crate::decisions::{Scene, ended, over, switch, uncertain};
use crate::specs::*;

/// The number of the deployment that may have touched the site last.
fn touched(scene: &Scene) -> Option<u64> {
    let past = scene.world.past(0);
    last_touch(past.iter().chain(&scene.state().current), &resource_name("site")).map(|(deployment, step)| {
        assert_eq!(step.name, step_name("switch"));
        deployment.number
    })
}

#[test]
fn who_waited_was_refused_or_has_a_tombstone_has_touched_nothing() {
    let mut scene = Scene::on(site(Reach::Shared));
    let refused = StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent };
    let refuse = |scene: &mut Scene| {
        scene.submit(vec![switch(RetryClass::Unsafe)], 1);
        scene.run();
        assert_eq!(scene.say(ended("switch", refused)), Disposition::Accepted, "before its permit");
        assert_eq!(scene.say(over(AttemptEnd::Failed)), Disposition::Accepted);
    };
    refuse(&mut scene);
    assert_eq!(touched(&scene), None);
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let waits = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.cancel(waits);
    assert_eq!(scene.say(ended("switch", StepEnd::Applied)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    refuse(&mut scene);
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.say(ended("switch", StepEnd::NotStarted)), Disposition::Accepted);
    assert_eq!(scene.current().number, 5);
    assert_eq!(touched(&scene), Some(2));
}

/// A schema, and a migration of it.
fn migration(transaction: bool) -> (Scene, StepSpec) {
    let postgres = Postgres { schema: "orders".into(), server: None, database: None };
    let adapter = ResourceAdapter::System(System::Postgres(postgres));
    let db = ResourceSpec { name: resource_name("db"), reach: Reach::Shared, adapter };
    let scene = Scene::on(TargetSpec { resources: vec![db], ..site(Reach::Shared) });
    let (migrations, to) = ("db".to_owned(), "0003".to_owned());
    let migrate = Migrate { archive: None, migrations, to, transaction, data: DataEffect::None };
    let step = change("migrate", "db", RetryClass::Unsafe, Some("0003"));
    (scene, StepSpec { body: StepBody::System(Change::Migrate(migrate)), ..step })
}

#[test]
fn of_a_migration_outside_of_a_transaction_the_checklist_says_what_may_be_half_done_and_how_to_look() {
    for transaction in [false, true] {
        let (mut scene, step) = migration(transaction);
        let id = scene.submit(vec![step], 1);
        scene.run();
        assert_eq!(scene.permit("migrate"), Answer::Permitted);
        scene.lapse();
        assert_eq!(scene.current().state, DeploymentState::Uncertain);
        let by_hand = scene.list().steps[0].by_hand.clone();
        let Some(by_hand) = by_hand.filter(|_| !transaction) else {
            assert!(transaction, "nothing is said");
            continue;
        };
        assert!(by_hand.half_done.contains("outside of a transaction"), "{by_hand:?}");
        assert!(by_hand.look[0].contains("schema_name = 'orders' AND done_at IS NULL"), "{by_hand:?}");
        let refused = scene.world.fence_off(0, id);
        let why = "what step migrate does at db is compared with no fence: a higher one would not stop it";
        assert_eq!(refused, Err(Refusal::CannotFenceOff { why: why.to_owned() }));
        scene.attest(id, AttestedTarget::Applied);
        assert_eq!(scene.list().steps[0].by_hand, None, "a person knows");
    }
}

#[test]
fn what_a_reading_says_of_itself_is_told_where_it_leaves_the_operation_open() {
    let (mut scene, _, _) = uncertain();
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::Applying);
    let inquiry = scene.inquiry(false);
    let agent = scene.current().inquiries[0].agent.clone();
    let reading = Reading {
        resource_identity: "one".into(),
        state: OperationState::Unknown,
        revision: Some(revision("r0")),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: "0003 was begun\nand nothing runs it".into(),
    };
    let speaker = Speaker { agent, incarnation: incarnation_id(0) };
    let evidence = scene.world.draw_evidence();
    let answer = Input::InquiryAnswered { speaker, inquiry, finding: Finding::Read(reading), evidence };
    scene.world.feed(0, &answer).expect("never refused");
    let step = &scene.list().steps[0];
    assert_eq!(step.observed, Some(revision("r0")));
    assert!(
        step.because.ends_with("after the runner was out: 0003 was begun\\nand nothing runs it"),
        "{}",
        step.because
    );
}

#[test]
fn the_revision_that_an_agent_read_where_it_could_not_tell_the_end_is_on_the_checklist() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let ReportBody::StepEnded { step, end, exit, detail, .. } = ended("switch", StepEnd::Unknown) else {
        panic!("an end is one");
    };
    let observed = Some(revision("r0"));
    assert_eq!(scene.say(ReportBody::StepEnded { step, end, exit, observed, detail }), Disposition::Accepted);
    let step = &scene.list().steps[0];
    assert_eq!((step.state, step.observed.clone()), (OperationState::Unknown, Some(revision("r0"))));
}

#[test]
fn a_stop_that_is_held_up_is_told_with_its_reason_and_claims_no_stage() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let held_up = |why: &str| ReportBody::CancelReceived { held_up: why.to_owned() };
    assert_eq!(scene.say(held_up("asked by nobody")), Disposition::Filed(FiledReason::StepOutOfOrder));
    scene.cancel(id);
    assert_eq!(scene.say(held_up("the shim stands still")), Disposition::Accepted);
    let cancel = |scene: &Scene| scene.current().cancel.clone().expect("on record");
    let told = cancel(&scene);
    assert!(told.delivered.is_some() && told.acted.is_none() && told.observed.is_none(), "{told:?}");
    assert_eq!(told.held_up.map(|held_up| held_up.why).as_deref(), Some("the shim stands still"));
    assert_eq!(scene.say(held_up("it still does")), Disposition::Accepted, "another agent process says so again");
    assert_eq!(scene.say(ReportBody::cancel_received()), Disposition::Filed(FiledReason::StepOutOfOrder));
    assert_eq!(scene.say(ReportBody::CancelActed { detail: String::new() }), Disposition::Accepted);
    assert!(cancel(&scene).acted.is_some());
    assert_eq!(scene.say(held_up("too late")), Disposition::Filed(FiledReason::StepOutOfOrder));
    assert_eq!(scene.current().state, DeploymentState::Active, "no word on a stop is an outcome");
}

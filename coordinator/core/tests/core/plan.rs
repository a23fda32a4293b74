//! Plans agree with what a submission then comes to, and say what is on record and from whom.

use holdfast_common::outcome::{AttemptEnd, StepEnd};
use holdfast_common::rollback::{DataEffect, DataRecovery, RollbackSpec, Way};
use holdfast_common::spec::{DeploymentSpec, OrderKey, QueueKind, Reach, RetryClass, StepSpec};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::Candidate;
use holdfast_coordinator_core::plan::{Entry, PinHolds, Plan, plan};
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::decisions::{Scene, ended, over, switch};
use crate::rollback::previous;
use crate::specs::*;

fn candidate(number: usize, unfit: Option<&str>) -> Candidate {
    let incarnation = Some(incarnation_id(number as u64));
    Candidate { agent: agent_name(number), incarnation, unfit: unfit.map(str::to_owned) }
}

fn spec(scene: &Scene, steps: Vec<StepSpec>) -> DeploymentSpec {
    deployment(&scene.state().spec, steps, 3)
}

fn planned(scene: &Scene, spec: &DeploymentSpec) -> Plan {
    plan(scene.state(), spec, &[candidate(0, None), candidate(1, Some("draining"))], Wall(0))
}

/// Submits what was planned, and compares.
fn holds_true(scene: &mut Scene, spec: DeploymentSpec) {
    let entry = planned(scene, &spec).entry;
    let number = scene.world.deployments + 1;
    let (deployment, request) = (deployment_id(number), request_id(number));
    let answer = scene.world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false });
    let waits = scene.state().queue.iter().find(|one| one.id == deployment).and_then(|one| one.waiting.clone());
    match (entry, answer) {
        (Entry::Refused(planned), Err(refused)) => assert_eq!(planned, refused),
        (Entry::Begins { number }, Ok(Answer::Submitted { number: then })) => {
            assert_eq!((number, waits, scene.current().id), (then, None, deployment));
        }
        (Entry::Waits { number, why, .. }, Ok(Answer::Submitted { number: then })) => {
            assert_eq!((number, Some(why)), (then, waits));
        }
        (entry, answer) => panic!("planned {entry:?}, then {answer:?}"),
    }
}

fn succeed(scene: &mut Scene) {
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
}

#[test]
fn a_plan_says_what_a_submission_then_comes_to() {
    let mut scene = Scene::on(site(Reach::Shared));
    let with_order = |scene: &Scene, order: u64| {
        let mut spec = spec(scene, vec![switch(RetryClass::Unsafe)]);
        spec.order = OrderKey::new(order);
        spec
    };
    let pinned = |scene: &Scene| {
        spec(scene, vec![StepSpec { expected_revision: Some(revision("r0")), ..switch(RetryClass::Unsafe) }])
    };
    let begins = with_order(&scene, 7);
    holds_true(&mut scene, begins);
    let (waits, passed) = (with_order(&scene, 7), with_order(&scene, 6));
    holds_true(&mut scene, waits);
    holds_true(&mut scene, passed);
    succeed(&mut scene);
    succeed(&mut scene);
    let mismatch = pinned(&scene);
    holds_true(&mut scene, mismatch);
    scene.world.feed(0, &Input::Hold { by: anna(), reason: "freeze".into(), until: None }).expect("never refused");
    let on_hold = pinned(&scene);
    holds_true(&mut scene, on_hold);
    let behind = with_order(&scene, 7);
    holds_true(&mut scene, behind);
}

#[test]
fn a_plan_changes_nothing_and_names_who_is_before_it_and_whom_it_supersedes() {
    let mut target = site(Reach::Shared);
    target.queue = QueueKind::Latest;
    let mut scene = Scene::on(target);
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    let before = scene.state().clone();
    let spec = spec(&scene, vec![switch(RetryClass::Unsafe)]);
    let Entry::Waits { number, before: first, supersedes, .. } = planned(&scene, &spec).entry else { panic!("waits") };
    let second = scene.state().label(&scene.state().queue[0]);
    assert_eq!((number, first, supersedes), (3, vec![], vec![second]));
    assert_eq!(scene.state(), &before);
}

#[test]
fn a_plan_tells_agents_revisions_pins_and_what_is_not_undone() {
    let mut scene = Scene::on(site(Reach::Shared));
    let steps = vec![
        check("fetch"),
        StepSpec { expected_revision: Some(revision("r1")), ..switch(RetryClass::Unsafe) },
        StepSpec {
            name: step_name("again"),
            expected_revision: Some(revision("r1")),
            ..change("again", "site", RetryClass::Unsafe, Some("r2"))
        },
    ];
    let with_a_way_back = |scene: &Scene, steps| DeploymentSpec { rollback: Some(previous()), ..spec(scene, steps) };
    let first = planned(&scene, &with_a_way_back(&scene, steps.clone()));
    assert_eq!(first.agents[0].why_not, None);
    assert_eq!(first.agents[1].why_not.as_deref(), Some("draining"));
    assert_eq!(first.resources[0].now, ResourceKnowledge::Never);
    assert_eq!(first.steps[1].pin, Some((revision("r1"), PinHolds::NotRecorded)));
    assert_eq!(first.not_undone.len(), 2, "nothing on record could be put back: {:?}", first.not_undone);
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    succeed(&mut scene);
    let then = planned(&scene, &with_a_way_back(&scene, steps.clone()));
    let source = RevisionSource::Deployment { number: 1, agent: Some(agent_name(0)), decided: false };
    let ResourceKnowledge::Revision { revision: now, source: from, .. } = &then.resources[0].now else {
        panic!("{:?}", then.resources)
    };
    assert_eq!((now, from), (&Some(revision("r1")), &Some(source)));
    assert_eq!(then.resources[0].wanted, Some(revision("r2")));
    assert_eq!(then.steps[0].capability, None);
    assert_eq!(then.steps[1].pin, Some((revision("r1"), PinHolds::Yes)));
    assert_eq!(then.steps[2].pin, Some((revision("r1"), PinHolds::AfterEarlierStep)));
    assert_eq!(then.not_undone, Vec::<String>::new());
    let whole = with_a_way_back(&scene, steps.clone());
    assert_eq!(then.digest, holdfast_common::spec::PlanDigest::of(&whole, &scene.state().spec));
    let none = planned(&scene, &spec(&scene, steps));
    assert!(none.not_undone[0].starts_with("any of it: the file has no [rollback]"), "{:?}", none.not_undone);
    let command = change("migrate", "site", RetryClass::Unsafe, None);
    let command =
        StepSpec { body: holdfast_common::spec::StepBody::Command { argv: vec!["migrate".into()] }, ..command };
    let with_command = planned(&scene, &with_a_way_back(&scene, vec![command.clone()]));
    assert_eq!(with_command.not_undone, ["what the command of step migrate changes: it declares no reverse"]);

    let told = |data, way, recovery| {
        let spec = spec(&scene, vec![StepSpec { data, ..command.clone() }]);
        let back = RollbackSpec { way, recovery, ..previous() };
        planned(&scene, &DeploymentSpec { rollback: Some(back), ..spec }).not_undone
    };
    let own = || Way::Steps { steps: vec![change("undo", "site", RetryClass::Unsafe, None)] };
    let elsewhere = || Way::Steps { steps: vec![change("undo", "cdn", RetryClass::Unsafe, None)] };
    let restore = || DataRecovery::Restore { tested: "on a copy".into() };
    assert_eq!(told(DataEffect::None, own(), DataRecovery::NoneNeeded), Vec::<String>::new());
    assert!(
        told(DataEffect::Expand, own(), DataRecovery::ExpandContract)[0].ends_with("the release before lives with it")
    );
    assert!(told(DataEffect::Contract, own(), DataRecovery::ExpandContract)[0].ends_with("needs none of it"));
    assert!(told(DataEffect::Destructive, own(), restore())[0].ends_with("restored as was tested: on a copy"));
    let left = told(DataEffect::None, elsewhere(), DataRecovery::NoneNeeded);
    assert_eq!(left, ["what step migrate changes: no step of the way back is on site"]);
}

#[test]
fn a_plan_begins_only_where_an_agent_can_run_it() {
    let scene = Scene::on(site(Reach::Shared));
    let spec = spec(&scene, vec![switch(RetryClass::Idempotent)]);
    let nobody = plan(scene.state(), &spec, &[candidate(0, Some("draining"))], Wall(0));
    assert!(
        matches!(&nobody.entry, Entry::Waits { why: Waiting::NoEligibleAgent { agents }, .. } if agents.len() == 1),
        "{:?}",
        nobody.entry
    );
    assert!(matches!(planned(&scene, &spec).entry, Entry::Begins { .. }));
}

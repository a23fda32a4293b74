//! An attempt that stands still at any of its calls.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::outcome::OperationState;

use super::Make;
use super::reached::Reached;
use super::scene::{Scene, named};

/// The raise comes while it stands: it is refused, or had taken effect before; and what was read stays true.
pub(crate) fn an_attempt_paused_anywhere_changes_nothing_after_a_raise(make: Make<'_>) {
    if Scene::fresh(make).enforces() != Enforce::Fence {
        return;
    }
    let mut reached = Reached::of(make);
    for call in reached.calls() {
        let what = format!("paused before {call}");
        let scene = Scene::standing(make);
        let attempt = scene.paused(&named(2), 2, call);
        reached.note(call, attempt.reached);
        let raised = scene.raised(2, 3);
        let took = scene.took(2);
        scene.judge(2, &raised, took, &what);
        let ended = attempt.thaw();
        assert_eq!(scene.took(2), took, "{what}: took effect after the raise had returned: {ended:?}");
        assert!(took || !ended.is_good(), "{what}: told as applied, and is not: {ended:?}");
        assert!(!(took && ended.is_refusal()), "{what}: told as refused, and is applied: {ended:?}");
        let after = scene.reading(2);
        assert_eq!((after.state, &after.revision), (raised.state, &raised.revision), "{what}: it was no last word");
    }
    reached.all();
}

pub(crate) fn a_look_during_the_effect_tells_no_more_than_is_there(make: Make<'_>) {
    let mut reached = Reached::of(make);
    for call in reached.calls() {
        let what = format!("paused before {call}");
        let scene = Scene::standing(make);
        let attempt = scene.paused(&named(2), 2, call);
        reached.note(call, attempt.reached);
        let took = scene.took(2);
        match (scene.inspects(), scene.read(2)) {
            (Inspect::Operation, Ok(reading)) => {
                let allowed = if took { OperationState::Applied } else { OperationState::NotApplied };
                let fits = reading.state == allowed || (attempt.reached && reading.state == OperationState::Applying);
                assert!(fits, "{what}: took effect: {took}, but it reads {reading:?}");
            }
            (Inspect::Revision, Ok(reading)) => scene.judge(2, &reading, took, &what),
            (Inspect::None, Ok(reading)) => assert_eq!(reading.state, OperationState::Unknown, "{what}: {reading:?}"),
            (Inspect::None, Err(_)) => {}
            (Inspect::Revision | Inspect::Operation, Err(why)) => panic!("{what}: can't be read: {why}"),
        }
        let ended = attempt.thaw();
        assert!(ended.is_good() && scene.took(2), "{what}: {ended:?}");
    }
    reached.all();
}

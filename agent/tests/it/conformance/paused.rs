//! An attempt that stands still at any of its calls.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::outcome::OperationState;

use super::Make;
use super::reached::Reached;
use super::scene::{Scene, named};

/// The raise comes while it stands: it is refused, or had taken effect before; and what was read stays true. Where a fence is
/// compared at the begin alone, what has begun takes effect all the same: that gap must show, and no reading hide it.
pub(crate) fn an_attempt_paused_anywhere_changes_nothing_after_a_raise(make: Make<'_>) {
    let scene = Scene::fresh(make);
    if scene.compares() != Enforce::Fence {
        return;
    }
    let mut reached = Reached::of(make);
    let gap: Vec<_> =
        reached.calls().into_iter().filter(|call| takes_effect_after_a_raise(make, call, &mut reached)).collect();
    reached.all();
    let is_declared = scene.enforces() != Enforce::Fence;
    assert_eq!(!gap.is_empty(), is_declared, "declares less than it does: nothing took effect after a raise");
}

fn takes_effect_after_a_raise(make: Make<'_>, call: &'static str, reached: &mut Reached) -> bool {
    let what = format!("paused before {call}");
    let scene = Scene::standing(make);
    let attempt = scene.paused(&named(2), 2, call);
    reached.note(call, attempt.reached);
    let raised = scene.raised(2, 3);
    let took = scene.took(2);
    let is_open = matches!(raised.state, OperationState::Applying | OperationState::Unknown);
    let may_be_open = scene.enforces() != Enforce::Fence && is_open;
    if !may_be_open {
        scene.judge(2, &raised, took, &what);
    }
    let ended = attempt.thaw();
    let took_late = scene.took(2) && !took;
    assert!(!took_late || may_be_open, "{what}: took effect after the raise had returned: {ended:?}");
    assert!(scene.took(2) || !ended.is_good(), "{what}: told as applied, and is not: {ended:?}");
    assert!(!(scene.took(2) && ended.is_refusal()), "{what}: told as refused, and is applied: {ended:?}");
    if !may_be_open {
        let after = scene.reading(2);
        assert_eq!((after.state, &after.revision), (raised.state, &raised.revision), "{what}: it was no last word");
    }
    took_late
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

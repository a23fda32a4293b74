//! What becomes of the resource itself: it can't be reached, it went back in time, it is another one.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::outcome::OperationState;

use super::Make;
use super::run::Run;
use super::scene::{Scene, named};
use crate::support::fence;

pub(crate) fn a_lost_answer_is_made_good_by_a_look(make: Make<'_>) {
    let mut scene = Scene::standing(make);
    let Some(command) = scene.subject.lose_answer(&named(2), fence(2)) else { return };
    let ended = Run::whole(command);
    assert!(!ended.is_refusal(), "told as refused, and is applied: {ended:?}");
    let reading = scene.settled(2);
    let took = scene.took(2);
    assert!(took, "its answer was to be lost after its effect: {ended:?}");
    scene.judge(2, &reading, took, "the answer was lost");
    let next = scene.apply(2, 3);
    assert!(next.is_good() && (scene.subject.repeats() || scene.times(2) == 1), "{next:?}");
}

pub(crate) fn a_resource_that_is_down_proves_nothing(make: Make<'_>) {
    let mut scene = Scene::standing(make);
    scene.subject.down();
    let ended = scene.apply(2, 2);
    assert!(!ended.is_good() && !ended.is_refusal(), "it claims what it can't know: {ended:?}");
    let read = scene.read(2);
    let says_nothing = read.as_ref().map_or(true, |reading| reading.state == OperationState::Unknown);
    assert!(says_nothing, "it can't be reached, and reads {read:?}");
    if let Some(raised) = scene.raise(2, 3) {
        assert!(raised.is_err(), "it can't be reached, and was raised: {raised:?}");
    }
    scene.subject.up();
    assert_eq!(scene.subject.underwent(), ["0001"]);
    let next = scene.apply(2, 4);
    assert!(next.is_good() && scene.times(2) == 1, "{next:?}");
}

pub(crate) fn a_resource_that_was_restored_from_a_backup_shows_it(make: Make<'_>) {
    let mut scene = Scene::standing(make);
    scene.subject.back_up();
    let ended = scene.apply(2, 2);
    assert!(ended.is_good(), "{ended:?}");
    let highest = (scene.compares() == Enforce::Fence).then(|| scene.raised(2, 5).highest_fence).flatten();
    scene.subject.restore();
    assert_eq!(scene.subject.underwent(), ["0001"], "the backup's own truth");
    if scene.inspects() != Inspect::None {
        let reading = scene.reading(2);
        scene.judge(2, &reading, false, "restored from a backup");
        if scene.compares() == Enforce::Fence {
            assert!(reading.highest_fence < highest, "it went back and does not show it: {reading:?}");
        }
    }
}

pub(crate) fn another_resource_in_its_place_has_another_identity(make: Make<'_>) {
    let mut scene = Scene::standing(make);
    let before = scene.read(1);
    scene.subject.replace();
    let after = scene.read(1);
    if !scene.subject.has_identity() {
        return;
    }
    let before = before.expect("it could be read").resource_identity;
    assert!(!before.is_empty(), "it has an identity");
    if let Ok(after) = after {
        assert_ne!(after.resource_identity, before, "another resource passes for this one");
        assert_ne!(after.state, OperationState::Applied, "{after:?}");
    }
}

pub(crate) fn an_identity_stays_the_same(make: Make<'_>) {
    let scene = Scene::standing(make);
    if !scene.subject.has_identity() {
        return;
    }
    let first = scene.reading(1).resource_identity;
    if scene.compares() == Enforce::Fence {
        assert_eq!(scene.raised(1, 2).resource_identity, first);
    }
    let ended = scene.apply(2, 3);
    assert!(ended.is_good(), "{ended:?}");
    assert_eq!(scene.reading(2).resource_identity, first);
}

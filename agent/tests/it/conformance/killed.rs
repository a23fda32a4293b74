//! An attempt that dies at any of its calls.

use holdfast_common::adapter::Inspect;
use holdfast_common::outcome::OperationState;

use super::Make;
use super::reached::Reached;
use super::scene::{Scene, named};

pub(crate) fn an_attempt_killed_anywhere_is_read_rightly_and_completed_once(make: Make<'_>) {
    let mut reached = Reached::of(make);
    let (mut read_taken, mut read_not_taken, mut twice) = (false, false, false);
    for call in reached.calls() {
        let what = format!("killed before {call}");
        let scene = Scene::standing(make);
        let ended = scene.killed(&named(2), 2, call);
        reached.note(call, !ended.is_good());
        assert!(!ended.is_refusal(), "{what}: told as refused: {ended:?}");
        let mut is_unknown = false;
        if scene.inspects() != Inspect::None {
            let reading = scene.settled(2);
            is_unknown = reading.state == OperationState::Unknown;
            let took = scene.took(2);
            // Honest: it says that it does not know.
            if !is_unknown {
                scene.judge(2, &reading, took, &what);
                read_taken |= took;
                read_not_taken |= !took;
            }
        }
        let next = scene.apply(2, 3);
        assert!(next.is_good() && scene.took(2), "{what}: the next attempt: {next:?}");
        twice |= scene.times(2) > 1;
        let may_repeat = scene.subject.repeats() || (is_unknown && scene.subject.repeats_unknown());
        assert!(may_repeat || scene.times(2) == 1, "{what}: a second effect: {next:?}");
        assert!(scene.times(1) == 1, "{what}: {:?}", scene.subject.underwent());
    }
    reached.all();
    let subject = Scene::fresh(make).subject;
    assert_eq!(twice, subject.repeats_unknown(), "declares less than it does: no operation took effect twice");
    if subject.capability().inspect == Inspect::Operation {
        assert!(read_taken && read_not_taken, "it was never read on both sides of its effect");
    }
}

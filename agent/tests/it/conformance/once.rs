//! One operation takes effect once, however often and by whomever it is asked for.

use holdfast_common::adapter::Enforce;

use super::Make;
use super::reached::Reached;
use super::run::Run;
use super::scene::{BY_FENCE, Scene, named};
use crate::support::fence;

/// How often agents race freely.
const ROUNDS: usize = 6;

pub(crate) fn the_same_operation_twice_has_one_effect(make: Make<'_>) {
    let scene = Scene::standing(make);
    let again = [scene.apply(1, 1), scene.apply(1, 2)];
    if scene.subject.repeats() {
        assert_eq!(scene.times(1), 3, "the gap that is declared: it takes effect each time");
        assert!(!again.iter().any(super::run::Ended::says_before), "{again:?}");
        return;
    }
    assert_eq!(scene.subject.underwent(), ["0001"], "{again:?}");
    assert!(again.iter().all(super::run::Ended::says_before), "{again:?}");
}

pub(crate) fn an_accepted_change_is_there_when_its_process_has_ended(make: Make<'_>) {
    let scene = Scene::standing(make);
    let ended = scene.apply(2, 2);
    assert!(ended.is_good() && scene.took(2), "it ended well and nothing is there: {ended:?}");
}

pub(crate) fn two_agents_with_one_operation_have_one_effect(make: Make<'_>) {
    let mut reached = Reached::of(make);
    let mut any_second = false;
    for call in reached.calls() {
        let scene = Scene::standing(make);
        let first = scene.paused(&named(2), 2, call);
        reached.note(call, first.reached);
        let second = scene.apply(2, 3);
        let first = first.thaw();
        let what = format!("the first stood before {call}: {first:?} {second:?}");
        any_second |= scene.times(2) > 1;
        judge_pair(&scene, &[first, second], &what);
    }
    reached.all();
    for round in 0..ROUNDS {
        let scene = Scene::standing(make);
        let runs = [2, 3].map(|counter| Run::start(scene.subject.apply(&named(2), fence(counter))));
        let ended = runs.map(Run::end);
        judge_pair(&scene, &ended, &format!("round {round}: {ended:?}"));
    }
    let repeats = Scene::fresh(make).subject.repeats();
    assert_eq!(any_second, repeats, "declares less than it does: no operation took effect twice");
}

fn judge_pair(scene: &Scene, ended: &[super::run::Ended; 2], what: &str) {
    assert!(ended.iter().any(super::run::Ended::is_good), "neither of two went well: {what}");
    if scene.subject.repeats() {
        return;
    }
    assert_eq!(scene.times(2), 1, "one operation, not one effect: {what}");
    let refused = |one: &super::run::Ended| !one.is_good() && one.is_refusal();
    if scene.enforces() == Enforce::Fence {
        assert!(ended[1].is_good(), "the higher fence was refused: {what}");
        assert!(!refused(&ended[0]) || ended[0].status == BY_FENCE, "refused for another reason: {what}");
    }
}

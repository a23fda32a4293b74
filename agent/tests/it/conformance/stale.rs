//! What is stale is refused, by whatever the resource is declared to refuse.

use holdfast_common::adapter::Enforce;

use super::reached::Reached;
use super::run::{Ended, Run};
use super::scene::{BY_FENCE, BY_REVISION, Scene, named, pinned};
use super::{Make, Named};
use crate::support::fence;

/// How often agents race freely.
const ROUNDS: usize = 6;

pub(crate) fn a_stale_fence_is_refused_after_a_raise(make: Make<'_>) {
    let scene = Scene::standing(make);
    if scene.compares() != Enforce::Fence {
        return assert!(scene.raise(1, 5).is_none(), "keeps a fence and does not declare it");
    }
    assert_eq!(scene.raised(1, 5).highest_fence, Some(fence(5)));
    let ended = scene.apply(2, 4);
    assert_eq!(ended.status, BY_FENCE, "{ended:?}");
    assert_eq!(scene.subject.underwent(), ["0001"]);
    let next = scene.apply(2, 6);
    assert!(next.is_good() && scene.took(2), "a higher fence is let in: {next:?}");
}

pub(crate) fn a_stale_fence_is_refused_after_a_higher_one_was_used(make: Make<'_>) {
    let scene = Scene::standing(make);
    let higher = scene.apply(2, 5);
    assert!(higher.is_good(), "{higher:?}");
    let lower = scene.apply(3, 4);
    if scene.compares() == Enforce::Fence {
        assert_eq!(lower.status, BY_FENCE, "{lower:?}");
        assert_eq!(scene.subject.underwent(), ["0001", "0002"]);
        assert_eq!(scene.reading(2).highest_fence, Some(fence(5)));
    }
}

pub(crate) fn a_stale_revision_is_refused(make: Make<'_>) {
    let scene = Scene::standing(make);
    if scene.compares() == Enforce::None {
        return;
    }
    let stale = scene.apply_named(&pinned(2, 7), 2);
    assert_eq!(stale.status, BY_REVISION, "{stale:?}");
    assert_eq!(scene.subject.underwent(), ["0001"]);
    let right = scene.apply_named(&pinned(2, 1), 3);
    assert!(right.is_good() && scene.took(2), "{right:?}");
}

/// The one on its way from before stands before each of its calls while another operation is applied under a higher fence.
pub(crate) fn of_two_operations_the_later_fence_is_last(make: Make<'_>) {
    let scene = Scene::fresh(make);
    match (scene.enforces(), scene.compares()) {
        // A fence must do without the revision's help.
        (Enforce::Fence, _) => {
            holds(&gap(make, &named(2)));
            (0..ROUNDS).for_each(|round| race(make, round));
        }
        (Enforce::Revision, _) => {
            holds(&gap(make, &pinned(2, 1)));
            is_there(&gap(make, &named(2)));
        }
        (Enforce::None, Enforce::None | Enforce::Revision) => is_there(&gap(make, &pinned(2, 1))),
        // What has begun keeps the later one out: the gap is what a raise does not stop.
        (Enforce::None, Enforce::Fence) => holds(&gap(make, &pinned(2, 1))),
    }
}

/// Before which calls the earlier one can stand and then take effect last.
fn gap(make: Make<'_>, earlier: &Named) -> Vec<&'static str> {
    let mut reached = Reached::of(make);
    let mut gap = Vec::new();
    for call in reached.calls() {
        let scene = Scene::standing(make);
        let first = scene.paused(earlier, 2, call);
        reached.note(call, first.reached);
        let took_before = scene.took(2);
        let second = scene.apply(3, 3);
        let first = first.thaw();
        let what = format!("the first stood before {call}: {first:?} {second:?}");
        later_is_there(&scene, &second, &what);
        if scene.took_after(2, 3) {
            gap.push(call);
        } else if !took_before && !scene.took(2) {
            assert!(!first.is_good(), "it was told as applied: {what}");
            assert!(scene.enforces() != Enforce::Fence || first.status == BY_FENCE, "not refused by its fence: {what}");
        } else {
            assert!(took_before || is_blocking(&scene), "took effect unseen: {what}");
            assert!(!first.is_refusal(), "it took effect and was told as refused: {what}");
        }
    }
    reached.all();
    gap
}

/// Whether what has begun may keep a later one out until it is over: nothing else would keep the order.
fn is_blocking(scene: &Scene) -> bool {
    scene.enforces() == Enforce::None && scene.compares() == Enforce::Fence
}

fn later_is_there(scene: &Scene, later: &Ended, what: &str) {
    if is_blocking(scene) && !later.is_good() {
        assert_eq!(scene.times(3), 0, "told as refused, and is applied: {what}");
        let again = scene.apply(3, 4);
        assert!(again.is_good(), "kept out when nothing was under way any more: {what} {again:?}");
    } else {
        assert!(later.is_good(), "the later one: {what}");
    }
    assert_eq!(scene.times(3), 1, "the later one: {what}");
}

fn holds(gap: &[&str]) {
    assert!(gap.is_empty(), "declares more than it does: what was stale took effect, paused before {gap:?}");
}

fn is_there(gap: &[&str]) {
    assert!(!gap.is_empty(), "declares less than it does: nothing that was stale took effect");
}

fn race(make: Make<'_>, round: usize) {
    let scene = Scene::standing(make);
    let runs = [2, 3].map(|number| Run::start(scene.subject.apply(&named(number), fence(u64::from(number)))));
    let [first, second] = runs.map(Run::end);
    let what = format!("round {round}: {:?} {first:?} {second:?}", scene.subject.underwent());
    assert!(second.is_good() && scene.times(3) == 1, "the higher fence was refused: {what}");
    assert!(!scene.took_after(2, 3), "the lower fence came last: {what}");
    let times = scene.times(2);
    assert!(times <= 1 && (times == 1 || !first.is_good()), "told as applied, and is not, or is twice: {what}");
    assert!(times == 0 || !first.is_refusal(), "told as refused, and is applied: {what}");
}

pub(crate) fn a_raise_is_repeatable_and_never_goes_down(make: Make<'_>) {
    let scene = Scene::standing(make);
    if scene.compares() != Enforce::Fence {
        return assert!(scene.raise(1, 5).is_none(), "keeps a fence and does not declare it");
    }
    let first = scene.raised(1, 5);
    let second = scene.raised(1, 5);
    assert_eq!((first.highest_fence, second.highest_fence), (Some(fence(5)), Some(fence(5))));
    assert_eq!(first.resource_identity, second.resource_identity);
    assert_eq!(first.revision, second.revision, "a raise changes nothing that is served");
    // It may refuse or do nothing; it may not lower.
    let _either = scene.raise(1, 3);
    assert_eq!(scene.reading(1).highest_fence, Some(fence(5)));
    let stale = scene.apply(2, 4);
    assert_eq!(stale.status, BY_FENCE, "{stale:?}");
    assert_eq!(scene.subject.underwent(), ["0001"]);
}

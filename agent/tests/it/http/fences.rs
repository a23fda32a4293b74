//! What a raised fence holds against, wherever the change is.

use holdfast_common::outcome::OperationState;

use super::proxy::Manner;
use super::scene::{Ended, Scene, change, to_revision};
use super::{MACHINERY, REFUSED_FENCE};
use crate::support::{Paused, eventually, fence, operation, resume, wait_for_pause};

#[test]
fn a_stale_fence_is_refused_and_says_so() {
    let scene = Scene::new();
    let reading = scene.raise(&change(1), fence(3)).reading();
    assert_eq!((reading.state, reading.highest_fence), (OperationState::NotApplied, Some(fence(3))));
    let ended = scene.apply(&change(1), fence(2));
    assert!(
        ended.with(REFUSED_FENCE).said.contains("fence 1.2 was fenced off here, the highest seen is 1.3"),
        "{ended:?}"
    );
    assert_eq!(scene.underwent(), Vec::<String>::new());
    // A raise never goes down, and may come again.
    assert_eq!(scene.raise(&change(1), fence(2)).reading().highest_fence, Some(fence(3)));
    scene.apply(&change(1), fence(3)).with(0);
}

#[test]
fn a_fence_that_is_raised_while_the_api_works_ends_the_work_without_effect() {
    let scene = Scene::new();
    let slow = to_revision(operation(1), "v1", 60_000);
    let call = scene.applying(&slow, fence(2)).spawn().unwrap();
    eventually("it is at work", || (scene.api.state("v1")? == "running").then_some(()));
    let reading = scene.inspect(&slow).reading();
    assert_eq!((reading.state, reading.active), (OperationState::Applying, Some(slow.id.clone())));
    let reading = scene.raise(&slow, fence(3)).reading();
    assert_eq!((reading.state, reading.highest_fence), (OperationState::NotApplied, Some(fence(3))));
    Ended::of(call.wait_with_output().unwrap()).with(REFUSED_FENCE);
    // The next attempt does the same operation.
    let again = to_revision(operation(1), "v1", 60_000);
    let call = scene.applying(&again, fence(4)).spawn().unwrap();
    eventually("it is at work again", || (scene.api.state("v1")? == "running").then_some(()));
    drop(Killed(call));
    assert_eq!(scene.inspect(&again).reading().state, OperationState::Applying, "the work goes on without its process");
}

struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_change_that_is_paused_before_it_is_sent_meets_the_fence_when_it_thaws() {
    for (at, is_sent) in [("read", false), ("submit", false), ("submitted", true), ("poll", true)] {
        let scene = Scene::new();
        let halt = format!("apply.{at}=stop");
        let call = scene.applying(&change(1), fence(2)).env("HOLDFAST_HALT", halt).spawn().unwrap();
        assert_eq!(wait_for_pause(&call), Paused::Stopped, "{at}");
        if is_sent {
            eventually("it took effect", || (scene.underwent() == ["v1"]).then_some(()));
        }
        let reading = scene.raise(&change(1), fence(3)).reading();
        resume(&call);
        let ended = Ended::of(call.wait_with_output().unwrap());
        let (exit, state) =
            if is_sent { (0, OperationState::Applied) } else { (REFUSED_FENCE, OperationState::NotApplied) };
        assert_eq!((ended.exit, reading.state), (Some(exit), state), "{at}: {ended:?}");
        assert_eq!(scene.inspect(&change(1)).reading(), reading, "{at}: what was read was final");
    }
}

#[test]
fn a_raise_counts_by_what_is_read_back() {
    let scene = Scene::new();
    scene.proxy.next(&[Manner::LoseAnswer]);
    assert_eq!(scene.raise(&change(1), fence(2)).reading().highest_fence, Some(fence(2)));
    for manner in [Manner::Swallow, Manner::Answer(200)] {
        scene.proxy.next(&[manner]);
        let ended = scene.raise(&change(1), fence(3));
        assert!(ended.with(MACHINERY).said.contains("the highest fence is 1.2 after all, not 1.3"), "{ended:?}");
    }
}

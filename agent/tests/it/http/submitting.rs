//! A change is sent, answered or not, and followed to its end.

use holdfast_common::id::Revision;
use holdfast_common::outcome::OperationState;
use holdfast_common::system::{Change, Submit};

use super::proxy::Manner;
use super::scene::{Ended, Scene, change, to_revision};
use super::{MACHINERY, REFUSED_CONTENT, REFUSED_FENCE, REFUSED_RESOURCE, REFUSED_REVISION, TRANSIENT};
use crate::support::{eventually, fence, operation};

/// The key then stands where the step put it: the API still wants one, and the adapter knows of none.
fn without_a_declared_key(scene: &mut Scene, number: u128) -> holdfast_agent::adapters::system::Operation {
    let mut change = change(number);
    scene.http.headers.idempotency = None;
    if let Some(Change::Submit(submit)) = &mut change.change {
        submit.headers.insert("Idempotency-Key".to_owned(), change.id.to_string());
    }
    change
}

#[test]
fn a_change_takes_effect_once_however_often_it_is_applied() {
    let scene = Scene::new();
    let v1 = change(1);
    for fences in [1, 1, 2] {
        scene.apply(&v1, fence(fences)).with(0);
    }
    assert_eq!((scene.underwent(), scene.proxy.posts().len()), (vec!["v1".to_owned()], 1));
    let reading = scene.inspect(&v1).reading();
    assert_eq!((reading.state, reading.revision), (OperationState::Applied, v1.revision));
}

#[test]
fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    for manners in [
        [Manner::LoseAnswer].as_slice(),
        &[Manner::LoseAnswerAfterEffect],
        &[Manner::Swallow, Manner::LoseAnswer],
        &[Manner::Answer(500), Manner::Answer(408), Manner::Swallow],
    ] {
        let scene = Scene::new();
        scene.proxy.next(manners);
        scene.apply(&change(1), fence(1)).with(0);
        assert_eq!(scene.underwent(), ["v1"], "{manners:?}");
        assert_eq!(scene.proxy.posts().len(), manners.len() + 1, "{manners:?}");
    }
}

#[test]
fn a_refusal_after_a_request_without_an_answer_refuses_that_one_only_where_the_resource_does() {
    let scene = Scene::new();
    scene.proxy.next(&[Manner::Swallow, Manner::Answer(429)]);
    let ended = scene.apply(&change(1), fence(1));
    assert!(ended.with(MACHINERY).said.contains("a request before it is not known"), "{ended:?}");
    scene.raise(&change(1), fence(3)).reading();
    scene.proxy.next(&[Manner::Swallow]);
    scene.apply(&change(1), fence(2)).with(REFUSED_FENCE);
    scene.proxy.next(&[Manner::Answer(429)]);
    scene.apply(&change(1), fence(3)).with(REFUSED_RESOURCE);
    assert_eq!(scene.underwent(), Vec::<String>::new());
}

#[test]
fn without_a_declared_key_nothing_is_ever_sent_twice() {
    for (manner, exit, underwent) in [
        (Manner::Pass, 0, ["v1"].as_slice()),
        // The status tells what the answer did not.
        (Manner::LoseAnswer, 0, &["v1"]),
        (Manner::Swallow, MACHINERY, &[]),
        (Manner::Answer(500), MACHINERY, &[]),
        (Manner::Answer(503), TRANSIENT, &[]),
    ] {
        let mut scene = Scene::new();
        let v1 = without_a_declared_key(&mut scene, 1);
        scene.proxy.next(&[manner]);
        scene.apply(&v1, fence(1)).with(exit);
        assert_eq!(scene.underwent(), underwent, "{manner:?}");
        assert_eq!(scene.proxy.posts().len(), 1, "{manner:?}");
    }
}

#[test]
fn only_a_declared_status_is_transient_and_only_while_nothing_was_lost() {
    let mut scene = Scene::new();
    scene.proxy.next(&[Manner::Answer(503)]);
    let ended = scene.apply(&change(1), fence(1));
    assert!(ended.with(TRANSIENT).said.contains("503"), "{ended:?}");
    assert_eq!((scene.underwent().len(), scene.proxy.posts().len()), (0, 1), "it is told, not repeated here");
    // Its request may have begun something, so that a later 503 proves nothing.
    scene.proxy.next(&[Manner::LoseAnswer, Manner::Answer(503)]);
    scene.apply(&change(2), fence(2)).with(0);
    scene.http.transient = vec![];
    scene.proxy.next(&[Manner::Answer(503)]);
    scene.apply(&change(3), fence(3)).with(0);
    assert_eq!(scene.underwent(), ["v2", "v3"]);
}

#[test]
fn a_stale_revision_is_refused_by_the_api_and_before_the_permit() {
    let mut scene = Scene::new();
    scene.apply(&change(1), fence(1)).with(0);
    let mut stale = change(2);
    stale.expected_revision = Some(Revision::new("v0").unwrap());
    let ended = scene.apply(&stale, fence(2));
    assert!(ended.with(REFUSED_REVISION).said.contains("the revision here is v1, expected was v0"), "{ended:?}");
    assert_eq!(scene.proxy.posts().len(), 2, "the API was asked");
    scene.examine(&stale).with(REFUSED_REVISION);
    // Where the API is told nothing of it, it is compared here.
    scene.http.headers.expected = None;
    scene.apply(&stale, fence(2)).with(REFUSED_REVISION);
    assert_eq!((scene.underwent(), scene.proxy.posts().len()), (vec!["v1".to_owned()], 2));
    stale.expected_revision = Some(Revision::new("v1").unwrap());
    scene.examine(&stale).with(0);
    scene.apply(&stale, fence(2)).with(0);
    // It is through its own change now.
    scene.examine(&stale).with(0);
}

#[test]
fn what_the_api_does_not_understand_is_no_fit_change() {
    let scene = Scene::new();
    let submit =
        |body: &str| Submit { body: body.to_owned(), content_type: "application/json".to_owned(), headers: [].into() };
    let mut odd = change(1);
    odd.change = Some(Change::Submit(submit("no JSON")));
    let ended = scene.apply(&odd, fence(1));
    assert!(ended.with(REFUSED_CONTENT).said.contains("the API answered 400"), "{ended:?}");
    // The same key for another body.
    odd.change = Some(Change::Submit(submit(r#"{"revision": "v9", "fail": true}"#)));
    let ended = scene.apply(&odd, fence(1));
    assert!(ended.with(REFUSED_CONTENT).said.contains("\"failed\""), "{ended:?}");
    scene.apply(&change(1), fence(1)).with(REFUSED_CONTENT);
    assert_eq!(scene.underwent(), Vec::<String>::new());
    assert_eq!(scene.inspect(&odd).reading().state, OperationState::NotApplied);
}

#[test]
fn a_steps_own_header_takes_the_place_of_none_of_ours() {
    let scene = Scene::new();
    for name in ["holdfast-fence", "IDEMPOTENCY-KEY", "If-Match", "Authorization"] {
        let mut sly = change(1);
        if let Some(Change::Submit(submit)) = &mut sly.change {
            submit.headers.insert(name.to_owned(), "99".to_owned());
        }
        scene.examine(&sly).with(REFUSED_CONTENT);
        scene.apply(&sly, fence(1)).with(REFUSED_CONTENT);
    }
    assert_eq!(scene.proxy.posts(), Vec::<String>::new());
}

#[test]
fn nothing_is_sent_with_a_header_that_makes_the_request_another_one() {
    for name in ["X-HTTP-Method-Override", "X_Original_URL", "X-Forwarded-Host", "Transfer-Encoding"] {
        let mut scene = Scene::new();
        let mut sly = change(1);
        if let Some(Change::Submit(submit)) = &mut sly.change {
            submit.headers.insert(name.to_owned(), "/admin".to_owned());
        }
        assert!(scene.examine(&sly).with(REFUSED_CONTENT).said.contains(name), "{name}");
        scene.apply(&sly, fence(1)).with(REFUSED_CONTENT);
        // A target that nobody's parser has read.
        scene.http.headers.fence = Some(name.to_owned());
        scene.apply(&change(1), fence(1)).with(REFUSED_CONTENT);
        scene.raise(&change(1), fence(2)).with(REFUSED_CONTENT);
        assert_eq!(scene.proxy.posts(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn an_end_that_is_no_end_is_never_taken_for_one() {
    for (applied, partial) in [(vec!["done"], vec!["succeeded"]), (vec!["done"], vec![])] {
        let mut scene = Scene::new();
        let own = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let expected = if partial.is_empty() { OperationState::Unknown } else { OperationState::Partial };
        (scene.http.words.applied, scene.http.words.partial) = (own(applied), own(partial));
        let ended = scene.apply(&change(1), fence(1));
        assert!(ended.with(MACHINERY).said.contains("\"succeeded\""), "{ended:?}");
        assert_eq!(scene.inspect(&change(1)).reading().state, expected);
    }
}

#[test]
fn an_api_that_is_killed_at_work_is_followed_to_the_end_after_its_restart() {
    let mut scene = Scene::new();
    let v1 = to_revision(operation(1), "v1", 1000);
    let call = scene.applying(&v1, fence(1)).spawn().unwrap();
    eventually("it is at work", || (scene.api.state("v1")? == "running").then_some(()));
    scene.api.kill();
    assert_eq!(scene.inspect(&v1).exit, Some(TRANSIENT), "what can't be read is no reading");
    scene.restart();
    Ended::of(call.wait_with_output().unwrap()).with(0);
    assert_eq!((scene.underwent(), scene.proxy.posts().len()), (vec!["v1".to_owned()], 1));
}

#[test]
fn an_api_that_is_down_was_sent_nothing() {
    let mut scene = Scene::new();
    scene.api.kill();
    scene.apply(&change(1), fence(1)).with(TRANSIENT);
    scene.examine(&change(1)).with(TRANSIENT);
    assert_eq!(scene.proxy.posts(), Vec::<String>::new());
    scene.restart();
    assert_eq!(scene.inspect(&change(1)).reading().state, OperationState::NotApplied);
}

#[test]
fn a_step_for_another_system_is_refused_before_anything_is_asked() {
    let scene = Scene::new();
    let mut other = change(1);
    other.change = None;
    scene.apply(&other, fence(1)).with(REFUSED_CONTENT);
    let foreign =
        Scene { http: holdfast_common::system::Http { submit: "/nowhere".to_owned(), ..scene.http.clone() }, ..scene };
    foreign.apply(&change(1), fence(1)).with(REFUSED_RESOURCE);
}

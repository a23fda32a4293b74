//! What is read of the resource and of an operation, and what is no reading.

use holdfast_agent::adapters::system::Operation;
use holdfast_common::id::Revision;
use holdfast_common::outcome::OperationState;

use super::api::Api;
use super::scene::{OWNER, Scene, change};
use super::{REFUSED_RESOURCE, TRANSIENT};
use crate::support::{Folder, fence};

#[test]
fn not_there_means_not_applied_only_at_a_resource_that_told_its_identity() {
    let mut scene = Scene::new();
    let reading = scene.inspect(&change(1)).reading();
    assert_eq!((reading.state, reading.revision), (OperationState::NotApplied, None));
    scene.http.resource = None;
    assert_eq!(scene.inspect(&change(1)).reading().state, OperationState::Unknown);
    scene.http.resource = Some("/".to_owned());
    scene.http.pointers.identity = "/nothing".to_owned();
    scene.inspect(&change(1)).with(REFUSED_RESOURCE);
}

#[test]
fn another_resource_in_its_place_has_another_identity() {
    let scene = Scene::new();
    scene.apply(&change(1), fence(1)).with(0);
    let before = scene.inspect(&change(1)).reading();
    let other = Api::start(&scene.folder.0, "other.db", OWNER);
    scene.proxy.lead_to(other.address, other.data.clone());
    let after = scene.inspect(&change(1)).reading();
    assert_ne!(before.resource_identity, after.resource_identity);
    assert_eq!(after.state, OperationState::NotApplied, "of that one it is true");
}

#[test]
fn a_resource_of_somebody_else_is_neither_read_nor_changed_nor_fenced_off() {
    let scene = Scene::new();
    let folder = Folder::new();
    let other = Api::start(&folder.0, "other.db", "other@prod/service");
    scene.proxy.lead_to(other.address, other.data.clone());
    for ended in [scene.inspect(&change(1)), scene.raise(&change(1), fence(2)), scene.examine(&change(1))] {
        let said = &ended.with(REFUSED_RESOURCE).said;
        assert!(said.contains("belongs to \"other@prod/service\", not to \"app@prod/service\""), "{said}");
    }
    scene.apply(&change(1), fence(2)).with(REFUSED_RESOURCE);
    assert_eq!(scene.proxy.posts(), Vec::<String>::new());
}

#[test]
fn an_api_that_tells_no_operations_apart_is_read_by_its_revision() {
    let mut scene = Scene::new();
    scene.http.status = None;
    scene.apply(&change(1), fence(1)).with(0);
    let mut next = change(2);
    let state = |scene: &Scene, operation: &Operation| scene.inspect(operation).reading().state;
    assert_eq!(state(&scene, &change(1)), OperationState::Applied);
    assert_eq!(state(&scene, &next), OperationState::Unknown, "nobody knows what was before");
    next.expected_revision = Some(Revision::new("v1").unwrap());
    assert_eq!(state(&scene, &next), OperationState::NotApplied);
    scene.apply(&next, fence(1)).with(0);
    assert_eq!(state(&scene, &next), OperationState::Applied);
    assert_eq!(state(&scene, &change(1)), OperationState::Unknown);
    // Another attempt at what is done already is refused by the API, which expects v1. What is there is no refusal.
    scene.examine(&next).with(0);
    let ended = scene.apply(&again(&next), fence(2));
    assert!(ended.with(0).said.contains("applied before"), "{ended:?}");
    assert_eq!(scene.underwent(), ["v1", "v2"]);
}

/// The same, as another operation: this API knows keys, though nothing is declared of them.
fn again(operation: &Operation) -> Operation {
    Operation { id: change(3).id, ..operation.clone() }
}

#[test]
fn what_an_api_says_in_other_words_is_no_reading() {
    let mut scene = Scene::new();
    scene.apply(&change(1), fence(1)).with(0);
    scene.http.pointers.state = "/nothing".to_owned();
    assert_eq!(scene.inspect(&change(1)).reading().state, OperationState::Unknown);
    scene.http.pointers.fence = "/revision".to_owned();
    scene.inspect(&change(1)).with(REFUSED_RESOURCE);
    scene.http.resource = Some("/elsewhere".to_owned());
    scene.inspect(&change(1)).with(REFUSED_RESOURCE);
    (scene.http.status, scene.http.resource) = (None, None);
    scene.inspect(&change(1)).with(REFUSED_RESOURCE);
    scene.api.kill();
    scene.http.resource = Some("/".to_owned());
    scene.inspect(&change(1)).with(TRANSIENT);
}

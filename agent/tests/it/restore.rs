//! Going back to a retained release.

use holdfast_agent::adapters::exit::class_of_exit;
use holdfast_agent::adapters::release::{self, Applied, ApplySpec, Content, Error, apply, retained};
use holdfast_common::id::Revision;
use holdfast_common::outcome::{FailureClass, OperationState};

use crate::support::{Site, everything, fence};

fn back_to(site: &Site, revision: &str, number: u128, counter: u64) -> ApplySpec {
    let revision = Revision::new(revision).unwrap();
    ApplySpec { revision, content: Content::Retained, ..site.spec(number, fence(counter)) }
}

fn two_releases() -> Site {
    let site = Site::new();
    for number in [1, 2] {
        let applied = apply(&site.spec(u128::from(number), fence(number))).unwrap();
        assert_eq!(applied, Applied::Flipped);
    }
    site
}

#[test]
fn a_retained_release_is_put_back_under_an_operation_of_its_own() {
    let site = two_releases();
    assert_eq!(apply(&back_to(&site, "v1", 3, 3)).unwrap(), Applied::Flipped);
    assert_eq!(site.served().as_deref(), Some("v1"));
    let reading = site.inspect(3);
    assert_eq!((reading.state, reading.revision), (OperationState::Applied, Revision::new("v1").ok()));
    let replaced = site.inspect(2);
    assert_eq!(replaced.state, OperationState::Applied, "what was applied and replaced stays on record");
    let wanted = Revision::new("v2").ok();
    assert_eq!(replaced.state_of(wanted.as_ref()), OperationState::Partial, "and is not what the step was to leave");
}

#[test]
fn the_same_way_back_twice_changes_nothing_the_second_time() {
    let site = two_releases();
    assert_eq!(apply(&back_to(&site, "v1", 3, 3)).unwrap(), Applied::Flipped);
    let before = everything(&site.root.join("releases"));
    assert_eq!(apply(&back_to(&site, "v1", 3, 4)).unwrap(), Applied::Already);
    assert_eq!(everything(&site.root.join("releases")), before);
}

#[test]
fn the_old_release_itself_is_not_touched_and_can_be_gone_back_to_again() {
    let site = two_releases();
    let before = everything(&site.root.join("releases"));
    assert_eq!(apply(&back_to(&site, "v1", 3, 3)).unwrap(), Applied::Flipped);
    let after = everything(&site.root.join("releases"));
    assert!(before.iter().all(|(path, seen)| after.get(path) == Some(seen)), "{before:?} {after:?}");
    assert_eq!(apply(&back_to(&site, "v2", 4, 4)).unwrap(), Applied::Flipped);
    assert_eq!(apply(&back_to(&site, "v1", 5, 5)).unwrap(), Applied::Flipped);
    assert_eq!(site.served().as_deref(), Some("v1"));
    assert_eq!(retained(&site.root).unwrap(), [Revision::new("v1").unwrap(), Revision::new("v2").unwrap()]);
}

#[test]
fn a_revision_that_is_gone_is_refused_for_good_before_anything_is_changed() {
    let site = two_releases();
    let before = everything(&site.root);
    let error = apply(&back_to(&site, "v0", 3, 3)).unwrap_err();
    assert!(matches!(error, Error::NotRetained { .. }), "{error}");
    assert_eq!(class_of_exit(i32::from(error.exit())), FailureClass::Permanent);
    assert_eq!(everything(&site.root), before);
    let empty = Site::new();
    assert!(matches!(apply(&back_to(&empty, "v1", 3, 3)), Err(Error::NotRetained { .. })));
    assert_eq!(retained(&empty.root).unwrap(), []);
}

#[test]
fn a_stale_fence_or_another_revision_than_expected_refuses_the_way_back() {
    let site = two_releases();
    assert!(matches!(apply(&back_to(&site, "v1", 3, 1)), Err(Error::FencedOff { .. })));
    let expected = ApplySpec { expected_revision: Revision::new("v7").ok(), ..back_to(&site, "v1", 3, 3) };
    assert!(matches!(apply(&expected), Err(Error::Revision { .. })));
    assert_eq!(site.served().as_deref(), Some("v2"));
    assert_eq!(release::revision(&site.root).unwrap(), Revision::new("v2").ok());
}

#[test]
fn a_link_to_a_folder_that_is_gone_is_not_read_as_applied() {
    let site = two_releases();
    let current = site.root.join("current").canonicalize().unwrap();
    std::fs::remove_dir_all(current).unwrap();
    let reading = site.inspect(2);
    assert_eq!((reading.state, &reading.revision), (OperationState::Partial, &None), "{reading:?}");
    assert!(reading.detail.ends_with("the folder of it is gone"), "{}", reading.detail);
    assert_eq!(release::revision(&site.root).unwrap(), None);
}

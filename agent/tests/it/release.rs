//! Release folders: what is refused, what is kept, what is read.

use holdfast_agent::adapters::exit::class_of_exit;
use holdfast_agent::adapters::release::{self, Applied, Content, Error, apply, inspect, raise};
use holdfast_common::id::Revision;
use holdfast_common::outcome::{FailureClass, OperationState};

use crate::support::{self, Folder, Paused, Site, everything, fence, fence_in, operation, resume, wait_for_pause};

#[test]
fn a_stale_fence_is_refused_and_the_same_operation_is_applied_once() {
    let site = Site::new();
    assert_eq!(apply(&site.spec(1, fence(1))).unwrap(), Applied::Flipped);
    assert_eq!(apply(&site.spec(1, fence(2))).unwrap(), Applied::Already);
    assert_eq!(apply(&site.spec(2, fence(3))).unwrap(), Applied::Flipped);
    for stale in [fence(1), fence(2)] {
        assert!(matches!(apply(&site.spec(3, stale)), Err(Error::FencedOff { .. })));
    }
    let _ = raise(&site.root, fence(9)).unwrap();
    for stale in [fence(4), fence(9)] {
        let error = apply(&site.spec(3, stale)).unwrap_err();
        assert_eq!(class_of_exit(i32::from(error.exit())), FailureClass::Permanent);
    }
    assert_eq!(site.served().as_deref(), Some("v2"));
    assert_eq!(apply(&site.spec(3, fence(10))).unwrap(), Applied::Flipped);
    // Applied, replaced, and asked for again: still once.
    assert_eq!(apply(&site.spec(2, fence(11))).unwrap(), Applied::Already);
    assert_eq!(site.served().as_deref(), Some("v3"));
    // A later epoch refuses the whole of an earlier one.
    assert_eq!(apply(&site.spec(4, fence_in(2, 1))).unwrap(), Applied::Flipped);
    assert!(matches!(apply(&site.spec(5, fence(12))), Err(Error::FencedOff { .. })));
    assert_eq!(inspect(&site.root, &operation(4)).highest_fence, Some(fence_in(2, 1)));
}

#[test]
fn raising_again_or_lower_changes_nothing_and_confirms_the_highest() {
    let site = Site::new();
    let first = raise(&site.root, fence(5)).unwrap();
    for again in [fence(5), fence(2)] {
        let answer = raise(&site.root, again).unwrap();
        assert_eq!((answer.highest, answer.resource_identity), (fence(5), first.resource_identity.clone()));
    }
    let far = raise(&site.root, fence(3_000_000)).unwrap_err();
    assert!(matches!(far, Error::TooFar { .. }));
    assert_eq!(inspect(&site.root, &operation(1)).highest_fence, Some(fence(5)));
}

#[test]
fn another_revision_than_expected_is_refused() {
    let site = Site::new();
    let expecting = |number, counter, revision: &str| {
        let mut spec = site.spec(number, fence(counter));
        spec.expected_revision = Some(Revision::new(revision).unwrap());
        spec
    };
    assert!(matches!(apply(&expecting(1, 1, "v0")), Err(Error::Revision { found: None, .. })));
    assert_eq!(apply(&site.spec(1, fence(2))).unwrap(), Applied::Flipped);
    assert_eq!(apply(&expecting(2, 3, "v1")).unwrap(), Applied::Flipped);
    assert!(matches!(apply(&expecting(3, 4, "v1")), Err(Error::Revision { found: Some(_), .. })));
    assert_eq!(release::revision(&site.root).unwrap().unwrap().as_str(), "v2");
}

#[test]
fn a_bad_archive_changes_nothing_at_all() {
    let site = Site::new();
    assert_eq!(apply(&site.spec(1, fence(1))).unwrap(), Applied::Flipped);
    let before = everything(&site.root);
    let mut spec = site.spec(2, fence(2));
    if let Content::Archive { sha256, .. } = &mut spec.content {
        *sha256 = "0".repeat(64);
    }
    let error = apply(&spec).unwrap_err();
    assert!(matches!(error, Error::Archive(_)));
    assert_eq!(class_of_exit(i32::from(error.exit())), FailureClass::Permanent);
    assert_eq!(everything(&site.root), before);
}

#[test]
fn old_releases_go_but_never_the_current_or_the_one_before_or_what_is_not_ours() {
    let site = Site::new();
    let number_of = |number: u128| {
        site.root.join("releases").join(format!(
            "{}@switch.{}",
            operation(number).deployment,
            fence(u64::try_from(number).unwrap()).as_u64()
        ))
    };
    std::fs::create_dir_all(site.root.join("releases/by-hand")).unwrap();
    let outside = site.folder.0.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("keep"), "x").unwrap();
    for number in 1..=5u128 {
        let mut spec = site.spec(number, fence(u64::try_from(number).unwrap()));
        spec.retain = if number < 5 { 2 } else { 0 };
        assert_eq!(apply(&spec).unwrap(), Applied::Flipped);
        // A link in an old release that leads out must not lead the removal out.
        std::os::unix::fs::symlink(&outside, number_of(number).join("way-out")).unwrap();
        let there: Vec<u128> = (1..=number).filter(|number| number_of(*number).exists()).collect();
        let expected: Vec<u128> = match number {
            1 => vec![1],
            2 => vec![1, 2],
            3 => vec![1, 2, 3],
            4 => vec![2, 3, 4],
            _ => vec![4, 5],
        };
        assert_eq!(there, expected, "after {number}");
    }
    assert!(site.root.join("releases/by-hand").exists() && outside.join("keep").exists());
    assert_eq!(std::fs::read_dir(site.root.join("trash")).unwrap().count(), 0);
    assert_eq!(inspect(&site.root, &operation(1)).state, OperationState::Applied);
}

#[test]
fn inspection_creates_nothing_and_is_honest_about_what_it_cannot_read() {
    let folder = Folder::new();
    let missing = folder.0.join("none");
    assert_eq!(inspect(&missing, &operation(1)).state, OperationState::Unknown);
    assert!(!missing.exists());
    std::fs::create_dir(&missing).unwrap();
    let before = everything(&folder.0);
    // An empty folder may be another file system than the one that was changed.
    assert_eq!(inspect(&missing, &operation(1)).state, OperationState::Unknown);
    assert_eq!(everything(&folder.0), before);

    let site = Site::new();
    assert_eq!(apply(&site.spec(1, fence(1))).unwrap(), Applied::Flipped);
    let before = everything(&site.root);
    let reading = inspect(&site.root, &operation(1));
    assert_eq!((reading.state, reading.revision.unwrap().as_str()), (OperationState::Applied, "v1"));
    assert_eq!(inspect(&site.root, &operation(2)).state, OperationState::NotApplied);
    assert_eq!(everything(&site.root), before);
    std::fs::write(site.root.join("ledger/identity"), "not an identity").unwrap();
    assert_eq!(inspect(&site.root, &operation(1)).state, OperationState::Unknown);
}

#[test]
fn a_live_process_is_read_as_applying_until_it_is_fenced_off_or_gone() {
    let site = Site::new();
    assert_eq!(apply(&site.spec(1, fence(1))).unwrap(), Applied::Flipped);
    let attempt = support::apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", "apply.flip=stop").spawn().unwrap();
    assert_eq!(wait_for_pause(&attempt), Paused::Stopped);
    let reading = site.inspect(2);
    assert_eq!((reading.state, reading.active), (OperationState::Applying, Some(operation(2))));
    assert_eq!(site.inspect(3).active, Some(operation(2)));
    let _ = raise(&site.root, fence(3)).unwrap();
    let reading = site.inspect(2);
    assert_eq!((reading.state, reading.active), (OperationState::NotApplied, None));
    resume(&attempt);
    assert!(!attempt.wait_with_output().unwrap().status.success());

    let mut attempt = support::apply(&site.spec(2, fence(4))).env("HOLDFAST_HALT", "apply.flip=stop").spawn().unwrap();
    assert_eq!(wait_for_pause(&attempt), Paused::Stopped);
    assert_eq!(site.inspect(2).state, OperationState::Applying);
    attempt.kill().unwrap();
    attempt.wait().unwrap();
    assert_eq!(site.inspect(2).state, OperationState::NotApplied);
}

#[test]
fn a_current_that_is_not_ours_is_never_replaced_unless_it_is_a_link() {
    let site = Site::new();
    std::fs::create_dir_all(site.root.join("current")).unwrap();
    std::fs::write(site.root.join("current/index.html"), "by hand").unwrap();
    assert!(matches!(apply(&site.spec(1, fence(1))), Err(Error::NotALink { .. })));
    assert_eq!(site.served().as_deref(), Some("by hand"));

    let site = Site::new();
    std::fs::create_dir_all(site.root.join("by-hand")).unwrap();
    std::os::unix::fs::symlink("by-hand", site.root.join("current")).unwrap();
    assert_eq!(release::revision(&site.root).unwrap(), None);
    assert_eq!(apply(&site.spec(1, fence(1))).unwrap(), Applied::Flipped);
    assert_eq!(site.served().as_deref(), Some("v1"));
}

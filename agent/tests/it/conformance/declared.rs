//! What is declared to be read, held against what is read.

use holdfast_common::adapter::Inspect;
use holdfast_common::outcome::OperationState;

use super::Make;
use super::scene::{Scene, revision};

pub(crate) fn what_is_read_of_operations_is_what_is_declared(make: Make<'_>) {
    let scene = Scene::standing(make);
    let ended = scene.apply(2, 2);
    assert!(ended.is_good(), "{ended:?}");
    match scene.inspects() {
        Inspect::Operation => {
            for (number, state) in
                [(1, OperationState::Applied), (2, OperationState::Applied), (9, OperationState::NotApplied)]
            {
                let reading = scene.reading(number);
                assert_eq!(
                    reading.state, state,
                    "declares more than it does: of operation {number} it reads {reading:?}"
                );
                assert_eq!(reading.revision, Some(revision(2)), "the revision that it has now");
            }
        }
        Inspect::Revision => {
            let (replaced, last) = (scene.reading(1), scene.reading(2));
            assert_eq!(replaced.revision, Some(revision(2)), "declares more than it does");
            assert_eq!(last.state, OperationState::Applied, "{last:?}");
            let knows = replaced.state == OperationState::Applied;
            assert!(!knows, "declares less than it does: it knows a replaced operation: {replaced:?}");
        }
        Inspect::None => {
            let knows = scene.read(2).is_ok_and(|reading| reading.state != OperationState::Unknown);
            assert!(!knows, "declares less than it does: it can be read");
        }
    }
}

//! An operator's hold, whose word is kept apart from the state `held` of a deployment: the target is *on hold*.

use holdfast_common::id::OperatorName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::state::OperatorHold;
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;

use super::instant;
use super::sentence::quote;

/// The hold as it was placed last.
#[must_use]
pub fn hold(hold: &OperatorHold) -> v1::TargetHold {
    v1::TargetHold {
        by: hold.by.to_string(),
        reason: hold.reason.clone(),
        since: Some(wall_to_wire(hold.since)),
        until: hold.until.map(|until| wall_to_wire(until.shown)),
    }
}

/// Who, until when, why.
#[must_use]
pub fn sentence(hold: &OperatorHold) -> String {
    words(&hold.by, &hold.reason, hold.until.map(|until| until.shown))
}

/// The same of what is recorded with a deployment that waits.
#[must_use]
pub fn words(by: &OperatorName, why: &str, until: Option<Wall>) -> String {
    let until = until.map(|until| format!(" until {}", instant(until))).unwrap_or_default();
    format!("{by} has put the target on hold{until}: {}", quote(why))
}

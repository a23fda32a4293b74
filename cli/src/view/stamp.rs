//! Instants, lengths of time and states of an answer.

use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::{duration_from_wire, wall_from_wire};
use holdfast_proto::v1::{self, DeploymentState};

use super::Canvas;
use crate::output::{Tone, time};

/// How far two clocks may tell apart before both are shown, in microseconds.
const SAME: i64 = 2_000_000;
/// What stands for something that nobody saw.
pub const NOT_OBSERVED: &str = "not observed";

/// An instant; `None` where there is none, or none that a calendar has.
#[must_use]
pub fn wall(at: Option<&prost_types::Timestamp>) -> Option<Wall> {
    wall_from_wire("at", at.copied()).ok()
}

/// A length of time, where there is one.
#[must_use]
pub fn span(length: Option<&prost_types::Duration>) -> Option<Millis> {
    duration_from_wire("length", *length?).ok()
}

/// The time of day, or more on another day.
#[must_use]
pub fn near(at: Option<&prost_types::Timestamp>, canvas: Canvas<'_>) -> Option<String> {
    wall(at).map(|at| time::near(at, canvas.now))
}

/// [`near`] and how long ago: `14:20:07Z (2m ago)`.
#[must_use]
pub fn aged(at: Option<&prost_types::Timestamp>, canvas: Canvas<'_>) -> Option<String> {
    wall(at).map(|at| format!("{} ({} ago)", time::near(at, canvas.now), time::age(at, canvas.now)))
}

/// When something was heard, and when it was said where the two clocks differ.
#[must_use]
pub fn seen(seen: Option<&v1::Seen>, canvas: Canvas<'_>) -> Option<String> {
    let seen = seen?;
    match (wall(seen.received_at.as_ref()), wall(seen.said_at.as_ref())) {
        (Some(received), Some(said)) if received.0.abs_diff(said.0) > SAME.unsigned_abs() => Some(format!(
            "{} (said at {} by the agent's clock)",
            time::near(received, canvas.now),
            time::near(said, canvas.now)
        )),
        (Some(at), _) | (None, Some(at)) => Some(time::near(at, canvas.now)),
        (None, None) => None,
    }
}

/// The same for a column of a table: one time only.
#[must_use]
pub fn seen_short(seen: Option<&v1::Seen>, canvas: Canvas<'_>) -> Option<String> {
    near(seen?.received_at.as_ref(), canvas)
}

/// How a deployment's state is drawn. One that this version does not know needs a person's eye.
#[must_use]
pub fn state_tone(state: i32) -> Tone {
    match DeploymentState::try_from(state) {
        Ok(DeploymentState::Queued) => Tone::Quiet,
        Ok(DeploymentState::Active) => Tone::Running,
        Ok(DeploymentState::Succeeded) => Tone::Good,
        Ok(DeploymentState::Failed) => Tone::Bad,
        Ok(DeploymentState::Cancelled) => Tone::Strong,
        Ok(DeploymentState::Uncertain | DeploymentState::Held) | Err(_) => Tone::Hazard,
        Ok(DeploymentState::Unspecified) => Tone::Plain,
    }
}

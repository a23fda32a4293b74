//! Instants and lengths of time.

use holdfast_common::time::{Millis, Wall};

use super::{Invalid, required};

/// An instant for people.
#[must_use]
pub fn wall_to_wire(wall: Wall) -> prost_types::Timestamp {
    let nanos = i32::try_from(wall.0.rem_euclid(1_000_000)).expect("below a million") * 1000;
    prost_types::Timestamp { seconds: wall.0.div_euclid(1_000_000), nanos }
}

/// An instant for people. Microseconds; anything finer is cut off.
pub fn wall_from_wire(field: &'static str, timestamp: Option<prost_types::Timestamp>) -> Result<Wall, Invalid> {
    let timestamp = required(field, timestamp)?;
    let out_of_range = Invalid::Range { field, problem: "not an instant" };
    if !(0..1_000_000_000).contains(&timestamp.nanos) {
        return Err(out_of_range);
    }
    let micros = timestamp
        .seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(i64::from(timestamp.nanos / 1000)));
    micros.map(Wall).ok_or(out_of_range)
}

/// A length of time.
#[must_use]
pub fn duration_to_wire(span: Millis) -> prost_types::Duration {
    let nanos = i32::try_from(span.0 % 1000).expect("below a thousand") * 1_000_000;
    prost_types::Duration { seconds: i64::try_from(span.0 / 1000).unwrap_or(i64::MAX), nanos }
}

/// A length of time, not negative. Milliseconds; anything finer is cut off.
pub fn duration_from_wire(field: &'static str, duration: prost_types::Duration) -> Result<Millis, Invalid> {
    let out_of_range = Invalid::Range { field, problem: "not a length of time" };
    let seconds = u64::try_from(duration.seconds).map_err(|_| out_of_range.clone())?;
    let nanos = u64::try_from(duration.nanos).map_err(|_| out_of_range.clone())?;
    if nanos >= 1_000_000_000 {
        return Err(out_of_range);
    }
    seconds.checked_mul(1000).and_then(|millis| millis.checked_add(nanos / 1_000_000)).map(Millis).ok_or(out_of_range)
}

//! What is recorded, as the wire shows it. Pure: from the core's state to messages, nothing read, nothing decided.

pub mod agent;
pub mod deployment;
pub mod enums;
pub mod event;
pub mod evidence;
pub mod held;
pub mod held_back;
pub mod hold;
pub mod plan;
pub mod sentence;
pub mod target;

use holdfast_common::fence::Fence;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::state;
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;

/// Microseconds since 1970 as `2026-11-29T14:20:07Z`.
#[must_use]
pub fn instant(wall: Wall) -> String {
    jiff::Timestamp::from_microsecond(wall.0)
        .map(|instant| format!("{instant:.0}"))
        .unwrap_or_else(|_| format!("{} us after 1970", wall.0))
}

fn seen(seen: &state::Seen) -> v1::Seen {
    v1::Seen { said_at: Some(wall_to_wire(seen.said_at)), received_at: Some(wall_to_wire(seen.received_at)) }
}

/// Its number; 0 where there is none.
pub(crate) fn fence_number(fence: Option<Fence>) -> u64 {
    fence.map_or(0, Fence::as_u64)
}

/// As people read it; empty where there is none.
pub(crate) fn fence_text(fence: Option<Fence>) -> String {
    fence.map(|fence| fence.to_string()).unwrap_or_default()
}

/// The text of a value; empty where there is none.
pub(crate) fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(T::to_string).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;

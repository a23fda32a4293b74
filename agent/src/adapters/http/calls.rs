//! The one seam in front of every call that the API sees, and behind the one that may take effect.

use crate::adapters::halt::{self, calls};

calls! {
    /// Reads resource or operation.
    Read = "read";
    /// Submits the change.
    Submit = "submit";
    /// The submission was answered, or its answer lost.
    Submitted = "submitted";
    /// Reads what became of it.
    Poll = "poll";
    /// Raises the fence.
    Raise = "raise";
}

/// Right before it.
pub(super) fn before(call: Call) {
    halt::before(call.name());
}

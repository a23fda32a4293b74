//! The one seam through which every call passes at which a test can stop or abort us.

use crate::adapters::halt::{self, calls};

calls! {
    /// Asks the remote what its refs are, and brings what they name.
    Fetch = "fetch";
    /// Reads the ledger and the folder on each branch.
    Read = "read";
    /// Makes commits in the cache.
    Commit = "commit";
    /// Pushes: the one call that changes anything that others see.
    Push = "push";
    /// The push was answered.
    Pushed = "pushed";
}

/// Right before it.
pub(super) fn before(call: Call) {
    halt::before(call.name());
}

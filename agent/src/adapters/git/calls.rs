//! The one seam through which every call passes at which a test can stop or abort us.

use crate::adapters::halt;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Asks the remote what its refs are, and brings what they name.
    Fetch,
    /// Reads the ledger and the folder on each branch.
    Read,
    /// Makes commits in the cache.
    Commit,
    /// Pushes: the one call that changes anything that others see.
    Push,
    /// The push was answered.
    Pushed,
}

impl Call {
    /// As `HOLDFAST_HALT` names it.
    fn name(self) -> &'static str {
        match self {
            Call::Fetch => "fetch",
            Call::Read => "read",
            Call::Commit => "commit",
            Call::Push => "push",
            Call::Pushed => "pushed",
        }
    }
}

/// Right before it.
pub(super) fn before(call: Call) {
    halt::before(call.name());
}

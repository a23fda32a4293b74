//! Where a test can stop the adapter.

use crate::adapters::halt;

/// Right before a call that the API can see, and right after the one that may take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    Read,
    Submit,
    Submitted,
    Poll,
    Raise,
}

impl Point {
    /// As `HOLDFAST_HALT` names it.
    fn name(self) -> &'static str {
        match self {
            Point::Read => "read",
            Point::Submit => "submit",
            Point::Submitted => "submitted",
            Point::Poll => "poll",
            Point::Raise => "raise",
        }
    }

    pub(super) fn reached(self) {
        halt::before(self.name());
    }
}

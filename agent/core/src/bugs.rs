//! Seeded faults, each of which a named test must catch. Without the feature `bugs` every question is answered "no" at
//! compile time.

/// A fault that can be put into the agent's decisions on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A mutating step starts without asking for a permit.
    PermitNotAsked = 1,
    /// The highest fence seen is not compared with an offer's.
    FenceNotCompared = 2,
    /// A permit is used although the agent's own count of the lease has run out.
    PermitUsedAfterLease = 3,
    /// After a restart a started step whose exit is not known is reported as failed.
    GoneIsFailed = 4,
}

impl Bug {
    /// Every fault.
    pub const ALL: &'static [Bug] =
        &[Bug::PermitNotAsked, Bug::FenceNotCompared, Bug::PermitUsedAfterLease, Bug::GoneIsFailed];

    /// Its name, as tests give it: `permit_not_asked`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bug::PermitNotAsked => "permit_not_asked",
            Bug::FenceNotCompared => "fence_not_compared",
            Bug::PermitUsedAfterLease => "permit_used_after_lease",
            Bug::GoneIsFailed => "gone_is_failed",
        }
    }
}

#[cfg(feature = "bugs")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    static ON: AtomicU8 = AtomicU8::new(0);

    /// Switches one fault on for the whole process, or all off.
    pub fn set(bug: Option<Bug>) {
        ON.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
    }

    /// Whether this fault is on.
    #[must_use]
    pub fn on(bug: Bug) -> bool {
        ON.load(Ordering::SeqCst) == bug as u8
    }
}

#[cfg(feature = "bugs")]
pub use switch::{on, set};

/// Whether this fault is on: never, in this build.
#[cfg(not(feature = "bugs"))]
#[must_use]
pub(crate) const fn on(_bug: Bug) -> bool {
    false
}

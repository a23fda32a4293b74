//! Faults that tests switch on by purpose, to prove that they would be noticed.
//!
//! With the feature `bugs`, `HOLDFAST_BUG=<name>` switches one on for the life of the process. Without the feature
//! [`on`] is a constant `false`, and the compiler drops what stands behind it. A shipped binary never has the feature.

/// One fault of this crate. The faults of the decisions are in the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Answers leave before the commit that covers them.
    ReplyBeforeCommit,
    /// Effects leave before the commit that covers them.
    SendBeforeCommit,
    /// The store does not wait for the disk.
    SynchronousOff,
    /// A report that comes again is taken as a new one.
    SkipReportDedupe,
    /// A submission that comes again is taken as a new one.
    SkipRequestLookup,
    /// A restart takes the last written sign of life for the last one.
    LoseLeaseOnRestart,
    /// The time that a run serves is not written, so that a crash loop keeps a dead lease.
    ForgetServedTime,
    /// What was handed out to a session that is gone is not handed out again.
    SendOnlyOnce,
}

impl Bug {
    /// Every fault, for tests that walk them.
    pub const ALL: &'static [Bug] = &[
        Bug::ReplyBeforeCommit,
        Bug::SendBeforeCommit,
        Bug::SynchronousOff,
        Bug::SkipReportDedupe,
        Bug::SkipRequestLookup,
        Bug::LoseLeaseOnRestart,
        Bug::ForgetServedTime,
        Bug::SendOnlyOnce,
    ];

    /// As in `HOLDFAST_BUG`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bug::ReplyBeforeCommit => "reply_before_commit",
            Bug::SendBeforeCommit => "send_before_commit",
            Bug::SynchronousOff => "synchronous_off",
            Bug::SkipReportDedupe => "skip_report_dedupe",
            Bug::SkipRequestLookup => "skip_request_lookup",
            Bug::LoseLeaseOnRestart => "lose_lease_on_restart",
            Bug::ForgetServedTime => "forget_served_time",
            Bug::SendOnlyOnce => "send_only_once",
        }
    }
}

/// Whether the fault is switched on.
#[cfg(not(feature = "bugs"))]
#[inline]
#[must_use]
pub fn on(_bug: Bug) -> bool {
    false
}

#[cfg(feature = "bugs")]
pub use switched::{forward, on, set};

#[cfg(feature = "bugs")]
mod switched {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Once, PoisonError, RwLock};

    use super::Bug;

    static READ: Once = Once::new();
    static NAME: RwLock<Option<String>> = RwLock::new(None);
    static CURRENT: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Whether the fault is switched on, by [`set`] or by the environment.
    #[must_use]
    pub fn on(bug: Bug) -> bool {
        READ.call_once(|| {
            if let Ok(name) = std::env::var("HOLDFAST_BUG") {
                put(&name);
            }
        });
        CURRENT.load(Ordering::Relaxed) == bug as usize
    }

    /// Switches one on instead of the environment's, or all off.
    pub fn set(bug: Option<Bug>) {
        READ.call_once(|| {});
        put(bug.map_or("", Bug::name));
    }

    /// Hands the environment's name to `other`, for crates that read no environment themselves.
    pub fn forward(other: impl FnOnce(&str)) {
        let _read = on(Bug::ReplyBeforeCommit);
        if let Some(name) = NAME.read().unwrap_or_else(PoisonError::into_inner).as_deref() {
            other(name);
        }
    }

    fn put(name: &str) {
        *NAME.write().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
        let found = Bug::ALL.iter().find(|bug| bug.name() == name);
        CURRENT.store(found.map_or(usize::MAX, |bug| *bug as usize), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        for (index, bug) in Bug::ALL.iter().enumerate() {
            assert_eq!(Bug::ALL.iter().position(|other| other.name() == bug.name()), Some(index));
        }
    }
}

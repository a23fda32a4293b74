//! Named places at which a test can make the process end as `kill -9` would end it.
//!
//! With the feature `bugs`, `HOLDFAST_CRASH=coordinator:<name>[:<n>]` aborts the process when the place is passed for
//! the n-th time (the first, unless said). Before that it writes the name to the file `HOLDFAST_CRASH_NOTE`, where one is
//! named: proof that it was there. With `=stop` behind it the process stops there as by SIGSTOP instead, and goes on when it is
//! continued. Without the feature [`reached`] is empty. A test walks [`CrashPoint::ALL`].

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// One place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CrashPoint { $($(#[$doc])* $point,)* }

        impl CrashPoint {
            /// Every place.
            pub const ALL: &'static [CrashPoint] = &[$(CrashPoint::$point,)*];

            /// As in `HOLDFAST_CRASH`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(CrashPoint::$point => $name,)* }
            }
        }
    };
}

points! {
    /// Inputs are decided, nothing is on disk.
    BeforeCommit = "before-commit",
    /// On disk, nobody was told.
    AfterCommit = "after-commit",
    /// The commit holds a new submission.
    BeforeSubmitCommit = "before-submit-commit",
    /// The same, after it.
    AfterSubmitCommit = "after-submit-commit",
    /// The commit holds a new lease.
    BeforeLeaseCommit = "before-lease-commit",
    /// The same, after it.
    AfterLeaseCommit = "after-lease-commit",
    /// The commit holds a permit.
    BeforePermitCommit = "before-permit-commit",
    /// The same, after it.
    AfterPermitCommit = "after-permit-commit",
    /// The commit holds an accepted or filed report.
    BeforeReportCommit = "before-report-commit",
    /// The same, after it.
    AfterReportCommit = "after-report-commit",
    /// The commit holds a request to stop.
    BeforeCancelCommit = "before-cancel-commit",
    /// The same, after it.
    AfterCancelCommit = "after-cancel-commit",
    /// The commit holds a question to a resource, with its fence.
    BeforeInquiryCommit = "before-inquiry-commit",
    /// The same, after it.
    AfterInquiryCommit = "after-inquiry-commit",
    /// The commit holds a recovery decision.
    BeforeDecisionCommit = "before-decision-commit",
    /// The same, after it.
    AfterDecisionCommit = "after-decision-commit",
    /// An answer is about to be given.
    BeforeReply = "before-reply",
    /// An answer was given.
    AfterReply = "after-reply",
    /// An offer is about to be handed to a session that takes it.
    BeforeOffer = "before-offer",
    /// The same, after it.
    AfterOffer = "after-offer",
    /// A request to stop is about to be handed to a session that takes it.
    BeforeCancel = "before-cancel",
    /// The same, after it.
    AfterCancel = "after-cancel",
    /// A question to a resource is about to be handed to a session that takes it.
    BeforeInquiry = "before-inquiry",
    /// The same, after it.
    AfterInquiry = "after-inquiry",
}

/// The place is passed.
#[cfg(not(feature = "bugs"))]
#[inline]
pub fn reached(_point: CrashPoint) {}

#[cfg(feature = "bugs")]
pub use armed::reached;

#[cfg(feature = "bugs")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::CrashPoint;

    struct Armed {
        name: String,
        passes: AtomicU32,
        at: u32,
        stops: bool,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    /// The place is passed. Aborts the process if it is the one that the environment names.
    pub fn reached(point: CrashPoint) {
        let Some(armed) = ARMED.get_or_init(|| std::env::var("HOLDFAST_CRASH").ok().as_deref().and_then(parse)) else {
            return;
        };
        if armed.name == point.name() && armed.passes.fetch_add(1, Ordering::Relaxed) + 1 == armed.at {
            leave_note(point.name());
            if !armed.stops {
                std::process::abort();
            }
            kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
        }
    }

    fn leave_note(name: &str) {
        if let Some(file) = std::env::var_os("HOLDFAST_CRASH_NOTE") {
            let _the_test_sees_that_it_is_missing = std::fs::write(file, name);
        }
    }

    fn parse(text: &str) -> Option<Armed> {
        let rest = text.strip_prefix("coordinator:")?;
        let (rest, stops) = rest.strip_suffix("=stop").map_or((rest, false), |rest| (rest, true));
        let (name, at) = rest.split_once(':').unwrap_or((rest, "1"));
        Some(Armed { name: name.to_owned(), passes: AtomicU32::new(0), at: at.parse().ok()?, stops })
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn only_this_programs_points_are_armed() {
            assert!(super::parse("agent:before-commit").is_none());
            let armed = super::parse("coordinator:before-commit:3").unwrap();
            assert_eq!((armed.name.as_str(), armed.at), ("before-commit", 3));
            assert_eq!(super::parse("coordinator:after-offer").unwrap().at, 1);
            let stops = super::parse("coordinator:after-offer:2=stop").unwrap();
            assert_eq!((stops.name.as_str(), stops.at, stops.stops, armed.stops), ("after-offer", 2, true, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_name_of_its_own() {
        for (index, point) in CrashPoint::ALL.iter().enumerate() {
            assert_eq!(CrashPoint::ALL.iter().position(|other| other.name() == point.name()), Some(index));
        }
    }
}

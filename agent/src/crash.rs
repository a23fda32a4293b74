//! Named places where a test can make the agent die.
//!
//! `HOLDFAST_CRASH=name` aborts the process when it first passes the point of that name, `HOLDFAST_CRASH=name:n` at its
//! n-th pass. With `=stop` behind it the process stops there as by SIGSTOP instead, and goes on when it is continued. Before that it writes the name to the file `HOLDFAST_CRASH_NOTE`, where one is named: proof that it was there.
//! Without the feature `bugs` a point is nothing at all.

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A place between two durable or visible acts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CrashPoint { $($(#[$doc])* $point,)* }

        impl CrashPoint {
            /// Every point.
            pub const ALL: &'static [CrashPoint] = &[$(CrashPoint::$point,)*];

            /// As `HOLDFAST_CRASH` names it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(CrashPoint::$point => $name,)* }
            }
        }
    };
}

points! {
    /// A batch was written to the journal and is not committed.
    BeforeJournalCommit = "before-journal-commit",
    /// A batch is committed and nobody has been told.
    AfterJournalCommit = "after-journal-commit",
    /// An offer is journaled as taken, and not answered.
    BeforeOfferAnswer = "before-offer-answer",
    /// The answer to an offer was handed to the session.
    AfterOfferAnswer = "after-offer-answer",
    /// "Asked" is in the journal, and nobody was asked for the permit.
    BeforePermitRequest = "before-permit-request",
    /// The request for a permit was handed to the session.
    AfterPermitRequest = "after-permit-request",
    /// A permit was heard, and nothing of it is in the journal.
    PermitHeard = "permit-heard",
    /// "Starting" is in the journal and no shim runs.
    BeforeShimSpawn = "before-shim-spawn",
    /// A shim runs and the agent has not heard of it.
    AfterShimSpawn = "after-shim-spawn",
    /// The shim has its locks and has not made the start record.
    BeforeStartRecord = "before-start-record",
    /// The start record stands and the body does not run.
    AfterStartRecord = "after-start-record",
    /// The body runs and its record is not written.
    AfterBodySpawn = "after-body-spawn",
    /// The body ended and its exit is not recorded.
    BeforeExitRecord = "before-exit-record",
    /// The exit is recorded and the shim still has its locks.
    AfterExitRecord = "after-exit-record",
    /// A report is in the journal and was not said.
    BeforeReportSend = "before-report-send",
    /// A report was handed to the session.
    AfterReportSend = "after-report-send",
    /// The answer to a report was heard, and is not in the journal.
    DispositionHeard = "disposition-heard",
    /// A request to stop was heard, and is not in the journal.
    CancelHeard = "cancel-heard",
    /// The shim is about to be asked for a stop.
    BeforeStopRequest = "before-stop-request",
    /// The shim was asked for a stop.
    AfterStopRequest = "after-stop-request",
    /// A step is about to be made one that never started.
    BeforeTombstone = "before-tombstone",
    /// The tombstone stands, and nobody was told.
    AfterTombstone = "after-tombstone",
    /// A resource is about to be looked at or raised.
    BeforeInquiry = "before-inquiry",
    /// A resource was looked at or raised, and nobody was told.
    AfterInquiry = "after-inquiry",
}

impl CrashPoint {
    /// Whether the shim passes it, and not the agent.
    #[must_use]
    pub fn is_in_shim(self) -> bool {
        matches!(
            self,
            CrashPoint::BeforeStartRecord
                | CrashPoint::AfterStartRecord
                | CrashPoint::AfterBodySpawn
                | CrashPoint::BeforeExitRecord
                | CrashPoint::AfterExitRecord
        )
    }
}

/// Passes a point.
#[cfg(not(feature = "bugs"))]
pub fn point(_point: CrashPoint) {}

/// Passes a point, or dies there.
#[cfg(feature = "bugs")]
pub fn point(point: CrashPoint) {
    if armed::is_due(point.name()) {
        armed::leave_note(point.name());
        armed::end();
    }
}

#[cfg(feature = "bugs")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    struct Armed {
        name: String,
        pass: u64,
        stops: bool,
    }

    const UNTIL_STOPPED: Duration = Duration::from_millis(200);

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    static PASSES: AtomicU64 = AtomicU64::new(0);

    pub(super) fn is_due(name: &str) -> bool {
        match armed() {
            Some(armed) if armed.name == name => PASSES.fetch_add(1, Ordering::SeqCst) + 1 == armed.pass,
            Some(_) | None => false,
        }
    }

    pub(super) fn end() {
        if !armed().as_ref().is_some_and(|armed| armed.stops) {
            std::process::abort();
        }
        kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
        // Another thread may be the one to take the signal: until it has, this one must not go on.
        std::thread::sleep(UNTIL_STOPPED);
    }

    fn armed() -> &'static Option<Armed> {
        ARMED.get_or_init(|| {
            let text = std::env::var("HOLDFAST_CRASH").ok()?;
            let (text, stops) = text.strip_suffix("=stop").map_or((text.as_str(), false), |rest| (rest, true));
            let (name, pass) = text.split_once(':').unwrap_or((text, "1"));
            Some(Armed { name: name.to_owned(), pass: pass.parse().expect("HOLDFAST_CRASH is name or name:n"), stops })
        })
    }

    pub(super) fn leave_note(name: &str) {
        if let Some(file) = std::env::var_os("HOLDFAST_CRASH_NOTE") {
            let _the_test_sees_that_it_is_missing = std::fs::write(file, name);
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

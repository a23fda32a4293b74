//! Named places where a test can make the agent die.
//!
//! `HOLDFAST_CRASH=name` aborts the process when it first passes the point of that name, `HOLDFAST_CRASH=name:n` at its
//! n-th pass. Without the feature `bugs` a point is nothing at all.

/// A place between two durable or visible acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CrashPoint {
    /// A batch was written to the journal and is not committed.
    BeforeJournalCommit,
    /// A batch is committed and nobody has been told.
    AfterJournalCommit,
    /// "Starting" is in the journal and no shim runs.
    BeforeShimSpawn,
    /// A shim runs and the agent has not heard of it.
    AfterShimSpawn,
    /// The shim has its locks and has not made the start record.
    BeforeStartRecord,
    /// The start record stands and the body does not run.
    AfterStartRecord,
    /// The body runs and its record is not written.
    AfterBodySpawn,
    /// The body ended and its exit is not recorded.
    BeforeExitRecord,
    /// The exit is recorded and the shim still has its locks.
    AfterExitRecord,
}

impl CrashPoint {
    /// Every point.
    pub const ALL: &'static [CrashPoint] = &[
        CrashPoint::BeforeJournalCommit,
        CrashPoint::AfterJournalCommit,
        CrashPoint::BeforeShimSpawn,
        CrashPoint::AfterShimSpawn,
        CrashPoint::BeforeStartRecord,
        CrashPoint::AfterStartRecord,
        CrashPoint::AfterBodySpawn,
        CrashPoint::BeforeExitRecord,
        CrashPoint::AfterExitRecord,
    ];

    /// As `HOLDFAST_CRASH` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CrashPoint::BeforeJournalCommit => "before-journal-commit",
            CrashPoint::AfterJournalCommit => "after-journal-commit",
            CrashPoint::BeforeShimSpawn => "before-shim-spawn",
            CrashPoint::AfterShimSpawn => "after-shim-spawn",
            CrashPoint::BeforeStartRecord => "before-start-record",
            CrashPoint::AfterStartRecord => "after-start-record",
            CrashPoint::AfterBodySpawn => "after-body-spawn",
            CrashPoint::BeforeExitRecord => "before-exit-record",
            CrashPoint::AfterExitRecord => "after-exit-record",
        }
    }
}

/// Passes a point.
#[cfg(not(feature = "bugs"))]
pub fn point(_point: CrashPoint) {}

/// Passes a point, or dies there.
#[cfg(feature = "bugs")]
pub fn point(point: CrashPoint) {
    if armed::is_due(point.name()) {
        std::process::abort();
    }
}

#[cfg(feature = "bugs")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ARMED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSES: AtomicU64 = AtomicU64::new(0);

    pub(super) fn is_due(name: &str) -> bool {
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var("HOLDFAST_CRASH").ok()?;
            let (name, pass) = text.split_once(':').unwrap_or((&text, "1"));
            Some((name.to_owned(), pass.parse().expect("HOLDFAST_CRASH is name or name:n")))
        });
        match armed {
            Some((wanted, pass)) if wanted == name => PASSES.fetch_add(1, Ordering::SeqCst) + 1 == *pass,
            Some(_) | None => false,
        }
    }
}

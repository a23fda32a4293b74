//! Faults put in on purpose, each of which a named test must catch: proof that the tests can fail.
//!
//! Without the feature `bugs` this is the constant `false`, and the compiler drops every branch that asks.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug { $($(#[$doc])* $name,)* }

        impl Bug {
            /// Every fault.
            pub const ALL: &'static [Bug] = &[$(Bug::$name,)*];

            /// Its name, as in `HOLDFAST_BUG`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Bug::$name => $text,)* }
            }

            /// By its name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Bug> {
                Bug::ALL.iter().copied().find(|bug| bug.name() == text)
            }
        }
    };
}

bugs! {
    /// A permit is granted without its checks.
    SkipPermitCheck = "skip_permit_check";
    /// The fence of a claim is not compared with the lease's.
    SkipFenceCompare = "skip_fence_compare";
    /// A lapse frees the target although a permit is open.
    FreeOnExpiry = "free_on_expiry";
    /// A success after a cancel is told as cancelled.
    CancelWins = "cancel_wins";
    /// Silence with a permit open is told as a failure.
    LapseAsFailed = "lapse_as_failed";
    /// A report is accepted after its lease had lapsed.
    AcceptAfterLapse = "accept_after_lapse";
    /// An uncertain attempt is followed by another through a timer.
    RetryUncertainByTimer = "retry_uncertain_by_timer";
    /// A report that was answered before is answered `accepted` again.
    DuplicateAccepted = "duplicate_accepted";
    /// A reading counts although the runner was not out when it was asked for.
    ReadingBeforeRunnerOut = "reading_before_runner_out";
    /// "Not started" is said of a permitted step without its tombstone.
    TombstoneIgnored = "tombstone_ignored";
    /// A second permit is granted while one is open.
    SecondPermit = "second_permit";
    /// The next lease of a requeued deployment has the fence of the one before.
    ForgetFenceOnRequeue = "forget_fence_on_requeue";
    /// A decision is taken although newer evidence came.
    EvidenceMovedIgnored = "evidence_moved_ignored";
    /// A step's passed deadline ends the deployment.
    TimeoutEnds = "timeout_ends";
    /// The deployment's own passed deadline ends it.
    DeploymentTimeoutEnds = "deployment_timeout_ends";
    /// A check that failed is told as a success.
    VerifyIgnored = "verify_ignored";
    /// A check that held in an earlier attempt is carried over like a change.
    VerifyCarried = "verify_carried";
    /// A new attempt begins although an operator has put the target on hold.
    StartUnderHold = "start_under_hold";
    /// A change is permitted although what is carried over was not found as it was left.
    CarryUnread = "carry_unread";
    /// A rollback on top of something unresolved frees the target without a change of its own.
    RollbackFreesUnresolved = "rollback_frees_unresolved";
    /// A decision is open although the runner may still be changing the target.
    DecideOverRunner = "decide_over_runner";
    /// The word that a process ended counts although its effect can outlive it.
    OutlivingCountsAsOut = "outliving_counts_as_out";
    /// A reading counts although it was taken of another resource than the one that was read before.
    OtherResourceCounts = "other_resource_counts";
    /// A process is readmitted although a fence above its own was allocated since.
    ReadmitBelowFence = "readmit_below_fence";
    /// Another attempt is open to decide although a stop was asked for.
    RetryOverCancel = "retry_over_cancel";
    /// A step that is not safe to repeat may be repeated although it may be there in part.
    RepeatUnsafe = "repeat_unsafe";
    /// A lease outlasts a second planned absence, too.
    AwayAgain = "away_again";
}

/// Whether a fault is on.
#[cfg(not(feature = "bugs"))]
#[inline(always)]
#[must_use]
pub const fn on(_: Bug) -> bool {
    false
}

#[cfg(feature = "bugs")]
pub use switch::{on, set};

#[cfg(feature = "bugs")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Bug;

    static ON: AtomicUsize = AtomicUsize::new(0);

    /// Switches one fault on, or all off.
    pub fn set(bug: Option<Bug>) {
        let place = bug.and_then(|bug| Bug::ALL.iter().position(|other| *other == bug)).map_or(0, |at| at + 1);
        ON.store(place, Ordering::SeqCst);
    }

    /// Whether a fault is on.
    #[must_use]
    pub fn on(bug: Bug) -> bool {
        ON.load(Ordering::SeqCst).checked_sub(1).and_then(|at| Bug::ALL.get(at)) == Some(&bug)
    }
}

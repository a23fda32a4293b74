//! Each fault that can be put in on purpose is caught: by the random sequences, or by the exact decision that its test
//! names. Proof that the other tests can fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_coordinator_core::bugs::Bug;

use crate::{absence, decisions, random, recovery, rollback, scene};

/// Enough for every fault that the sequences can see; each is found within the first few.
const SEQUENCES: u64 = 3_000;

fn caught_by_sequences(bug: Bug) {
    let result = scene::with_fault(bug, || random::run(0, 1, SEQUENCES));
    let failure = result.expect_err("the fault was not noticed");
    println!("{}: {}", bug.name(), failure.lines().next().unwrap_or_default());
}

fn caught_by(bug: Bug, test: fn()) {
    test();
    let result = scene::with_fault(bug, || catch_unwind(AssertUnwindSafe(test)));
    assert!(result.is_err(), "the fault was not noticed");
}

macro_rules! faults {
    (by sequences { $($name:ident: $bug:ident;)* } by tests { $($exact:ident: $fault:ident, $test:path;)* }) => {
        $(#[test] fn $name() { caught_by_sequences(Bug::$bug); })*
        $(#[test] fn $exact() { caught_by(Bug::$fault, $test); })*

        #[test]
        fn every_fault_has_its_test() {
            let tested = [$(Bug::$bug,)* $(Bug::$fault,)*];
            assert!(Bug::ALL.iter().all(|bug| tested.contains(bug)));
            assert!(Bug::ALL.iter().all(|bug| Bug::parse(bug.name()) == Some(*bug)));
        }
    };
}

faults! {
    by sequences {
        a_skipped_permit_check_is_caught: SkipPermitCheck;
        a_skipped_fence_compare_is_caught: SkipFenceCompare;
        a_target_freed_on_expiry_is_caught: FreeOnExpiry;
        a_cancel_that_wins_over_success_is_caught: CancelWins;
        silence_told_as_failure_is_caught: LapseAsFailed;
        a_report_accepted_after_its_lease_is_caught: AcceptAfterLapse;
        a_retry_of_the_uncertain_by_a_timer_is_caught: RetryUncertainByTimer;
        a_report_accepted_twice_is_caught: DuplicateAccepted;
        a_missing_tombstone_is_caught: TombstoneIgnored;
        a_second_permit_is_caught: SecondPermit;
        a_fence_that_does_not_grow_is_caught: ForgetFenceOnRequeue;
        a_timeout_that_ends_is_caught: TimeoutEnds;
        a_deadline_of_the_whole_that_ends_is_caught: DeploymentTimeoutEnds;
        a_failed_check_told_as_success_is_caught: VerifyIgnored;
        a_check_carried_over_is_caught: VerifyCarried;
        a_start_under_hold_is_caught: StartUnderHold;
        a_change_over_what_was_not_read_again_is_caught: CarryUnread;
        a_decision_over_a_runner_is_caught: DecideOverRunner;
        a_repeated_unsafe_step_is_caught: RepeatUnsafe;
        a_retry_over_a_cancel_is_caught: RetryOverCancel;
    }
    by tests {
        a_decision_on_old_evidence_is_caught: EvidenceMovedIgnored, decisions::a_decision_on_old_evidence_is_refused;
        a_reading_before_the_runner_was_out_is_caught: ReadingBeforeRunnerOut, decisions::a_reading_counts_only_if_it_was_asked_for_after_the_runner_was_out;
        a_rollback_that_frees_the_unresolved_is_caught: RollbackFreesUnresolved, rollback::a_rollback_on_something_unresolved_holds_the_target_until_a_change_of_its_own_is_applied;
        an_outliving_effect_that_counts_as_out_is_caught: OutlivingCountsAsOut, decisions::a_late_end_proves_the_runner_out_only_where_its_effect_cannot_outlive_it;
        a_reading_of_another_resource_is_caught: OtherResourceCounts, decisions::a_reading_of_another_resource_proves_nothing;
        a_readmission_below_a_fence_is_caught: ReadmitBelowFence, recovery::no_readmission_after_a_fence_off_an_end_or_an_attestation;
        a_second_absence_is_caught: AwayAgain, absence::a_second_absence_adds_nothing;
        an_early_permit_is_caught_exactly: SecondPermit, decisions::a_second_permit_waits_for_the_first;
    }
}

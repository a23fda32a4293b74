//! Each rule of the design that is taken out gives a counterexample: the search of a small world, which is clean with the
//! rule in force, stops with the shortest history in which an invariant or the oracle is contradicted. Breadth first, there
//! is no shorter one. `cargo nextest run counterexample --no-capture` prints the histories.

use holdfast_coordinator_core::bugs::Bug;

use super::worlds::*;
use super::{Small, search};
use crate::scene;

/// One rule that is taken out.
struct Rule {
    bug: Bug,
    /// What the design says.
    says: &'static str,
    /// The world that shows why.
    world: Small,
    /// What does not hold without it: the start of what the search says.
    breaks: &'static str,
}

fn find(rule: &Rule) {
    let Rule { bug, says, world, breaks } = rule;
    let found = scene::with_fault(*bug, || search(world));
    let Err(counterexample) = found else { panic!("no counterexample without the rule: {says}") };
    println!("{} takes out: {says}", bug.name());
    println!("{} moves, {} states visited", counterexample.length(), counterexample.visited);
    println!("{counterexample}");
    assert!(counterexample.broken.starts_with(breaks), "it breaks something else: {}", counterexample.broken);
}

macro_rules! rules {
    ($($test:ident: $bug:ident, $says:literal, $world:ident, $breaks:literal;)*) => {
        /// Every rule that is taken out.
        const RULES: &[Rule] =
            &[$(Rule { bug: Bug::$bug, says: $says, world: $world, breaks: $breaks },)*];

        $(#[test] fn $test() { find(&Rule { bug: Bug::$bug, says: $says, world: $world, breaks: $breaks }); })*
    };
}

rules! {
    without_the_permit_check_there_is_a_counterexample: SkipPermitCheck,
        "I3: no permit after a stop was recorded", CANCEL, "I3";
    without_the_hold_of_an_open_permit_there_is_a_counterexample: FreeOnExpiry,
        "I7: a lapse with an open permit frees nothing", LOSS, "I7";
    without_the_precedence_of_success_there_is_a_counterexample: CancelWins,
        "F60: a success stays one, whoever asked for a stop", CANCEL, "F60";
    without_the_word_uncertain_there_is_a_counterexample: LapseAsFailed,
        "I5: silence is no failure", LOSS, "I7";
    without_the_end_of_a_lease_there_is_a_counterexample: AcceptAfterLapse,
        "I3: nothing is permitted after a lease's time, whether or not a clock has told", LATE_TIMER, "I3";
    without_a_decision_on_the_uncertain_there_is_a_counterexample: RetryUncertainByTimer,
        "I4: no timer follows an open permit with another attempt", LOSS, "I4";
    without_one_answer_per_report_there_is_a_counterexample: DuplicateAccepted,
        "I8: a report is accepted once", LOSS, "I8";
    without_the_tombstone_there_is_a_counterexample: TombstoneIgnored,
        "I14: nothing is said to be unchanged without a tombstone of each permit", LOSS, "I14";
    without_one_permit_at_a_time_there_is_a_counterexample: SecondPermit,
        "I4: one open permit", CARRY, "I4";
    without_growing_fences_there_is_a_counterexample: ForgetFenceOnRequeue,
        "I2: each lease has a fence above all before it", LOSS, "I2";
    without_the_newest_evidence_there_is_a_counterexample: EvidenceMovedIgnored,
        "a decision names the newest evidence", RECOVER, "EVIDENCE";
    without_the_order_of_readings_there_is_a_counterexample: ReadingBeforeRunnerOut,
        "a reading counts if it was asked for after the runner was out", RECOVER_UNFENCED, "O5";
    without_a_deadline_that_is_a_request_there_is_a_counterexample: TimeoutEnds,
        "I9: a step's deadline asks for a stop and ends nothing", STEP_DEADLINE, "a decision contradicts the state: the attempt can't end so";
    without_a_whole_deadline_that_is_a_request_there_is_a_counterexample: DeploymentTimeoutEnds,
        "I9: the deployment's deadline asks for a stop and ends nothing", DEADLINE, "a decision contradicts the state: the attempt can't end so";
    without_the_word_of_a_check_there_is_a_counterexample: VerifyIgnored,
        "a check that failed is no success", CHECK, "I7";
    without_a_check_that_runs_again_there_is_a_counterexample: VerifyCarried,
        "a check is never carried over", CHECK, "I7";
    without_the_hold_there_is_a_counterexample: StartUnderHold,
        "I17: nothing new begins under a hold", HOLD, "I17";
    without_reading_again_what_is_carried_there_is_a_counterexample: CarryUnread,
        "I18: nothing is permitted over what was not read again", CARRY, "I18";
    without_the_hold_of_the_unresolved_there_is_a_counterexample: RollbackFreesUnresolved,
        "I7: a rollback on something unresolved frees nothing by itself", ROLLBACK_CANCEL, "I7";
    without_a_runner_that_is_out_there_is_a_counterexample: DecideOverRunner,
        "I4: nothing is decided while the runner may be at work", LOSS, "I4";
    without_effects_that_outlive_there_is_a_counterexample: OutlivingCountsAsOut,
        "the end of a process proves nothing where its effect can outlive it", RECOVER_OUTLIVING, "I4";
    without_the_identity_of_the_resource_there_is_a_counterexample: OtherResourceCounts,
        "a reading of another resource proves nothing", STRAY, "I4";
    without_the_fence_of_a_readmission_there_is_a_counterexample: ReadmitBelowFence,
        "I2: nothing is readmitted below a fence that was allocated since", READMIT_OR_RAISE, "I2";
    without_a_cancel_that_bars_a_retry_there_is_a_counterexample: RetryOverCancel,
        "no other attempt follows a stop", CANCEL, "stuck";
    without_the_class_of_a_step_there_is_a_counterexample: RepeatUnsafe,
        "I10: an unsafe step that is there in part is not repeated", IN_PART, "I10";
    without_one_absence_per_lease_there_is_a_counterexample: AwayAgain,
        "I19: a lease outlasts one planned absence", ABSENCE, "I19";
}

/// What no small world can see, and why.
const UNSEEN: &[(Bug, &str)] = &[(
    Bug::SkipFenceCompare,
    "no honest agent names another fence than its attempt's; the random worlds have strangers",
)];

#[test]
fn each_rule_of_the_core_that_is_taken_out_has_its_counterexample_or_its_reason() {
    assert!(RULES.len() >= 12);
    for bug in Bug::ALL {
        let shown = RULES.iter().filter(|rule| rule.bug == *bug).count();
        let unseen = UNSEEN.iter().filter(|(other, why)| other == bug && !why.is_empty()).count();
        assert_eq!(shown + unseen, 1, "{} is in neither table, or in both", bug.name());
    }
}

//! The small worlds. Each is searched to closure; what is found is printed: `cargo nextest run small_world --no-capture`.

use holdfast_common::outcome::FailureClass;
use holdfast_common::spec::{Reach, RetryClass, TargetSpec};

use super::{Budget, Change, Found, Small, Timed, search};
use crate::agent::End;
use crate::ledger::Truth;
use crate::specs::{cart, shop, site};

const APPLIED: &[End] = &[End::Applied];
/// The agent can't tell how it ended; the process is gone.
const APPLIED_OR_UNKNOWN: &[End] = &[End::Applied, End::Unknown { truth: Truth::Whole, gone: true }];
/// The agent can't tell how it ended, and what it began goes on.
const APPLIED_OR_OUTLIVED: &[End] = &[End::Applied, End::Unknown { truth: Truth::Whole, gone: false }];
const APPLIED_OR_FAILED: &[End] = &[End::Applied, End::Failed { partial: false, class: FailureClass::Permanent }];
const APPLIED_OR_IN_PART: &[End] = &[End::Applied, End::Failed { partial: true, class: FailureClass::Permanent }];
const APPLIED_OR_TRANSIENT: &[End] = &[End::Applied, End::Failed { partial: false, class: FailureClass::Transient }];
const IN_ANY_WAY: &[End] = &[
    End::Applied,
    End::Unknown { truth: Truth::Whole, gone: true },
    End::Failed { partial: true, class: FailureClass::Permanent },
];

const NOTHING: Budget = Budget {
    lost: 0,
    doubled: 0,
    lapses: 0,
    cancels: 0,
    raises: 0,
    looks: 0,
    strays: 0,
    words: 0,
    attests: 0,
    deadlines: 0,
    holds: 0,
    edits: 0,
    detaches: 0,
};

/// A release that a fence protects.
fn release() -> TargetSpec {
    site(Reach::Shared)
}

/// An application, and a database that nobody can read and whose effects outlive their process.
fn shop_of_two() -> TargetSpec {
    shop(Reach::Shared)
}

/// An application that can be read, whose effects end with their process.
fn bound() -> TargetSpec {
    cart(false)
}

/// An application that can be read, whose effects outlive their process.
fn outliving() -> TargetSpec {
    cart(true)
}

/// One release, two attempts.
const RELEASE: Small = Small {
    target: release,
    change: Change::Once("site"),
    retry: RetryClass::Idempotent,
    checked: false,
    ends: APPLIED,
    timed: Timed::Nothing,
    rollback_first: false,
    lapses_at_work: false,
    in_order: false,
    hurried: false,
    late_timer: false,
    attempts: 2,
    budget: NOTHING,
};

/// One lost and one doubled message, and a lapse.
pub const LOSS: Small = Small { budget: Budget { lost: 1, doubled: 1, lapses: 1, ..NOTHING }, ..RELEASE };

/// One lost message, a lapse, and a raise of the resource's fence.
pub const RAISE: Small = Small {
    ends: APPLIED_OR_UNKNOWN,
    in_order: true,
    budget: Budget { lost: 1, lapses: 1, raises: 1, ..NOTHING },
    ..RELEASE
};

/// One lost message, a lapse, and a cancel. The agent confirms it with two reports more: in any order, they would make the
/// world three times as large.
pub const CANCEL: Small = Small {
    retry: RetryClass::Unsafe,
    in_order: true,
    budget: Budget { lost: 1, lapses: 1, cancels: 1, ..NOTHING },
    ..RELEASE
};

/// One lost message, a lapse, and a hold that is placed and taken away at any moment.
pub const HOLD: Small = Small { budget: Budget { lost: 1, lapses: 1, holds: 1, ..NOTHING }, ..RELEASE };

/// A lapse, and the deployment's own deadline.
pub const DEADLINE: Small = Small {
    retry: RetryClass::Unsafe,
    timed: Timed::Deployment,
    budget: Budget { lapses: 1, deadlines: 1, ..NOTHING },
    ..RELEASE
};

/// The same with the deadline of the one step.
pub const STEP_DEADLINE: Small = Small { timed: Timed::Step, ..DEADLINE };

/// A lapse, a check behind the change, and a hand that changes the target between the two attempts.
pub const EDIT: Small = Small { checked: true, budget: Budget { lapses: 1, edits: 1, ..NOTHING }, ..RELEASE };

/// A lapse, and a check behind the change that may fail.
pub const CHECK: Small =
    Small { checked: true, ends: APPLIED_OR_FAILED, budget: Budget { lapses: 1, ..NOTHING }, ..RELEASE };

/// Leases whose time passes before the coordinator looks at its clock.
pub const LATE_TIMER: Small = Small { late_timer: true, budget: Budget { lost: 1, lapses: 1, ..NOTHING }, ..RELEASE };

/// Two changes one after another, the second of which may fail for the moment: the first is carried over and read again.
pub const CARRY: Small = Small {
    target: shop_of_two,
    change: Change::Twice,
    ends: APPLIED_OR_TRANSIENT,
    in_order: true,
    budget: Budget { lapses: 1, edits: 1, ..NOTHING },
    ..RELEASE
};

/// A change that is not safe to repeat, whose agent falls silent while it is at work.
const LOST: Small = Small { retry: RetryClass::Unsafe, lapses_at_work: true, in_order: true, ..RELEASE };

/// A look and a raise, in flight over every decision. Nothing is lost here: a letter that never arrives is one that the
/// search never delivers.
pub const RECOVER: Small =
    Small { hurried: true, budget: Budget { lapses: 1, looks: 1, raises: 1, ..NOTHING }, ..LOST };

/// A change that ends in part, in time or too late, and a look at it.
pub const IN_PART: Small =
    Small { ends: APPLIED_OR_IN_PART, budget: Budget { lapses: 1, looks: 1, ..NOTHING }, ..LOST };

/// The same where no fence helps: looks at an application, and the word of its agent.
pub const RECOVER_UNFENCED: Small = Small {
    target: bound,
    change: Change::Once("app"),
    ends: APPLIED_OR_UNKNOWN,
    budget: Budget { lapses: 1, looks: 1, words: 1, ..NOTHING },
    ..LOST
};

/// The same where an effect may outlive its process: nothing but a person knows when it is over.
pub const RECOVER_OUTLIVING: Small =
    Small { target: outliving, ends: APPLIED_OR_OUTLIVED, retry: RetryClass::Idempotent, ..RECOVER_UNFENCED };

/// The same, and a person who goes there instead of the agent that comes back.
pub const ATTEST: Small = Small {
    retry: RetryClass::Unsafe,
    budget: Budget { lapses: 1, looks: 1, attests: 1, ..NOTHING },
    ..RECOVER_OUTLIVING
};

/// A look and a raise, one of which reaches another resource: no reading of that one counts. A next attempt would show
/// nothing more.
pub const STRAY: Small =
    Small { attempts: 1, budget: Budget { lapses: 1, looks: 1, raises: 1, strays: 1, ..NOTHING }, ..LOST };

/// Two lapses and two words of the journal: what was readmitted is lost again, and its end is told before, while and after
/// somebody decides.
pub const READMIT: Small =
    Small { ends: APPLIED_OR_UNKNOWN, attempts: 3, budget: Budget { lapses: 2, words: 2, ..NOTHING }, ..LOST };

/// A raise instead of the second lapse: whoever is below it is not readmitted.
pub const READMIT_OR_RAISE: Small = Small { budget: Budget { lapses: 1, words: 1, raises: 1, ..NOTHING }, ..LOST };

/// A change that was known before, with a way back to it; of the rollback a lease lapses.
const BACK: Small =
    Small { change: Change::WithAWayBack("site"), checked: true, rollback_first: true, attempts: 3, ..LOST };

/// A first deployment that ends in any way, and a raise: a rollback over what is known and over what nobody resolved, which
/// may be lost and tried again.
pub const ROLLBACK: Small = Small { ends: IN_ANY_WAY, budget: Budget { lapses: 1, raises: 1, ..NOTHING }, ..BACK };

/// A first deployment that is held, and a stop of its rollback at any moment.
pub const ROLLBACK_CANCEL: Small =
    Small { ends: APPLIED_OR_IN_PART, budget: Budget { lapses: 1, cancels: 1, ..NOTHING }, ..BACK };

/// Two planned absences, of which one lease outlasts one, a lost message, and time for two leases.
pub const ABSENCE: Small = Small { budget: Budget { lost: 1, lapses: 2, detaches: 2, ..NOTHING }, ..LOST };

macro_rules! worlds {
    ($($test:ident: $world:ident;)*) => {
        $(#[test] fn $test() { explore(stringify!($world), &$world); })*
    };
}

worlds! {
    small_world_with_a_lost_and_a_doubled_message_is_safe_and_never_stuck: LOSS;
    small_world_with_a_raised_fence_is_safe_and_never_stuck: RAISE;
    small_world_with_a_cancel_is_safe_and_never_stuck: CANCEL;
    small_world_with_a_hold_is_safe_and_never_stuck: HOLD;
    small_world_with_a_deadline_is_safe_and_never_stuck: DEADLINE;
    small_world_with_a_deadline_of_a_step_is_safe_and_never_stuck: STEP_DEADLINE;
    small_world_with_a_change_by_hand_is_safe_and_never_stuck: EDIT;
    small_world_with_a_check_is_safe_and_never_stuck: CHECK;
    small_world_with_a_late_timer_is_safe_and_never_stuck: LATE_TIMER;
    small_world_with_a_carried_change_is_safe_and_never_stuck: CARRY;
    small_world_with_readings_in_flight_is_safe_and_never_stuck: RECOVER;
    small_world_with_a_change_in_part_is_safe_and_never_stuck: IN_PART;
    small_world_without_a_fence_is_safe_and_never_stuck: RECOVER_UNFENCED;
    small_world_with_an_effect_that_outlives_is_safe_and_never_stuck: RECOVER_OUTLIVING;
    small_world_with_an_attestation_is_safe_and_never_stuck: ATTEST;
    small_world_with_a_reading_of_another_resource_is_safe_and_never_stuck: STRAY;
    small_world_with_a_readmission_or_a_raise_is_safe_and_never_stuck: READMIT_OR_RAISE;
    small_world_with_readmissions_is_safe_and_never_stuck: READMIT;
    small_world_with_planned_absences_is_safe_and_never_stuck: ABSENCE;
    small_world_with_a_rollback_that_is_cancelled_is_safe_and_never_stuck: ROLLBACK_CANCEL;
    small_world_with_a_rollback_is_safe_and_never_stuck: ROLLBACK;
}

fn explore(name: &str, small: &Small) {
    let _alone = crate::scene::without_faults();
    let Found { visited, steps, depth, ends } =
        search(small).unwrap_or_else(|counterexample| panic!("{counterexample}"));
    println!("{name}: 2 agents, 1 target, {} attempts, {:?}: searched to closure", small.attempts, small.budget);
    println!("{visited} states visited, {steps} steps, depth {depth}; ends: {ends:?}");
    assert!(visited > 1_000, "a world that hardly moves proves nothing");
    assert!(ends.contains_key("Succeeded"), "a world in which nothing succeeds proves little");
    let goes_back = |over: &str| ends.contains_key(&format!("rollback over the {over}: Succeeded"));
    let bases = matches!(small.change, Change::WithAWayBack(_)).then_some("unresolved").into_iter();
    let known = (small.rollback_first && small.budget.raises > 0).then_some("known");
    assert!(bases.chain(known).all(goes_back), "a world in which nothing goes back says little of rollbacks");
}

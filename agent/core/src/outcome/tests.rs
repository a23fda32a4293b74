use holdfast_common::adapter::Enforce;

use super::*;

const KILLED: Exit = Exit::Signaled { signal: 9, by_us: false };
const TERMED: Exit = Exit::Signaled { signal: 15, by_us: true };
const NOT: Look = Look::Read(OperationState::NotApplied);
const YES: Look = Look::Read(OperationState::Applied);
const PART: Look = Look::Read(OperationState::Partial);
const BUSY: Look = Look::Read(OperationState::Applying);
const DARK: Look = Look::Read(OperationState::Unknown);
const BLIND: Look = Look::CannotInspect;
const STOPPED_CLEAN: StepEnd = StepEnd::Stopped { maybe_partial: false };
const STOPPED_PART: StepEnd = StepEnd::Stopped { maybe_partial: true };
const UNKNOWN: StepEnd = StepEnd::Unknown;
const APPLIED: StepEnd = StepEnd::Applied;

fn fails(maybe_partial: bool, class: FailureClass) -> StepEnd {
    StepEnd::Failed { maybe_partial, class }
}

fn told(exit: Exit, stopped: bool, outlives: bool, none_left: bool, look: &Look) -> StepEnd {
    let inspect = if *look == BLIND { Inspect::None } else { Inspect::Operation };
    let capability = Capability { inspect, enforce: Enforce::None, outlives };
    let ending = Ending { exit, stopped_by_us: stopped, none_left, class: FailureClass::Permanent, tells: true };
    tell(StepEffect::Mutates, ending, capability, look).end
}

/// Exit, stopped by us, effect can outlive, look, how it is told. Processes are all gone.
fn table() -> Vec<(Exit, bool, bool, Look, StepEnd)> {
    let lost = Look::NotRead { why: "timed out".into() };
    let clean = fails(false, FailureClass::Permanent);
    let part = fails(true, FailureClass::Permanent);
    let mut rows = Vec::new();
    for outlives in [false, true] {
        rows.extend([
            (Exit::Exited(0), false, outlives, BLIND, APPLIED),
            (Exit::Exited(0), false, outlives, YES, APPLIED),
            (Exit::Exited(0), false, outlives, NOT, clean),
            (Exit::Exited(0), false, outlives, PART, part),
            (Exit::Exited(0), false, outlives, BUSY, UNKNOWN),
            (Exit::Exited(0), false, outlives, DARK, UNKNOWN),
            (Exit::Exited(0), false, outlives, lost.clone(), UNKNOWN),
            // A success after the stop was asked for stays a success.
            (Exit::Exited(0), true, outlives, BLIND, APPLIED),
            (Exit::Exited(1), false, outlives, BLIND, part),
            (Exit::Exited(1), false, outlives, NOT, clean),
            (Exit::Exited(1), false, outlives, YES, APPLIED),
            (Exit::Exited(1), false, outlives, PART, part),
            (Exit::Exited(1), false, outlives, DARK, part),
            (Exit::Exited(1), false, outlives, lost.clone(), part),
            (Exit::Exited(1), false, outlives, BUSY, UNKNOWN),
            (KILLED, false, outlives, YES, APPLIED),
            (KILLED, false, outlives, BUSY, UNKNOWN),
            (Exit::Unknown, false, outlives, YES, APPLIED),
            (Exit::Unknown, false, outlives, BLIND, UNKNOWN),
            (Exit::Unknown, false, outlives, PART, UNKNOWN),
            (Exit::Unknown, false, outlives, BUSY, UNKNOWN),
            (Exit::Unknown, false, outlives, lost.clone(), UNKNOWN),
            (Exit::NotSpawned, false, outlives, BLIND, fails(false, FailureClass::Infrastructure)),
        ]);
    }
    for (exit, stopped) in [(KILLED, false), (TERMED, true), (Exit::OutOfMemory, false), (Exit::Exited(143), true)] {
        rows.extend([
            (exit, stopped, false, NOT, STOPPED_CLEAN),
            (exit, stopped, false, PART, STOPPED_PART),
            (exit, stopped, false, BLIND, STOPPED_PART),
            (exit, stopped, false, DARK, STOPPED_PART),
            (exit, stopped, false, lost.clone(), STOPPED_PART),
            (exit, stopped, true, NOT, UNKNOWN),
            (exit, stopped, true, PART, UNKNOWN),
            (exit, stopped, true, BLIND, UNKNOWN),
            (exit, stopped, true, lost.clone(), UNKNOWN),
        ]);
    }
    rows.push((Exit::Unknown, false, false, NOT, fails(false, FailureClass::Infrastructure)));
    rows.push((Exit::Unknown, false, true, NOT, UNKNOWN));
    rows
}

#[test]
fn every_row_of_the_table_is_told_as_it_stands() {
    for (exit, stopped, outlives, look, end) in table() {
        assert_eq!(
            told(exit, stopped, outlives, true, &look),
            end,
            "{exit:?} stopped={stopped} outlives={outlives} {look:?}"
        );
    }
}

#[test]
fn not_applied_proves_nothing_while_a_process_may_be_left() {
    assert_eq!(told(Exit::Unknown, false, false, false, &NOT), UNKNOWN);
    assert_eq!(told(Exit::Unknown, false, false, false, &YES), APPLIED);
    assert_eq!(told(KILLED, false, false, false, &NOT), UNKNOWN);
    assert_eq!(told(TERMED, true, false, false, &BLIND), UNKNOWN);
}

#[test]
fn death_by_signal_is_never_success_without_a_reading() {
    for signal in 1..64 {
        for by_us in [false, true] {
            for outlives in [false, true] {
                let end = told(Exit::Signaled { signal, by_us }, by_us, outlives, true, &BLIND);
                assert_ne!(end, APPLIED);
            }
        }
    }
}

#[test]
fn a_step_without_effect_is_told_by_its_exit_alone_and_leaves_nothing_open() {
    let capability = Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: true };
    let infrastructure = fails(false, FailureClass::Infrastructure);
    for (exit, stopped, end) in [
        (Exit::Exited(0), false, APPLIED),
        (Exit::Exited(3), false, fails(false, FailureClass::Permanent)),
        (Exit::Exited(3), true, STOPPED_CLEAN),
        (KILLED, false, STOPPED_CLEAN),
        (TERMED, true, STOPPED_CLEAN),
        (Exit::OutOfMemory, false, STOPPED_CLEAN),
        (Exit::Unknown, false, infrastructure),
        (Exit::NotSpawned, false, infrastructure),
    ] {
        let ending =
            Ending { exit, stopped_by_us: stopped, none_left: true, class: FailureClass::Permanent, tells: true };
        assert_eq!(tell(StepEffect::None, ending, capability, &BLIND).end, end, "{exit:?} {stopped}");
    }
}

#[test]
fn a_revision_tells_applied_not_applied_or_nothing() {
    let revision = |text: &str| Revision::new(text).unwrap();
    let (old, new, other) = (revision("v1"), revision("v2"), revision("v9"));
    assert_eq!(Look::by_revision(&new, &new, Some(&old)), YES);
    assert_eq!(Look::by_revision(&old, &new, Some(&old)), NOT);
    assert_eq!(Look::by_revision(&other, &new, Some(&old)), DARK);
    assert_eq!(Look::by_revision(&old, &new, None), DARK);
    // The same revision before and after: it is there, whoever put it there.
    assert_eq!(Look::by_revision(&new, &new, Some(&new)), YES);
}

#[test]
fn an_exit_that_says_nothing_of_its_effect_is_unknown_unless_the_effect_is_seen_whole() {
    let capability = Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: true };
    let ending = Ending {
        exit: Exit::Exited(71),
        stopped_by_us: false,
        none_left: true,
        class: FailureClass::Infrastructure,
        tells: false,
    };
    let end = |look| tell(StepEffect::Mutates, ending, capability, &look).end;
    assert_eq!(end(Look::Read(OperationState::Applied)), StepEnd::Applied);
    for state in
        [OperationState::NotApplied, OperationState::Applying, OperationState::Partial, OperationState::Unknown]
    {
        assert_eq!(end(Look::Read(state)), StepEnd::Unknown, "{state:?}: what was asked for may be under way");
    }
    assert_eq!(end(Look::NotRead { why: "down".to_owned() }), StepEnd::Unknown);
    let told = Ending { tells: true, ..ending };
    let end = tell(StepEffect::Mutates, told, capability, &Look::Read(OperationState::NotApplied)).end;
    assert_eq!(end, StepEnd::Failed { maybe_partial: false, class: FailureClass::Infrastructure });
}

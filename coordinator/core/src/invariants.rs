//! What holds after every event, whatever happened. Each is checked on one step of a history by itself, without the code
//! that decides: the auditor walks a stored history with them, and the tests check every step they take.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "an invariant names the events it speaks of; on all others it holds"
)]

use crate::event::Recorded;
use crate::state::TargetState;

mod i01_one_reservation;
mod i02_fences_grow;
mod i03_permit_first;
mod i04_one_open_permit;
mod i05_evidence_is_no_authority;
mod i06_history_stays;
mod i07_reservation_ends_with_its_deployment;
mod i09_requests_end_nothing;
mod i10_no_unsafe_repeat;
mod i14_never_mutated;
mod i17_a_hold_starts_nothing;
mod i18_carried_steps_were_read;
mod i19_an_absence_grants_nothing;

/// One event and the states around it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Before it; `None` before the target's first event.
    pub before: Option<&'a TargetState>,
    /// The event.
    pub recorded: &'a Recorded,
    /// After it.
    pub after: &'a TargetState,
}

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} broken by event {}: {because}", .sequence.0)]
pub struct Violation {
    /// Which, as in `docs/architecture.md`.
    pub invariant: &'static str,
    /// At which event.
    pub sequence: crate::state::EventSequence,
    /// How.
    pub because: &'static str,
}

/// One invariant: its name, and whether it holds on a step.
type Invariant = (&'static str, fn(&Step<'_>) -> Result<(), &'static str>);

const ALL: [Invariant; 13] = [
    ("I1", i01_one_reservation::holds),
    ("I2", i02_fences_grow::holds),
    ("I3", i03_permit_first::holds),
    ("I4", i04_one_open_permit::holds),
    ("I5", i05_evidence_is_no_authority::holds),
    ("I6", i06_history_stays::holds),
    ("I7", i07_reservation_ends_with_its_deployment::holds),
    ("I9", i09_requests_end_nothing::holds),
    ("I10", i10_no_unsafe_repeat::holds),
    ("I14", i14_never_mutated::holds),
    ("I17", i17_a_hold_starts_nothing::holds),
    ("I18", i18_carried_steps_were_read::holds),
    ("I19", i19_an_absence_grants_nothing::holds),
];

/// Checks one step of a history.
///
/// # Errors
/// The first invariant that does not hold.
pub fn check(step: &Step<'_>) -> Result<(), Violation> {
    ALL.iter().try_for_each(|(invariant, holds)| {
        holds(step).map_err(|because| Violation { invariant, sequence: step.recorded.sequence, because })
    })
}

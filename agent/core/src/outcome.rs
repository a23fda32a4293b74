//! How the end of a step is told.
//!
//! | what ended | resource could be read | could not |
//! | --- | --- | --- |
//! | exit 0 | whole effect there: applied; not there: failed | applied if the adapter can't inspect, unknown if the look failed |
//! | own exit other than 0 | not applied: failed; applied: applied; else as the next column | failed, may be applied in part |
//! | an exit of our own adapter that says nothing of its effect | applied: applied; else unknown: what it asked for may be under way | unknown |
//! | signal, out of memory, stopped by us | the same three; an effect that can outlive its process and isn't there: unknown | can't outlive: stopped, else unknown |
//! | exit not known | the same three, and only if no process is left; else unknown | unknown |
//!
//! A step without effect has nothing to look for: its exit alone tells.

use holdfast_common::adapter::{Capability, Inspect};
use holdfast_common::id::Revision;
use holdfast_common::outcome::{Exit, FailureClass, OperationState, StepEnd};
use holdfast_common::spec::StepEffect;

#[cfg(test)]
mod tests;

/// What is known of the processes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// How the body's own process ended.
    pub exit: Exit,
    /// Whether a stop was asked for and a signal was sent before it ended.
    pub stopped_by_us: bool,
    /// Whether no process of the step is left, as far as anybody can see. While one may be, nothing is "stopped".
    pub none_left: bool,
    /// How the adapter classes an own exit other than 0.
    pub class: FailureClass,
    /// Whether an own exit other than 0 says that what was asked for is over. An answer that was lost says nothing.
    pub tells: bool,
}

/// What the look at the resource after the end gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The adapter has no way to look.
    CannotInspect,
    /// It looked, and the resource could not be read.
    NotRead {
        /// Why, for people.
        why: String,
    },
    /// It read this.
    Read(OperationState),
}

impl Look {
    /// A look by revision alone: the revision that the step should leave means applied, the one that was there before
    /// means not applied, any other tells nothing about this step's part in it.
    #[must_use]
    pub fn by_revision(observed: &Revision, wanted: &Revision, before: Option<&Revision>) -> Self {
        Look::Read(if observed == wanted {
            OperationState::Applied
        } else if before == Some(observed) {
            OperationState::NotApplied
        } else {
            OperationState::Unknown
        })
    }
}

/// The end, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Told {
    /// How the step ended.
    pub end: StepEnd,
    /// Why it is told so. Data, never interpreted.
    pub detail: String,
}

/// Tells how a step ended. `capability` is what its adapter can prove on its resource.
pub fn tell(effect: StepEffect, ending: Ending, capability: Capability, look: &Look) -> Told {
    let seen = Seen::of(capability, look);
    let end = match effect {
        StepEffect::None => end_without_effect(ending),
        StepEffect::Mutates => match ending.exit {
            Exit::NotSpawned => failed(false, FailureClass::Infrastructure),
            Exit::Exited(0) => end_of_success(seen),
            Exit::Exited(_) if !ending.tells => end_of_stop(seen, true),
            Exit::Exited(_) if !ending.stopped_by_us => end_of_own_exit(seen, ending.class),
            Exit::Exited(_) | Exit::Signaled { .. } | Exit::OutOfMemory => {
                end_of_stop(seen, capability.outlives || !ending.none_left)
            }
            Exit::Unknown => end_of_unknown(seen, capability.outlives, ending.none_left),
        },
    };
    let detail = match effect {
        StepEffect::Mutates => sentence(ending, look),
        StepEffect::None => exit_words(ending),
    };
    Told { end, detail }
}

/// The look, reduced to what the table asks.
#[derive(Clone, Copy)]
enum Seen {
    /// The adapter can't look.
    Blind,
    /// Looked, and it tells nothing.
    Nothing,
    NotApplied,
    Applied,
    Partial,
    /// Still being changed: nothing is over.
    Changing,
}

impl Seen {
    fn of(capability: Capability, look: &Look) -> Self {
        match (capability.inspect, look) {
            (Inspect::None, _) | (_, Look::CannotInspect) => Seen::Blind,
            (_, Look::NotRead { .. }) => Seen::Nothing,
            (_, Look::Read(state)) => match state {
                OperationState::NotApplied => Seen::NotApplied,
                OperationState::Applying => Seen::Changing,
                OperationState::Applied => Seen::Applied,
                OperationState::Partial => Seen::Partial,
                OperationState::Unknown => Seen::Nothing,
            },
        }
    }
}

fn failed(maybe_partial: bool, class: FailureClass) -> StepEnd {
    StepEnd::Failed { maybe_partial, class }
}

fn end_of_success(seen: Seen) -> StepEnd {
    match seen {
        Seen::Blind | Seen::Applied => StepEnd::Applied,
        Seen::NotApplied => failed(false, FailureClass::Permanent),
        Seen::Partial => failed(true, FailureClass::Permanent),
        // A look that failed is no news of the effect: neither "applied" nor "failed" is a fact.
        Seen::Nothing | Seen::Changing => StepEnd::Unknown,
    }
}

fn end_of_own_exit(seen: Seen, class: FailureClass) -> StepEnd {
    match seen {
        Seen::Applied => StepEnd::Applied,
        Seen::NotApplied => failed(false, class),
        Seen::Partial | Seen::Blind | Seen::Nothing => failed(true, class),
        Seen::Changing => StepEnd::Unknown,
    }
}

fn end_of_stop(seen: Seen, outlives: bool) -> StepEnd {
    match (seen, outlives) {
        (Seen::Applied, _) => StepEnd::Applied,
        (Seen::Changing, _) | (Seen::NotApplied | Seen::Partial | Seen::Blind | Seen::Nothing, true) => {
            StepEnd::Unknown
        }
        (Seen::NotApplied, false) => StepEnd::Stopped { maybe_partial: false },
        (Seen::Partial | Seen::Blind | Seen::Nothing, false) => StepEnd::Stopped { maybe_partial: true },
    }
}

fn end_of_unknown(seen: Seen, outlives: bool, none_left: bool) -> StepEnd {
    match seen {
        Seen::Applied => StepEnd::Applied,
        Seen::NotApplied if none_left && !outlives => failed(false, FailureClass::Infrastructure),
        Seen::NotApplied | Seen::Partial | Seen::Blind | Seen::Nothing | Seen::Changing => StepEnd::Unknown,
    }
}

fn end_without_effect(ending: Ending) -> StepEnd {
    match ending.exit {
        Exit::Exited(0) => StepEnd::Applied,
        Exit::Exited(_) if !ending.stopped_by_us => failed(false, ending.class),
        Exit::Exited(_) | Exit::Signaled { .. } | Exit::OutOfMemory => StepEnd::Stopped { maybe_partial: false },
        Exit::NotSpawned | Exit::Unknown => failed(false, FailureClass::Infrastructure),
    }
}

fn exit_words(ending: Ending) -> String {
    let stop = if ending.stopped_by_us { " after a stop was asked for" } else { "" };
    let exit = match ending.exit {
        Exit::Exited(status) => format!("exited with {status}"),
        Exit::Signaled { signal, by_us: true } => format!("ended by signal {signal}, sent by the agent"),
        Exit::Signaled { signal, by_us: false } => format!("ended by signal {signal}, not sent by the agent"),
        Exit::OutOfMemory => "killed by the kernel for memory".to_owned(),
        Exit::NotSpawned => "could not be started".to_owned(),
        Exit::Unknown if ending.none_left => "gone, exit unknown".to_owned(),
        Exit::Unknown => "exit unknown, processes of it may be left".to_owned(),
    };
    format!("{exit}{stop}")
}

fn sentence(ending: Ending, look: &Look) -> String {
    let exit = exit_words(ending);
    match look {
        Look::CannotInspect => format!("{exit}; the resource can't be read back"),
        Look::NotRead { why } => format!("{exit}; the resource could not be read: {why}"),
        Look::Read(state) => format!("{exit}; read back: {}", word(*state)),
    }
}

fn word(state: OperationState) -> &'static str {
    match state {
        OperationState::NotApplied => "not applied",
        OperationState::Applying => "being applied",
        OperationState::Applied => "applied",
        OperationState::Partial => "applied in part",
        OperationState::Unknown => "unknown",
    }
}

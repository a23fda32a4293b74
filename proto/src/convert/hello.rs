//! The first word of a session.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::claim::Claim;
use holdfast_common::fence::Epoch;
use holdfast_common::id::{IncarnationId, StepName, StoreId};

use super::{Invalid, WireEnum, claim_from_wire, parsed, parsed_or_none};
use crate::v1;

const MAX_LABELS: usize = 64;
const MAX_ADAPTERS: usize = 32;
const MAX_TARGETS: usize = 1024;
const MAX_HELD: usize = 4096;
const MAX_WORD_BYTES: usize = 256;

/// Who an agent says it is, what it offers, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol versions that it speaks.
    pub protocol_versions: Vec<u32>,
    /// Its journal.
    pub incarnation: IncarnationId,
    /// Where the journal stands.
    pub journal_sequence: u64,
    /// The boot of its machine.
    pub boot_id: String,
    /// The token of the last Welcome that its journal has; empty where it has none.
    pub session_token: String,
    /// By which its machine is known again; empty where the host can't tell.
    pub machine: String,
    /// Which process of the agent says it; empty where it does not tell.
    pub instance: String,
    /// What it says of its host.
    pub labels: BTreeMap<String, String>,
    /// The adapters that its host offers, by name.
    pub adapters: BTreeSet<String>,
    /// Patterns of targets that its host's policy allows; empty allows all.
    pub targets: Vec<String>,
    /// The attempts in its journal that are not settled.
    pub held: Vec<Held>,
    /// The furthest that it has seen a coordinator's store.
    pub seen: Option<Position>,
    /// For people.
    pub version: String,
}

/// An attempt in an agent's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub claim: Claim,
    /// How it stands there.
    pub state: JournalState,
    /// The step it is at.
    pub step: Option<StepName>,
}

/// How an attempt stands in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JournalState {
    /// No step of it has begun.
    Taken,
    /// A step's process is alive.
    Running,
    /// Between two steps.
    BetweenSteps,
    /// Over.
    Ended,
    /// A step began and its process is gone without an exit record.
    Gone,
}

/// How far a store had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Which store.
    pub store: StoreId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its last commit.
    pub commit: u64,
}

/// A whole Hello, or the field that is wrong. Every list and text is bounded.
pub fn hello_from_wire(hello: v1::Hello) -> Result<Hello, Invalid> {
    at_most("hello.labels", hello.labels.len(), MAX_LABELS)?;
    at_most("hello.adapters", hello.adapters.len(), MAX_ADAPTERS)?;
    at_most("hello.targets", hello.targets.len(), MAX_TARGETS)?;
    at_most("hello.held", hello.held.len(), MAX_HELD)?;
    hello.labels.iter().try_for_each(|(name, value)| {
        word("hello.labels", name)?;
        word("hello.labels", value)
    })?;
    hello.adapters.iter().try_for_each(|adapter| word("hello.adapters", adapter))?;
    hello.targets.iter().try_for_each(|pattern| word("hello.targets", pattern))?;
    word("hello.boot_id", &hello.boot_id)?;
    word("hello.version", &hello.version)?;
    word("hello.session_token", &hello.session_token)?;
    word("hello.machine", &hello.machine)?;
    word("hello.instance", &hello.instance)?;
    Ok(Hello {
        protocol_versions: hello.protocol_versions,
        incarnation: parsed("hello.incarnation", &hello.incarnation)?,
        journal_sequence: hello.journal_sequence,
        boot_id: hello.boot_id,
        session_token: hello.session_token,
        machine: hello.machine,
        instance: hello.instance,
        labels: hello.labels.into_iter().collect(),
        adapters: hello.adapters.into_iter().collect(),
        targets: hello.targets,
        held: hello.held.into_iter().map(held_from_wire).collect::<Result<_, _>>()?,
        seen: hello.seen.map(position_from_wire).transpose()?,
        version: hello.version,
    })
}

fn held_from_wire(held: v1::HeldAttempt) -> Result<Held, Invalid> {
    Ok(Held {
        claim: claim_from_wire(held.claim)?,
        state: JournalState::from_wire("hello.held.state", held.state)?,
        step: parsed_or_none("hello.held.step", &held.step)?,
    })
}

/// How far a store had come.
pub fn position_from_wire(position: v1::Position) -> Result<Position, Invalid> {
    Ok(Position {
        store: parsed("position.store", &position.store)?,
        epoch: Epoch(position.epoch),
        commit: position.commit,
    })
}

/// How far a store had come.
#[must_use]
pub fn position_to_wire(position: Position) -> v1::Position {
    v1::Position { store: position.store.to_string(), epoch: position.epoch.0, commit: position.commit }
}

fn at_most(field: &'static str, length: usize, max: usize) -> Result<(), Invalid> {
    if length <= max { Ok(()) } else { Err(Invalid::Range { field, problem: "too many elements" }) }
}

fn word(field: &'static str, text: &str) -> Result<(), Invalid> {
    match text {
        _ if text.len() > MAX_WORD_BYTES => Err(Invalid::Range { field, problem: "too long" }),
        _ if text.chars().any(char::is_control) => Err(Invalid::Range { field, problem: "control characters" }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> v1::Hello {
        v1::Hello {
            protocol_versions: vec![1],
            incarnation: uuid::Uuid::from_u128(7).to_string(),
            labels: [("role".to_owned(), "shop".to_owned())].into(),
            adapters: vec!["command".to_owned()],
            ..v1::Hello::default()
        }
    }

    fn field_of(hello: v1::Hello) -> String {
        hello_from_wire(hello).expect_err("refused").to_string()
    }

    #[test]
    fn a_plain_hello_is_taken() {
        let taken = hello_from_wire(hello()).expect("sound");
        assert_eq!(taken.labels["role"], "shop");
        assert!(taken.held.is_empty());
    }

    #[test]
    fn every_bad_field_is_named() {
        let claim = v1::Claim {
            deployment: uuid::Uuid::from_u128(1).to_string(),
            attempt: uuid::Uuid::from_u128(2).to_string(),
            fence: 3,
        };
        let held =
            |claim, state| v1::Hello { held: vec![v1::HeldAttempt { claim, state, step: String::new() }], ..hello() };
        let cases = [
            (v1::Hello { incarnation: String::new(), ..hello() }, "hello.incarnation"),
            (v1::Hello { boot_id: "a\nb".to_owned(), ..hello() }, "hello.boot_id"),
            (v1::Hello { version: "x".repeat(257), ..hello() }, "hello.version"),
            (v1::Hello { session_token: "x".repeat(257), ..hello() }, "hello.session_token"),
            (v1::Hello { machine: "\t".to_owned(), ..hello() }, "hello.machine"),
            (v1::Hello { instance: "x".repeat(257), ..hello() }, "hello.instance"),
            (v1::Hello { adapters: vec!["x".to_owned(); 33], ..hello() }, "hello.adapters"),
            (v1::Hello { targets: vec!["\u{1b}".to_owned()], ..hello() }, "hello.targets"),
            (held(None, 1), "claim"),
            (held(Some(v1::Claim { fence: 0, ..claim.clone() }), 1), "claim.fence"),
            (held(Some(claim.clone()), 0), "hello.held.state"),
            (held(Some(claim), 99), "hello.held.state"),
            (v1::Hello { seen: Some(v1::Position::default()), ..hello() }, "position.store"),
        ];
        for (hello, field) in cases {
            let told = field_of(hello);
            assert!(told.contains(field), "{field}: {told}");
        }
    }
}

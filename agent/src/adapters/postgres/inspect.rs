//! Reading what became of an operation.
//!
//! | in the ledger | a session of the operation | the operation is |
//! | --- | --- | --- |
//! | the operation | | applied |
//! | a migration of it, begun outside of a transaction | that one | applying |
//! | a migration of it, begun outside of a transaction | no | unknown |
//! | not the operation | one that was not fenced off | applying |
//! | a migration of it, begun outside of a transaction, that another attempt took over | no, or fenced off | unknown |
//! | some of its migrations | no, or fenced off | partial |
//! | nothing | no, or fenced off | not applied |
//!
//! A session under a fence below the highest may still run: what it runs will be rolled back.

use std::time::Duration;

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision};
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::system::Postgres;

use super::ledger::{self, Ledger, Row};
use super::session::{self, Session};
use crate::adapters::system::{Failure, Order};

/// A session whose process has just ended takes a moment to go: so often it is looked for again, and that far apart.
const LOOKS: u32 = 20;
const APART: Duration = Duration::from_millis(50);

/// What was found, before it is said.
struct Seen<'a> {
    ledger: &'a Ledger,
    operation: &'a OperationId,
    /// Names and process ids of all that run operations.
    sessions: &'a [(String, i32)],
}

/// What an operation is, with a sentence about it.
type Found = (OperationState, String);

pub(super) fn inspect(session: &Session, order: &Order, system: &Postgres) -> Result<Reading, Failure> {
    let mut looks = 1;
    loop {
        // In this order: a session that is gone has its effect in the ledger that is read after.
        let sessions = ledger::backends(session, system)?;
        let ledger = ledger::read(session, order, system)?;
        let seen = Seen { ledger: &ledger, operation: &order.operation.id, sessions: &sessions };
        let (state, detail) = seen.state();
        if state != OperationState::Applying || looks == LOOKS {
            return Ok(seen.reading(state, detail));
        }
        looks += 1;
        std::thread::sleep(APART);
    }
}

impl Seen<'_> {
    fn reading(&self, state: OperationState, detail: String) -> Reading {
        Reading {
            resource_identity: format!("postgres:{}", self.ledger.identity),
            state,
            revision: self.ledger.revision.clone().and_then(|text| Revision::new(text).ok()),
            active: self.active(state),
            highest_fence: u64::try_from(self.ledger.highest).ok().and_then(Fence::from_u64),
            retained: Vec::new(),
            detail,
        }
    }

    fn state(&self) -> Found {
        if let Some(revision) = &self.ledger.finished {
            return (OperationState::Applied, format!("the ledger has the operation, which left {revision}"));
        }
        let own = self.operation.to_string();
        if let Some(row) = self.ledger.open().find(|row| row.operation == own) {
            return self.begun(row);
        }
        let mut live =
            self.sessions.iter().filter_map(|(name, pid)| Some((session::fence_of(name, self.operation)?, pid)));
        if let Some((fence, pid)) =
            live.find(|(fence, _)| i64::try_from(fence.as_u64()).is_ok_and(|fence| fence >= self.ledger.highest))
        {
            return (OperationState::Applying, format!("backend {pid} of the server runs it under fence {fence}"));
        }
        if let Some(version) = &self.ledger.abandoned {
            let detail = format!("{version} was begun outside of a transaction, and taken over by another attempt");
            return (OperationState::Unknown, detail);
        }
        let done = self.ledger.rows.iter().filter(|row| row.operation == own).map(|row| row.version.as_str());
        let done: Vec<&str> = done.collect();
        if done.is_empty() {
            return (OperationState::NotApplied, "the ledger has nothing of it, and nobody can add to it".to_owned());
        }
        (OperationState::Partial, format!("the ledger has {} of its migrations: {}", done.len(), done.join(", ")))
    }

    /// No fence stops what runs outside of a transaction.
    fn begun(&self, row: &Row) -> Found {
        let begun = format!("{} was begun outside of a transaction and is not known to be done", row.version);
        match self.runs(row) {
            Some(pid) => (OperationState::Applying, format!("{begun}: backend {pid} of the server runs it")),
            None => (OperationState::Unknown, format!("{begun}, and nothing runs it")),
        }
    }

    fn runs(&self, row: &Row) -> Option<i32> {
        self.sessions.iter().find(|(name, _)| *name == row.session).map(|(_, pid)| *pid)
    }

    /// Another operation is told where it has begun something outside of a transaction.
    fn active(&self, state: OperationState) -> Option<OperationId> {
        if state == OperationState::Applying {
            return Some(self.operation.clone());
        }
        let row = self.ledger.open().find(|row| self.runs(row).is_some())?;
        let (deployment, step) = row.operation.split_once('/')?;
        Some(OperationId { deployment: deployment.parse().ok()?, step: step.parse().ok()? })
    }
}

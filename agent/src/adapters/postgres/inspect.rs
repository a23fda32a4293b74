//! Reading what became of an operation.
//!
//! | in the ledger | a session of the operation | the operation is |
//! | --- | --- | --- |
//! | the operation | | applied |
//! | one of its migrations, begun outside of a transaction | no | unknown |
//! | some of its migrations | no | partial |
//! | nothing | no | not applied |
//! | not the operation | yes | applying |

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
    /// The backends that run it.
    backends: &'a [i32],
}

pub(super) fn inspect(session: &Session, order: &Order, system: &Postgres) -> Result<Reading, Failure> {
    let operation = &order.operation.id;
    let name = session::name(operation);
    for look in 1.. {
        // In this order: a session that is gone has its effect in the ledger that is read after.
        let sessions = ledger::backends(session, system)?;
        let ledger = ledger::read(session, order, system)?;
        let backends: Vec<i32> = sessions.iter().filter(|(named, _)| *named == name).map(|(_, pid)| *pid).collect();
        if ledger.finished.is_some() || backends.is_empty() || look == LOOKS {
            let seen = Seen { ledger: &ledger, operation, backends: &backends };
            return Ok(seen.reading(&sessions));
        }
        std::thread::sleep(APART);
    }
    unreachable!("the last look returns")
}

impl Seen<'_> {
    fn reading(&self, sessions: &[(String, i32)]) -> Reading {
        let (state, detail) = self.state();
        Reading {
            resource_identity: format!("postgres:{}", self.ledger.identity),
            state,
            revision: self.ledger.revision.clone().and_then(|text| Revision::new(text).ok()),
            active: self.active(state, sessions),
            highest_fence: u64::try_from(self.ledger.highest).ok().and_then(Fence::from_u64),
            retained: Vec::new(),
            detail,
        }
    }

    fn state(&self) -> (OperationState, String) {
        if let Some(revision) = &self.ledger.finished {
            return (OperationState::Applied, format!("the ledger has the operation, which left {revision}"));
        }
        if let Some(backend) = self.backends.first() {
            return (OperationState::Applying, format!("backend {backend} of the server runs it"));
        }
        let own = self.operation.to_string();
        if let Some(Row { version, .. }) = self.ledger.open().find(|row| row.operation == own) {
            let detail =
                format!("{version} was begun outside of a transaction, is not known to be done, and nothing runs it");
            return (OperationState::Unknown, detail);
        }
        let done: Vec<&str> =
            self.ledger.rows.iter().filter(|row| row.operation == own).map(|row| row.version.as_str()).collect();
        if done.is_empty() {
            return (OperationState::NotApplied, "the ledger has nothing of it, and no session runs it".to_owned());
        }
        (OperationState::Partial, format!("the ledger has {} of its migrations: {}", done.len(), done.join(", ")))
    }

    /// Another operation is told where it has begun something outside of a transaction.
    fn active(&self, state: OperationState, sessions: &[(String, i32)]) -> Option<OperationId> {
        if state == OperationState::Applying {
            return Some(self.operation.clone());
        }
        let is_live = |row: &&Row| sessions.iter().any(|(name, _)| *name == row.session);
        let row = self.ledger.open().find(is_live)?;
        let (deployment, step) = row.operation.split_once('/')?;
        Some(OperationId { deployment: deployment.parse().ok()?, step: step.parse().ok()? })
    }
}

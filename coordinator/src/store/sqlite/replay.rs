//! From events to state: the newest snapshot, and the events after it.

use holdfast_common::id::TargetName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::Recorded;
use holdfast_coordinator_core::state::EventSequence;
use holdfast_coordinator_core::{TargetState, apply};
use rusqlite::{Connection, Row, params};

use super::convert;
use super::look_up::{all, one};
use crate::store::Error;
use crate::store::chain::{GENESIS, Link};

pub(super) use crate::store::rows::RawEvent as EventRow;

/// The columns that [`EventRow::read`] reads.
pub(super) const COLUMNS: &str = "global_order, target, sequence, deployment, at, body, before_hash, hash";

impl EventRow {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            order: row.get(0)?,
            target: row.get(1)?,
            sequence: row.get(2)?,
            deployment: row.get(3)?,
            at: row.get(4)?,
            body: row.get(5)?,
            before_hash: row.get(6)?,
            hash: row.get(7)?,
        })
    }

    pub(super) fn recorded(&self) -> Result<Recorded, Error> {
        Ok(Recorded {
            sequence: EventSequence(convert::unsigned("an event's sequence", self.sequence)?),
            at: Wall(self.at),
            deployment: self.deployment.as_deref().map(|id| convert::parse("a deployment", id)).transpose()?,
            event: convert::from_json("an event", &self.body)
                .map_err(|error| Error::damaged(format!("event {} of {}", self.sequence, self.target), error))?,
        })
    }

    /// Whether it is what was written, and follows what was there before.
    fn check(&self, before: &str) -> Result<(), Error> {
        let sequence = convert::unsigned("an event's sequence", self.sequence)?;
        let (target, deployment) = (self.target.as_str(), self.deployment.as_deref());
        let link = Link { before, target, sequence, at: self.at, deployment, body: &self.body };
        if self.before_hash == before && self.hash == link.hash() {
            return Ok(());
        }
        Err(Error::damaged(format!("event {sequence} of {target}"), "its hash does not match"))
    }
}

/// State and the hash of its last event.
struct Start {
    state: Option<TargetState>,
    hash: String,
}

pub(super) fn load(connection: &Connection, target: &TargetName) -> Result<Option<TargetState>, Error> {
    let start = match newest_snapshot(connection, target) {
        Ok(start) => start,
        Err(error) if error.is_contained() => {
            tracing::warn!(%target, %error, "a snapshot can't be read: all events are replayed");
            Start { state: None, hash: GENESIS.to_owned() }
        }
        Err(error) => return Err(error),
    };
    replay(connection, target, start)
}

fn newest_snapshot(connection: &Connection, target: &TargetName) -> Result<Start, Error> {
    let sql = "SELECT s.state, e.hash FROM snapshots s
               JOIN events e ON e.target = s.target AND e.sequence = s.sequence
               WHERE s.target = ?1 ORDER BY s.sequence DESC LIMIT 1";
    let row = one(connection, "read a snapshot", sql, [target.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    match row {
        Some((state, hash)) => Ok(Start { state: Some(convert::from_json("a snapshot", &state)?), hash }),
        None => Ok(Start { state: None, hash: GENESIS.to_owned() }),
    }
}

fn replay(connection: &Connection, target: &TargetName, start: Start) -> Result<Option<TargetState>, Error> {
    let Start { mut state, mut hash } = start;
    let after = convert::number("sequence", state.as_ref().map_or(0, |state| state.sequence.0))?;
    let sql = format!("SELECT {COLUMNS} FROM events WHERE target = ?1 AND sequence > ?2 ORDER BY sequence");
    for row in all(connection, "read events", &sql, params![target.as_str(), after], EventRow::read)? {
        row.check(&hash)?;
        state =
            Some(apply(state, &row.recorded()?).map_err(|error| Error::damaged(format!("target {target}"), error))?);
        hash = row.hash;
    }
    Ok(state)
}

//! One target, from its first event to its rows.

use std::collections::BTreeMap;

use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::history::History;
use holdfast_coordinator_core::state::EventSequence;

use super::rows::{self, Rows};
use super::{Finding, Kind, TABLES};
use crate::store::chain::{GENESIS, Link};
use crate::store::rows::RawEvent;
use holdfast_common::time::Wall;

/// Follows a target's events, in the order of their places.
pub(crate) struct Walk {
    target: String,
    history: History,
    /// Of the last event.
    hash: String,
    last: i64,
    order: i64,
    /// Something does not follow: what comes after it is not a history any more.
    broken: bool,
    found: Vec<Finding>,
}

impl Walk {
    pub(crate) fn new(target: &str) -> Self {
        Self {
            target: target.to_owned(),
            history: History::default(),
            hash: GENESIS.to_owned(),
            last: 0,
            order: 0,
            broken: false,
            found: Vec::new(),
        }
    }

    /// The next event. Answers it where it is what was written, with its history whole so far.
    pub(crate) fn event(&mut self, row: &RawEvent, snapshots: &BTreeMap<i64, String>) -> Option<Recorded> {
        let gap = row.sequence != self.last + 1;
        let sequence = u64::try_from(row.sequence).unwrap_or_default();
        if gap {
            let what = format!("missing: event {} follows event {}", row.sequence, self.last);
            self.break_at(Finding::new(Kind::Missing, &self.target, what).at(number(self.last + 1)));
        }
        if row.order < self.order {
            let what = format!("it was committed before event {}, which stands before it", self.last);
            self.break_at(Finding::new(Kind::Order, &self.target, what).at(sequence));
        }
        let hash = link(row, sequence).hash();
        if hash != row.hash {
            let found =
                Finding::new(Kind::Chain, &self.target, "its hash is not the hash of what it says").at(sequence);
            self.break_at(found.values(Some(row.hash.clone()), Some(hash)));
        } else if row.before_hash != self.hash && !gap {
            let what = format!("it does not follow event {}: the hash before it is another one", self.last);
            let found = Finding::new(Kind::Chain, &self.target, what).at(sequence);
            self.break_at(found.values(Some(row.before_hash.clone()), Some(self.hash.clone())));
        }
        (self.last, self.order, self.hash) = (row.sequence, row.order, row.hash.clone());
        if self.broken { None } else { self.follow(row, sequence, snapshots) }
    }

    fn follow(&mut self, row: &RawEvent, sequence: u64, snapshots: &BTreeMap<i64, String>) -> Option<Recorded> {
        let recorded = match recorded(row, sequence) {
            Ok(recorded) => recorded,
            Err(why) => {
                let what = format!("it can't be read: {why}");
                self.break_at(Finding::new(Kind::Event, &self.target, what).at(sequence));
                return None;
            }
        };
        match self.history.follow(&recorded) {
            Ok(None) => {}
            Ok(Some(violation)) => {
                let what = format!("it breaks {}: {}", violation.invariant, violation.because);
                self.found.push(Finding::new(Kind::Invariant, &self.target, what).at(sequence));
            }
            Err(illegal) => {
                let what = format!("it can't follow on the events before it: {}", illegal.because);
                self.break_at(Finding::new(Kind::Event, &self.target, what).at(sequence));
                return None;
            }
        }
        if let Some(snapshot) = snapshots.get(&row.sequence) {
            self.snapshot(sequence, snapshot);
        }
        Some(recorded)
    }

    fn snapshot(&mut self, sequence: u64, text: &str) {
        let Some(state) = &self.history.state else { return };
        let row = format!("snapshots {sequence}");
        let found = match serde_json::from_str::<TargetState>(text) {
            Ok(snapshot) => rows::snapshot(&snapshot, state).map(|(at, is, should)| {
                Finding::new(Kind::Snapshot, &self.target, "another value")
                    .of_row(format!("{row}, state{at}"))
                    .values(Some(is), Some(should))
            }),
            Err(error) => {
                let what = format!("it can't be read: {error}");
                Some(Finding::new(Kind::Snapshot, &self.target, what).of_row(row))
            }
        };
        self.found.extend(found);
    }

    /// Something else that was found on the target.
    pub(crate) fn note(&mut self, found: Finding) {
        self.found.push(found);
    }

    /// After the last event: every row of every table, by the table's name. Rows are compared only with a whole history.
    pub(crate) fn end(mut self, mut stored: BTreeMap<&'static str, Rows>) -> Vec<Finding> {
        if self.broken {
            return self.found;
        }
        let Some(state) = self.history.state.take() else {
            let tables: Vec<&str> = stored.iter().filter(|(_, rows)| !rows.is_empty()).map(|(name, _)| *name).collect();
            let what = format!("there are rows in {}, and no event led to them", tables.join(", "));
            self.found.push(Finding::new(Kind::Row, &self.target, what));
            return self.found;
        };
        if let Some(named) = ahead(&stored, state.sequence) {
            let what = format!("missing: the target's row names event {named} as the last one");
            self.found.push(Finding::new(Kind::Missing, &self.target, what).at(state.sequence.0 + 1));
            return self.found;
        }
        self.history.state = Some(state.clone());
        for table in TABLES {
            let is = stored.remove(table.name).unwrap_or_default();
            let should = rows::derived(table.name, &self.history, &state, &self.hash);
            self.found.extend(rows::compare(&self.target, table, &is, &should));
        }
        self.found
    }

    fn break_at(&mut self, mut found: Finding) {
        if !self.broken {
            found.what.push_str(" (what follows from it is not compared)");
        }
        self.broken = true;
        self.found.push(found);
    }
}

/// The event that the target's row names, where it is further than the events that are there.
fn ahead(stored: &BTreeMap<&'static str, Rows>, last: EventSequence) -> Option<u64> {
    let place = TABLES
        .iter()
        .find(|table| table.name == "targets")?
        .columns
        .iter()
        .position(|(name, _)| *name == "sequence")?;
    let row = stored.get("targets")?.values().next()?;
    match row.get(place)? {
        super::Cell::Text(Some(text)) => text.parse().ok().filter(|named| *named > last.0),
        super::Cell::Text(None) | super::Cell::Json(_) | super::Cell::Unreadable => None,
    }
}

fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn link(row: &RawEvent, sequence: u64) -> Link<'_> {
    Link {
        before: &row.before_hash,
        target: &row.target,
        sequence,
        at: row.at,
        deployment: row.deployment.as_deref(),
        body: &row.body,
    }
}

fn recorded(row: &RawEvent, sequence: u64) -> Result<Recorded, String> {
    let event: Event = serde_json::from_str(&row.body).map_err(|error| error.to_string())?;
    let deployment = row.deployment.as_deref().map(str::parse).transpose();
    let deployment = deployment.map_err(|_| "its deployment is no identity".to_owned())?;
    Ok(Recorded { sequence: EventSequence(sequence), at: Wall(row.at), deployment, event })
}

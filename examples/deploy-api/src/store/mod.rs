//! What is kept, in one SQLite file: the resource, the deployments, the history. Each change is one transaction, on disk before
//! it is told.
//!
//! | state | becomes | when |
//! | --- | --- | --- |
//! | `queued` | `running` | the work begins |
//! | `running` | `succeeded` | its last transaction found fence and revision good, and changed the resource |
//! | `running` | `failed` | the work failed; nothing was changed |
//! | `queued`, `running` | `refused` | a higher fence came, or the revision is not the expected one; nothing was changed |
//! | `failed`, `refused` | `queued` | the same operation came again under a higher fence |
//!
//! `queued` and `running` are living; at most one deployment lives at a time.

mod effect;
mod raise;
mod submit;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::Serialize;

pub(crate) use submit::Submitted;

#[cfg(test)]
mod tests;

const SCHEMA: &str = "
CREATE TABLE resource (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT NOT NULL,
    owner TEXT,
    revision TEXT,
    highest_fence INTEGER NOT NULL
) STRICT;
CREATE TABLE deployment (
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    revision TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    fails INTEGER NOT NULL,
    expected TEXT,
    fence INTEGER NOT NULL,
    run INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT
) STRICT;
CREATE UNIQUE INDEX one_lives ON deployment ((1)) WHERE state IN ('queued', 'running');
CREATE TABLE history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    what TEXT NOT NULL,
    key TEXT,
    fence INTEGER NOT NULL,
    revision TEXT
) STRICT;
";

/// How a deployment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Queued,
    Running,
    Succeeded,
    Failed,
    Refused,
}

impl State {
    const ALL: [State; 5] = [State::Queued, State::Running, State::Succeeded, State::Failed, State::Refused];

    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Succeeded => "succeeded",
            State::Failed => "failed",
            State::Refused => "refused",
        }
    }

    fn lives(self) -> bool {
        matches!(self, State::Queued | State::Running)
    }

    /// Whether nothing of it is there and nothing will be.
    fn left_nothing(self) -> bool {
        matches!(self, State::Failed | State::Refused)
    }
}

/// A deployment as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deployment {
    pub(crate) key: String,
    pub(crate) state: State,
    pub(crate) revision: String,
    pub(crate) fence: u64,
    pub(crate) reason: Option<String>,
    body: String,
    expected: Option<String>,
    duration_ms: u64,
    fails: bool,
    run: i64,
}

/// The resource as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Resource {
    pub(crate) identity: String,
    pub(crate) owner: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) highest_fence: u64,
    pub(crate) history: Vec<Entry>,
}

/// One change of the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) what: String,
    pub(crate) operation: Option<String>,
    pub(crate) fence: u64,
    pub(crate) revision: Option<String>,
}

/// One go at a deployment. Another go makes the work of the one before count for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) key: String,
    pub(crate) duration_ms: u64,
    number: i64,
}

/// The store for several tasks. Its transactions are short, so they wait for each other.
pub(crate) struct Shared(Mutex<Store>);

impl Shared {
    pub(crate) fn new(store: Store) -> Self {
        Self(Mutex::new(store))
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Store) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the file, or makes it: a new resource has a new identity.
    pub(crate) fn open(path: &Path, owner: Option<&str>) -> rusqlite::Result<Self> {
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        if !transaction.table_exists(None, "resource")? {
            transaction.execute_batch(SCHEMA)?;
            let identity = uuid::Uuid::new_v4().to_string();
            transaction.execute("INSERT INTO resource VALUES (1, ?1, ?2, NULL, 0)", params![identity, owner])?;
        }
        transaction.commit()?;
        Ok(Self { connection })
    }

    /// What was under way when the program ended.
    pub(crate) fn living(&self) -> rusqlite::Result<Vec<Run>> {
        let mut query = self.connection.prepare("SELECT * FROM deployment WHERE state IN ('queued', 'running')")?;
        let living = query.query_map([], |row| Deployment::read(row).map(|deployment| deployment.run()))?;
        living.collect()
    }

    pub(crate) fn deployment(&self, key: &str) -> rusqlite::Result<Option<Deployment>> {
        deployment(&self.connection, key)
    }

    pub(crate) fn resource(&mut self) -> rusqlite::Result<Resource> {
        // One transaction: revision, fence and history are of one moment.
        let transaction = self.connection.transaction()?;
        let mut query = transaction.prepare("SELECT what, key, fence, revision FROM history ORDER BY number")?;
        let entry = |row: &Row<'_>| {
            let (what, operation, revision) = (row.get(0)?, row.get(1)?, row.get(3)?);
            Ok(Entry { what, operation, fence: number(row.get(2)?), revision })
        };
        let history = query.query_map([], entry)?.collect::<rusqlite::Result<_>>()?;
        transaction.query_row("SELECT identity, owner, revision, highest_fence FROM resource", [], |row| {
            let (identity, owner, revision) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Resource { identity, owner, revision, highest_fence: number(row.get(3)?), history })
        })
    }

    /// A transaction that nobody else writes beside.
    fn change(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

impl Deployment {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let word: String = row.get("state")?;
        let state = State::ALL.into_iter().find(|state| state.word() == word);
        Ok(Self {
            key: row.get("key")?,
            state: state.ok_or(rusqlite::Error::InvalidQuery)?,
            revision: row.get("revision")?,
            fence: number(row.get("fence")?),
            reason: row.get("reason")?,
            body: row.get("body")?,
            expected: row.get("expected")?,
            duration_ms: number(row.get("duration_ms")?),
            fails: row.get("fails")?,
            run: row.get("run")?,
        })
    }

    fn run(&self) -> Run {
        Run { key: self.key.clone(), duration_ms: self.duration_ms, number: self.run }
    }
}

fn deployment(connection: &Connection, key: &str) -> rusqlite::Result<Option<Deployment>> {
    connection.query_row("SELECT * FROM deployment WHERE key = ?1", [key], Deployment::read).optional()
}

/// The row that every change asks.
struct Now {
    revision: Option<String>,
    highest_fence: u64,
}

fn now(transaction: &Transaction<'_>) -> rusqlite::Result<Now> {
    transaction.query_row("SELECT revision, highest_fence FROM resource", [], |row| {
        Ok(Now { revision: row.get(0)?, highest_fence: number(row.get(1)?) })
    })
}

fn end(transaction: &Transaction<'_>, key: &str, state: State, reason: Option<&str>) -> rusqlite::Result<()> {
    let update = "UPDATE deployment SET state = ?2, reason = ?3 WHERE key = ?1";
    transaction.execute(update, params![key, state.word(), reason]).map(drop)
}

/// Raises the highest fence. What lives below it is refused in the same transaction.
fn fence_off(transaction: &Transaction<'_>, fence: u64) -> rusqlite::Result<()> {
    let fence = column(fence);
    transaction.execute("UPDATE resource SET highest_fence = max(highest_fence, ?1)", [fence])?;
    let refuse = "UPDATE deployment SET state = 'refused', reason = 'fenced_off'
                  WHERE state IN ('queued', 'running') AND fence < ?1";
    transaction.execute(refuse, [fence]).map(drop)
}

/// SQLite's integers have a sign. What is read was written by [`column`].
fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// Larger numbers than a column holds are refused when a request is read.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

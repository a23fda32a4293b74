//! The embedded store: one SQLite file in WAL mode, one writer, readers on snapshots.
//!
//! Every commit is synced (`synchronous=FULL`). A lock beside the file keeps a second coordinator out; tools that add
//! a token write in short transactions of their own.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_common::fence::Epoch;
use holdfast_common::id::StoreId;
use holdfast_common::time::Wall;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::{Error, Identity, Store};
use crate::bugs::{self, Bug};

mod convert;
mod look_up;
mod migrate;
mod project;
pub mod reader;
mod replay;
mod transaction;
mod verify;

#[cfg(test)]
mod tests;

use reader::Reader;
pub use transaction::SqliteTransaction;

/// Pages of the write-ahead log, 4 KiB each, after which it is copied into the database.
const WAL_PAGES: i64 = 4000;

/// Connections for reading that are kept open.
const READERS: usize = 4;

/// The writer's side of one file.
pub struct SqliteStore {
    connection: Connection,
    identity: Identity,
    reader: Reader,
    /// Held as long as the store lives.
    _lock: Option<File>,
}

impl SqliteStore {
    /// Opens the file, or makes it with `new_id`, and keeps every other coordinator out.
    pub fn open(path: &Path, new_id: StoreId, at: Wall) -> Result<Self, Error> {
        let lock = lock(path)?;
        let mut store = Self::open_beside(path, new_id, at)?;
        store._lock = Some(lock);
        Ok(store)
    }

    /// Opens the file without keeping others out: for tools that write one short transaction, also beside a running
    /// coordinator.
    pub fn open_beside(path: &Path, new_id: StoreId, at: Wall) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(open_error(path))?;
        if !migrate::is_ours(&connection).map_err(|source| unreadable(path, source))? {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        set_up(&connection).map_err(open_error(path))?;
        migrate::run(&mut connection, at)?;
        let identity = identity(&mut connection, new_id, at)?;
        Ok(Self { connection, identity, reader: Reader::new(path, READERS), _lock: None })
    }

    /// Whether a commit waits until the disk has it.
    #[cfg(all(test, feature = "bugs"))]
    pub(crate) fn waits_for_the_disk(&self) -> bool {
        let level: i64 = self.connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap_or_default();
        level >= 2
    }
}

impl Store for SqliteStore {
    type Transaction<'a> = SqliteTransaction<'a>;

    fn identity(&self) -> Identity {
        self.identity
    }

    fn begin(&mut self) -> Result<SqliteTransaction<'_>, Error> {
        let doing = failed("begin a transaction");
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(doing)?;
        Ok(SqliteTransaction::new(tx))
    }

    fn reader(&self) -> Reader {
        self.reader.clone()
    }
}

/// Without this SQLite may plan a statement anew for each value that is bound to it.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
    let synchronous = if bugs::on(Bug::SynchronousOff) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // The log is copied into the database between commits: seldom, since each time waits for the disk twice.
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    keep_plans(connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// A lock of its own file: closing any handle of the database file itself would drop SQLite's locks on it.
fn lock(path: &Path) -> Result<File, Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    let beside = PathBuf::from(beside);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&beside).map_err(open_error(path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
        Err(std::fs::TryLockError::Error(source)) => Err(open_error(path)(source)),
    }
}

fn identity(connection: &mut Connection, new_id: StoreId, at: Wall) -> Result<Identity, Error> {
    let doing = failed("read the store's identity");
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&doing)?;
    tx.execute(
        "INSERT OR IGNORE INTO store (one, id, epoch, made_at) VALUES (1, ?1, 1, ?2)",
        params![new_id.to_string(), at.0],
    )
    .map_err(&doing)?;
    let (id, epoch): (String, u32) =
        tx.query_row("SELECT id, epoch FROM store", [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(&doing)?;
    tx.commit().map_err(&doing)?;
    Ok(Identity { store: convert::parse("the store's identity", &id)?, epoch: Epoch(epoch) })
}

fn open_error<E: Into<Box<dyn std::error::Error + Send + Sync>>>(path: &Path) -> impl Fn(E) -> Error {
    let path = path.to_owned();
    move |source| Error::Open { path: path.clone(), source: source.into() }
}

/// A file that SQLite itself does not take for a database is somebody else's.
fn unreadable(path: &Path, source: Error) -> Error {
    let code = match &source {
        Error::Failed { source, .. } => source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code),
        Error::Open { .. }
        | Error::InUse { .. }
        | Error::Foreign { .. }
        | Error::Migration { .. }
        | Error::Wall { .. }
        | Error::Moved { .. }
        | Error::Damaged { .. } => None,
    };
    let not_a_database = code == Some(rusqlite::ErrorCode::NotADatabase);
    if not_a_database { Error::Foreign { path: path.to_owned() } } else { source }
}

/// A constraint is the second wall and a value of another type is damage; whatever else SQLite says is a failure after
/// which nobody knows what is on disk.
fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |source| {
        if let rusqlite::Error::SqliteFailure(code, message) = &source
            && code.code == rusqlite::ErrorCode::ConstraintViolation
        {
            return Error::Wall { rule: message.clone().unwrap_or_else(|| code.to_string()) };
        }
        if let rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) = &source
        {
            return Error::damaged(format!("could not {doing}"), source);
        }
        Error::Failed { doing, source: source.into() }
    }
}

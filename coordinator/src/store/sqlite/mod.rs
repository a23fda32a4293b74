//! The embedded store: one SQLite file in WAL mode, one writer, readers on snapshots.
//!
//! Every commit is synced (`synchronous=FULL`). A lock beside the file keeps a second coordinator out; tools that add
//! a token write in short transactions of their own.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_common::fence::Epoch;
use holdfast_common::id::StoreId;
use holdfast_common::time::Wall;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::{Error, Identity, Store};
use crate::bugs::{self, Bug};

mod acts;
mod convert;
mod drains;
mod joining;
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
use transaction::Writes;

/// Pages of the write-ahead log, 4 KiB each, after which it is copied into the database.
const WAL_PAGES: i64 = 4000;
/// Bytes of the log that are kept when it begins anew.
const LOG_KEPT_BYTES: i64 = 16 * 1024 * 1024;
/// KiB of the store's pages that the writer keeps, taken as they are read.
const PAGES_KEPT_KIB: i64 = 16 * 1024;

/// Connections for reading that are kept open.
const READERS: usize = 4;

/// How long the writer waits for a tool that writes beside it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

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
        store.reader.warm().map_err(open_error(path))?;
        hold_index(path);
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
        Ok(SqliteTransaction::new(&mut self.connection, Writes::Apart))
    }

    fn begin_together(&mut self) -> Result<SqliteTransaction<'_>, Error> {
        Ok(SqliteTransaction::new(&mut self.connection, Writes::Together))
    }

    fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn make_room(&mut self) -> Result<(), Error> {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull};
        // It would wait for readers as long as for a writer.
        let moved = self
            .connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0)));
        self.connection.busy_timeout(BUSY_TIMEOUT).map_err(failed("set up the store"))?;
        match moved {
            Ok(_busy) => Ok(()),
            Err(error) => match error.sqlite_error_code() {
                Some(DatabaseBusy | DatabaseLocked | DiskFull) => Ok(()),
                Some(_) | None => Err(failed("move the log into the store")(error)),
            },
        }
    }
}

/// Without this SQLite may plan a statement anew for each value that is bound to it.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
    let synchronous = if bugs::on(Bug::SynchronousOff) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // No temporary file stands between a result and its record.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A log that a long read made grow gives its room back when it begins anew.
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // The log is copied into the database between commits: seldom, since each time waits for the disk twice.
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    // Negative: in KiB, not in pages.
    connection.pragma_update(None, "cache_size", -PAGES_KEPT_KIB)?;
    keep_plans(connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// The log's index grows after a commit is on disk already: a disk that is full at that moment would leave a commit that nobody
/// can vouch for. So it gets its room ahead, enough for 32 times the log that is kept.
///
/// The handle is never closed: closing any handle of that file would drop SQLite's locks on it.
fn hold_index(path: &Path) {
    const BYTES: u64 = 1024 * 1024;
    let mut index = path.as_os_str().to_owned();
    index.push("-shm");
    match OpenOptions::new().write(true).open(PathBuf::from(index)) {
        Ok(file) => {
            if let Err(error) = holdfast_net::room::allocate(&file, BYTES) {
                tracing::warn!(%error, "the log's index has no room put aside");
            }
            std::mem::forget(file);
        }
        Err(error) => tracing::warn!(%error, "the log's index has no room put aside"),
    }
}

/// A lock of its own file: closing any handle of the database file itself would drop SQLite's locks on it.
fn lock(path: &Path) -> Result<File, Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    let beside = PathBuf::from(beside);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&beside)
        .map_err(open_error(path))?;
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
        | Error::Spoiled { .. }
        | Error::NoRoom { .. }
        | Error::Wall { .. }
        | Error::Moved { .. }
        | Error::Damaged { .. } => None,
    };
    let not_a_database = code == Some(rusqlite::ErrorCode::NotADatabase);
    if not_a_database { Error::Foreign { path: path.to_owned() } } else { source }
}

/// A constraint is the second wall and a value of another type is damage. `SQLITE_FULL` comes from a write that the system
/// refused, before the sync that would make a commit of it: SQLite rolls back, and so may we. It says that a sync failed, or
/// that the log's index could not grow after one, with other codes. Whatever else SQLite says is a failure after which nobody
/// knows what is on disk.
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
        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
            return Error::NoRoom { doing, source: source.into() };
        }
        Error::Failed { doing, source: source.into() }
    }
}

//! The agent's journal: what it must not forget, durable before anything follows from it.
//!
//! SQLite with a write-ahead log and `synchronous = FULL`: [`Journal::commit`] returns after the fsync. An error there is
//! never tried again: after a failed fsync nobody knows what is on disk, so the process stops and starts from what is.
//! It is locked for everybody else as long as it is open: `holdfast-agent status` tells what a running agent holds.
//!
//! Answers to reports are no promise of ours, only a saving: they are written with the next commit. One that was lost is
//! asked for again and answered as a duplicate.

mod row;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use holdfast_agent_core::Work;
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, IncarnationId, StoreId, TargetName};
use holdfast_common::report::{Disposition, Report, ReportBody, ReportSequence};
use holdfast_common::time::Wall;
use rusqlite::{Connection, ErrorCode, Transaction};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::bugs::{self, Bug};
use crate::crash::{self, CrashPoint};
use crate::places::Places;
use crate::room::is_no_room;
pub use row::Remembered;

const SCHEMA: &str = include_str!("schema.sql");
const VERSION: i32 = 1;
/// Bytes of the log that are kept when it begins anew.
const LOG_KEPT_BYTES: i64 = 8 * 1024 * 1024;
/// Answered reports that are kept for people to look at.
const KEEP_ANSWERED: i64 = 1_000;

/// Why the journal can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state folder can't be made or opened.
    #[error("could not use the state folder {folder}: {source}")]
    Folder {
        /// Which.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another agent is at work on it.
    #[error("another agent is using the state folder {folder}")]
    InUse {
        /// Which.
        folder: PathBuf,
    },
    /// Another process that is no agent has it open.
    #[error(
        "another process has the journal {journal} open: close it, copy the file to look at it, or ask holdfast-agent status"
    )]
    Open {
        /// Its file.
        journal: PathBuf,
    },
    /// It was written by a newer agent.
    #[error("the journal has version {found}, this agent knows version {known}")]
    Newer {
        /// Found.
        found: i32,
        /// Known.
        known: i32,
    },
    /// SQLite failed before anything was promised.
    #[error("could not read the journal: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// What it holds is not what an agent writes.
    #[error("the journal holds something that no agent wrote: {0}")]
    Content(#[from] serde_json::Error),
}

impl Error {
    /// Whether opening may have failed because the disk is full: then it can be tried again once there is room.
    #[must_use]
    pub fn may_lack_room(&self) -> bool {
        match self {
            Error::Folder { source, .. } => is_no_room(source),
            Error::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DiskFull | ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
            ),
            Error::InUse { .. } | Error::Open { .. } | Error::Newer { .. } | Error::Content(_) => false,
        }
    }

    /// Who is in the way, where a lock is.
    fn of_lock(self, journal: &Path) -> Self {
        let code = if let Error::Sqlite(error) = &self { error.sqlite_error_code() } else { None };
        let locked = matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if locked { Error::Open { journal: journal.to_owned() } } else { self }
    }
}

/// The disk has no room for a commit. Nothing of it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the disk has no room for the journal")]
pub struct NoRoom;

/// How far a coordinator's store had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Which store.
    pub store: StoreId,
    /// Its epoch.
    pub epoch: u32,
    /// Its commit sequence.
    pub commit: u64,
}

/// One thing to be made durable.
#[derive(Debug)]
pub enum Entry<'a> {
    /// An attempt's position and phase.
    Work(&'a Work),
    /// An attempt of which nothing is left to say.
    Forget(AttemptId),
    /// The highest fence seen on a target.
    Fence(&'a TargetName, Fence),
    /// A report, for the outbox.
    Report(Claim, ReportBody),
    /// The session's token and the coordinator's position.
    Welcomed(&'a str, Position),
}

/// The journal, and with it the state folder: nobody else has it open.
#[derive(Debug)]
pub struct Journal {
    connection: Connection,
    incarnation: IncarnationId,
    answers: Vec<(ReportSequence, Disposition)>,
    _folder: File,
}

impl Journal {
    /// Opens the journal in `folder`, or makes one with `fresh` as its incarnation.
    pub fn open(folder: &Path, fresh: IncarnationId) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let journal = Places::below(folder).journal();
        let opened = connect(&journal, fresh).map_err(|error| error.of_lock(&journal));
        let (connection, incarnation) = opened?;
        Ok(Self { connection, incarnation, answers: Vec::new(), _folder: lock })
    }

    /// This journal's identity.
    #[must_use]
    pub fn incarnation(&self) -> IncarnationId {
        self.incarnation
    }

    /// Makes all entries durable in one transaction, with the answers noted since the last one. Gives the reports back
    /// with their sequences, in order. Stops the process where that fails.
    ///
    /// Without room nothing of it is there, and nothing was synced: it can be done again.
    pub fn commit(&mut self, said_at: Wall, entries: &[Entry<'_>]) -> Result<Vec<(Claim, Report)>, NoRoom> {
        match self.try_commit(said_at, entries) {
            Ok(reports) => {
                self.answers.clear();
                Ok(reports)
            }
            Err(Error::Sqlite(error)) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Err(NoRoom),
            Err(error) => {
                tracing::error!(%error, "the journal could not be written: stopping, what was promised is on disk");
                std::process::abort();
            }
        }
    }

    fn try_commit(&mut self, said_at: Wall, entries: &[Entry<'_>]) -> Result<Vec<(Claim, Report)>, Error> {
        let transaction = self.connection.transaction()?;
        for (sequence, disposition) in &self.answers {
            row::answer(&transaction, *sequence, *disposition)?;
        }
        let mut reports = Vec::new();
        for entry in entries {
            reports.extend(write(&transaction, said_at, entry)?);
        }
        row::count_commit(&transaction)?;
        crash::point(CrashPoint::BeforeJournalCommit);
        transaction.commit()?;
        crash::point(CrashPoint::AfterJournalCommit);
        Ok(reports)
    }

    /// Makes what can be made of the room that the journal has: its log begins anew. Without the room for that, nothing changes.
    pub fn make_room(&self) {
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0));
        match moved.map_err(|error| error.sqlite_error_code()) {
            Ok(_) | Err(Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => {}
            Err(code) => {
                tracing::error!(?code, "the journal could not be written: stopping, what was promised is on disk");
                std::process::abort();
            }
        }
    }

    /// Lets the file grow no more, as on a full disk, or lets it grow again.
    #[cfg(test)]
    pub(crate) fn bound(&self, bounded: bool) {
        let pages: i64 = self.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).expect("reads");
        let most = if bounded { pages } else { 1 << 30 };
        self.connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(())).expect("can be set");
    }

    /// Notes an answer, to be written with the next commit.
    pub fn answered(&mut self, sequence: ReportSequence, disposition: Disposition) {
        self.answers.push((sequence, disposition));
    }

    /// Whether answers wait for a commit.
    #[must_use]
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The sequence that the next report will have. Only a seeded fault asks.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        row::last_sequence(&self.connection).map_or(1, |last| last + 1)
    }

    /// Every report that was not answered, in order.
    pub fn unanswered(&self) -> Result<Vec<(Claim, Report)>, Error> {
        row::unanswered(&self.connection)
    }

    /// What was reported under those attempts, in order, as far as it was not pruned.
    pub fn told(&self, attempts: &[AttemptId]) -> Result<Vec<ReportBody>, Error> {
        row::told(&self.connection, attempts)
    }

    /// Every attempt that was not forgotten.
    pub fn attempts(&self) -> Result<Vec<Remembered>, Error> {
        row::attempts(&self.connection)
    }

    /// The highest fence seen per target.
    pub fn fences(&self) -> Result<Vec<(TargetName, Fence)>, Error> {
        row::fences(&self.connection)
    }

    /// How many commits it has, the token of the last Welcome, and the highest position seen.
    pub fn standing(&self) -> Result<(u64, String, Option<Position>), Error> {
        row::standing(&self.connection)
    }
}

fn lock(folder: &Path) -> Result<File, Error> {
    let failed = |source| Error::Folder { folder: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let path = Places::below(folder).agent_lock();
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::InUse { folder: folder.to_owned() })?;
    Ok(file)
}

fn connect(journal: &Path, fresh: IncarnationId) -> Result<(Connection, IncarnationId), Error> {
    let mut connection = Connection::open(journal)?;
    // Before the log is looked at: its index is then kept in this process. A file for it would be cut and grown anew by each
    // process, and a full disk may not give it back what was cut.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if bugs::on(Bug::SynchronousOff) { "OFF" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES)?;
    migrate(&mut connection, fresh)?;
    let incarnation = row::incarnation(&connection)?;
    Ok((connection, incarnation))
}

fn migrate(connection: &mut Connection, fresh: IncarnationId) -> Result<(), Error> {
    let found: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(Error::Newer { found, known: VERSION });
    }
    if found == 0 {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        row::identify(&transaction, fresh)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(())
}

fn write(transaction: &Transaction<'_>, said_at: Wall, entry: &Entry<'_>) -> Result<Option<(Claim, Report)>, Error> {
    match entry {
        Entry::Work(work) => row::put_attempt(transaction, work)?,
        Entry::Forget(attempt) => row::forget(transaction, *attempt)?,
        Entry::Fence(target, fence) => row::put_fence(transaction, target, *fence)?,
        Entry::Welcomed(token, position) => row::welcomed(transaction, token, position)?,
        Entry::Report(claim, body) => {
            let sequence = row::put_report(transaction, claim, said_at, body, KEEP_ANSWERED)?;
            return Ok(Some((*claim, Report { sequence, said_at, body: body.clone() })));
        }
    }
    Ok(None)
}

//! The suite on real files, and what only this store has.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt as _;
use holdfast_common::id::{StoreId, TargetName};
use holdfast_common::time::Wall;
use rusqlite::Connection;
use tempfile::TempDir;
use uuid::Uuid;

use super::SqliteStore;
use super::reader::Reader;
use crate::store::suite::{self, Factory};
use crate::store::{Error, Store, Transaction};

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }
}

impl Factory for Files {
    type Store = SqliteStore;

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path(), StoreId(Uuid::from_u128(1)), Wall(1)).unwrap()
    }

    fn edit_event(&self, target: &TargetName, sequence: u64, body: &str) {
        let raw = self.raw();
        raw.execute_batch("DROP TRIGGER events_are_never_rewritten").unwrap();
        let sequence = i64::try_from(sequence).unwrap();
        let sql = "UPDATE events SET body = ?3 WHERE target = ?1 AND sequence = ?2";
        assert_eq!(raw.execute(sql, rusqlite::params![target.as_str(), sequence, body]).unwrap(), 1);
    }
}

suite::conformance!(Files::new());

/// Who reads nothing of a stream is not polled either, wherever it stands: what it asked for must not keep others from reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_not_polled_on_keeps_no_other_from_its_turn() {
    let files = Files::new();
    let _store = files.open();
    let reader = Reader::new(&files.path(), 1);
    let bound = Duration::from_secs(5);
    let mut begun = Box::pin(reader.run(|reader| reader.newest()));
    assert!(begun.as_mut().now_or_never().is_none(), "it has just begun");
    tokio::time::timeout(bound, reader.run(|reader| reader.newest())).await.expect("its turn").unwrap();

    let (finish, held) = std::sync::mpsc::channel::<()>();
    let first = tokio::spawn({
        let reader = reader.clone();
        async move { reader.run(move |_| Ok(held.recv().unwrap_err())).await }
    });
    while reader.pool.turns.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let mut queued = Box::pin(reader.run(|reader| reader.newest()));
    assert!(queued.as_mut().now_or_never().is_none(), "it waits for its turn");
    drop(finish);
    first.await.unwrap().unwrap();
    tokio::time::timeout(bound, reader.run(|reader| reader.newest())).await.expect("its turn").unwrap();
    begun.await.unwrap();
    queued.await.unwrap();
}

#[test]
fn the_schema_itself_refuses_to_rewrite_what_was_written() {
    let files = Files::new();
    let mut store = files.open();
    let mut tx = store.begin().unwrap();
    suite::World::new("shop@prod").declare(&mut tx, "/srv/shop");
    tx.commit().unwrap();
    let raw = files.raw();
    for sql in ["UPDATE events SET body = '{}'", "DELETE FROM events"] {
        let error = raw.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("never"), "{sql}: {error}");
    }
}

#[test]
fn a_second_coordinator_is_kept_out_and_a_tool_is_not() {
    let files = Files::new();
    let store = files.open();
    let second = SqliteStore::open(&files.path(), StoreId(Uuid::from_u128(2)), Wall(2));
    assert!(matches!(second.err(), Some(Error::InUse { .. })));
    let beside = SqliteStore::open_beside(&files.path(), StoreId(Uuid::from_u128(2)), Wall(2)).unwrap();
    assert_eq!(beside.identity(), store.identity(), "the identity is made once");
    drop(store);
    files.open();
}

#[test]
fn files_of_something_else_are_refused_and_left_alone() {
    let files = Files::new();
    let content = b"not a database, but long enough to be taken for the head of one".repeat(20);
    std::fs::write(files.path(), &content).unwrap();
    let error = SqliteStore::open(&files.path(), StoreId(Uuid::from_u128(1)), Wall(1)).err().unwrap();
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
    assert_eq!(std::fs::read(files.path()).unwrap(), content);
    std::fs::remove_file(files.path()).unwrap();
    files.raw().execute_batch("CREATE TABLE mine (x)").unwrap();
    let error = SqliteStore::open(&files.path(), StoreId(Uuid::from_u128(1)), Wall(1)).err().unwrap();
    assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
}

#[test]
fn every_commit_waits_for_the_disk() {
    let files = Files::new();
    let store = files.open();
    let setting = |name: &str| -> String {
        store
            .connection
            .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
            .map(|value| format!("{value:?}"))
            .unwrap()
    };
    assert_eq!(setting("synchronous"), "Integer(2)");
    assert_eq!(setting("journal_mode"), "Text(\"wal\")");
    assert_eq!(setting("foreign_keys"), "Integer(1)");
}

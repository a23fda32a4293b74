//! Differences planted in a sound store, each named.

use std::path::PathBuf;

use holdfast_common::id::StoreId;
use holdfast_common::report::{Report, ReportBody, ReportSequence};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::Memory;
use rusqlite::Connection;
use tempfile::TempDir;
use uuid::Uuid;

use super::{Finding, Kind};
use crate::store::chain::Link;
use crate::store::sqlite::SqliteStore;
use crate::store::suite::{World, token};
use crate::store::{Reader, Store, Transaction};
use crate::tokens;

/// A store with something of everything: a deployment that ended, with late evidence; one with an open permit; one behind it;
/// another target; acts.
pub(crate) struct Planted {
    folder: TempDir,
}

impl Planted {
    pub(crate) fn new() -> Self {
        let planted = Self { folder: TempDir::new().unwrap() };
        let mut store = SqliteStore::open(&planted.path(), StoreId(Uuid::from_u128(1)), Wall(1)).unwrap();
        let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
        let mut tx = store.begin().unwrap();
        let claim = shop.deploy(&mut tx);
        let late = Report { sequence: ReportSequence(9), said_at: Wall(9), body: ReportBody::cancel_received() };
        let attempt = tx.past_attempt(&claim).unwrap();
        shop.report(&mut tx, claim, late, Memory { attempt, answered: None });
        blog.deploy(&mut tx);
        shop.submit(&mut tx);
        shop.permit(&mut tx);
        shop.submit(&mut tx);
        for at in [5, 6, 7] {
            tx.keep_act(&tokens::made(&token(), Wall(at))).unwrap();
        }
        tx.commit().unwrap();
        assert_eq!(planted.verify(), [], "sound before anything was planted");
        planted
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("holdfast.db")
    }

    fn raw(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    fn verify(&self) -> Vec<Finding> {
        let report = Reader::over(&self.path()).unwrap().verified().unwrap();
        assert_eq!(report.sound, report.findings.is_empty());
        report.findings
    }

    /// As somebody would who can write the file.
    pub(crate) fn change(&self, sql: &str) {
        let raw = self.raw();
        let triggers: Vec<String> = raw
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        triggers.iter().for_each(|name| raw.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
        raw.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        raw.execute_batch(sql).unwrap();
    }

    /// Hashes the target's events anew, as somebody would who knows how.
    pub(crate) fn chain_anew(&self, target: &str) {
        let raw = self.raw();
        let mut events = raw
            .prepare("SELECT sequence, at, deployment, body FROM events WHERE target = ?1 ORDER BY sequence")
            .unwrap();
        let rows: Vec<(i64, i64, Option<String>, String)> = events
            .query_map([target], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let mut before = crate::store::chain::GENESIS.to_owned();
        for (sequence, at, deployment, body) in rows {
            let place = sequence.unsigned_abs();
            let link =
                Link { before: &before, target, sequence: place, at, deployment: deployment.as_deref(), body: &body };
            let hash = link.hash();
            raw.execute(
                "UPDATE events SET before_hash = ?3, hash = ?4 WHERE target = ?1 AND sequence = ?2",
                rusqlite::params![target, sequence, before, hash],
            )
            .unwrap();
            before = hash;
        }
        raw.execute("UPDATE targets SET last_hash = ?2 WHERE name = ?1", [target, before.as_str()]).unwrap();
    }
}

/// What one change comes to.
fn found(sql: &str) -> Vec<Finding> {
    let planted = Planted::new();
    planted.change(sql);
    planted.verify()
}

fn told(findings: &[Finding]) -> String {
    findings.iter().map(|found| format!("{found}\n")).collect()
}

#[track_caller]
fn assert_told(findings: &[Finding], words: &[&str]) {
    let told = told(findings);
    for words in words {
        assert!(told.contains(words), "{words:?} is not in:\n{told}");
    }
}

#[test]
fn a_changed_byte_of_an_event_is_named_with_both_hashes() {
    let found =
        found("UPDATE events SET body = replace(body, 'ada', 'adb') WHERE target = 'shop@prod' AND sequence = 2");
    assert_told(&found, &["shop@prod, event 2: its hash is not the hash of what it says", "not compared", ": stored "]);
    assert_eq!(found.len(), 1, "the rest of the chain hangs together: {found:?}");
    assert_eq!((found[0].kind, found[0].event), (Kind::Chain, Some(2)));
}

#[test]
fn a_dropped_event_is_missed_on_its_target_and_among_all() {
    let found = found("DELETE FROM events WHERE target = 'shop@prod' AND sequence = 4");
    assert_told(
        &found,
        &["shop@prod, event 4: missing: event 5 follows event 3", "events: missing: nothing stands at place 4"],
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn events_that_were_cut_off_the_end_are_missed() {
    let planted = Planted::new();
    planted.change("DELETE FROM events WHERE target = 'shop@prod' AND sequence = (SELECT sequence FROM targets WHERE name = 'shop@prod')");
    let found = planted.verify();
    assert_told(&found, &["missing: the target's row names event", "events: missing: nothing stands at place"]);
    assert!(found.iter().all(|found| found.kind == Kind::Missing), "{found:?}");
}

#[test]
fn two_swapped_events_are_named_by_hash_and_by_order() {
    let bodies =
        "CREATE TEMP TABLE two AS SELECT sequence, body FROM events WHERE target = 'shop@prod' AND sequence IN (5, 6);
        UPDATE events SET body = (SELECT body FROM two WHERE two.sequence = 11 - events.sequence)
        WHERE target = 'shop@prod' AND sequence IN (5, 6)";
    let swapped = found(bodies);
    assert_eq!(
        swapped.iter().map(|found| (found.kind, found.event)).collect::<Vec<_>>(),
        [(Kind::Chain, Some(5)), (Kind::Chain, Some(6))]
    );
    let places = "UPDATE events SET sequence = -1 WHERE target = 'shop@prod' AND sequence = 5;
        UPDATE events SET sequence = 5 WHERE target = 'shop@prod' AND sequence = 6;
        UPDATE events SET sequence = 6 WHERE target = 'shop@prod' AND sequence = -1";
    assert_told(&found(places), &["event 6: it was committed before event 5, which stands before it"]);
}

#[test]
fn every_changed_row_is_named_with_what_is_stored_and_what_follows() {
    for (sql, words) in [
        (
            "UPDATE deployments SET state = 'failed' WHERE target = 'shop@prod' AND number = 1",
            "shop@prod, deployments #1, state: another value: stored failed, the events lead to succeeded",
        ),
        (
            "UPDATE deployments SET record = json_set(record, '$.submitted_by', 'eve') WHERE target = 'shop@prod' AND number = 1",
            "deployments #1, record/submitted_by: another value: stored \"eve\", the events lead to \"ada\"",
        ),
        (
            "UPDATE deployments SET record = '{' WHERE target = 'shop@prod' AND number = 1",
            "deployments #1, record: it can't be read",
        ),
        (
            "UPDATE attempts SET state = 'lapsed' WHERE target = 'shop@prod' AND state = 'running'",
            "state: another value: stored lapsed, the events lead to running",
        ),
        ("DELETE FROM attempts WHERE target = 'blog@prod'", "there is no such row, and the events lead to one"),
        ("DELETE FROM reservations", "shop@prod, reservations: there is no such row, and the events lead to one"),
        ("UPDATE reservations SET since = since + 1", "reservations, since: another value"),
        ("INSERT INTO reservations VALUES ('blog@prod', 'x', 1)", "blog@prod, reservations: no event led to this row"),
        ("DELETE FROM open_permits", "open_permits: there is no such row"),
        ("UPDATE fences SET fence = fence - 1 WHERE target = 'shop@prod'", "shop@prod, fences, fence: another value"),
        ("UPDATE evidence SET received_at = 1", "received_at: another value: stored 1"),
        ("DELETE FROM evidence", "evidence"),
        (
            "UPDATE targets SET declared_by = 'eve' WHERE name = 'blog@prod'",
            "blog@prod, targets, declared_by: another value: stored eve, the events lead to ada",
        ),
        (
            "UPDATE targets SET busy = 0 WHERE name = 'shop@prod'",
            "targets, busy: another value: stored 0, the events lead to 1",
        ),
        (
            "UPDATE resources SET place = 'release:/elsewhere' WHERE target = 'blog@prod'",
            "blog@prod, resources site, place: another value: stored release:/elsewhere",
        ),
        (
            "INSERT INTO fences VALUES ('ghost@prod', 7)",
            "ghost@prod: there are rows in fences, and no event led to them",
        ),
        (
            "INSERT INTO snapshots SELECT target, sequence + 1, state FROM (SELECT 'shop@prod' AS target, 900 AS sequence, '{}' AS state)",
            "shop@prod, snapshots 901: no event led to this row",
        ),
        (
            "INSERT INTO rollbacks SELECT id, id FROM deployments WHERE target = 'shop@prod' AND number = 1",
            "shop@prod, rollbacks ",
        ),
        ("UPDATE acts SET about = 'eve' WHERE sequence = 2", "acts 2: its hash is not the hash of what it says"),
        ("DELETE FROM acts WHERE sequence = 2", "acts 2: missing: act 3 follows act 1"),
        ("DELETE FROM acts WHERE sequence = 3", "acts 3: missing: act 3 is named as the last one"),
    ] {
        let found = found(sql);
        assert_told(&found, &[words]);
    }
}

#[test]
fn a_history_that_was_written_anew_is_named_by_what_it_does_not_lead_to() {
    let planted = Planted::new();
    planted.change("UPDATE events SET body = replace(body, '\"by\":\"ada\"', '\"by\":\"eve\"') WHERE target = 'shop@prod' AND body LIKE '%\"submitted\"%'");
    planted.chain_anew("shop@prod");
    assert_told(
        &planted.verify(),
        &["deployments #1, submitted_by: another value: stored ada, the events lead to eve"],
    );

    let planted = Planted::new();
    planted.change("UPDATE events SET body = replace(body, '\"never_mutated\":false', '\"never_mutated\":true') WHERE target = 'shop@prod'");
    planted.chain_anew("shop@prod");
    assert_told(
        &planted.verify(),
        &["it breaks I14: it is said to have changed nothing, and a permit has no tombstone"],
    );

    let planted = Planted::new();
    planted.change(
        "UPDATE events SET body = (SELECT body FROM events WHERE target = 'shop@prod' AND sequence = 2)
        WHERE target = 'shop@prod' AND sequence = 5",
    );
    planted.chain_anew("shop@prod");
    assert_told(&planted.verify(), &["shop@prod, event 5: it can't follow on the events before it"]);
}

#[test]
fn a_look_changes_no_byte_and_needs_the_newest_schema() {
    let planted = Planted::new();
    let before = std::fs::read(planted.path()).unwrap();
    assert_eq!(planted.verify(), []);
    assert_eq!(std::fs::read(planted.path()).unwrap(), before);
    planted.change("PRAGMA user_version = 2");
    let error = Reader::over(&planted.path()).err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("schema 2"), "{error}");
}

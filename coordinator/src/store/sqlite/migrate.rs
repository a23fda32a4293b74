//! Brings a database's schema up to date: numbered files, each in one transaction, each remembered by its checksum.

use holdfast_common::time::Wall;
use rusqlite::{Connection, TransactionBehavior, params};

use super::failed;
use crate::store::{Digest, Error};

struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

const ALL: &[Migration] = &[
    Migration { number: 1, name: "first", sql: include_str!("0001_first.sql") },
    Migration { number: 2, name: "grants", sql: include_str!("0002_grants.sql") },
    Migration { number: 3, name: "rollbacks", sql: include_str!("0003_rollbacks.sql") },
    Migration { number: 4, name: "acts", sql: include_str!("0004_acts.sql") },
    Migration { number: 5, name: "identities", sql: include_str!("0005_identities.sql") },
    Migration { number: 6, name: "joining", sql: include_str!("0006_joining.sql") },
    Migration { number: 7, name: "drains", sql: include_str!("0007_drains.sql") },
    Migration { number: 8, name: "certificate_since", sql: include_str!("0008_certificate_since.sql") },
];

/// "HLDF": how a Holdfast store is told from other SQLite files.
const APPLICATION_ID: i64 = 0x484c_4446;

/// Whether the file is a store, or empty and may become one.
pub(super) fn is_ours(connection: &Connection) -> Result<bool, Error> {
    let doing = failed("read the head of the store");
    let id: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(&doing)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(&doing)?;
    Ok(id == APPLICATION_ID || (id == 0 && tables == 0))
}

/// Runs what is missing. Refuses a schema that is newer than this program or was made by other files.
pub(super) fn run(connection: &mut Connection, at: Wall) -> Result<(), Error> {
    apply(connection, ALL, at)
}

/// Refuses a schema of another version, for whoever may not change it.
pub(super) fn is_newest(connection: &Connection) -> Result<(), Error> {
    let doing = failed("read the store's schema");
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(doing)?;
    let newest = ALL.last().map_or(0, |migration| migration.number);
    if version == newest {
        return Ok(());
    }
    let detail =
        format!("it is schema {version}, this version reads {newest}: a coordinator's start brings it up to date");
    Err(Error::Migration { detail })
}

fn apply(connection: &mut Connection, all: &[Migration], at: Wall) -> Result<(), Error> {
    let doing = failed("migrate the store");
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&doing)?;
    tx.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID};
         CREATE TABLE IF NOT EXISTS migrations
             (number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT;"
    ))
    .map_err(&doing)?;
    let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(&doing)?;
    let newest = all.last().map_or(0, |migration| migration.number);
    if version > newest {
        return Err(Error::Migration { detail: format!("schema {version} is newer than {newest}, the newest known") });
    }
    for migration in all {
        let checksum = Digest::of_bytes(migration.sql.as_bytes()).to_string();
        if migration.number <= version {
            check(&tx, migration, &checksum)?;
            continue;
        }
        tx.execute_batch(migration.sql).map_err(&doing)?;
        tx.execute(
            "INSERT INTO migrations (number, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)",
            params![migration.number, migration.name, checksum, at.0],
        )
        .map_err(&doing)?;
        tx.pragma_update(None, "user_version", migration.number).map_err(&doing)?;
    }
    tx.commit().map_err(&doing)
}

fn check(connection: &Connection, migration: &Migration, checksum: &str) -> Result<(), Error> {
    let found: String = connection
        .query_row("SELECT checksum FROM migrations WHERE number = ?1", [migration.number], |row| row.get(0))
        .map_err(failed("read the applied migrations"))?;
    if found == checksum {
        return Ok(());
    }
    let detail = format!("migration {} was applied with other text than this version has", migration.number);
    Err(Error::Migration { detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Migration] = &[
        Migration { number: 1, name: "a", sql: "CREATE TABLE a (x INTEGER) STRICT;" },
        Migration { number: 2, name: "b", sql: "CREATE TABLE b (x INTEGER) STRICT;" },
    ];

    fn version(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_migration_runs_once_and_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply(&mut connection, &TWO[..1], Wall(1)).unwrap();
        assert_eq!(version(&connection), 1);
        apply(&mut connection, TWO, Wall(2)).unwrap();
        apply(&mut connection, TWO, Wall(3)).unwrap();
        assert_eq!(version(&connection), 2);
        connection.execute("INSERT INTO b (x) VALUES (1)", []).unwrap();
    }

    #[test]
    fn a_newer_schema_and_an_edited_migration_are_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply(&mut connection, TWO, Wall(1)).unwrap();
        let older = apply(&mut connection, &TWO[..1], Wall(2)).unwrap_err();
        assert!(older.to_string().contains("newer"), "{older}");
        let edited = [Migration { number: 1, name: "a", sql: "CREATE TABLE a (y INTEGER) STRICT;" }];
        connection.pragma_update(None, "user_version", 1).unwrap();
        let other = apply(&mut connection, &edited, Wall(3)).unwrap_err();
        assert!(other.to_string().contains("other text"), "{other}");
    }

    #[test]
    fn a_token_of_the_first_schema_counts_on_every_target() {
        let mut connection = Connection::open_in_memory().unwrap();
        apply(&mut connection, &ALL[..1], Wall(1)).unwrap();
        let old = "INSERT INTO tokens (name, hash, role, expires_at) VALUES ('anna', 'aa', 'admin', 5), ('vera', 'bb', 'viewer', NULL)";
        connection.execute_batch(old).unwrap();
        run(&mut connection, Wall(2)).unwrap();
        let read = |name: &str| -> (String, String, Option<i64>) {
            let sql = "SELECT hash, grants, expires_at FROM tokens WHERE name = ?1";
            connection.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
        };
        assert_eq!(read("anna"), ("aa".to_owned(), "[\"admin:*\"]".to_owned(), Some(5)));
        assert_eq!(read("vera"), ("bb".to_owned(), "[\"viewer:*\"]".to_owned(), None));
        let grants: Vec<String> = serde_json::from_str(&read("anna").1).unwrap();
        assert_eq!(grants[0].parse(), Ok(crate::auth::Grant::everywhere(crate::auth::Role::Admin)));
    }

    #[test]
    fn a_failed_migration_leaves_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let broken = [Migration { number: 1, name: "a", sql: "CREATE TABLE a (x INTEGER) STRICT; nonsense;" }];
        assert!(apply(&mut connection, &broken, Wall(1)).is_err());
        assert_eq!(version(&connection), 0);
        apply(&mut connection, TWO, Wall(2)).unwrap();
    }
}

//! What was done and is about no target.

use holdfast_common::time::Wall;
use rusqlite::{Connection, Row, params};

use super::look_up::{all, one};
use super::{convert, failed};
use crate::store::Error;
use crate::store::chain::{ActLink, GENESIS};
use crate::store::rows::{Act, ActRow};
use crate::verify::{Finding, Kind, check_act};

pub(super) fn keep(connection: &Connection, act: &Act) -> Result<(), Error> {
    let (last, before) = head(connection)?.unwrap_or((0, GENESIS.to_owned()));
    let Act { at, by, kind, about, detail } = act;
    let sequence = last + 1;
    let number = convert::number("act", sequence)?;
    let hash = ActLink { before: &before, sequence, at: at.0, by, kind, about, detail }.hash();
    let doing = failed("keep an act");
    connection
        .execute(
            "INSERT INTO acts (sequence, at, by, kind, about, detail, before_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![number, at.0, by, kind, about, detail, before, hash],
        )
        .map_err(&doing)?;
    connection
        .execute("INSERT OR REPLACE INTO acts_head (one, sequence, hash) VALUES (1, ?1, ?2)", params![number, hash])
        .map_err(&doing)?;
    Ok(())
}

fn head(connection: &Connection) -> Result<Option<(u64, String)>, Error> {
    let sql = "SELECT sequence, hash FROM acts_head";
    let row =
        one(connection, "read the newest act", sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    row.map(|(sequence, hash)| Ok((convert::unsigned("an act's place", sequence)?, hash))).transpose()
}

/// Those after that one, in order.
pub(super) fn after(connection: &Connection, sequence: u64, limit: u32) -> Result<Vec<ActRow>, Error> {
    let sql = "SELECT sequence, at, by, kind, about, detail, before_hash, hash FROM acts
               WHERE sequence > ?1 ORDER BY sequence LIMIT ?2";
    all(connection, "list acts", sql, params![i64::try_from(sequence).unwrap_or(i64::MAX), limit], act)
}

/// The latest ones before that instant, the latest first.
pub(super) fn latest(connection: &Connection, before: Wall, limit: u32) -> Result<Vec<ActRow>, Error> {
    let sql = "SELECT sequence, at, by, kind, about, detail, before_hash, hash FROM acts
               WHERE at < ?1 ORDER BY at DESC, sequence DESC LIMIT ?2";
    all(connection, "list acts", sql, params![before.0, limit], act)
}

fn act(row: &Row<'_>) -> rusqlite::Result<ActRow> {
    Ok(ActRow {
        sequence: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
        at: Wall(row.get(1)?),
        by: row.get(2)?,
        kind: row.get(3)?,
        about: row.get(4)?,
        detail: row.get(5)?,
        before_hash: row.get(6)?,
        hash: row.get(7)?,
    })
}

/// The whole chain again. Answers how many there are, too.
pub(super) fn verify(connection: &Connection) -> Result<(u64, Vec<Finding>), Error> {
    const PAGE: u32 = 500;
    let (mut last, mut hash, mut found) = (0, GENESIS.to_owned(), Vec::new());
    loop {
        let page = after(connection, last, PAGE)?;
        for act in &page {
            found.extend(check_act(act, last, &hash));
            (last, hash) = (act.sequence, act.hash.clone());
        }
        if page.len() < PAGE as usize {
            break;
        }
    }
    let (named, named_hash) = head(connection)?.unwrap_or((0, GENESIS.to_owned()));
    if (named, &named_hash) != (last, &hash) {
        let what = format!("missing: act {named} is named as the last one");
        let found_last = Finding::new(Kind::Act, "", what).of_row(format!("acts {}", last + 1));
        found.push(found_last.values(Some(format!("{named} {named_hash}")), Some(format!("{last} {hash}"))));
    }
    Ok((last, found))
}

//! Reads what [`crate::verify`] compares: as it stands, whatever it is worth.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::look_up::{all, one};
use super::replay::{COLUMNS, EventRow};
use super::{acts, failed};
use crate::store::Error;
use crate::verify::{Cell, Finding, Kind, Report, Row, Rows, TABLES, Table, Walk, as_text, normal};

/// Everything, on one snapshot.
pub(super) fn verify(connection: &Connection) -> Result<Report, Error> {
    let tx = connection.unchecked_transaction().map_err(failed("begin to verify"))?;
    let mut report = Report::default();
    for target in targets(&tx)? {
        let (events, found) = verify_target(&tx, &target)?;
        report.targets += 1;
        report.events += events;
        report.findings.extend(found);
    }
    let (acts, found) = verify_rest(&tx)?;
    report.acts = acts;
    report.findings.extend(found);
    report.sound = report.findings.is_empty();
    Ok(report)
}

/// Every target that any row names.
pub(super) fn targets(connection: &Connection) -> Result<Vec<String>, Error> {
    let sql = "SELECT target FROM events UNION SELECT name FROM targets UNION SELECT target FROM deployments
               UNION SELECT target FROM attempts UNION SELECT target FROM reservations
               UNION SELECT target FROM open_permits UNION SELECT target FROM fences
               UNION SELECT target FROM resources UNION SELECT target FROM snapshots ORDER BY 1";
    all(connection, "list targets", sql, [], |row| row.get(0))
}

/// One target, on one snapshot: how many events there are, and what was found.
pub(super) fn verify_target(connection: &Connection, target: &str) -> Result<(u64, Vec<Finding>), Error> {
    let (mut walk, mut events) = (Walk::new(target), 0);
    let snapshots = snapshots(connection, target)?;
    let sql = format!("SELECT {COLUMNS} FROM events WHERE target = ?1 ORDER BY sequence");
    let mut statement = connection.prepare_cached(&sql).map_err(failed("read events"))?;
    let mut rows = statement.query([target]).map_err(failed("read events"))?;
    while let Some(row) = rows.next().map_err(failed("read events"))? {
        events += 1;
        let row = EventRow::read(row).map_err(failed("read events"))?;
        walk.event(&row, &snapshots);
    }
    for ahead in snapshots.keys().filter(|sequence| **sequence > i64::try_from(events).unwrap_or(i64::MAX)) {
        let row = format!("snapshots {ahead}");
        walk.note(Finding::new(Kind::Snapshot, target, "no event led to this row").of_row(row));
    }
    let mut stored = BTreeMap::new();
    for table in TABLES {
        stored.insert(table.name, read(connection, &mut walk, target, table)?);
    }
    Ok((events, walk.end(stored)))
}

fn snapshots(connection: &Connection, target: &str) -> Result<BTreeMap<i64, String>, Error> {
    let sql = "SELECT sequence, state FROM snapshots WHERE target = ?1";
    let rows = all(connection, "read snapshots", sql, [target], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.into_iter().collect())
}

fn read(connection: &Connection, walk: &mut Walk, target: &str, table: &Table) -> Result<Rows, Error> {
    let Table { name, of_target, key, columns } = table;
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let sql = format!("SELECT {key}, {} FROM {name} WHERE {of_target}", names.join(", "));
    let raw = all(connection, "read rows", &sql, params![target], |row| {
        let cells = (1..=columns.len()).map(|at| row.get_ref(at).map(as_text)).collect::<Result<Vec<_>, _>>()?;
        Ok((row.get_ref(0).map(as_text)?.unwrap_or_default(), cells))
    })?;
    let mut rows = Rows::new();
    for (key, cells) in raw {
        let mut row = Row::with_capacity(columns.len());
        for ((column, form), text) in columns.iter().zip(cells) {
            row.push(normal(*form, text).unwrap_or_else(|why| {
                let what = format!("it can't be read: {why}");
                walk.note(Finding::new(Kind::Row, target, what).of_row(format!("{name} {key}, {column}")));
                Cell::Unreadable
            }));
        }
        rows.insert(key, row);
    }
    Ok(rows)
}

/// What is about no single target: places of all events, and acts.
pub(super) fn verify_rest(connection: &Connection) -> Result<(u64, Vec<Finding>), Error> {
    let (acts, mut found) = acts::verify(connection)?;
    found.extend(gaps(connection)?);
    Ok((acts, found))
}

/// Every event ever written had the next place among all. A place that is empty had one.
fn gaps(connection: &Connection) -> Result<Vec<Finding>, Error> {
    let sql = "SELECT before + 1, place - 1 FROM (SELECT global_order AS place,
                   lag(global_order, 1, 0) OVER (ORDER BY global_order) AS before FROM events)
               WHERE place <> before + 1 LIMIT 20";
    let mut gaps: Vec<(i64, i64)> =
        all(connection, "look for gaps", sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let sql = "SELECT coalesce((SELECT max(global_order) FROM events), 0),
                      coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)";
    let ends =
        one(connection, "look for the last place", sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    gaps.extend(ends.filter(|(last, given)| last < given).map(|(last, given)| (last + 1, given)));
    let named = |(from, to): (i64, i64)| {
        let what = match from == to {
            true => format!("missing: nothing stands at place {from} among all events"),
            false => format!("missing: nothing stands at places {from} to {to} among all events"),
        };
        Finding::new(Kind::Missing, "", what).of_row("events")
    };
    Ok(gaps.into_iter().map(named).collect())
}

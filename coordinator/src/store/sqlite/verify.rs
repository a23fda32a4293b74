//! The look that trusts nothing: every hash again, every state again from the first event.

use std::collections::BTreeMap;

use holdfast_common::id::TargetName;
use holdfast_coordinator_core::{TargetState, apply};
use rusqlite::Connection;

use super::look_up::{all, one};
use super::replay::{COLUMNS, EventRow};
use super::{convert, failed};
use crate::store::Error;
use crate::store::chain::{Break, GENESIS};

/// Everything that does not fit, in the order of the targets' names. Empty means sound.
pub(super) fn verify(connection: &Connection) -> Result<Vec<Break>, Error> {
    let tx = connection.unchecked_transaction().map_err(failed("begin to verify"))?;
    let sql = "SELECT DISTINCT target FROM events UNION SELECT name FROM targets ORDER BY 1";
    let names = all(&tx, "list targets", sql, [], |row| row.get::<_, String>(0))?;
    let mut breaks = Vec::new();
    for name in names {
        let target: TargetName = convert::parse("a target", &name)?;
        breaks.extend(verify_target(&tx, &target)?);
    }
    Ok(breaks)
}

fn verify_target(connection: &Connection, target: &TargetName) -> Result<Option<Break>, Error> {
    let snapshots = snapshots(connection, target)?;
    let sql = format!("SELECT {COLUMNS} FROM events WHERE target = ?1 ORDER BY sequence");
    let mut statement = connection.prepare_cached(&sql).map_err(failed("read events"))?;
    let rows = statement.query_map([target.as_str()], EventRow::read).map_err(failed("read events"))?;
    let (mut state, mut hash, mut next) = (None::<TargetState>, GENESIS.to_owned(), 1_u64);
    let broken = |sequence, what: String| Some(Break { target: target.clone(), sequence, what });
    for row in rows {
        let row = row.map_err(failed("read events"))?;
        let step = row.check(&hash).and_then(|()| row.recorded()).and_then(|recorded| {
            if recorded.sequence.0 != next {
                return Err(Error::damaged("the sequence", format!("{} follows {}", recorded.sequence.0, next - 1)));
            }
            apply(state.take(), &recorded).map_err(|error| Error::damaged("its meaning", error))
        });
        match step {
            Ok(after) => state = Some(after),
            Err(error) => return Ok(broken(next, error.to_string())),
        }
        if snapshots.get(&next).is_some_and(|snapshot| Some(snapshot) != state.as_ref()) {
            return Ok(broken(next, "the snapshot is not what the events lead to".to_owned()));
        }
        hash = row.hash;
        next += 1;
    }
    Ok(projections(connection, target, state.as_ref(), &hash)?.and_then(|what| broken(next - 1, what)))
}

fn snapshots(connection: &Connection, target: &TargetName) -> Result<BTreeMap<u64, TargetState>, Error> {
    let sql = "SELECT sequence, state FROM snapshots WHERE target = ?1";
    let rows = all(connection, "read snapshots", sql, [target.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    rows.into_iter()
        .map(|(sequence, text)| {
            Ok((convert::unsigned("a sequence", sequence)?, convert::from_json("a snapshot", &text)?))
        })
        .collect()
}

/// What the rows say, against what the events lead to.
fn projections(
    connection: &Connection,
    target: &TargetName,
    state: Option<&TargetState>,
    hash: &str,
) -> Result<Option<String>, Error> {
    let sql = "SELECT t.sequence, t.last_hash, r.deployment, f.fence FROM targets t
               LEFT JOIN reservations r ON r.target = t.name LEFT JOIN fences f ON f.target = t.name
               WHERE t.name = ?1";
    let row = one(connection, "read a target", sql, [target.as_str()], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, Option<i64>>(3)?,
        ))
    })?;
    let (Some(state), Some((sequence, last_hash, holder, fence))) = (state, row) else {
        return Ok(Some("a target without events, or events without a target".to_owned()));
    };
    let expected_fence = state.fence.map(|fence| convert::number("fence", fence.as_u64())).transpose()?;
    let expected_holder = state.current.as_ref().map(|deployment| deployment.id.to_string());
    if convert::number("sequence", state.sequence.0)? != sequence || last_hash != hash {
        return Ok(Some("the last event is not the one that the target's row names".to_owned()));
    }
    if holder != expected_holder {
        return Ok(Some("the reservation is not what the events lead to".to_owned()));
    }
    if fence != expected_fence {
        return Ok(Some("the fence is not what the events lead to".to_owned()));
    }
    deployments(connection, target, state)
}

fn deployments(connection: &Connection, target: &TargetName, state: &TargetState) -> Result<Option<String>, Error> {
    let sql = "SELECT id, state FROM deployments WHERE target = ?1 AND ended_at IS NULL";
    let rows = all(connection, "read deployments", sql, [target.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let rows: BTreeMap<String, String> = rows.into_iter().collect();
    let expected: BTreeMap<String, String> = state
        .current
        .iter()
        .chain(&state.queue)
        .map(|deployment| (deployment.id.to_string(), convert::deployment_state(deployment.state)))
        .collect();
    Ok((rows != expected).then(|| "the deployments are not what the events lead to".to_owned()))
}

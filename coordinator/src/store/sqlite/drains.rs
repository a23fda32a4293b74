//! Agents that operators let have nothing new.

use holdfast_common::id::AgentName;
use holdfast_common::time::Wall;
use rusqlite::{Connection, params};

use super::convert;
use super::look_up::all;
use crate::store::Error;
use crate::store::rows::DrainRow;

pub(super) const PUT: &str = "INSERT INTO drains (agent, by, reason, since) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT (agent) DO UPDATE SET by = excluded.by, reason = excluded.reason RETURNING since";
pub(super) const REMOVE: &str = "DELETE FROM drains WHERE agent = ?1";

/// All of them, by name.
pub(super) fn list(connection: &Connection) -> Result<Vec<DrainRow>, Error> {
    let sql = "SELECT agent, by, reason, since FROM drains ORDER BY agent";
    let read = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
    };
    let row = |(agent, by, reason, since): (String, String, String, i64)| {
        let agent: AgentName = convert::parse("a drained agent", &agent)?;
        Ok(DrainRow { agent, by: convert::parse("who drained an agent", &by)?, reason, since: Wall(since) })
    };
    all(connection, "list drained agents", sql, params![], read)?.into_iter().map(row).collect()
}

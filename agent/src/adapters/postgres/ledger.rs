//! What the server keeps of a resource, read as one snapshot.

use holdfast_common::id::OperationId;
use holdfast_common::system::Postgres;
use serde::Deserialize;
use tokio_postgres::types::Type;

use super::calls::Call;
use super::refusal;
use super::session::Session;
use crate::adapters::system::{Failure, Order};

/// The resource, and every migration of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) identity: String,
    pub(super) highest: i64,
    pub(super) revision: Option<String>,
    /// The revision that the operation in question left, where its whole effect is there.
    pub(super) finished: Option<String>,
    /// A version that the operation in question had begun outside of a transaction, and that another attempt took over.
    pub(super) abandoned: Option<String>,
    pub(super) rows: Vec<Row>,
}

/// A migration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Row {
    pub(super) version: String,
    /// Of its file.
    pub(super) name: String,
    pub(super) checksum: String,
    pub(super) operation: String,
    /// The name of the session that runs it.
    pub(super) session: String,
    /// False: it was begun outside of a transaction.
    pub(super) is_done: bool,
}

impl Ledger {
    /// Whether migrations of that operation are done.
    pub(super) fn has_begun(&self, operation: &OperationId) -> bool {
        let operation = operation.to_string();
        self.rows.iter().any(|row| row.is_done && row.operation == operation)
    }

    /// Migrations that were begun outside of a transaction, and are not known to be done.
    pub(super) fn open(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.is_done)
    }
}

const LEDGER: &str = "
    SELECT pg_is_in_recovery(), r.owner, r.identity::text, r.highest_fence, r.revision,
      (SELECT o.revision FROM holdfast.operation o WHERE o.schema_name = r.schema_name AND o.operation = $2),
      (SELECT coalesce(json_agg(json_build_object('version', m.version, 'name', m.name, 'checksum', m.checksum,
         'operation', m.operation, 'session', m.session, 'is_done', m.done_at IS NOT NULL)), '[]')::text
       FROM holdfast.migration m WHERE m.schema_name = r.schema_name),
      (SELECT min(a.version) FROM holdfast.abandoned a WHERE a.schema_name = r.schema_name AND a.operation = $2)
    FROM holdfast.resource r WHERE r.schema_name = $1";

/// Reads it. Another owner's is refused.
pub(super) fn read(session: &Session, order: &Order, system: &Postgres) -> Result<Ledger, Failure> {
    let operation = order.operation.id.to_string();
    let rows = session.query(Call::Read, LEDGER, &[(&system.schema, Type::TEXT), (&operation, Type::TEXT)]);
    let rows = rows.map_err(|error| refusal::reading(&error))?;
    let refuse = |why: String| Err(Failure::Resource(why));
    let Some(row) = rows.first() else {
        return refuse(format!("the schema {} is no resource in this database: {}", system.schema, refusal::SETUP));
    };
    if row.get::<_, bool>(0) {
        return refuse("the server is a standby: what it shows may be old".to_owned());
    }
    let (owner, asked): (String, String) = (row.get(1), owner(order));
    if owner != asked {
        return refuse(format!("the schema {} belongs to {owner}, not to {asked}", system.schema));
    }
    let rows = serde_json::from_str(row.get(6))
        .map_err(|error| Failure::Machinery(format!("the ledger can't be read: {error}")))?;
    Ok(Ledger {
        identity: row.get(2),
        highest: row.get(3),
        revision: row.get(4),
        finished: row.get(5),
        abandoned: row.get(7),
        rows,
    })
}

const BACKENDS: &str = "
    SELECT a.application_name, a.pid FROM holdfast.resource r, pg_stat_activity a
    WHERE r.schema_name = $1 AND a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND a.application_name LIKE 'holdfast:%' AND pg_has_role(a.usesysid, r.deploy_role, 'MEMBER')";

/// Sessions of the deploy role that run an operation: their names and process ids. To be asked *before* the ledger is read: whoever is
/// gone here has its effect there, or none.
pub(super) fn backends(session: &Session, system: &Postgres) -> Result<Vec<(String, i32)>, Failure> {
    let rows = session.query(Call::Backends, BACKENDS, &[(&system.schema, Type::TEXT)]);
    let rows = rows.map_err(|error| refusal::reading(&error))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Whose the resource is to be.
pub(super) fn owner(order: &Order) -> String {
    format!("{}/{}", order.target, order.resource)
}

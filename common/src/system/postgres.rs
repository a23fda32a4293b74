//! A schema of a PostgreSQL database, and its migrations.

use serde::{Deserialize, Serialize};

use super::Archive;
use crate::adapter::{Capability, Enforce, Inspect};
use crate::rollback::DataEffect;

/// A schema of a database. Who connects, and with which secret, the host alone says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postgres {
    /// The schema.
    pub schema: String,
    /// `host:port` of the server; `None`: as the host's credentials say.
    pub server: Option<String>,
    /// The database; `None`: as the host's credentials say.
    pub database: Option<String>,
}

impl Postgres {
    /// Of migrations that are one transaction each.
    pub(super) const AT_BEST: Capability =
        Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: true };

    pub(super) fn place(&self) -> Option<String> {
        let Self { schema, server: Some(server), database: Some(database) } = self else { return None };
        Some(format!("postgres:{server}/{database}/{schema}"))
    }
}

/// Brings a schema to a version, one migration after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migrate {
    /// What holds the folder; `None`: it is on the host.
    pub archive: Option<Archive>,
    /// The folder of the migrations: in the archive, else absolute or in the attempt's folder.
    pub migrations: String,
    /// The version to stop after: the begin of a file's name, up to its first `_`.
    pub to: String,
    /// Whether each migration is one transaction with its row in the ledger. Where it is not, nothing at the database stops a
    /// statement that is under way.
    pub transaction: bool,
    /// The most that its migrations may do to data: what the step says.
    #[serde(default, skip_serializing_if = "DataEffect::is_none")]
    pub data: DataEffect,
}

impl Migrate {
    pub(super) fn capability(&self) -> Capability {
        let enforce = if self.transaction { Enforce::Fence } else { Enforce::None };
        Capability { enforce, ..Postgres::AT_BEST }
    }
}

//! What each adapter can prove. Nothing ever claims more than this table.

use serde::{Deserialize, Serialize};

/// Who carries a step out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    /// An argv on the host.
    Command,
    /// A release folder switched by one rename.
    Release,
    /// A look at what runs, over HTTP or TCP. Changes nothing.
    Check,
    /// Migrations of a PostgreSQL schema.
    Postgres,
    /// Commits in a Git repository.
    Git,
    /// A deployment API.
    Http,
    /// A program of the host.
    External,
}

impl Adapter {
    /// Every adapter.
    pub const ALL: [Adapter; 7] = [
        Adapter::Command,
        Adapter::Release,
        Adapter::Check,
        Adapter::Postgres,
        Adapter::Git,
        Adapter::Http,
        Adapter::External,
    ];

    /// Its name, as files and policies write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Adapter::Command => "command",
            Adapter::Release => "release",
            Adapter::Check => "check",
            Adapter::Postgres => "postgres",
            Adapter::Git => "git",
            Adapter::Http => "http",
            Adapter::External => "external",
        }
    }
}

/// What can be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inspect {
    /// Nothing.
    None,
    /// The revision the resource has.
    Revision,
    /// What became of one operation.
    Operation,
}

/// What the resource itself refuses, in the same atomic step as the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforce {
    /// Nothing.
    None,
    /// A stale expected revision.
    Revision,
    /// A stale fence.
    Fence,
}

/// How a resource goes back to the revision before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reverse {
    /// It has no way of its own.
    None,
    /// It keeps earlier revisions, and puts one back in place.
    RetainedRevision,
}

/// What a step's adapter can do on a step's resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capability {
    /// What can be read back.
    pub inspect: Inspect,
    /// What the resource refuses.
    pub enforce: Enforce,
    /// Whether an effect can outlive the process that asked for it.
    pub outlives: bool,
}

impl Capability {
    /// Nothing can be read, nothing is refused, and an effect may go on alone.
    pub const NOTHING: Capability = Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: true };
}

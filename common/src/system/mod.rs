//! Resources that keep a ledger of their own: a database, a repository, a deployment API, whatever a program of the host reaches.
//!
//! | adapter | changed by | keeps the fence in | reads back |
//! | --- | --- | --- | --- |
//! | [`Postgres`] | [`Migrate`] | a row that each migration's transaction checks | the operation |
//! | [`Git`] | [`Commit`] | a ref that each push moves by compare-and-swap | the operation |
//! | [`Http`] | [`Submit`] | what the API is declared to check | what the API is declared to tell |
//! | [`External`] | [`ExternalChange`] | what its target declares | what its target declares |
//!
//! What each can prove is said once, by [`System::capability`].

mod external;
mod git;
mod header;
mod http;
mod postgres;

use serde::{Deserialize, Serialize};

use crate::adapter::{Adapter, Capability};

pub use external::{External, ExternalChange};
pub use git::{Commit, Git};
pub use header::{Undeclarable, declarable};
pub use http::{Headers, Http, Pointers, Submit, Words};
pub use postgres::{Migrate, Postgres};

/// A resource's system, as its target declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "system")]
pub enum System {
    /// A schema of a PostgreSQL database.
    Postgres(Postgres),
    /// Refs of a Git repository.
    Git(Git),
    /// A service behind a deployment API.
    Http(Box<Http>),
    /// What a program of the host reaches.
    External(External),
}

/// What a step asks of a system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// Of [`System::Postgres`].
    Migrate(Migrate),
    /// Of [`System::Git`].
    Commit(Commit),
    /// Of [`System::Http`].
    Submit(Submit),
    /// Of [`System::External`].
    External(ExternalChange),
}

/// An archive, with its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Where it comes from: an [`ArchiveSource`](crate::archive::ArchiveSource).
    pub archive: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
}

impl System {
    /// Its adapter.
    #[must_use]
    pub fn adapter(&self) -> Adapter {
        match self {
            System::Postgres(_) => Adapter::Postgres,
            System::Git(_) => Adapter::Git,
            System::Http(_) => Adapter::Http,
            System::External(_) => Adapter::External,
        }
    }

    /// What can be proven of a change on it; `None` where the change is another system's.
    #[must_use]
    pub fn capability(&self, change: &Change) -> Option<Capability> {
        match (self, change) {
            (System::Postgres(_), Change::Migrate(migrate)) => Some(migrate.capability()),
            (System::Git(_), Change::Commit(_)) => Some(Git::CAPABILITY),
            (System::Http(http), Change::Submit(_)) => Some(http.capability()),
            (System::External(external), Change::External(_)) => Some(external.capability()),
            (System::Postgres(_) | System::Git(_) | System::Http(_) | System::External(_), _) => None,
        }
    }

    /// The most that can be proven of any change on it.
    #[must_use]
    pub fn capability_at_best(&self) -> Capability {
        match self {
            System::Postgres(_) => Postgres::AT_BEST,
            System::Git(_) => Git::CAPABILITY,
            System::Http(http) => http.capability(),
            System::External(external) => external.capability(),
        }
    }

    /// What tells the same thing in two declarations; `None` where a declaration does not say where it is.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        match self {
            System::Postgres(postgres) => postgres.place(),
            System::Git(git) => Some(git.place()),
            System::Http(http) => Some(format!("http:{}", http.url.trim_end_matches('/'))),
            System::External(_) => None,
        }
    }
}

impl Change {
    /// Whose it is.
    #[must_use]
    pub fn adapter(&self) -> Adapter {
        match self {
            Change::Migrate(_) => Adapter::Postgres,
            Change::Commit(_) => Adapter::Git,
            Change::Submit(_) => Adapter::Http,
            Change::External(_) => Adapter::External,
        }
    }

    /// The archive that it needs, where it needs one.
    #[must_use]
    pub fn archive(&self) -> Option<&Archive> {
        match self {
            Change::Migrate(migrate) => migrate.archive.as_ref(),
            Change::Commit(commit) => commit.archive.as_ref(),
            Change::External(change) => change.archive.as_ref(),
            Change::Submit(_) => None,
        }
    }
}

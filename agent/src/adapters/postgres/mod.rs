//! Migrations of a PostgreSQL schema.
//!
//! ```text
//!   adapter                                       server
//!   deploy:  SELECT holdfast.apply(..., sql) ──▶  as the deploy role: the migration's SQL, and what it deferred
//!                                                 as the owner: lock the row, compare fence and revision, write ledger and row
//!                                                 all of it one transaction, or none
//!   fence:   SELECT holdfast.raise_fence(n)  ──▶  as the owner: lock the row, raise
//!   inspect: sessions first, then the ledger ◀──  one snapshot
//! ```
//!
//! A database administrator installs the schema `holdfast` once ([`Claim`]). Its owner is none of the three roles, so none can
//! lower a fence. After a raise has returned no lower fence writes the row: what such a session still runs is rolled back.
//! A migration with `transaction=none` is the exception: only its begin is compared, and nothing stops it once it runs.
//!
//! | question | decided in |
//! | --- | --- |
//! | where the server is, who connects, and whether TLS is used | `access.rs` |
//! | which files are migrations, and what they say of themselves | `files.rs`, `migration.rs`, `version.rs` |
//! | what is to run, and what is refused before the permit | `plan.rs` |
//! | what runs how | `apply.rs` |
//! | what is atomic, and who may what | `setup.sql` |
//! | what became of an operation | `inspect.rs` |
//! | what an error of the server means | `refusal.rs` |

mod access;
mod apply;
mod calls;
mod files;
mod inspect;
mod ledger;
mod migration;
mod plan;
mod refusal;
mod session;
mod setup;
mod tls;
mod version;

use std::path::Path;

use holdfast_common::fence::Fence;
use holdfast_common::outcome::Reading;
use holdfast_common::system::{Change, Migrate, Postgres};
use tokio_postgres::types::Type;

use super::system::{Adapter, Applied, Call as Asked, Credentials, Failure, Order, Raised};

pub use calls::Call;
pub use setup::Claim;

use access::Access;
use apply::{Attempt, number};
use session::Session;

/// What sessions that run no operation are called.
const READER: &str = "holdfast";
const RAISE: &str = "SELECT holdfast.raise_fence($1, $2, $3)";

/// One order on one schema, with one credential set.
struct Migrations<'a> {
    order: &'a Order,
    system: &'a Postgres,
    access: Access,
}

/// The adapter for an order.
pub(super) fn adapter<'a>(
    order: &'a Order,
    system: &'a Postgres,
    credentials: &Credentials,
) -> Result<Box<dyn Adapter + 'a>, Failure> {
    Ok(Box::new(Migrations { order, system, access: access::access(system, credentials, order.is_placed)? }))
}

impl Migrations<'_> {
    /// The migration that is asked for, and where its files are.
    fn asked(&self) -> Result<(&Migrate, Option<&Path>, &Path), Failure> {
        let Some(Change::Migrate(migrate)) = &self.order.operation.change else {
            return Err(Failure::Resource("the step asks for no migration".to_owned()));
        };
        match &self.order.call {
            Asked::Examine { archive, work } | Asked::Apply { archive, work, .. } => {
                Ok((migrate, archive.as_deref(), work))
            }
            Asked::Inspect | Asked::Raise { .. } => Err(Failure::Machinery("the call brings no files".to_owned())),
        }
    }
}

impl Adapter for Migrations<'_> {
    fn examine(&self) -> Result<(), Failure> {
        let (migrate, archive, work) = self.asked()?;
        let files = files::load(migrate, archive, work)?;
        let session = Session::open(&self.access, READER)?;
        let ledger = ledger::read(&session, self.order, self.system)?;
        if ledger.finished.is_some() {
            return Ok(());
        }
        plan::plan(files, &ledger, migrate, &self.order.operation).map(drop)
    }

    fn apply(&self, fence: Fence) -> Result<Applied, Failure> {
        let (migrate, archive, work) = self.asked()?;
        let session = Session::open(&self.access, &session::name(&self.order.operation.id, fence))?;
        Attempt { order: self.order, system: self.system, migrate, fence, session }.apply(archive, work)
    }

    fn inspect(&self) -> Result<Reading, Failure> {
        let session = Session::open(&self.access, READER)?;
        inspect::inspect(&session, self.order, self.system)
    }

    fn raise(&self, fence: Fence) -> Result<Raised, Failure> {
        let session = Session::open(&self.access, READER)?;
        let (owner, fence) = (ledger::owner(self.order), number(fence)?);
        let parameters = [(&self.system.schema as _, Type::TEXT), (&owner as _, Type::TEXT), (&fence as _, Type::INT8)];
        let raised = session.query(calls::Call::Raise, RAISE, &parameters);
        raised.map(|_| Raised::Now).map_err(|error| refusal::reading(&error))
    }
}

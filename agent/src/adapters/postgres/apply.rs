//! Running what is pending, each migration once.
//!
//! | a migration | at the server |
//! | --- | --- |
//! | in a transaction | `holdfast.apply`: its SQL, the comparison of fence and revision, and its row are one statement |
//! | outside of one | `begin_statement` (fence and revision are compared) → its one statement → `end_statement` |
//!
//! An operation that was cut short goes on where it stopped. Once a part of it is there, no failure says any more that nothing
//! was changed.

use std::path::Path;

use holdfast_common::fence::Fence;
use holdfast_common::system::{Migrate, Postgres};
use tokio_postgres::types::Type;

use super::calls::Call;
use super::ledger::{self, Ledger};
use super::migration::Migration;
use super::plan::{Pending, plan};
use super::session::{Parameter, Session};
use super::{files, refusal};
use crate::adapters::system::{Applied, Failure, Order};

const APPLY: &str = "SELECT holdfast.apply($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const FINISH: &str = "SELECT holdfast.finish($1, $2, $3, $4, $5, $6)";
const BEGIN: &str = "SELECT holdfast.begin_statement($1, $2, $3, $4, $5, $6, $7, $8)";
const IN_SCHEMA: &str = "SELECT set_config('search_path', quote_ident($1) || ', pg_temp', false)";
const END: &str = "SELECT holdfast.end_statement($1, $2, $3, $4, $5, $6)";

/// An attempt at an operation, with its session.
pub(super) struct Attempt<'a> {
    pub(super) order: &'a Order,
    pub(super) system: &'a Postgres,
    pub(super) migrate: &'a Migrate,
    pub(super) fence: Fence,
    pub(super) session: Session,
}

/// What the server is told each time.
struct Told {
    owner: String,
    operation: String,
    fence: i64,
    expected: Option<String>,
}

impl Attempt<'_> {
    pub(super) fn apply(&self, archive: Option<&Path>, work: &Path) -> Result<Applied, Failure> {
        let told = self.told()?;
        let ledger = ledger::read(&self.session, self.order, self.system)?;
        let applied = self.go_on(&told, &ledger, archive, work);
        applied.map_err(|failure| told_in_part(failure, self.in_part(&ledger)))
    }

    fn go_on(&self, told: &Told, ledger: &Ledger, archive: Option<&Path>, work: &Path) -> Result<Applied, Failure> {
        if told.fence < ledger.highest {
            let highest = u64::try_from(ledger.highest).ok().and_then(Fence::from_u64);
            return Err(Failure::FencedOff { fence: self.fence, highest });
        }
        if ledger.finished.is_some() {
            return self.finish(told);
        }
        let files = files::load(self.migrate, archive, work)?;
        self.run(told, &plan(files, ledger, self.migrate, &self.order.operation)?)
    }

    fn run(&self, told: &Told, pending: &[Pending]) -> Result<Applied, Failure> {
        let mut is_recorded = false;
        for (index, one) in pending.iter().enumerate() {
            let is_last = index + 1 == pending.len();
            let ran = if one.header.in_transaction {
                self.in_transaction(told, &one.migration, is_last)
            } else {
                self.outside(told, &one.migration, is_last)
            };
            is_recorded = ran.map_err(|failure| told_in_part(failure, index > 0))? && is_last;
        }
        if is_recorded {
            return Ok(Applied::Now);
        }
        self.finish(told).map_err(|failure| told_in_part(failure, !pending.is_empty()))
    }

    /// False: somebody else had applied it meanwhile.
    fn in_transaction(&self, told: &Told, migration: &Migration, is_last: bool) -> Result<bool, Failure> {
        let mut parameters = told.parameters(&self.system.schema).to_vec();
        let version = migration.version.as_str();
        parameters.extend(text([&version, &migration.name, &migration.checksum]));
        parameters.extend([(&is_last as _, Type::BOOL), (&migration.sql as _, Type::TEXT)]);
        self.ask(Call::Migrate, APPLY, &parameters).map_err(|failure| of_file(failure, migration))
    }

    /// Whatever its statement ends with, only the row that follows says that it is done.
    fn outside(&self, told: &Told, migration: &Migration, is_last: bool) -> Result<bool, Failure> {
        self.parse(migration)?;
        let mut parameters = told.parameters(&self.system.schema).to_vec();
        let version = migration.version.as_str();
        parameters.extend(text([&version, &migration.name, &migration.checksum]));
        if !self.ask(Call::Begin, BEGIN, &parameters).map_err(|failure| of_file(failure, migration))? {
            return Ok(false);
        }
        let unknown = |error| Failure::Machinery(format!("{}: {}", migration.name, refusal::told(&error)));
        self.session.query(Call::Statement, &migration.sql, &[]).map_err(unknown)?;
        let mut parameters = told.parameters(&self.system.schema)[..4].to_vec();
        parameters.extend([(&version as _, Type::TEXT), (&is_last as _, Type::BOOL)]);
        self.session.query(Call::End, END, &parameters).map_err(unknown)?;
        Ok(true)
    }

    /// What the server can't read, or what is more than one statement, is not begun.
    fn parse(&self, migration: &Migration) -> Result<(), Failure> {
        let parsed = self.session.query(Call::Parse, IN_SCHEMA, &[(&self.system.schema, Type::TEXT)]);
        let parsed = parsed.and_then(|_| self.session.parse(&migration.sql));
        parsed.map_err(|error| of_file(refusal::changing(&error, self.fence, None), migration))
    }

    /// Nothing is left to run: the operation is recorded, and its fence with it.
    fn finish(&self, told: &Told) -> Result<Applied, Failure> {
        let mut parameters = told.parameters(&self.system.schema).to_vec();
        parameters.push((&self.migrate.to, Type::TEXT));
        let is_new = self.ask(Call::Finish, FINISH, &parameters)?;
        Ok(if is_new { Applied::Now } else { Applied::Before })
    }

    fn ask(&self, call: Call, statement: &str, parameters: &[Parameter<'_>]) -> Result<bool, Failure> {
        let expected = self.order.operation.expected_revision.as_ref();
        let rows = self.session.query(call, statement, parameters);
        let rows = rows.map_err(|error| refusal::changing(&error, self.fence, expected))?;
        rows.first().map(|row| row.get(0)).ok_or_else(|| Failure::Machinery("the server said nothing".to_owned()))
    }

    fn told(&self) -> Result<Told, Failure> {
        let operation = &self.order.operation;
        Ok(Told {
            owner: ledger::owner(self.order),
            operation: operation.id.to_string(),
            fence: number(self.fence)?,
            expected: operation.expected_revision.as_ref().map(ToString::to_string),
        })
    }

    /// Whether earlier attempts left a part of the operation.
    fn in_part(&self, ledger: &Ledger) -> bool {
        let own = self.order.operation.id.to_string();
        let any = ledger.abandoned.is_some() || ledger.rows.iter().any(|row| row.operation == own);
        ledger.finished.is_none() && any
    }
}

impl Told {
    /// The parameters that each call begins with.
    fn parameters<'a>(&'a self, schema: &'a String) -> [Parameter<'a>; 5] {
        [
            (schema, Type::TEXT),
            (&self.owner, Type::TEXT),
            (&self.operation, Type::TEXT),
            (&self.fence, Type::INT8),
            (&self.expected, Type::TEXT),
        ]
    }
}

fn text<'a>(texts: [&'a (dyn tokio_postgres::types::ToSql + Sync); 3]) -> [Parameter<'a>; 3] {
    texts.map(|text| (text, Type::TEXT))
}

/// As the server keeps it.
pub(super) fn number(fence: Fence) -> Result<i64, Failure> {
    i64::try_from(fence.as_u64())
        .map_err(|_| Failure::NotBegun(format!("fence {fence} is beyond what the server keeps")))
}

fn of_file(failure: Failure, migration: &Migration) -> Failure {
    match failure {
        Failure::Content(why) => Failure::Content(format!("{}: {why}", migration.name)),
        Failure::Transient(why) => Failure::Transient(format!("{}: {why}", migration.name)),
        Failure::NotBegun(why) => Failure::NotBegun(format!("{}: {why}", migration.name)),
        Failure::Machinery(why) => Failure::Machinery(format!("{}: {why}", migration.name)),
        Failure::FencedOff { .. } | Failure::Revision { .. } | Failure::Resource(_) | Failure::Part(_) => failure,
    }
}

/// A refusal says that nothing was changed. Of an operation that has changed something it must not.
fn told_in_part(failure: Failure, in_part: bool) -> Failure {
    match failure {
        Failure::Transient(_) | Failure::NotBegun(_) | Failure::Machinery(_) | Failure::Part(_) => failure,
        Failure::FencedOff { .. } | Failure::Revision { .. } | Failure::Content(_) | Failure::Resource(_)
            if in_part =>
        {
            Failure::Part(failure.to_string())
        }
        Failure::FencedOff { .. } | Failure::Revision { .. } | Failure::Content(_) | Failure::Resource(_) => failure,
    }
}

//! What is to run, decided before anything does.
//!
//! | found | then |
//! | --- | --- |
//! | a file that was applied has another content | refused |
//! | a version that was applied or begun is written in another way, as 1 for 0001 | refused |
//! | the schema is beyond the version to stop after | refused |
//! | a version below one that was applied is not applied | refused |
//! | another version was begun and is not known to be done | refused |
//! | a file that is to run has no usable first line | refused |
//! | it does more to data than the step says | refused |
//! | it can't run in a transaction, and the step asks for one | refused |
//! | the expected revision is another one, and the operation has done nothing yet | refused |
//! | nothing is to run, and the revision on record is not the version to stop after | refused |
//! | else | the files that are not applied run, in order |

use std::collections::BTreeMap;

use holdfast_common::id::Revision;
use holdfast_common::system::Migrate;

use super::ledger::{Ledger, Row};
use super::migration::{Header, Migration, data_name};
use super::version::Version;
use crate::adapters::system::{Failure, Operation};

/// A file that is to run.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) migration: Migration,
    pub(super) header: Header,
}

/// What is to run, in order. Empty: everything is there.
pub(super) fn plan(
    migrations: Vec<Migration>,
    ledger: &Ledger,
    migrate: &Migrate,
    operation: &Operation,
) -> Result<Vec<Pending>, Failure> {
    let rows: BTreeMap<Version, &Row> = ledger.rows.iter().map(|row| (Version::of(&row.version), row)).collect();
    let is_done = |migration: &Migration| rows.get(&migration.version).is_some_and(|row| row.is_done);
    let refuse = |why: String| Err(Failure::Content(why));
    if let Some(why) = migrations.iter().find_map(|file| changed(file, rows.get(&file.version)?)) {
        return refuse(why);
    }
    let newest = rows.iter().rfind(|(_, row)| row.is_done).map(|(version, _)| version.clone());
    let pending: Vec<Migration> = migrations.into_iter().filter(|migration| !is_done(migration)).collect();
    if let Some(newest) = newest {
        if newest > Version::of(&migrate.to) {
            return refuse(format!("the schema is at {} already, which is beyond {}", newest.as_str(), migrate.to));
        }
        if let Some(late) = pending.iter().find(|migration| migration.version < newest) {
            return refuse(format!(
                "{} comes before {}, which is applied, and is not applied",
                late.name,
                newest.as_str()
            ));
        }
    }
    let first = pending.first().map(|migration| &migration.version);
    if let Some(begun) = ledger.open().find(|row| Some(&Version::of(&row.version)) != first) {
        return refuse(format!("{} was begun by {} and is not known to be done", begun.version, begun.operation));
    }
    let pending: Vec<_> =
        pending.into_iter().map(|migration| admitted(migration, migrate)).collect::<Result<_, _>>()?;
    expected(ledger, operation)?;
    agrees(ledger, &pending, &migrate.to)?;
    Ok(pending)
}

/// How a file differs from what the ledger has of its version. The name behind the version is free.
fn changed(file: &Migration, row: &Row) -> Option<String> {
    let was = if row.is_done { "applied" } else { "begun" };
    let known = if row.name == file.name { String::new() } else { format!(" as {}", row.name) };
    if row.version != file.version.as_str() {
        return Some(format!(
            "{} was {was}{known}: its version is {} for good, so call it so again",
            file.name, row.version
        ));
    }
    (row.is_done && row.checksum != file.checksum)
        .then(|| format!("{} was {was}{known} with another content", file.name))
}

fn admitted(migration: Migration, migrate: &Migrate) -> Result<Pending, Failure> {
    let header = migration.header.clone().map_err(Failure::Content)?;
    if header.data > migrate.data {
        let (file, step) = (data_name(header.data), data_name(migrate.data));
        return Err(Failure::Content(format!(
            "{} has data={file}, and the step says data = \"{step}\"",
            migration.name
        )));
    }
    if !header.in_transaction && migrate.transaction {
        let why = format!("{} has transaction=none, which the step must allow by transaction = false", migration.name);
        return Err(Failure::Content(why));
    }
    Ok(Pending { migration, header })
}

/// Later migrations of an operation meet what it left itself. The server compares the same once more, in the same transaction.
fn expected(ledger: &Ledger, operation: &Operation) -> Result<(), Failure> {
    let Some(expected) = &operation.expected_revision else { return Ok(()) };
    if ledger.has_begun(&operation.id) || ledger.revision.as_deref() == Some(expected.as_str()) {
        return Ok(());
    }
    let found = ledger.revision.as_ref().and_then(|text| Revision::new(text.clone()).ok());
    Err(Failure::Revision { expected: expected.clone(), found })
}

/// Where nothing is left to run the record has the last version, or somebody changed one of the two and not the other.
fn agrees(ledger: &Ledger, pending: &[Pending], last: &str) -> Result<(), Failure> {
    let revision = ledger.revision.as_deref();
    if !pending.is_empty() || revision == Some(last) {
        return Ok(());
    }
    let revision = revision.unwrap_or("none yet");
    Err(Failure::Resource(format!("the ledger ends with {last}, and the record has the revision {revision}")))
}

#[cfg(test)]
mod tests;

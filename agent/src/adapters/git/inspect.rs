//! Reading what became of an operation. Reading access is enough.
//!
//! | the ledger | the branches | the operation is |
//! | --- | --- | --- |
//! | is not there | | unknown: it may be another repository |
//! | has it | all contain its commits | applied |
//! | has it | some do, or none | partial: it was applied, and somebody moved a branch |
//! | has it | can't be followed so far | unknown |
//! | lacks it | one has a commit that says it is of it | partial: the server came to lie down within its own push |
//! | lacks it | none has | not applied |
//! | lacks it, and is cut off | | unknown |
//!
//! A push is there or it is not; one that is under way at the server shows nothing. What it may still become is settled by a
//! raise, which it then loses against.

use std::path::Path;

use holdfast_common::id::OperationId;
use holdfast_common::outcome::{OperationState, Reading};

use super::Resource;
use super::cache::Repository;
use super::entry::Done;
use super::error::Error;
use super::history::{self, Contains};
use super::remote::Depth;
use super::run::Git;
use super::seen::Seen;

/// How often a look is repeated when the repository changes under it.
const LOOKS: usize = 8;
/// How far back branches are followed, one after the other, until it is enough.
const DEPTHS: [Depth; 4] = [Depth::Commits(1), Depth::Commits(50), Depth::Commits(2000), Depth::All];

/// Reads the operation.
pub(super) fn inspect(
    resource: &Resource<'_>,
    git: &Git,
    cache: &Path,
    operation: &OperationId,
) -> Result<Reading, Error> {
    for _ in 0..LOOKS {
        let refs = resource.remote().refs(git)?;
        let read = Repository::with(git, cache, refs.any(), |repository| {
            let seen = Seen::read(resource, repository, refs.clone())?;
            reading(resource, repository, &seen, operation)
        });
        match read {
            Err(Error::Moved) => {}
            // Refs are moved one after the other: only what stands still was seen at one moment.
            Ok(reading) if resource.remote().refs(git)? == refs => return Ok(reading),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Moved)
}

fn reading(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    operation: &OperationId,
) -> Result<Reading, Error> {
    let (state, detail) = judge(resource, repository, seen, operation)?;
    Ok(Reading {
        resource_identity: seen.ledger.identity().unwrap_or_default().to_owned(),
        state,
        revision: seen.revision(resource),
        active: None,
        highest_fence: seen.ledger.highest(),
        retained: Vec::new(),
        detail: format!("{detail}; a push that is under way can't be seen"),
    })
}

fn judge(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    operation: &OperationId,
) -> Result<(OperationState, String), Error> {
    if seen.ledger.newest().is_none() {
        let detail = "there is no ledger: nothing was ever applied or fenced off here";
        return Ok((OperationState::Unknown, detail.to_owned()));
    }
    match seen.ledger.find(operation) {
        Some(done) => of_done(resource, repository, seen, done),
        None if !seen.ledger.is_whole() => {
            let detail = "the repository is shallow, and the ledger's first entries are not in it";
            Ok((OperationState::Unknown, detail.to_owned()))
        }
        None => of_missing(resource, repository, seen, operation),
    }
}

fn of_done(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    done: &Done,
) -> Result<(OperationState, String), Error> {
    let mut found = Vec::new();
    for depth in DEPTHS {
        if depth != DEPTHS[0] {
            resource.remote().fetch(repository, &seen.refs, depth)?;
        }
        found = branches(resource, repository, seen, done)?;
        if found.iter().all(|(_, contains)| *contains != Contains::NotAsFar) {
            break;
        }
    }
    let named = |wanted: Contains| {
        let names: Vec<&str> = found.iter().filter(|(_, is)| *is == wanted).map(|(name, _)| *name).collect();
        names.join(", ")
    };
    Ok(match (found.as_slice(), named(Contains::NotAsFar), named(Contains::No)) {
        ([], _, _) => (OperationState::Unknown, "it was applied to branches that are not declared any more".to_owned()),
        (_, far, lost) if far.is_empty() && lost.is_empty() => {
            (OperationState::Applied, format!("the ledger has it, and {} has its commit", named(Contains::Yes)))
        }
        (_, _, lost) if !lost.is_empty() => (
            OperationState::Partial,
            format!("it was applied, and somebody moved a branch since: {lost} does not have its commit"),
        ),
        (_, far, _) => (
            OperationState::Unknown,
            format!("the repository is shallow: how {far} came to be can't be followed to its commit"),
        ),
    })
}

fn branches<'a>(
    resource: &'a Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    done: &Done,
) -> Result<Vec<(&'a str, Contains)>, Error> {
    let mut found = Vec::new();
    for (name, tip) in resource.declared.branches.iter().zip(&seen.refs.branches) {
        let Some(left) = done.left.get(name) else { continue };
        let contains = match tip {
            Some(tip) => history::contains(repository, tip, &left.commit)?,
            None => Contains::No,
        };
        found.push((name.as_str(), contains));
    }
    Ok(found)
}

fn of_missing(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    operation: &OperationId,
) -> Result<(OperationState, String), Error> {
    for (name, tip) in resource.declared.branches.iter().zip(&seen.refs.branches) {
        let Some(tip) = tip else { continue };
        if history::says(repository, tip, operation)? {
            let detail = format!("{name} has a commit that says it is of it, and the ledger lacks it");
            return Ok((OperationState::Partial, detail));
        }
    }
    Ok((OperationState::NotApplied, "the ledger lacks it".to_owned()))
}

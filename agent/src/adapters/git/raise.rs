//! Fencing off: an entry that moves the ledger alone. Whoever read the ledger before it is refused from then on.

use std::path::Path;

use holdfast_common::fence::Fence;

use super::Resource;
use super::apply::{TRIES, wait};
use super::cache::Repository;
use super::commit;
use super::error::Error;
use super::push::{Pushed, push};
use super::run::Git;
use super::seen::Seen;
use crate::adapters::system::{Failure, Raised};

/// Raises the fence. Repeatable, and never down.
pub(super) fn raise(resource: &Resource<'_>, git: &Git, cache: &Path, fence: Fence) -> Result<Raised, Error> {
    let first = resource.remote().refs(git)?;
    Repository::with(git, cache, first.any(), |repository| {
        for round in 0..TRIES {
            wait(round);
            match once(resource, git, repository, fence) {
                Ok(None) | Err(Error::Moved) => {}
                Ok(Some(raised)) => return Ok(raised),
                Err(error) => return Err(error),
            }
        }
        Err(Failure::Transient(format!("somebody else was first {TRIES} times in a row")).into())
    })
}

/// `None`: somebody else was first.
fn once(
    resource: &Resource<'_>,
    git: &Git,
    repository: &Repository<'_>,
    fence: Fence,
) -> Result<Option<Raised>, Error> {
    let seen = Seen::read(resource, repository, resource.remote().refs(git)?)?;
    if seen.ledger.highest().is_some_and(|highest| highest >= fence) {
        return Ok(Some(Raised::Before));
    }
    seen.refuse_strangers(resource, repository)?;
    let entry = commit::of_raise(resource, repository, &seen, fence)?;
    Ok(match push(git, repository, &resource.remote(), &seen.refs, &[entry])? {
        Pushed::Whole => Some(Raised::Now),
        Pushed::Overtaken => None,
    })
}

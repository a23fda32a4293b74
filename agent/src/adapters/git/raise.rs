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
use crate::adapters::system::Failure;

/// Raises the fence. Repeatable, and never down.
pub(super) fn raise(resource: &Resource<'_>, git: &Git, cache: &Path, fence: Fence) -> Result<(), Error> {
    let first = resource.remote().refs(git)?;
    Repository::with(git, cache, first.any(), |repository| {
        for round in 0..TRIES {
            wait(round);
            match once(resource, git, repository, fence) {
                Ok(false) | Err(Error::Moved) => {}
                Ok(true) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Err(Failure::Transient(format!("somebody else was first {TRIES} times in a row")).into())
    })
}

/// Whether the fence stands.
fn once(resource: &Resource<'_>, git: &Git, repository: &Repository<'_>, fence: Fence) -> Result<bool, Error> {
    let seen = Seen::read(resource, repository, resource.remote().refs(git)?)?;
    if seen.ledger.highest().is_some_and(|highest| highest >= fence) {
        return Ok(true);
    }
    seen.refuse_strangers(resource, repository)?;
    let entry = commit::of_raise(resource, repository, &seen, fence)?;
    Ok(push(git, repository, &resource.remote(), &seen.refs, &[entry])? == Pushed::Whole)
}

//! Making the change, once.
//!
//! ```text
//! read ledger and branches ─▶ judge ─▶ commits in the cache ─▶ push ─▶ there, whole
//!        ▲                                                      │
//!        └────────────── somebody else was first ───────────────┘
//! ```

use std::path::Path;
use std::time::Duration;

use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;
use holdfast_common::system::Commit;

use super::Resource;
use super::cache::Repository;
use super::calls::{self, Call};
use super::commit;
use super::content::{self, Content};
use super::error::Error;
use super::ledger::Verdict;
use super::push::{Pushed, push};
use super::run::Git;
use super::seen::Seen;
use crate::adapters::system::{Applied, Failure, Operation};

/// How often it is begun anew because somebody else was first.
pub(super) const TRIES: u32 = 12;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) operation: &'a Operation,
    pub(super) change: &'a Commit,
    pub(super) archive: Option<&'a Path>,
    pub(super) cache: &'a Path,
}

/// Says what would be refused.
pub(super) fn examine(resource: &Resource<'_>, git: &Git, asked: Asked<'_>) -> Result<(), Error> {
    let refs = resource.remote().refs(git)?;
    Repository::with(git, asked.cache, refs.any(), |repository| {
        content::check(repository, asked.change, asked.archive)?;
        let seen = Seen::read(resource, repository, refs.clone())?;
        seen.refuse_strangers(resource, repository)?;
        if seen.ledger.find(&asked.operation.id).is_some() {
            return Ok(());
        }
        expect(resource, &seen, asked.operation.expected_revision.as_ref())
    })
}

/// Makes the change under its fence.
pub(super) fn apply(resource: &Resource<'_>, git: &Git, asked: Asked<'_>, fence: Fence) -> Result<Applied, Error> {
    let first = resource.remote().refs(git)?;
    Repository::with(git, asked.cache, first.any(), |repository| {
        let mut content = None;
        for round in 0..TRIES {
            wait(round);
            match once(resource, git, repository, asked, fence, &mut content) {
                Ok(None) | Err(Error::Moved) => {}
                Ok(Some(applied)) => return Ok(applied),
                Err(error) => return Err(error),
            }
        }
        Err(Failure::Transient(format!("somebody else was first {TRIES} times in a row; nothing was changed")).into())
    })
}

/// `None`: nothing was changed, since somebody else was first.
fn once(
    resource: &Resource<'_>,
    git: &Git,
    repository: &Repository<'_>,
    asked: Asked<'_>,
    fence: Fence,
    content: &mut Option<Content>,
) -> Result<Option<Applied>, Error> {
    let seen = Seen::read(resource, repository, resource.remote().refs(git)?)?;
    seen.refuse_strangers(resource, repository)?;
    if seen.ledger.judge(&asked.operation.id, fence)? == Verdict::Before {
        return Ok(Some(Applied::Before));
    }
    expect(resource, &seen, asked.operation.expected_revision.as_ref())?;
    calls::before(Call::Commit);
    let content = match content {
        Some(content) => content,
        None => content.insert(Content::store(repository, asked.change, asked.archive)?),
    };
    let moves = commit::of_operation(resource, repository, &seen, asked.operation, fence, asked.change, content)?;
    match push(git, repository, &resource.remote(), &seen.refs, &moves)? {
        Pushed::Whole => Ok(Some(Applied::Now)),
        Pushed::Overtaken => Ok(None),
    }
}

fn expect(resource: &Resource<'_>, seen: &Seen, expected: Option<&Revision>) -> Result<(), Error> {
    let Some(expected) = expected else { return Ok(()) };
    let found = seen.revision(resource);
    if found.as_ref() == Some(expected) {
        return Ok(());
    }
    Err(Failure::Revision { expected: expected.clone(), found }.into())
}

/// Whoever was first has a moment to come to its end.
pub(super) fn wait(round: u32) {
    if round > 0 {
        std::thread::sleep(Duration::from_millis(20 << round.min(6)));
    }
}

//! Commits in the cache, for every branch and for the ledger. Nobody sees them before a push.

use std::collections::BTreeMap;

use holdfast_common::fence::Fence;
use holdfast_common::system::Commit;
use holdfast_common::text::one_line;
use uuid::Uuid;

use super::Resource;
use super::cache::Repository;
use super::content::Content;
use super::entry::{Done, Entry, Left};
use super::error::Error;
use super::names::{Oid, branch};
use super::seen::{Seen, of_commit};
use super::tree::{self, oid};
use crate::adapters::system::{Failure, Operation};

/// One ref, from what it was read to be to what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) name: String,
    pub(super) old: Option<Oid>,
    pub(super) new: Oid,
}

/// What an operation moves: each branch, and the ledger last.
pub(super) fn of_operation(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    operation: &Operation,
    fence: Fence,
    change: &Commit,
    content: &Content,
) -> Result<Vec<Move>, Error> {
    let message = message(operation, fence, change);
    let (mut moves, mut left) = (Vec::new(), BTreeMap::new());
    for ((name, tip), folder) in resource.declared.branches.iter().zip(&seen.refs.branches).zip(&seen.folders) {
        let tree = content.tree(repository, folder.as_ref().filter(|_| change.keep))?;
        let root = tree::replace(repository, tip.as_ref(), &resource.declared.path, tree.clone())?;
        let commit = write(repository, &root, tip.as_ref(), &message)?;
        moves.push(Move { name: branch(name), old: tip.clone(), new: commit.clone() });
        left.insert(name.clone(), Left { commit, tree });
    }
    let first = moves.first().map(|first| of_commit(&first.new));
    let revision = operation.revision.clone().or(first);
    let revision = revision.ok_or_else(|| Failure::Resource("the resource has no branch".to_owned()))?;
    let done = Done { operation: operation.id.clone(), revision, left };
    moves.push(entry(resource, repository, seen, fence, Some(done))?);
    Ok(moves)
}

/// What a raise moves: the ledger alone.
pub(super) fn of_raise(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    fence: Fence,
) -> Result<Move, Error> {
    entry(resource, repository, seen, fence, None)
}

fn entry(
    resource: &Resource<'_>,
    repository: &Repository<'_>,
    seen: &Seen,
    fence: Fence,
    done: Option<Done>,
) -> Result<Move, Error> {
    let identity = seen.ledger.identity().map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
    let entry = Entry {
        number: seen.ledger.next_number(),
        owner: resource.owner(),
        identity,
        fence,
        path: resource.declared.path.clone(),
        branches: resource.declared.branches.clone(),
        done,
    };
    let message = entry.message();
    if Entry::parse(&message).as_ref() != Some(&entry) {
        return Err(
            Failure::Resource("the resource's path or a branch of it can't stand in a ledger".to_owned()).into()
        );
    }
    let nothing = oid(&repository.run("mktree").line()?)?;
    let new = write(repository, &nothing, seen.ledger.head.as_ref(), &message)?;
    Ok(Move { name: resource.ledger.clone(), old: seen.ledger.head.clone(), new })
}

fn write(repository: &Repository<'_>, tree: &Oid, parent: Option<&Oid>, message: &str) -> Result<Oid, Error> {
    let parents = parent.iter().flat_map(|parent| ["-p", parent.as_str()]);
    let run = repository.run("commit-tree").args(["--no-gpg-sign"]).args(parents).args(["-F", "-", tree.as_str()]);
    oid(&run.input(message).line()?)
}

/// The first line is the step's own; the trailers are for whoever meets the commit later.
fn message(operation: &Operation, fence: Fence, change: &Commit) -> String {
    let revision = operation.revision.as_ref();
    let first = match (&change.message, revision) {
        (Some(message), _) => one_line(message),
        (None, Some(revision)) => format!("Deploy {revision} ({})", operation.id.deployment),
        (None, None) => format!("Deploy {}", operation.id.deployment),
    };
    let mut text = format!(
        "{first}\n\nHoldfast-Operation: {}\nHoldfast-Fence: {}\nHoldfast-Deployment: {}\n",
        operation.id,
        fence.as_u64(),
        operation.id.deployment
    );
    text.extend(revision.map(|revision| format!("Holdfast-Revision: {revision}\n")));
    text
}

//! What a branch has behind its tip, as far as it was brought.

use holdfast_common::id::OperationId;

use super::cache::Repository;
use super::entry::trailers;
use super::error::Error;
use super::names::Oid;

/// So many commits are searched for one that says it is of an operation.
const MOST_SEARCHED: &str = "--max-count=1000";

/// Whether a commit is part of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contains {
    Yes,
    No,
    /// It was not found, and the history goes on where it was cut off.
    NotAsFar,
}

/// Whether the branch with that tip has the commit.
pub(super) fn contains(repository: &Repository<'_>, tip: &Oid, commit: &Oid) -> Result<Contains, Error> {
    let is_there = repository.run("cat-file").args(["-e", &format!("{commit}^{{commit}}")]).end()?.success;
    if is_there {
        let run = repository.run("merge-base").args(["--is-ancestor", commit.as_str(), tip.as_str()]);
        if run.end()?.success {
            return Ok(Contains::Yes);
        }
    }
    Ok(if is_cut(repository, tip)? { Contains::NotAsFar } else { Contains::No })
}

fn is_cut(repository: &Repository<'_>, tip: &Oid) -> Result<bool, Error> {
    let shallow = repository.shallow()?;
    if shallow.is_empty() {
        return Ok(false);
    }
    let ends = repository.run("rev-list").args(["--max-parents=0", tip.as_str(), "--"]).output()?;
    Ok(String::from_utf8_lossy(&ends).lines().filter_map(Oid::parse).any(|end| shallow.contains(&end)))
}

/// Whether a commit of the branch says that it is of that operation.
pub(super) fn says(repository: &Repository<'_>, tip: &Oid, operation: &OperationId) -> Result<bool, Error> {
    let run = repository.run("log").args(["-z", "--encoding=UTF-8", "--format=%B", MOST_SEARCHED]);
    let text = run.args([tip.as_str(), "--"]).output()?;
    let wanted = operation.to_string();
    let said = ("Holdfast-Operation", wanted.as_str());
    Ok(String::from_utf8_lossy(&text).split('\0').any(|message| trailers(message).contains(&said)))
}

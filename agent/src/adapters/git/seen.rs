//! The resource as it was at one moment: its ledger, and the folder on each of its branches.

use holdfast_common::id::Revision;

use super::Resource;
use super::cache::Repository;
use super::calls::{self, Call};
use super::entry::Entry;
use super::error::Error;
use super::ledger::Ledger;
use super::names::Oid;
use super::remote::{Depth, Refs};
use super::tree;
use crate::adapters::system::Failure;

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) refs: Refs,
    pub(super) ledger: Ledger,
    /// The folder's tree on each branch, in the order of their declaration; `None` where branch or folder is not there.
    pub(super) folders: Vec<Option<Oid>>,
}

impl Seen {
    /// Brings and reads it.
    pub(super) fn read(resource: &Resource<'_>, repository: &Repository<'_>, refs: Refs) -> Result<Self, Error> {
        resource.remote().fetch(repository, &refs, Depth::Commits(1))?;
        calls::before(Call::Read);
        let ledger = ledger(resource, repository, &refs)?;
        let folders = refs.branches.iter().map(|tip| {
            let Some(tip) = tip else { return Ok(None) };
            tree::folder(repository, tip, &resource.declared.path)
        });
        let folders = folders.collect::<Result<_, Error>>()?;
        Ok(Self { refs, ledger, folders })
    }

    /// The revision of the newest operation, as long as each branch's folder is as that left it. Else the first commit at which
    /// one is not; `None` where that branch is not there.
    pub(super) fn revision(&self, resource: &Resource<'_>) -> Option<Revision> {
        let left = self.ledger.newest_done();
        let strays = resource.declared.branches.iter().zip(&self.folders).position(|(branch, folder)| {
            let left = left.and_then(|done| done.left.get(branch)).map(|left| &left.tree);
            left.is_none() || left != folder.as_ref()
        });
        match strays {
            None => left.map(|done| done.revision.clone()),
            Some(at) => self.refs.branches[at].as_ref().map(of_commit),
        }
    }

    /// Refuses where a ledger of somebody else speaks for the same files.
    pub(super) fn refuse_strangers(&self, resource: &Resource<'_>, repository: &Repository<'_>) -> Result<(), Error> {
        if self.refs.others.is_empty() {
            return Ok(());
        }
        let heads: Vec<&str> = self.refs.others.values().map(Oid::as_str).collect();
        let run = repository.run("log").args(["--no-walk=unsorted", "-z", "--encoding=UTF-8", "--format=%B"]);
        let text = run.args(heads).args(["--"]).output()?;
        for other in String::from_utf8_lossy(&text).split('\0').filter_map(Entry::parse) {
            let shares = resource.declared.branches.iter().any(|branch| other.branches.contains(branch));
            if shares && overlap(&other.path, &resource.declared.path) {
                let path = if other.path.is_empty() { "the whole repository" } else { &other.path };
                let why = format!("{path} belongs to {} in this repository, not to {}", other.owner, resource.owner());
                return Err(Failure::Resource(why).into());
            }
        }
        Ok(())
    }
}

/// A state that no operation of ours left.
pub(super) fn of_commit(commit: &Oid) -> Revision {
    Revision::new(format!("git:{commit}")).expect("digits fit")
}

/// Whether one folder is the other or lies in it.
fn overlap(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    short.is_empty() || long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn ledger(resource: &Resource<'_>, repository: &Repository<'_>, refs: &Refs) -> Result<Ledger, Error> {
    let Some(head) = &refs.ledger else { return Ok(Ledger::default()) };
    let run = repository.run("log").args(["-z", "--first-parent", "--encoding=UTF-8", "--format=%B"]);
    let text = run.args([head.as_str(), "--"]).output()?;
    let text = String::from_utf8_lossy(&text);
    let messages: Vec<&str> = text.split_terminator('\0').collect();
    Ok(Ledger::of(head.clone(), &messages, &resource.owner())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_overlap_where_one_lies_in_the_other() {
        for (one, other, both) in [
            ("", "", true),
            ("", "apps", true),
            ("apps", "apps", true),
            ("apps", "apps/shop", true),
            ("apps/shop", "apps", true),
            ("apps", "apps-old", false),
            ("apps/shop", "apps/site", false),
        ] {
            assert_eq!(overlap(one, other), both, "{one} {other}");
        }
    }
}

//! The remote's refs, and what they name, brought into the cache.

use std::collections::BTreeMap;

use super::cache::Repository;
use super::calls::{self, Call};
use super::error::{Error, of_remote};
use super::names::{LEDGERS, Oid, branch};
use super::run::{self, Git};
use crate::adapters::system::Failure;

/// Where what was brought stands in the cache.
const SEEN: &str = "refs/seen/";

/// How far back branches are brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Commits(u32),
    /// As far as the remote itself has it.
    All,
}

/// A repository, and the refs in it that matter to one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote<'a> {
    pub(super) url: &'a str,
    pub(super) branches: &'a [String],
    /// The ledger's own ref.
    pub(super) ledger: &'a str,
}

/// What the remote answered, in one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refs {
    pub(super) ledger: Option<Oid>,
    /// In the order of their declaration.
    pub(super) branches: Vec<Option<Oid>>,
    /// Ledgers of other resources, by their ref.
    pub(super) others: BTreeMap<String, Oid>,
}

impl Refs {
    /// Any object of the repository.
    pub(super) fn any(&self) -> Option<&Oid> {
        self.ledger.iter().chain(self.branches.iter().flatten()).chain(self.others.values()).next()
    }
}

impl Remote<'_> {
    /// Asks it.
    pub(super) fn refs(&self, git: &Git) -> Result<Refs, Failure> {
        let mut run = git.command("ls-remote").args(["--quiet", "--", self.url]).args([format!("{LEDGERS}*")]);
        run = run.args(self.branches.iter().map(|name| branch(name)));
        let text = run.output().map_err(of_remote)?;
        let text = String::from_utf8_lossy(&text);
        let mut found: BTreeMap<String, Oid> =
            text.lines().filter_map(|line| line.split_once('\t')).filter_map(named).collect();
        Ok(Refs {
            ledger: found.remove(self.ledger),
            branches: self.branches.iter().map(|name| found.remove(&branch(name))).collect(),
            others: found.into_iter().filter(|(name, _)| name.starts_with(LEDGERS)).collect(),
        })
    }

    /// Brings all of it, the branches to that depth. What has moved since it was asked is told as that.
    pub(super) fn fetch(&self, repository: &Repository<'_>, refs: &Refs, depth: Depth) -> Result<(), Error> {
        calls::before(Call::Fetch);
        let mut tips = BTreeMap::new();
        for (at, oid) in refs.branches.iter().enumerate() {
            tips.extend(oid.clone().map(|oid| (format!("{SEEN}branch/{at}"), (branch(&self.branches[at]), oid))));
        }
        for (at, (name, oid)) in refs.others.iter().enumerate() {
            tips.insert(format!("{SEEN}other/{at}"), (name.clone(), oid.clone()));
        }
        let ledger = refs.ledger.clone().map(|oid| (format!("{SEEN}ledger"), (self.ledger.to_owned(), oid)));
        // A ledger is needed to its first entry, and has no files.
        self.bring(repository, &ledger.into_iter().collect(), None)?;
        self.bring(repository, &tips, Some(depth))
    }

    fn bring(
        &self,
        repository: &Repository<'_>,
        wanted: &BTreeMap<String, (String, Oid)>,
        depth: Option<Depth>,
    ) -> Result<(), Error> {
        let is_there = |seen: &BTreeMap<String, Oid>| wanted.iter().all(|(own, (_, oid))| seen.get(own) == Some(oid));
        let is_deep = matches!(depth, Some(Depth::All | Depth::Commits(2..)));
        if wanted.is_empty() || (!is_deep && is_there(&seen(repository)?)) {
            return Ok(());
        }
        let mut run =
            repository.run("fetch").args(["--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow"]);
        run = match depth {
            None => run,
            Some(Depth::Commits(count)) => run.args([format!("--depth={count}")]),
            Some(Depth::All) => run.args(["--depth=2147483647"]),
        };
        let specs = wanted.iter().map(|(own, (theirs, _))| format!("+{theirs}:{own}"));
        let ended = run.args(["--", self.url]).args(specs).end()?;
        match (ended.success, ended.said.contains("couldn't find remote ref")) {
            (true, _) if is_there(&seen(repository)?) => Ok(()),
            (true, _) | (false, true) => Err(Error::Moved),
            // The remote has just answered: what is in the way may well be our own.
            (false, false) => Err(match of_remote(run::Error::Said { name: "fetch", said: ended.said }) {
                Failure::Transient(said) => Error::Cache(said),
                failure => Error::Failure(failure),
            }),
        }
    }
}

fn named((oid, name): (&str, &str)) -> Option<(String, Oid)> {
    Some((name.to_owned(), Oid::parse(oid)?))
}

fn seen(repository: &Repository<'_>) -> Result<BTreeMap<String, Oid>, Error> {
    let text = repository.run("for-each-ref").args(["--format=%(objectname) %(refname)", "--", SEEN]).output()?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| line.split_once(' ')).filter_map(named).collect())
}

//! The one call that changes what others see: all refs or none, each from what was read.
//!
//! | the answer | comes to |
//! | --- | --- |
//! | every ref was moved | pushed |
//! | refused, and a ref is not what was read, or is being moved | nothing was changed: look anew |
//! | refused by a rule or a hook of the remote | nothing was changed: refused, with the remote's words |
//! | not let in, or not reached at all | nothing was changed |
//! | the remote can't move several refs at once | nothing was changed: refused |
//! | none, or one that can't be told | not known |

use super::cache::Repository;
use super::calls::{self, Call};
use super::commit::Move;
use super::error::of_remote;
use super::remote::{Refs, Remote};
use super::run::{self, Ended, Git};
use crate::adapters::system::Failure;

/// How it went. Anything else is a [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Pushed {
    /// All of it is there.
    Whole,
    /// Nothing is, since somebody else was first.
    Overtaken,
}

/// Git's words where a ref is moved by somebody else at this moment.
const RACES: [&str; 7] = [
    "stale info",
    "fetch first",
    "cannot lock ref",
    "failed to lock",
    "failed to update ref",
    "incorrect old value",
    "reference already exists",
];
/// Git's words before it has sent anything.
const BEFORE: [&str; 5] = [
    "fatal: unable to access",
    "fatal: authentication failed",
    "fatal: could not read username",
    "fatal: could not read from remote repository",
    "fatal: repository '",
];
/// Git's words where it may have sent all of it.
const LATER: [&str; 3] = ["rpc failed", "disconnect", "hung up"];

/// How a repository in a folder of this host takes a push: it runs as the agent's user, and what settings of ours git hands it is
/// nothing. No hook or setting of the repository runs a program, and no push changes a work tree.
const RECEIVE: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true \
                       -c receive.denyCurrentBranch=refuse -c receive.autoGC=false receive-pack";

fn local(url: &str) -> Vec<&'static str> {
    if url.starts_with('/') { vec!["--receive-pack", RECEIVE] } else { Vec::new() }
}

/// Pushes. `read` is what the remote was read to be.
pub(super) fn push(
    git: &Git,
    repository: &Repository<'_>,
    remote: &Remote<'_>,
    read: &Refs,
    moves: &[Move],
) -> Result<Pushed, Failure> {
    let lease =
        |one: &Move| format!("--force-with-lease={}:{}", one.name, one.old.as_ref().map_or("", |old| old.as_str()));
    let run = repository.run("push").args(["--atomic", "--porcelain", "--no-verify"]).args(moves.iter().map(lease));
    let run = run
        .args(local(remote.url))
        .args(["--", remote.url])
        .args(moves.iter().map(|one| format!("{}:{}", one.new, one.name)));
    calls::before(Call::Push);
    let ended = run.end();
    calls::before(Call::Pushed);
    let ended = ended.map_err(|error| Failure::Machinery(error.to_string()))?;
    if ended.success {
        return Ok(Pushed::Whole);
    }
    match refusals(&ended.stdout).map(|lines| git.shown(lines.join("\n").as_bytes())) {
        Some(why) if why.contains("[remote failure]") => Err(not_known(&why, &ended)),
        Some(why) => refused(git, remote, read, &why, &ended),
        None => Err(unanswered(&ended)),
    }
}

/// The reasons in git's answer, where it has one.
fn refusals(answer: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(answer);
    let lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("!\t")?.split_once('\t'))
        .map(|(_, why)| why.to_owned())
        .collect();
    (!lines.is_empty()).then_some(lines)
}

/// Nothing was changed. Whether somebody was first the remote itself tells, whatever the words.
fn refused(git: &Git, remote: &Remote<'_>, read: &Refs, why: &str, ended: &Ended) -> Result<Pushed, Failure> {
    let now = remote.refs(git)?;
    let is_as_read = (&now.ledger, &now.branches) == (&read.ledger, &read.branches);
    if !is_as_read || RACES.iter().any(|race| why.contains(race)) {
        return Ok(Pushed::Overtaken);
    }
    Err(Failure::Resource(format!("the repository takes no such push: {why}: {}", ended.said)))
}

fn unanswered(ended: &Ended) -> Failure {
    let lower = ended.said.to_lowercase();
    if lower.contains("does not support --atomic") {
        return Failure::Resource(format!(
            "the repository's server can't move several refs all at once, or not at all: {}",
            ended.said
        ));
    }
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&BEFORE) && !has(&LATER) {
        return of_remote(run::Error::Said { name: "push", said: ended.said.clone() });
    }
    not_known("it was not answered", ended)
}

fn not_known(why: &str, ended: &Ended) -> Failure {
    Failure::Machinery(format!("what became of the push is not known: {why}: {}", ended.said))
}

//! Refs of a Git repository, moved together with a ledger that keeps the fence.
//!
//! ```text
//!   refs/heads/main                 ──o──o──A──────o──B       A, B: commits of operations; o: anybody's
//!   refs/heads/live                 ──────o─A─────────B
//!   refs/holdfast/shop@prod/site    ────────1──2──────3       1: A under its fence; 2: a raise; 3: B
//! ```
//!
//! One `git push --atomic` moves every branch and the ledger, each from what was read to what was made of it, or nothing at all.
//! So a push is a compare-and-swap of fence, revision and effect in one: whoever read the ledger before a raise is refused by the
//! raise, and a crash or a pause anywhere leaves all of it or none. A raise moves the ledger alone.
//!
//! | file | decides |
//! | --- | --- |
//! | `access` | what git is let know, and how it may ask |
//! | `folder` | which folder of this host is the repository |
//! | `ledger`, `entry` | what the ledger says: fences, operations, whose it is |
//! | `seen` | which revision the folder has |
//! | `content`, `tree`, `commit` | what is committed |
//! | `push` | what an answer to a push, or none, says |
//! | `inspect`, `history` | what became of an operation |
//! | `error` | what a remote's words come to before a push |

mod access;
mod apply;
mod cache;
mod calls;
mod commit;
mod content;
mod entry;
mod error;
mod folder;
mod history;
mod inspect;
mod ledger;
mod names;
mod push;
mod raise;
mod remote;
mod run;
mod seen;
mod tree;

use std::path::Path;
use std::time::Duration;

use holdfast_common::fence::Fence;
use holdfast_common::id::{ResourceName, TargetName};
use holdfast_common::outcome::Reading;
use holdfast_common::system::{self, Change};

pub(crate) use access::credential_main;
pub use calls::Call;

use crate::adapters::system::{Adapter, Applied, Call as Ordered, Credentials, Failure, Order, Raised};
use apply::Asked;
use folder::Folder;
use remote::Remote;

/// A call that is not a step ends by itself before it is ended.
const LOOK_TIME: Duration = Duration::from_secs(50);

/// One call on one resource.
pub(super) struct Git<'a> {
    order: &'a Order,
    declared: &'a system::Git,
    /// What git is to ask: the declared URL, or the folder that was opened for it.
    url: String,
    git: run::Git,
    _open: Option<Folder>,
}

/// Whose it is, and where.
struct Resource<'a> {
    target: &'a TargetName,
    name: &'a ResourceName,
    declared: &'a system::Git,
    url: &'a str,
    ledger: String,
}

impl Resource<'_> {
    fn remote(&self) -> Remote<'_> {
        Remote { url: self.url, branches: &self.declared.branches, ledger: &self.ledger }
    }

    fn owner(&self) -> String {
        names::owner(self.target, self.name)
    }
}

impl<'a> Git<'a> {
    pub(super) fn new(order: &'a Order, declared: &'a system::Git, credentials: &Credentials) -> Result<Self, Failure> {
        let time = match order.call {
            Ordered::Apply { .. } => None,
            Ordered::Examine { .. } | Ordered::Inspect | Ordered::Raise { .. } => Some(LOOK_TIME),
        };
        access::refuse_odd_branches(&declared.branches)?;
        let git = access::git(&declared.url, credentials, time)?;
        if !declared.url.starts_with('/') {
            return Ok(Self { order, declared, url: declared.url.clone(), git, _open: None });
        }
        let folder = Folder::open(&declared.url)?;
        let url = folder.path();
        let git = git.showing(&url, &declared.url);
        Ok(Self { order, declared, url, git, _open: Some(folder) })
    }

    fn resource(&self) -> Resource<'_> {
        let (target, name) = (&self.order.target, &self.order.resource);
        Resource { target, name, declared: self.declared, url: &self.url, ledger: names::ledger(target, name) }
    }

    fn asked(&self) -> Result<Asked<'_>, Failure> {
        let archive: Option<&Path> = match &self.order.call {
            Ordered::Examine { archive, .. } | Ordered::Apply { archive, .. } => archive.as_deref(),
            Ordered::Inspect | Ordered::Raise { .. } => None,
        };
        match &self.order.operation.change {
            Some(Change::Commit(change)) => {
                Ok(Asked { operation: &self.order.operation, change, archive, cache: &self.order.cache })
            }
            Some(Change::Migrate(_) | Change::Submit(_) | Change::External(_)) | None => {
                Err(Failure::Content("the step asks nothing of a repository".to_owned()))
            }
        }
    }
}

impl Adapter for Git<'_> {
    fn examine(&self) -> Result<(), Failure> {
        Ok(apply::examine(&self.resource(), &self.git, self.asked()?)?)
    }

    fn apply(&self, fence: Fence) -> Result<Applied, Failure> {
        Ok(apply::apply(&self.resource(), &self.git, self.asked()?, fence)?)
    }

    fn inspect(&self) -> Result<Reading, Failure> {
        Ok(inspect::inspect(&self.resource(), &self.git, &self.order.cache, &self.order.operation.id)?)
    }

    fn raise(&self, fence: Fence) -> Result<Raised, Failure> {
        Ok(raise::raise(&self.resource(), &self.git, &self.order.cache, fence)?)
    }
}

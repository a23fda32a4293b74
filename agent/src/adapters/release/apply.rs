//! Putting a release in place, once.

use std::path::{Path, PathBuf};

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision};
use serde::{Deserialize, Serialize};

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::guard;
use super::ledger::{self, Record, State};
use super::names::ReleaseName;
use super::restore;
use super::retain;
use super::root::{Current, Root};
use super::slots::{self, Upto};
use crate::archive::{Archive, Limits};

/// What to put in place, for whom, under which conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplySpec {
    /// The resource's folder.
    pub root: PathBuf,
    /// The idempotency key.
    pub operation: OperationId,
    /// The attempt's fence.
    pub fence: Fence,
    /// The revision that the release is.
    pub revision: Revision,
    /// The revision that must be there before.
    pub expected_revision: Option<Revision>,
    /// Where its files come from.
    pub content: Content,
    /// How many old releases stay. The one before always does.
    pub retain: u32,
}

/// Where a release's files come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum Content {
    /// An archive on this host.
    Archive {
        /// Where it is.
        path: PathBuf,
        /// Its SHA-256, lower-case hex.
        sha256: String,
    },
    /// The newest retained release of the revision.
    Retained,
}

/// The same, once it is known to be there and whole.
enum Source {
    Archive { archive: Box<Archive>, sha256: String },
    Retained { release: ReleaseName, sha256: String },
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// `current` was changed by this call.
    Flipped,
    /// The operation had been applied before, and nothing was changed.
    Already,
}

/// The revision of a release that its step gives no name: the archive's digest.
///
/// `sha256` is lower-case hex. Anything else is an error of the name.
pub fn default_revision(sha256: &str) -> Result<Revision, holdfast_common::id::Error> {
    Revision::new(format!("sha256:{sha256}"))
}

/// Applies the operation under its fence. Everything older is refused from here on, whatever comes of it.
pub fn apply(spec: &ApplySpec) -> Result<Applied, Error> {
    let root = Root::at(&spec.root);
    let mut source = Source::find(&root, spec)?;
    root.prepare()?;
    if slots::read_floor(&root)?.is_some_and(|floor| floor >= spec.fence) || slots::is_fenced_off(&root, spec.fence)? {
        return Err(Error::FencedOff { fence: spec.fence });
    }
    slots::fence_off(&root, Upto::Below(spec.fence))?;
    ledger::settle(&root)?;
    if ledger::is_applied(&root, &spec.operation)? {
        return Ok(Applied::Already);
    }
    check_revision(&root, spec)?;
    flip(&root, spec, &mut source)?;
    retain::retire(&root, spec.fence, spec.retain)?;
    Ok(Applied::Flipped)
}

/// From here on only attempts under higher fences can change `current`, and each of them first refuses this one.
fn check_revision(root: &Root, spec: &ApplySpec) -> Result<(), Error> {
    let current = root.read_current()?;
    let Some(expected) = &spec.expected_revision else { return Ok(()) };
    let found = ledger::revision_of(root, &current)?;
    if found.as_ref() == Some(expected) {
        return Ok(());
    }
    Err(Error::Revision { expected: expected.clone(), found })
}

fn flip(root: &Root, spec: &ApplySpec, source: &mut Source) -> Result<(), Error> {
    let name = ReleaseName { operation: spec.operation.clone(), fence: spec.fence };
    let record = Record {
        operation: spec.operation.clone(),
        fence: spec.fence,
        revision: spec.revision.clone(),
        sha256: source.sha256().to_owned(),
        state: State::Preparing,
    };
    let _alive = ledger::begin(root, &record)?;
    // Half a release would keep the room that the next attempt needs.
    source.put(root, &name).inspect_err(|_| retain::discard(root, &name))?;
    slots::open(root, spec.fence, &Root::link_to(&name))?;
    slots::flip(root, spec.fence)?;
    root.sync()?;
    ledger::applied(root, record, Call::RecordApplied)
}

impl Source {
    /// Before anything is changed: an archive that is not the one, or a release that is gone, is refused here.
    fn find(root: &Root, spec: &ApplySpec) -> Result<Self, Error> {
        match &spec.content {
            Content::Archive { path, sha256 } => {
                let archive = Box::new(Archive::check(path, sha256, Limits::default())?);
                Ok(Source::Archive { archive, sha256: sha256.clone() })
            }
            Content::Retained => {
                let (release, record) = restore::find(root, &spec.revision)?;
                Ok(Source::Retained { release, sha256: record.sha256 })
            }
        }
    }

    fn sha256(&self) -> &str {
        match self {
            Source::Archive { sha256, .. } | Source::Retained { sha256, .. } => sha256,
        }
    }

    fn put(&mut self, root: &Root, name: &ReleaseName) -> Result<(), Error> {
        match self {
            Source::Archive { archive, .. } => {
                let parent = open_dir(&root.releases())?;
                call(Call::Unpack, || archive.unpack(&parent, &name.to_string()))?;
                Ok(())
            }
            Source::Retained { release, .. } => call(Call::Unpack, || restore::link(root, release, name)),
        }
    }
}

fn open_dir(path: &Path) -> Result<std::fs::File, Error> {
    guard::open(path).map_err(io_at("open", path))
}

impl Current {
    /// For people.
    pub(super) fn describe(&self) -> String {
        match self {
            Current::Absent => "current does not exist".to_owned(),
            Current::Release(name) => {
                format!("current is the release of {} under fence {}", name.operation, name.fence)
            }
            Current::Foreign(target) => format!("current names {}, not made by Holdfast", target.display()),
        }
    }
}

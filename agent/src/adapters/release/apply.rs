//! Putting a release in place, once.

use std::path::{Path, PathBuf};

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision};
use serde::{Deserialize, Serialize};

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::ledger::{self, Record, State};
use super::names::ReleaseName;
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
    /// The archive on this host.
    pub archive: PathBuf,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
    /// How many old releases stay. The one before always does.
    pub retain: u32,
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
    let mut archive = Archive::check(&spec.archive, &spec.sha256, Limits::default())?;
    let root = Root::at(&spec.root);
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
    flip(&root, spec, &mut archive)?;
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

fn flip(root: &Root, spec: &ApplySpec, archive: &mut Archive) -> Result<(), Error> {
    let name = ReleaseName { operation: spec.operation.clone(), fence: spec.fence };
    let record = Record {
        operation: spec.operation.clone(),
        fence: spec.fence,
        revision: spec.revision.clone(),
        sha256: spec.sha256.clone(),
        state: State::Preparing,
    };
    let _alive = ledger::begin(root, &record)?;
    // Half a release would keep the room that the next attempt needs.
    unpack(root, &name, archive).inspect_err(|_| retain::discard(root, &name))?;
    slots::open(root, spec.fence, &Root::link_to(&name))?;
    slots::flip(root, spec.fence)?;
    root.sync()?;
    ledger::applied(root, record, Call::RecordApplied)
}

fn unpack(root: &Root, name: &ReleaseName, archive: &mut Archive) -> Result<(), Error> {
    let path = root.releases();
    let parent = open_dir(&path)?;
    call(Call::Unpack, || archive.unpack(&parent, &name.to_string()))?;
    Ok(())
}

fn open_dir(path: &Path) -> Result<std::fs::File, Error> {
    std::fs::File::open(path).map_err(io_at("open", path))
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

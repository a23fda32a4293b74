//! The layout below a resource's folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use holdfast_common::fence::{Epoch, Fence};

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::guard;
use super::identity;
use super::names::ReleaseName;
use crate::durable;

pub(super) struct Root {
    path: PathBuf,
}

/// What `current` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Current {
    /// Nothing has that name.
    Absent,
    /// One of our releases.
    Release(ReleaseName),
    /// A link that we did not make.
    Foreign(PathBuf),
}

impl Current {
    /// Whether it is that release.
    pub(super) fn is(&self, name: &ReleaseName) -> bool {
        matches!(self, Current::Release(current) if current == name)
    }
}

impl Root {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn current(&self) -> PathBuf {
        self.path.join("current")
    }

    pub(super) fn releases(&self) -> PathBuf {
        self.path.join("releases")
    }

    pub(super) fn slots(&self) -> PathBuf {
        self.path.join("slots")
    }

    pub(super) fn epoch(&self, epoch: Epoch) -> PathBuf {
        self.slots().join(epoch.0.to_string())
    }

    pub(super) fn slot(&self, fence: Fence) -> PathBuf {
        self.epoch(fence.epoch()).join(fence.counter().to_string())
    }

    pub(super) fn next(&self, fence: Fence) -> PathBuf {
        self.slot(fence).join("next")
    }

    pub(super) fn taken(&self) -> PathBuf {
        self.path.join("taken")
    }

    pub(super) fn trash(&self) -> PathBuf {
        self.path.join("trash")
    }

    pub(super) fn ledger(&self) -> PathBuf {
        self.path.join("ledger")
    }

    pub(super) fn identity(&self) -> PathBuf {
        self.ledger().join("identity")
    }

    pub(super) fn floor(&self) -> PathBuf {
        self.ledger().join("floor")
    }

    pub(super) fn operations(&self) -> PathBuf {
        self.ledger().join("operations")
    }

    /// Makes the layout and the identity where they are missing. The folder's parent must be there.
    pub(super) fn prepare(&self) -> Result<String, Error> {
        guard::check(self)?;
        let folders = [
            self.path.clone(),
            self.releases(),
            self.slots(),
            self.taken(),
            self.trash(),
            self.ledger(),
            self.operations(),
        ];
        for folder in folders {
            if !folder.is_dir() {
                call(Call::MakeFolder, || durable::ensure_dir(&folder)).map_err(io_at("make", &folder))?;
            }
        }
        // Again, now that all of it is there: between the look and the making somebody may have been first.
        guard::check(self)?;
        identity::ensure(self)
    }

    /// Reads what `current` names.
    pub(super) fn read_current(&self) -> Result<Current, Error> {
        let path = self.current();
        match fs::read_link(&path) {
            Ok(target) => Ok(self.known(&target).map_or(Current::Foreign(target), Current::Release)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Current::Absent),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Error::NotALink { path }),
            Err(error) => Err(io_at("read", &path)(error)),
        }
    }

    /// What a link to that release holds: relative, so that the folder as a whole can be reached by another path.
    pub(super) fn link_to(name: &ReleaseName) -> PathBuf {
        Path::new("releases").join(name.to_string())
    }

    fn known(&self, target: &Path) -> Option<ReleaseName> {
        let name = ReleaseName::parse(target.file_name()?.to_str()?)?;
        (Self::link_to(&name) == target).then_some(name)
    }

    /// Makes what `current` names stay.
    pub(super) fn sync(&self) -> Result<(), Error> {
        call(Call::SyncRoot, || durable::sync_dir(&self.path)).map_err(io_at("sync", &self.path))
    }
}

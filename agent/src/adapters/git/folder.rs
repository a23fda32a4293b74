//! A repository in a folder of this host, opened once for a call.
//!
//! Whoever can write a folder above it could put a link in its place after the host's policy looked. So the folder is opened part by
//! part, through no link, and every git process of the call is given that very folder and no path to look up anew.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, fstat, open, openat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::geteuid;

use crate::adapters::system::Failure;
use crate::policy::{also_taken, leads_elsewhere};

/// Only to go on from: what may be read in it is git's affair.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The repository's own folder. Every child of this process has it open too.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// The first that is a repository of those that git takes a path for, in git's order.
    pub(super) fn open(declared: &str) -> Result<Self, Failure> {
        let path = Path::new(declared);
        let [within, twice, behind] = also_taken(path.components().as_path());
        for taken in [within, path.to_owned(), twice, behind] {
            let Some(folder) = plain(&taken).map_err(|error| could_not(&taken, error))?.map(Self) else { continue };
            if !folder.is_repository() {
                continue;
            }
            folder.refuse_odd(&taken)?;
            fcntl_setfd(&folder.0, FdFlags::empty()).map_err(|error| could_not(&taken, error))?;
            return Ok(folder);
        }
        let why = "does not appear to be a git repository: it is not there, is none, or a link leads to it";
        Err(Failure::Resource(format!("{declared:?} {why}")))
    }

    /// How this process and each child of it reach it, whatever becomes of its name. Without the dot at its end git would look at
    /// the link in `/proc`, which always belongs to whoever asks.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}/.", self.0.as_raw_fd())
    }

    fn refuse_odd(&self, taken: &Path) -> Result<(), Failure> {
        let owner = fstat(&self.0).map_err(|error| could_not(taken, error))?.st_uid;
        if owner != geteuid().as_raw() {
            let why = format!("{taken:?} belongs to user {owner}, not to the agent's own");
            return Err(Failure::Resource(why));
        }
        if leads_elsewhere(Path::new(&self.path())) {
            return Err(Failure::Resource(format!("{taken:?} leads elsewhere: name the repository's own folder")));
        }
        Ok(())
    }

    /// By what git itself looks for.
    fn is_repository(&self) -> bool {
        let is_there = |name: &str| openat(&self.0, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).is_ok();
        ["HEAD", "objects", "refs"].into_iter().all(is_there)
    }
}

/// A folder through no link. `None`: nothing is there, or something that is no folder.
fn plain(path: &Path) -> Result<Option<OwnedFd>, Errno> {
    let opened = path.components().try_fold(None::<OwnedFd>, |above, part| {
        let name: &OsStr = match part {
            Component::Normal(name) => name,
            Component::RootDir => OsStr::new("/"),
            Component::CurDir | Component::ParentDir | Component::Prefix(_) => return Err(Errno::NOTDIR),
        };
        match above {
            Some(above) => openat(above, name, FOLDER, Mode::empty()),
            None => open(name, FOLDER, Mode::empty()),
        }
        .map(Some)
    });
    match opened {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        opened => opened,
    }
}

fn could_not(path: &Path, error: Errno) -> Failure {
    let said = format!("could not open {path:?}: {error}");
    if matches!(error, Errno::ACCESS | Errno::PERM) { Failure::Resource(said) } else { Failure::Transient(said) }
}

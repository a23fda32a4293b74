//! Nobody but the agent's own user can swap a name under it while it acts.
//!
//! Calls below a release folder go by its path, and each is atomic against other attempts. Against somebody who may rename
//! what lies on that path they are not. So as root the agent acts only where nobody but root can: every folder on the way belongs to
//! root and is not writable by others, or is sticky like `/tmp`, and what it made itself are folders and no links. An agent of
//! another user has no right that whoever can swap its names could borrow, but for that user's own.

use std::fs::{File, Metadata, OpenOptions, metadata, symlink_metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::{Error, io_at};
use super::root::Root;

/// Looks at the folder and the way to it. Parts that are not there yet are made by the agent.
pub(super) fn check(root: &Root) -> Result<(), Error> {
    let own = [root.releases(), root.slots(), root.taken(), root.trash(), root.ledger(), root.operations()];
    for folder in &own {
        if let Some(found) = seen(symlink_metadata(folder), folder)? {
            is_folder(folder, &found)?;
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let as_written = root.path().ancestors().map(Path::to_owned);
    let real = root.path().canonicalize().map(|real| real.ancestors().map(Path::to_owned).collect::<Vec<_>>());
    let way: Vec<PathBuf> = as_written.skip(1).chain(real.unwrap_or_default().into_iter().skip(1)).collect();
    for folder in &way {
        if let Some(found) = seen(metadata(folder), folder)? {
            is_roots(folder, &found, true)?;
        }
    }
    for folder in own.iter().map(PathBuf::as_path).chain([root.path()]) {
        if let Some(found) = seen(metadata(folder), folder)? {
            is_roots(folder, &found, false)?;
        }
    }
    Ok(())
}

fn seen(found: io::Result<Metadata>, path: &Path) -> Result<Option<Metadata>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_at("look at", path)(error)),
    }
}

fn is_folder(path: &Path, found: &Metadata) -> Result<(), Error> {
    if found.is_dir() {
        return Ok(());
    }
    Err(Error::NotSafe { path: path.to_owned(), why: "it is no folder, and a link is not followed".to_owned() })
}

/// Whether only root can rename what is in it. In a sticky folder others can add names, and rename none of root's.
fn is_roots(path: &Path, found: &Metadata, may_be_sticky: bool) -> Result<(), Error> {
    let mode = found.mode() & 0o7777;
    let refused = |why: String| Err(Error::NotSafe { path: path.to_owned(), why });
    let is_sticky = may_be_sticky && mode & 0o1000 != 0;
    let group_writes = mode & 0o020 != 0 && found.gid() != 0;
    if found.uid() != 0 {
        return refused(format!("it belongs to user {}, and this agent runs as root", found.uid()));
    }
    if (mode & 0o002 != 0 || group_writes) && !is_sticky {
        return refused(format!("it has mode {mode:04o}: others than root can rename what is in it"));
    }
    Ok(())
}

/// Opens a folder that the agent made, and not what a link in its place leads to.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW);
    OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).expect("flags")).open(path)
}

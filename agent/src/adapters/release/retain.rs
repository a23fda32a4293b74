//! Removing old releases.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;

use holdfast_common::fence::Fence;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::guard;
use super::ledger::{self, State};
use super::names::ReleaseName;
use super::root::{Current, Root};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Deepest tree that is removed: one open directory per level.
const DEPTH: usize = 256;

/// Removes what is not needed any more: of the releases below `fence` all but the newest `keep` that were applied, and at
/// least the one before the current one stays. Names that are not ours are left alone.
///
/// Nothing below `fence` can come to `current` any more: it was fenced off before.
pub(super) fn retire(root: &Root, fence: Fence, keep: u32) -> Result<(), Error> {
    let kept = kept(root, fence, keep)?;
    for name in releases(root)?.into_iter().filter(|name| name.fence < fence && !kept.contains(name)) {
        match call(Call::Retire, || to_trash(root, &name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_at("retire", &root.releases().join(name.to_string()))(error)),
        }
    }
    empty_trash(root)
}

/// Removes what was unpacked of a release that never can be current, as far as that goes.
pub(super) fn discard(root: &Root, name: &ReleaseName) {
    let _what_stays_is_retired_later = to_trash(root, name);
    let _the_same = empty_trash(root);
}

/// From one open folder to the other.
fn to_trash(root: &Root, name: &ReleaseName) -> io::Result<()> {
    let (from, to) = (guard::open(&root.releases())?, guard::open(&root.trash())?);
    renameat(&from, name.to_string(), &to, name.to_string()).map_err(io::Error::from)
}

fn kept(root: &Root, fence: Fence, keep: u32) -> Result<Vec<ReleaseName>, Error> {
    let mut kept = Vec::new();
    let wanted = usize::try_from(keep.max(1)).unwrap_or(usize::MAX);
    for name in ledger::names(root)?.into_iter().rev().filter(|name| name.fence < fence) {
        let applied = ledger::read(root, &name)?.is_some_and(|seen| seen.record.state == State::Applied);
        if applied && kept.len() < wanted && root.releases().join(name.to_string()).is_dir() {
            kept.push(name);
        }
    }
    if let Current::Release(name) = root.read_current()? {
        kept.push(name);
    }
    Ok(kept)
}

fn releases(root: &Root) -> Result<Vec<ReleaseName>, Error> {
    let path = root.releases();
    let failed = || io_at("list", &path);
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        names.extend(entry.file_name().to_str().and_then(ReleaseName::parse));
    }
    Ok(names)
}

fn empty_trash(root: &Root) -> Result<(), Error> {
    let path = root.trash();
    let failed = || io_at("empty", &path);
    let trash = guard::open(&path).map_err(failed())?;
    call(Call::Remove, || remove_content(&trash, 0)).map_err(failed())
}

fn remove_content(folder: &File, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other("too deep to remove"));
    }
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            remove(folder, name, depth)?;
        }
    }
    Ok(())
}

/// Relative to open directories and following no link.
fn remove(folder: &File, name: &CStr, depth: usize) -> io::Result<()> {
    let flags = match openat(folder, name, DIRECTORY, Mode::empty()) {
        Ok(child) => {
            remove_content(&File::from(child), depth + 1)?;
            AtFlags::REMOVEDIR
        }
        Err(Errno::NOTDIR | Errno::LOOP) => AtFlags::empty(),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match unlinkat(folder, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

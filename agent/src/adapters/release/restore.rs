//! The reverse transition: a retained release is put in place again, under a name of its own.
//!
//! The release before is not renamed and not changed. The new folder holds the same files by hard links, so that it has its
//! own operation and fence in its name like any other, and `current` tells after a crash who put it there.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use holdfast_common::id::Revision;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, linkat, mkdirat, openat};

use super::error::{Error, io_at};
use super::guard;
use super::ledger::{self, Record, State};
use super::names::ReleaseName;
use super::root::Root;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Deepest tree: one open directory per level on each side.
const DEPTH: usize = 256;

/// The revisions that can be put back in place, each once, the newest first. Empty where nothing was ever applied.
pub fn retained(root: &Path) -> Result<Vec<Revision>, Error> {
    let root = Root::at(root);
    if !root.operations().is_dir() {
        return Ok(Vec::new());
    }
    let mut revisions = Vec::new();
    for (_, record) in applied(&root)? {
        if !revisions.contains(&record.revision) {
            revisions.push(record.revision);
        }
    }
    Ok(revisions)
}

/// The newest retained release of that revision, and its record.
pub(super) fn find(root: &Root, revision: &Revision) -> Result<(ReleaseName, Record), Error> {
    let retained = if root.operations().is_dir() { applied(root)? } else { Vec::new() };
    let found = retained.into_iter().find(|(_, record)| &record.revision == revision);
    found.ok_or_else(|| Error::NotRetained { revision: revision.clone() })
}

/// Those whose folder is still there, the newest first.
fn applied(root: &Root) -> Result<Vec<(ReleaseName, Record)>, Error> {
    let mut found = Vec::new();
    for name in ledger::names(root)?.into_iter().rev() {
        let Some(seen) = ledger::read(root, &name)? else { continue };
        let is_current = || root.read_current().is_ok_and(|current| current.is(&name));
        let was_applied = seen.record.state == State::Applied || is_current();
        if was_applied && root.releases().join(name.to_string()).is_dir() {
            found.push((name, seen.record));
        }
    }
    Ok(found)
}

/// Makes the folder `to` with everything that the release `from` has.
pub(super) fn link(root: &Root, from: &ReleaseName, to: &ReleaseName) -> Result<(), Error> {
    let releases = root.releases();
    let path = releases.join(to.to_string());
    let failed = |source: io::Error| io_at("put the old release into", &path)(source);
    let parent = guard::open(&releases).map_err(failed)?;
    let open = |name: &ReleaseName| openat(&parent, name.to_string(), DIRECTORY, Mode::empty()).map(File::from);
    let source = open(from).map_err(|error| failed(error.into()))?;
    mkdirat(&parent, to.to_string(), Mode::from_raw_mode(0o700)).map_err(|error| failed(error.into()))?;
    let folder = open(to).map_err(|error| failed(error.into()))?;
    link_content(&source, &folder, 0).map_err(failed)?;
    parent.sync_all().map_err(failed)
}

/// Relative to open directories and following no link. Made to stay, the deepest first.
fn link_content(from: &File, to: &File, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other("too deep"));
    }
    for entry in Dir::read_from(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            link_entry(from, to, name, depth)?;
        }
    }
    fchmod(to, Mode::from_raw_mode(fstat(from)?.st_mode & 0o7777))?;
    to.sync_all()
}

fn link_entry(from: &File, to: &File, name: &CStr, depth: usize) -> io::Result<()> {
    let kind = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_mode)?;
    match FileType::from_raw_mode(kind) {
        FileType::Directory => {
            mkdirat(to, name, Mode::from_raw_mode(0o700))?;
            let open = |parent: &File| openat(parent, name, DIRECTORY, Mode::empty()).map(File::from);
            link_content(&open(from)?, &open(to)?, depth + 1)
        }
        FileType::RegularFile | FileType::Symlink => Ok(linkat(from, name, to, name, AtFlags::empty())?),
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            let name = name.to_string_lossy();
            Err(io::Error::other(format!("{name} is neither a folder nor a file: no release of ours has such a thing")))
        }
    }
}

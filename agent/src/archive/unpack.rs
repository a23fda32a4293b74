//! Writes validated entries below one new folder.
//!
//! Every open is relative to an open directory and follows no link, every file is made exclusively, and modes are set on
//! open files only.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{Mode, OFlags, fchmod, mkdirat, openat};
use rustix::io::Errno;

use super::entry::{Entry, Kind};
use super::error::{Error, Why};
use super::second::understood;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn unpack(unpacked: impl Read, expected: &[Entry], parent: &File, name: &str) -> Result<(), Error> {
    let failed = |what: &str, source: io::Error| Error::Unpack { name: what.to_owned(), source };
    let root = make_dir(parent, name).map_err(|source| failed(name, source))?;
    let mut expected = expected.iter();
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(|source| failed(name, source))? {
        let mut entry = entry.map_err(|source| failed(name, source))?;
        if entry.header().entry_type() == tar::EntryType::XGlobalHeader {
            continue;
        }
        let Some(found) = understood(&entry)? else { continue };
        if expected.next() != Some(&found) {
            return Err(Error::Whole(Why::Disagreement("it changed since it was validated".to_owned())));
        }
        write(&root, &found, &mut entry).map_err(|source| failed(&found.path, source))?;
    }
    match expected.next() {
        None => Ok(()),
        Some(_) => Err(Error::Whole(Why::Disagreement("it changed since it was validated".to_owned()))),
    }
}

fn write(root: &File, entry: &Entry, content: &mut impl Read) -> io::Result<()> {
    match entry.kind {
        Kind::Directory => descend(root, &entry.path, true).map(drop),
        Kind::File { bytes, executable } => {
            let (folder, name) = split(root, &entry.path)?;
            let mut file = File::from(openat(&folder, name, NEW_FILE, Mode::from_raw_mode(0o600))?);
            if io::copy(content, &mut file)? != bytes {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the entry is shorter than announced"));
            }
            fchmod(&file, Mode::from_raw_mode(if executable { 0o755 } else { 0o644 }))?;
            file.sync_all()
        }
    }
}

/// Makes every directory stay, the deepest first, then the folder's own name.
pub(super) fn sync(entries: &[Entry], parent: &File, name: &str) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Unpack { name: name.to_owned(), source };
    let root = File::from(openat(parent, name, DIRECTORY, Mode::empty()).map_err(io::Error::from).map_err(failed)?);
    let mut folders: Vec<&str> = entries.iter().flat_map(folders_of).collect();
    folders.sort_unstable_by(|left, right| right.cmp(left));
    folders.dedup();
    for folder in folders {
        descend(&root, folder, false).and_then(|folder| folder.sync_all()).map_err(failed)?;
    }
    root.sync_all().map_err(failed)?;
    parent.sync_all().map_err(failed)
}

fn folders_of(entry: &Entry) -> impl Iterator<Item = &str> {
    let own = matches!(entry.kind, Kind::Directory).then_some(entry.path.as_str());
    entry.path.match_indices('/').map(|(end, _)| &entry.path[..end]).chain(own)
}

fn split<'a>(root: &File, path: &'a str) -> io::Result<(File, &'a str)> {
    match path.rsplit_once('/') {
        Some((folders, name)) => Ok((descend(root, folders, true)?, name)),
        None => Ok((root.try_clone()?, path)),
    }
}

fn descend(root: &File, path: &str, make: bool) -> io::Result<File> {
    path.split('/').try_fold(root.try_clone()?, |folder, name| match openat(&folder, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) if make => make_dir(&folder, name),
        other => Ok(File::from(other?)),
    })
}

/// Makes one new directory and opens it.
fn make_dir(folder: &File, name: &str) -> io::Result<File> {
    mkdirat(folder, name, Mode::from_raw_mode(0o755))?;
    let made = File::from(openat(folder, name, DIRECTORY, Mode::empty())?);
    fchmod(&made, Mode::from_raw_mode(0o755))?;
    Ok(made)
}

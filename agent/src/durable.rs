//! Files that are whole or absent, and stay after power loss once a call returned.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

/// Makes what was done in a directory stay.
pub(crate) fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes one directory if it is not there, and makes that stay. The parent must exist.
pub(crate) fn ensure_dir(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir(folder) {
        Ok(()) => sync_dir(parent(folder)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes directories that are their owner's alone, each below one that is there or comes before it, and makes that stay: each
/// parent is synced once.
pub(crate) fn ensure_dirs(folders: &[&Path]) -> io::Result<()> {
    let mut changed: Vec<&Path> = Vec::new();
    for folder in folders {
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) if changed.contains(&parent(folder)) => {}
            Ok(()) => changed.push(parent(folder)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    changed.into_iter().try_for_each(sync_dir)
}

/// Puts `bytes` in the place of whatever file has that name.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = Temporary::write(path, bytes)?;
    std::fs::rename(&temporary.path, path)?;
    sync_dir(parent(path))
}

/// [`replace`] that nobody counts on after a loss of power: whole or absent, but not made to stay.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = Temporary::create(path, bytes)?;
    std::fs::rename(&temporary.path, path)
}

/// [`replace`] by a file on which an exclusive kernel lock is held from before it has its name until the answer is
/// dropped.
pub(crate) fn replace_locked(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let temporary = Temporary::write(path, bytes)?;
    flock(&temporary.file, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(&temporary.path, path)?;
    sync_dir(parent(path))?;
    temporary.file.try_clone()
}

/// What came of an attempt to be the first to make a file.
pub(crate) enum Published {
    /// We made it, whole, and hold an exclusive kernel lock on it until this is dropped.
    First(File),
    /// It stood already.
    Stood,
}

/// Makes a file that nobody has made before. Of any number of callers exactly one is first, and the file is never seen
/// without its content.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> io::Result<Published> {
    let temporary = Temporary::write(path, bytes)?;
    flock(&temporary.file, FlockOperation::NonBlockingLockExclusive)?;
    match std::fs::hard_link(&temporary.path, path) {
        Ok(()) => {
            sync_dir(parent(path))?;
            Ok(Published::First(temporary.file.try_clone()?))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The winner may not have synced yet, and what is answered must stay.
            sync_dir(parent(path))?;
            Ok(Published::Stood)
        }
        Err(error) => Err(error),
    }
}

/// Whether some process holds an exclusive lock on the file. Changes nothing.
pub(crate) fn is_locked(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| false).map_err(io::Error::from),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Reads a small file, or tells that it is not there.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that is there before its content is known, so that the content can be written on a full disk.
#[derive(Debug)]
pub(crate) struct Spare {
    path: PathBuf,
    file: File,
    bytes: usize,
}

impl Spare {
    /// Makes it, for content of at most so many bytes. One that was left there before is taken over.
    pub(crate) fn make(path: PathBuf, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        holdfast_net::room::allocate(&file, bytes as u64)?;
        Ok(Self { path, file, bytes })
    }

    /// [`replace`], in room that was put aside. Content that is longer needs more.
    pub(crate) fn replace(mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.bytes {
            return replace(path, bytes);
        }
        self.file.seek(io::SeekFrom::Start(0))?;
        self.file.write_all(bytes)?;
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()?;
        std::fs::rename(&self.path, path)?;
        sync_dir(parent(path))
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().expect("our paths are absolute and name a file")
}

/// A synced file under a name that nobody looks at. The name goes with it.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn write(beside: &Path, bytes: &[u8]) -> io::Result<Self> {
        let temporary = Self::create(beside, bytes)?;
        temporary.file.sync_all()?;
        Ok(temporary)
    }

    fn create(beside: &Path, bytes: &[u8]) -> io::Result<Self> {
        let path = parent(beside).join(format!(".{}", Uuid::new_v4().simple()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let mut temporary = Self { path, file };
        temporary.file.write_all(bytes)?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; after a failure a left-over is harmless.
        let _ = std::fs::remove_file(&self.path);
    }
}

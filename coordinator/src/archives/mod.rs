//! Archives that were uploaded with deployments, by their digest.
//!
//! ```text
//! archives/<sha256>            whole, synced, its digest checked; never changed again
//! archives/partial/<sha256>    an upload on its way; goes on after a cut or a restart
//! ```
//!
//! The name is the content, so the same archive uploaded twice is there once, and whoever uploads can at most upload what its
//! digest says. An archive is used when it is uploaded, submitted or fetched; unused ones age out, the oldest first, but never
//! one that a deployment may still need: see [`retention`].

pub mod retention;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use holdfast_common::spec::hex;
use sha2::Digest;

/// An upload that nobody has continued for so long is given up.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one archive.
    pub archive_bytes: u64,
    /// Bytes of all of them.
    pub total_bytes: u64,
    /// How long an archive stays that nothing uses.
    pub age: Duration,
}

/// The SHA-256 of an archive, lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(String);

impl Sha256 {
    /// 64 digits of 0-9 and a-f, or nothing.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_hex = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then(|| Self(text.to_owned()))
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How much of an archive is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Standing {
    /// Everything before this offset.
    pub next: u64,
    /// All of it, on disk, and its digest is right.
    pub stored: bool,
}

/// Why something of an archive is not taken or given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Larger than allowed.
    #[error("the archive has {size} bytes, at most {limit} are taken")]
    TooLarge {
        /// Its size.
        size: u64,
        /// Allowed bytes.
        limit: u64,
    },
    /// All together are too many.
    #[error("all archives together have at most {limit} bytes, and there is no room for {size} more")]
    NoRoom {
        /// Its size.
        size: u64,
        /// Allowed bytes.
        limit: u64,
    },
    /// What was uploaded is another archive. It is gone again.
    #[error("the SHA-256 of what was uploaded is {found}")]
    Differs {
        /// The digest that it has.
        found: String,
    },
    /// The disk.
    #[error("could not {doing} {}", path.display())]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// All of them. Cheap to clone. Every call blocks on the disk.
#[derive(Clone, Debug)]
pub struct Archives {
    folder: PathBuf,
    bounds: Bounds,
    /// One upload step at a time: the disk is the bound anyway.
    writing: Arc<Mutex<()>>,
}

impl Archives {
    /// In `folder`, which is made where it is missing.
    pub fn open(folder: PathBuf, bounds: Bounds) -> Result<Self, Error> {
        for made in [folder.clone(), folder.join("partial")] {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(&made).map_err(failed("make", &made))?;
        }
        Ok(Self { folder, bounds, writing: Arc::default() })
    }

    /// Whether it is there, whole. Counts as a use.
    pub fn has(&self, sha256: &Sha256) -> Result<bool, Error> {
        self.open_whole(sha256).map(|found| found.is_some())
    }

    /// The whole archive, where it is there, and its size. Counts as a use.
    pub fn open_whole(&self, sha256: &Sha256) -> Result<Option<(File, u64)>, Error> {
        let path = self.whole(sha256);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Disk { doing: "open", path, source }),
        };
        let size = file.metadata().map_err(failed("look at", &path))?.len();
        if let Err(error) = file.set_modified(SystemTime::now()) {
            tracing::warn!(%error, "an archive's use could not be noted");
        }
        Ok(Some((file, size)))
    }

    /// How much of it is there, or why it can't be taken.
    pub fn standing(&self, sha256: &Sha256, size: u64) -> Result<Standing, Error> {
        if self.has(sha256)? {
            return Ok(Standing { next: size, stored: true });
        }
        let Bounds { archive_bytes, total_bytes, .. } = self.bounds;
        if size > archive_bytes {
            return Err(Error::TooLarge { size, limit: archive_bytes });
        }
        let next = length(&self.partial(sha256))?;
        if self.used()?.saturating_add(size.saturating_sub(next)) > total_bytes {
            return Err(Error::NoRoom { size, limit: total_bytes });
        }
        Ok(Standing { next, stored: false })
    }

    /// Takes a piece. What is there already is skipped; a piece that would leave a gap is not taken. With the last byte the
    /// digest is checked: a wrong archive is removed and refused.
    pub fn append(&self, sha256: &Sha256, size: u64, offset: u64, data: &[u8]) -> Result<Standing, Error> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = self.standing(sha256, size)?;
        if standing.stored || offset > standing.next {
            return Ok(standing);
        }
        let path = self.partial(sha256);
        let known = usize::try_from(standing.next - offset).unwrap_or(usize::MAX).min(data.len());
        let room = usize::try_from(size.saturating_sub(standing.next)).unwrap_or(usize::MAX);
        let new = &data[known..];
        let new = &new[..new.len().min(room)];
        append(&path, standing.next, new)?;
        let next = standing.next + new.len() as u64;
        if next < size {
            return Ok(Standing { next, stored: false });
        }
        self.finish(sha256, &path)?;
        Ok(Standing { next: size, stored: true })
    }

    fn finish(&self, sha256: &Sha256, partial: &Path) -> Result<(), Error> {
        let mut file = File::open(partial).map_err(failed("open", partial))?;
        let mut digest = sha2::Sha256::new();
        io::copy(&mut file, &mut digest).map_err(failed("read", partial))?;
        let found = hex(&digest.finalize());
        if found != sha256.0 {
            fs::remove_file(partial).map_err(failed("remove", partial))?;
            return Err(Error::Differs { found });
        }
        file.sync_all().map_err(failed("sync", partial))?;
        let whole = self.whole(sha256);
        fs::rename(partial, &whole).map_err(failed("rename", partial))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", &self.folder))
    }

    fn whole(&self, sha256: &Sha256) -> PathBuf {
        self.folder.join(&sha256.0)
    }

    fn partial(&self, sha256: &Sha256) -> PathBuf {
        self.folder.join("partial").join(&sha256.0)
    }

    fn used(&self) -> Result<u64, Error> {
        let all = [list(&self.folder)?, list(&self.folder.join("partial"))?];
        Ok(all.iter().flatten().map(|held| held.bytes).sum())
    }

    /// Removes what nothing needs: abandoned uploads, archives out of age, then the oldest until the rest fits.
    fn sweep(&self, needed: &BTreeSet<Sha256>, now: SystemTime) -> Result<Vec<Sha256>, Error> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = |held: &Held| now.duration_since(held.used).unwrap_or_default();
        for held in list(&self.folder.join("partial"))? {
            if unused(&held) > ABANDONED {
                remove(&self.partial(&held.sha256))?;
            }
        }
        let mut whole = list(&self.folder)?;
        whole.sort_by_key(|held| held.used);
        let mut used: u64 = whole.iter().map(|held| held.bytes).sum();
        let mut gone = Vec::new();
        for held in whole {
            // What was just uploaded is about to be submitted.
            let may_go = !needed.contains(&held.sha256) && unused(&held) > retention::FRESH.min(self.bounds.age);
            if may_go && (unused(&held) > self.bounds.age || used > self.bounds.total_bytes / 10 * 8) {
                remove(&self.whole(&held.sha256))?;
                used = used.saturating_sub(held.bytes);
                gone.push(held.sha256);
            }
        }
        Ok(gone)
    }
}

/// One file.
struct Held {
    sha256: Sha256,
    bytes: u64,
    used: SystemTime,
}

fn list(folder: &Path) -> Result<Vec<Held>, Error> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed("list", folder))? {
        let entry = entry.map_err(failed("list", folder))?;
        let Some(sha256) = entry.file_name().to_str().and_then(Sha256::new) else { continue };
        let about = entry.metadata().map_err(failed("look at", &entry.path()))?;
        let used = about.modified().map_err(failed("look at", &entry.path()))?;
        all.push(Held { sha256, bytes: about.len(), used });
    }
    Ok(all)
}

fn append(path: &Path, length: u64, bytes: &[u8]) -> Result<(), Error> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(failed("open", path))?;
    let written = file.write_all(bytes);
    if written.is_err() {
        let _the_digest_tells_in_the_end = file.set_len(length);
    }
    written.map_err(failed("write", path))
}

fn length(path: &Path) -> Result<u64, Error> {
    match fs::metadata(path) {
        Ok(about) => Ok(about.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(Error::Disk { doing: "look at", path: path.to_owned(), source }),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(failed("remove", path))
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Disk { doing, path, source }
}

//! A bare repository of our own, for objects that were fetched and objects to push. It may go at any time.
//!
//! Each call has one for itself: the first whose lock is free, held as long as its process lives. So a call that stands still
//! holds nobody up. Even where the whole folder is swapped under a call nothing wrong can come of it: objects are named by
//! their content, and every file beside them has a name that is used once.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::error::Error;
use super::names::Oid;
use super::run::{Git, Run};
use crate::adapters::system::Failure;

/// As many calls may stand still at once.
const SLOTS: usize = 16;
/// With more packs it is made anew, since nobody tidies up here.
const MOST_PACKS: usize = 64;

/// How names of what is of one call alone begin.
const KINDS: [&str; 2] = ["index-", "stage-"];

/// The repository of one call.
pub(super) struct Repository<'a> {
    git: &'a Git,
    path: PathBuf,
    _lock: File,
}

impl<'a> Repository<'a> {
    /// Does something with one. Where one from before turns out to be damaged it is made anew, once.
    pub(super) fn with<T>(
        git: &'a Git,
        cache: &Path,
        object: Option<&Oid>,
        act: impl Fn(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let repository = Self::take(git, cache)?;
        let was_there = repository.is_fit(object);
        if was_there {
            repository.sweep()?;
        } else {
            repository.renew(object)?;
        }
        match act(&repository) {
            Err(Error::Cache(_)) if was_there => {
                repository.renew(object)?;
                act(&repository)
            }
            done => done,
        }
    }

    fn take(git: &'a Git, cache: &Path) -> Result<Self, Error> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
        for slot in 0..SLOTS {
            let mut options = OpenOptions::new();
            let lock = options.create(true).truncate(false).write(true).open(cache.join(format!("{slot}.lock")))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(Self { git, path: cache.join(format!("{slot}.git")), _lock: lock });
            }
        }
        Err(Failure::Transient(format!("{SLOTS} other calls on this resource are under way on this host")).into())
    }

    fn is_fit(&self, object: Option<&Oid>) -> bool {
        let format = self.run("rev-parse").args(["--show-object-format"]).line();
        let fits = format.is_ok_and(|format| object.is_none_or(|object| object.is_long() == (format == "sha256")));
        fits && fs::read_dir(self.path.join("objects/pack")).is_ok_and(|packs| packs.count() <= 2 * MOST_PACKS)
    }

    /// What calls that were killed have left. It holds the lock, so nobody is at work with it.
    fn sweep(&self) -> Result<(), Error> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            if KINDS.iter().any(|kind| name.to_string_lossy().starts_with(kind)) {
                drop(Fresh(entry.path()));
            }
        }
        Ok(())
    }

    fn renew(&self, object: Option<&Oid>) -> Result<(), Error> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let format = if object.is_some_and(Oid::is_long) { "sha256" } else { "sha1" };
        let init = self.git.command("init").args(["--quiet", "--bare", "--template=", "--object-format", format]);
        init.args(["--"]).args([&self.path]).output()?;
        Ok(())
    }

    /// A git command in it.
    pub(super) fn run(&self, name: &'static str) -> Run<'_> {
        self.git.within(&self.path, name)
    }

    /// A path in it that nobody else has, for an index.
    pub(super) fn fresh_index(&self) -> Fresh {
        self.fresh(KINDS[0])
    }

    /// The same, for a folder.
    pub(super) fn fresh_stage(&self) -> Fresh {
        self.fresh(KINDS[1])
    }

    fn fresh(&self, kind: &str) -> Fresh {
        Fresh(self.path.join(format!("{kind}{}", Uuid::new_v4().simple())))
    }

    /// Commits whose parents are cut off.
    pub(super) fn shallow(&self) -> Result<Vec<Oid>, Error> {
        match fs::read_to_string(self.path.join("shallow")) {
            Ok(text) => Ok(text.lines().filter_map(Oid::parse).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A file or folder that goes when it is dropped.
pub(super) struct Fresh(PathBuf);

impl Fresh {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

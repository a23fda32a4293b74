//! The folder in which a command finds its credentials, while it runs.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::Secrets;
use crate::policy::User;

/// Goes with what was put into it when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes it anew, for that user alone. What an earlier step left there goes first.
    pub(crate) fn make(path: &Path, secrets: &Secrets, user: Option<&User>) -> io::Result<Self> {
        Self::remove(path)?;
        DirBuilder::new().mode(0o700).create(path)?;
        let folder = Self { path: path.to_owned() };
        for (name, content) in secrets.files() {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path.join(name))?;
            file.write_all(content)?;
            if let Some(user) = user.filter(|user| !user.is_own()) {
                fchown(&file, Some(user.uid), Some(user.gid))?;
            }
        }
        if let Some(user) = user.filter(|user| !user.is_own()) {
            fchown(&fs::File::open(path)?, Some(user.uid), Some(user.gid))?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes one that a crash has left.
    pub(crate) fn remove(path: &Path) -> io::Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The agent looks again when it has seen the step's end.
        let _ = Self::remove(&self.path);
    }
}

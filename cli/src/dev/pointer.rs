//! How `holdfast dev cut` in another terminal finds the running `holdfast dev`.
//!
//! Each running dev keeps one small file, named after its process, in a folder that only its user can enter. A file whose
//! dev is gone points to a socket that nobody answers on, and is passed over.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Why there is no folder of pointers.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("could not use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a folder of your own with mode 0700; remove it, or set XDG_RUNTIME_DIR", path.display())]
    NotPrivate { path: PathBuf },
}

/// A pointer to a running dev. Gone when dropped.
#[derive(Debug)]
pub(super) struct Pointer {
    path: PathBuf,
}

impl Drop for Pointer {
    fn drop(&mut self) {
        // One that stays is passed over.
        let _ = fs::remove_file(&self.path);
    }
}

/// The user's folder of pointers: below `XDG_RUNTIME_DIR` where that is set, else among the temporary files.
#[derive(Clone, Debug)]
pub(super) struct Pointers {
    path: PathBuf,
}

impl Pointers {
    /// Of this process's user.
    pub(super) fn of_user() -> Result<Self, Error> {
        let uid = rustix::process::geteuid().as_raw();
        let path = match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute()) {
            Some(runtime) => PathBuf::from(runtime).join("holdfast"),
            None => std::env::temp_dir().join(format!("holdfast-{uid}")),
        };
        Self::at(path)
    }

    #[cfg(test)]
    pub(super) fn in_test(path: &Path) -> Self {
        Self::at(path.to_owned()).expect("a private folder")
    }

    /// Among temporary files anybody could have made it first, so it must be ours alone.
    fn at(path: PathBuf) -> Result<Self, Error> {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => return Err(Error::Io { path, source }),
            Ok(()) | Err(_) => {}
        }
        let found = fs::symlink_metadata(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_dir() && is_ours && found.mode() & 0o077 == 0 {
            Ok(Self { path })
        } else {
            Err(Error::NotPrivate { path })
        }
    }

    /// Points to a folder until the answer is dropped.
    pub(super) fn set(&self, folder: &Path) -> Result<Pointer, Error> {
        let path = self.path.join(format!("dev-{}", std::process::id()));
        let text = folder.as_os_str().as_encoded_bytes();
        fs::write(&path, text).map_err(|source| Error::Io { path: path.clone(), source })?;
        Ok(Pointer { path })
    }

    /// Every folder that is pointed to, whether or not its dev still runs.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, Error> {
        let error = |source| Error::Io { path: self.path.clone(), source };
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(error)? {
            let entry = entry.map_err(error)?;
            if !entry.file_name().as_encoded_bytes().starts_with(b"dev-") {
                continue;
            }
            // Gone since: its dev has just ended.
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            folders.push(PathBuf::from(text));
        }
        folders.sort();
        folders.dedup();
        Ok(folders)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::folder::tests::Scratch;
    use super::*;

    #[test]
    fn a_pointer_is_found_until_it_is_dropped() {
        let scratch = Scratch::new();
        let pointers = Pointers::at(scratch.0.join("run")).expect("a private folder");
        assert!(pointers.folders().expect("readable").is_empty());
        let pointer = pointers.set(Path::new("/somewhere/dev")).expect("written");
        let again = Pointers::at(scratch.0.join("run")).expect("the same folder");
        assert_eq!(again.folders().expect("readable"), [PathBuf::from("/somewhere/dev")]);
        drop(pointer);
        assert!(pointers.folders().expect("readable").is_empty());
    }

    #[test]
    fn a_folder_that_others_can_enter_or_that_is_a_link_is_not_trusted() {
        let scratch = Scratch::new();
        let open = scratch.0.join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("changed");
        assert!(matches!(Pointers::at(open), Err(Error::NotPrivate { .. })));
        let (link, private) = (scratch.0.join("link"), scratch.0.join("private"));
        fs::DirBuilder::new().mode(0o700).create(&private).expect("made");
        symlink(&private, &link).expect("linked");
        assert!(matches!(Pointers::at(link), Err(Error::NotPrivate { .. })));
    }
}

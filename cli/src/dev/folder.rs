//! The folder that a running `dev` lives in.
//!
//! ```text
//! FOLDER/
//!   lock, control.sock       one dev per folder, and the way to it
//!   tls/                     the throw-away authority and what it signed
//!   coordinator.toml, coordinator/   configuration and store
//!   web-01.toml, web-01/             configuration and state of an agent
//!   host/shop/               what is deployed: the one file system that both agents see
//!   shop.target.toml, shop.deploy.toml, site-v1.tar.gz, site-v2.tar.gz   to try things out with
//!   environment, config.toml, token   how another terminal reaches the coordinator: to be sourced, as a context, alone
//!   log/                     what each child process wrote
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("could not make {}: {source}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("could not lock {}: {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },
    #[error("another holdfast dev is using {}; end it first, or use another folder", path.display())]
    InUse { path: PathBuf },
    #[error("the path {} is not UTF-8, which configuration files need", path.display())]
    NotText { path: PathBuf },
}

/// A folder in use. Its lock ends with it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    is_temporary: bool,
    _lock: File,
}

impl Folder {
    /// The given folder, made where it is missing, else a new one among the temporary files.
    pub(super) fn open(data: Option<&Path>) -> Result<Self, Error> {
        let path = match data {
            Some(path) => path.to_owned(),
            None => std::env::temp_dir().join(format!("holdfast-dev-{:08x}", rand::random::<u32>())),
        };
        let is_temporary = data.is_none();
        // A temporary folder must be new: nobody else can have prepared it.
        let made = fs::DirBuilder::new().recursive(!is_temporary).mode(0o700).create(&path);
        made.map_err(|source| Error::Make { path: path.clone(), source })?;
        let path = path.canonicalize().map_err(|source| Error::Make { path: path.clone(), source })?;
        if path.to_str().is_none() {
            return Err(Error::NotText { path });
        }
        let lock = lock(&path)?;
        for inner in ["host", "log", "coordinator"] {
            make(&path.join(inner))?;
        }
        Ok(Self { path, is_temporary, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn log(&self, child: &str) -> PathBuf {
        self.path.join("log").join(format!("{child}.log"))
    }

    /// What the shop's target has as its folder.
    pub(super) fn shop(&self) -> PathBuf {
        self.path.join("host/shop")
    }

    /// Writes a file that nobody else can read, in place of an older one.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &path)?;
        Ok(path)
    }

    /// Ends the use. A temporary folder is removed.
    pub(super) fn remove(self) -> io::Result<()> {
        if self.is_temporary { fs::remove_dir_all(&self.path) } else { Ok(()) }
    }
}

fn make(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::Make { path: path.to_owned(), source })
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let error = |source: io::Error| Error::Lock { path: path.clone(), source };
    let options = fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = options.map_err(error)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse { path: folder.to_owned() }),
        Err(errno) => Err(error(errno.into())),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder of a test's own, gone with it.
    pub(in crate::dev) struct Scratch(pub(in crate::dev) PathBuf);

    impl Scratch {
        pub(in crate::dev) fn new() -> Self {
            let path = std::env::temp_dir().join(format!("holdfast-dev-test-{:016x}", rand::random::<u64>()));
            fs::DirBuilder::new().mode(0o700).create(&path).expect("a new folder");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_temporary_folder_is_private_and_goes_away() {
        let folder = Folder::open(None).expect("a folder");
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o7777, 0o700);
        let file = folder.write("token", "secret").expect("written");
        assert_eq!(fs::metadata(file).expect("is there").permissions().mode() & 0o7777, 0o600);
        folder.remove().expect("removed");
        assert!(!path.exists());
    }

    #[test]
    fn a_given_folder_is_kept_and_used_by_one_dev_at_a_time() {
        let scratch = Scratch::new();
        let path = scratch.0.join("kept/here");
        let folder = Folder::open(Some(&path)).expect("a folder");
        assert!(matches!(Folder::open(Some(&path)), Err(Error::InUse { .. })));
        folder.remove().expect("nothing to do");
        assert!(path.exists());
        Folder::open(Some(&path)).expect("free again");
    }
}

//! Certificates and keys that are read again when their files change.
//!
//! ```text
//!   files change ──sound──────────────▶ counts from the next handshake on
//!        └────────broken, twice alike─▶ told; what counted before still does
//! ```
//!
//! A set is several files, and whoever writes them writes one after the other: a set that is broken at one look and sound at
//! the next was only being written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::Error;

/// How often files are looked at.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

type Read<T> = Box<dyn Fn() -> Result<T, Error> + Send + Sync>;

/// What was read from files, and is read again.
pub(super) struct Kept<T> {
    files: Vec<PathBuf>,
    read: Read<T>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Of the files whose set counts, or was told to be broken.
    judged: Option<[u8; 32]>,
    /// Of files that were broken at the last look.
    suspect: Option<[u8; 32]>,
    trouble: Option<String>,
}

/// What a look at the files came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Looked {
    /// Nothing is new, or what is new is looked at once more before it is told.
    Same,
    /// A new set counts from now on.
    Renewed,
    /// The new set is broken: the old one still counts.
    Broken(String),
}

impl<T> Kept<T> {
    /// Of files that never change.
    pub(super) fn fixed(value: T) -> Arc<Self>
    where
        T: Clone + Send + Sync + 'static,
    {
        let again = value.clone();
        let read: Read<T> = Box::new(move || Ok(again.clone()));
        Arc::new(Self { files: Vec::new(), read, current: RwLock::new(Arc::new(value)), seen: Mutex::default() })
    }

    /// Reads them for the first time: a set that is broken is an error here.
    pub(super) fn of(
        files: &[&Path],
        read: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        let files: Vec<PathBuf> = files.iter().map(|file| (*file).to_owned()).collect();
        // Before the files are read: what changes between the two is seen at the next look.
        let judged = Some(digest(&files));
        let current = RwLock::new(Arc::new(read()?));
        let seen = Mutex::new(Seen { judged, ..Seen::default() });
        Ok(Arc::new(Self { files, read: Box::new(read), current, seen }))
    }

    /// What counts now.
    pub(super) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why the newest files do not count; `None` where they do.
    pub(super) fn trouble(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// Looks at the files, and reads them where they have changed. Blocks on the disk.
    pub(super) fn look(&self) -> Looked {
        let now = digest(&self.files);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.judged == Some(now) || self.files.is_empty() {
            return Looked::Same;
        }
        match (self.read)() {
            Ok(value) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
                *seen = Seen { judged: Some(now), ..Seen::default() };
                Looked::Renewed
            }
            Err(error) if seen.suspect == Some(now) => {
                *seen = Seen { judged: Some(now), suspect: None, trouble: Some(error.to_string()) };
                Looked::Broken(error.to_string())
            }
            Err(_) => {
                seen.suspect = Some(now);
                Looked::Same
            }
        }
    }
}

/// A file that can't be read is told from one that is empty.
fn digest(files: &[PathBuf]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for file in files {
        match std::fs::read(file) {
            Ok(bytes) => {
                hash.update((bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            }
            Err(error) => hash.update(error.kind().to_string()),
        }
    }
    hash.finalize().into()
}

/// Looks until told to stop, and tells the log what came of it.
pub(super) async fn follow<T: Send + Sync + 'static>(kept: Arc<Kept<T>>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
        let kept = Arc::clone(&kept);
        match tokio::task::spawn_blocking(move || kept.look()).await {
            Ok(Looked::Same) | Err(_) => {}
            Ok(Looked::Renewed) => tracing::info!("new certificates count from the next connection on"),
            Ok(Looked::Broken(why)) => tracing::error!(why, "new certificates can't be used: the old ones still count"),
        }
    }
}

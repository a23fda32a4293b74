//! The resource: a folder of numbered files, each whole, none ever changed. The newest is what counts.
//!
//! A file gets its name by `link(2)`, which fails where the name is taken. So a change takes effect in the very step that finds
//! out whether anything came in between: no lock is held, and nobody waits for one who stands still.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::halt;

/// One state of the resource, complete.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    /// Random, made with the first entry: another folder in this place has another one.
    pub(crate) identity: String,
    /// `target/resource`: a folder belongs to one.
    pub(crate) owner: String,
    /// Everything below is refused.
    pub(crate) highest_fence: u64,
    /// The operation that made it; none: a raise did.
    pub(crate) operation: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) flags: BTreeMap<String, String>,
}

/// All entries, as they were at one moment.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    pub(crate) entries: Vec<Entry>,
}

impl Log {
    /// Reads it. The folder must be there: a disk that is not mounted is no empty log.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let log = folder.join("log");
        fs::metadata(folder)?;
        match fs::create_dir(&log) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut entries = Vec::new();
        loop {
            match fs::read(log.join(name(entries.len()))) {
                Ok(text) => entries.push(serde_json::from_slice(&text)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            }
        }
        // What is told from here on must outlast a loss of power, whoever wrote it.
        File::open(&log)?.sync_all()?;
        Ok(Self { folder: log, entries })
    }

    pub(crate) fn newest(&self) -> Option<&Entry> {
        self.entries.last()
    }

    pub(crate) fn has(&self, operation: &str) -> bool {
        self.entries.iter().any(|entry| entry.operation.as_deref() == Some(operation))
    }

    /// Adds the next entry, if nobody has added one since this log was read. False: somebody has, read again.
    pub(crate) fn append(&self, entry: &Entry) -> io::Result<bool> {
        let draft = self.folder.join(format!(".draft-{}", random()?));
        let mut file = File::create_new(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(entry)?)?;
        file.sync_all()?;
        halt::before("append");
        let linked = fs::hard_link(&draft, self.folder.join(name(self.entries.len())));
        halt::before("sync");
        fs::remove_file(&draft)?;
        File::open(&self.folder)?.sync_all()?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn name(number: usize) -> String {
    format!("{number:012}")
}

/// By the kernel: it needs no library.
pub(crate) fn random() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

//! What this host refused, kept on the host: a line of JSON each, the newest last.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

/// Beyond that the file gives way to a new one, and stays as the one before it.
const BOUND_BYTES: u64 = 1024 * 1024;

/// The file.
#[derive(Clone, Debug)]
pub struct Refusals {
    path: PathBuf,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When.
    pub at: Wall,
    /// Of which target.
    pub target: String,
    /// Of which deployment.
    pub deployment: String,
    /// What was asked for: `offer`, `launch`, `inspect`, `fence-off`, `reread`, `archive`.
    pub asked: String,
    /// As the file names the rule.
    pub rule: String,
    /// For people.
    pub why: String,
}

impl Refusals {
    /// Below the state folder.
    #[must_use]
    pub fn below(state: &Path) -> Self {
        Self { path: state.join("refusals.jsonl") }
    }

    /// Adds one. The log has it too: an error here is for the log.
    pub fn add(&self, refused: &Refused) -> io::Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() > BOUND_BYTES) {
            std::fs::rename(&self.path, self.before())?;
        }
        let mut line = serde_json::to_vec(refused).expect("plain data serializes");
        line.push(b'\n');
        let mut file: File = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(&line)
    }

    /// Every one that is kept, the newest last. A line that was cut by a crash is left out.
    pub fn all(&self) -> io::Result<Vec<Refused>> {
        let mut all = Vec::new();
        for path in [self.before(), self.path.clone()] {
            let bytes = crate::durable::read(&path)?.unwrap_or_default();
            all.extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
        Ok(all)
    }

    fn before(&self) -> PathBuf {
        self.path.with_extension("jsonl.1")
    }
}

//! Where everything lies.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use holdfast_common::id::{AttemptId, DeploymentId, StepName};
use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

use super::{Error, failed, read_file, sync_folder, write_durably};

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Channel {
    /// Both.
    pub const ALL: [Channel; 2] = [Channel::Stdout, Channel::Stderr];

    pub(super) fn name(self) -> &'static str {
        match self {
            Channel::Stdout => "stdout",
            Channel::Stderr => "stderr",
        }
    }
}

/// One output of one step in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The attempt.
    pub attempt: AttemptId,
    /// The step.
    pub step: StepName,
    /// Which output.
    pub channel: Channel,
}

impl Stream {
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.step, self.channel.name())
    }
}

/// Whose an attempt's folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) deployment: DeploymentId,
    /// When the first output came.
    pub(super) at: Wall,
}

/// The folder of all outputs.
#[derive(Clone, Debug)]
pub(super) struct Places(PathBuf);

impl Places {
    pub(super) fn below(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(super) fn prepare(&self) -> Result<(), Error> {
        for folder in [self.0.clone(), self.removed(), self.trash()] {
            make_folder(&folder)?;
        }
        sync_folder(&self.0)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn attempt(&self, attempt: AttemptId) -> PathBuf {
        self.0.join(attempt.0.hyphenated().to_string())
    }

    pub(super) fn stream(&self, stream: &Stream) -> PathBuf {
        self.attempt(stream.attempt).join(stream.name())
    }

    pub(super) fn removed(&self) -> PathBuf {
        self.0.join("removed")
    }

    pub(super) fn removal(&self, attempt: AttemptId) -> PathBuf {
        self.removed().join(format!("{}.json", attempt.0.hyphenated()))
    }

    pub(super) fn trash(&self) -> PathBuf {
        self.0.join("trash")
    }

    /// Whose the attempt's folder is; `None` where it has none.
    pub(super) fn about(&self, attempt: AttemptId) -> Result<Option<About>, Error> {
        let bytes = read_file(&self.attempt(attempt).join("about.json"))?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Makes a stream's folder and those above it, durably. False if it was there.
    pub(super) fn make(&self, deployment: DeploymentId, stream: &Stream, now: Wall) -> Result<bool, Error> {
        let folder = self.stream(stream);
        if folder.is_dir() {
            return Ok(false);
        }
        let attempt = self.attempt(stream.attempt);
        if !attempt.is_dir() {
            self.make_attempt(&attempt, About { deployment, at: now })?;
        }
        make_folder(&folder)?;
        sync_folder(&attempt)?;
        Ok(true)
    }

    /// With its `about.json` before it has its name.
    fn make_attempt(&self, folder: &Path, about: About) -> Result<(), Error> {
        let fresh = self.trash().join(format!("{}.new", uuid::Uuid::new_v4().simple()));
        make_folder(&fresh)?;
        write_durably(&fresh.join("about.json"), &serde_json::to_vec(&about).expect("plain data serializes"))?;
        fs::rename(&fresh, folder).map_err(failed("make", folder))?;
        sync_folder(&self.0)
    }
}

fn make_folder(path: &Path) -> Result<(), Error> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(source) => Err(Error { doing: "make", path: path.to_owned(), source }),
    }
}

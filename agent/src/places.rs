//! Where everything lies below the agent's state folder.
//!
//! ```text
//! state/
//!   lock                              held by the one agent that uses this folder
//!   journal.sqlite
//!   uploads/<attempt>.<step>.json     an output that the coordinator does not have whole yet
//!   locks/<target>                    held by the shim of a mutating step on that target
//!   archives/<sha256>                 fetched archives; `.part` on their way
//!   attempts/<attempt>/archives/      links to those that the attempt needs
//!   attempts/<attempt>/work/          where the attempt's commands run
//!   attempts/<attempt>/steps/<step>/  what is known of one step, see [`StepFolder`]
//! ```

use std::io;
use std::path::{Path, PathBuf};

use holdfast_common::id::{AttemptId, StepName, TargetName};

use crate::durable;

/// The state folder.
#[derive(Clone, Debug)]
pub struct Places {
    state: PathBuf,
}

impl Places {
    /// Below that absolute path. Nothing is made yet.
    #[must_use]
    pub fn below(state: &Path) -> Self {
        Self { state: state.to_owned() }
    }

    /// The state folder itself.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Makes the layout where it is missing. The state folder's parent must be there.
    pub fn prepare(&self) -> io::Result<()> {
        for folder in
            [self.state.clone(), self.state.join("locks"), self.state.join("attempts"), self.uploads(), self.archives()]
        {
            durable::ensure_dir(&folder)?;
        }
        Ok(())
    }

    /// The file that the one agent on this folder holds a lock on.
    #[must_use]
    pub fn agent_lock(&self) -> PathBuf {
        self.state.join("lock")
    }

    /// The journal's database.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.sqlite")
    }

    /// Where outputs are noted that the coordinator does not have whole yet.
    #[must_use]
    pub fn uploads(&self) -> PathBuf {
        self.state.join("uploads")
    }

    /// Where fetched archives are kept.
    #[must_use]
    pub fn archives(&self) -> PathBuf {
        self.state.join("archives")
    }

    /// Where an attempt has links to the fetched archives that it needs.
    #[must_use]
    pub fn archives_of(&self, attempt: AttemptId) -> PathBuf {
        self.attempt(attempt).join("archives")
    }

    /// The file that the shim of a mutating step on that target holds a lock on.
    #[must_use]
    pub fn target_lock(&self, target: &TargetName) -> PathBuf {
        self.state.join("locks").join(target.as_str())
    }

    /// Where an attempt's commands run.
    #[must_use]
    pub fn work(&self, attempt: AttemptId) -> PathBuf {
        self.attempt(attempt).join("work")
    }

    /// What is known of one step.
    #[must_use]
    pub fn step(&self, attempt: AttemptId, step: &StepName) -> StepFolder {
        StepFolder(self.attempt(attempt).join("steps").join(step.as_str()))
    }

    /// Makes an attempt's folders, durably.
    pub fn make_attempt(&self, attempt: AttemptId) -> io::Result<()> {
        let folder = self.attempt(attempt);
        durable::ensure_dirs(&[&folder, &folder.join("work"), &folder.join("steps")])
    }

    /// Makes a step's folder and those above it, durably.
    pub fn make_step(&self, attempt: AttemptId, step: &StepName) -> io::Result<StepFolder> {
        let (folder, step) = (self.attempt(attempt), self.step(attempt, step));
        durable::ensure_dirs(&[&folder, &folder.join("work"), &folder.join("steps"), &step.0])?;
        Ok(step)
    }

    fn attempt(&self, attempt: AttemptId) -> PathBuf {
        self.state.join("attempts").join(attempt.to_string())
    }
}

/// What is known of one step of one attempt.
///
/// ```text
/// launch.json  what the shim was told
/// start.json   the start record, made exclusively: "started", or the tombstone "never started"
/// stop.json    a stop was asked for
/// stdout, stderr
/// signalled    the stop signal was sent
/// exit.json    how it ended
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFolder(PathBuf);

impl StepFolder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the body wrote to its standard output.
    #[must_use]
    pub fn stdout(&self) -> PathBuf {
        self.0.join("stdout")
    }

    /// What the body wrote to its standard error.
    #[must_use]
    pub fn stderr(&self) -> PathBuf {
        self.0.join("stderr")
    }

    pub(crate) fn launch(&self) -> PathBuf {
        self.0.join("launch.json")
    }

    pub(crate) fn start(&self) -> PathBuf {
        self.0.join("start.json")
    }

    pub(crate) fn stop(&self) -> PathBuf {
        self.0.join("stop.json")
    }

    pub(crate) fn signalled(&self) -> PathBuf {
        self.0.join("signalled")
    }

    pub(crate) fn exit(&self) -> PathBuf {
        self.0.join("exit.json")
    }
}

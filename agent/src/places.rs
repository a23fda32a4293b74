//! Where everything lies below the agent's state folder.
//!
//! ```text
//! state/
//!   lock                              held by the one agent that uses this folder
//!   journal.sqlite
//!   uploads/<attempt>.<step>.json     an output that the coordinator does not have whole yet
//!   locks/<target>                    held by the shim of a mutating step on that target
//!   archives/<sha256>                 fetched archives; `.part` on their way
//!   refusals.jsonl                    what this host did not allow
//!   inspections/<id>/                 credentials of an inspection command, while it runs
//!   attempts/<attempt>/credentials/   those of a step's command, while it runs
//!   attempts/<attempt>/archives/      links to those that the attempt needs
//!   attempts/<attempt>/work/          where the attempt's commands run
//!   attempts/<attempt>/steps/<step>/  what is known of one step, see [`StepFolder`]
//! ```
//!
//! Nobody but the agent's own user can read any of it. Where commands run as another user the way to their work folder can be
//! passed, and not listed, while an attempt of theirs is at work; everything beside that way stays shut.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use holdfast_common::id::{AttemptId, ResourceName, StepName, TargetName};

use crate::durable;
use crate::policy::User;

/// For the agent's user alone.
const SHUT: u32 = 0o700;
/// Others can pass, and not list it.
const PASS: u32 = 0o711;

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
        for folder in [self.state.clone(), self.state.join("locks"), self.attempts(), self.uploads(), self.archives()] {
            durable::ensure_dir(&folder)?;
        }
        durable::ensure_dir(&self.state.join("caches"))?;
        for folder in [self.state.join("locks"), self.state.join("caches"), self.uploads(), self.archives()] {
            set_mode(&folder, SHUT)?;
        }
        self.shut_files()?;
        // What a crash has left.
        match fs::remove_dir_all(self.inspections()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The journal and its like: SQLite makes its side files as the journal is.
    fn shut_files(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.state)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                match set_mode(&entry.path(), 0o600) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Where the credentials of inspection commands are, while they run.
    fn inspections(&self) -> PathBuf {
        self.state.join("inspections")
    }

    /// A place for the credentials of one inspection, that its user can reach.
    pub(crate) fn inspection(&self, user: Option<&User>) -> io::Result<PathBuf> {
        durable::ensure_dir(&self.inspections())?;
        set_mode(&self.inspections(), if user.is_some() { PASS } else { SHUT })?;
        if user.is_some() {
            set_mode(&self.state, PASS)?;
        }
        Ok(self.inspections().join(uuid::Uuid::new_v4().to_string()))
    }

    /// Where the credentials of a step's command are, while it runs.
    #[must_use]
    pub fn credentials(&self, attempt: AttemptId) -> PathBuf {
        self.attempt(attempt).join("credentials")
    }

    /// Gives the attempt's work folder to that user, and opens the way to it. Other attempts stay shut.
    pub(crate) fn let_in(&self, attempt: AttemptId, user: &User) -> io::Result<()> {
        for folder in [self.state.clone(), self.attempts(), self.attempt(attempt)] {
            set_mode(&folder, PASS)?;
        }
        set_mode(&self.attempt(attempt).join("steps"), SHUT)?;
        let work = File::open(self.work(attempt))?;
        work.set_permissions(Permissions::from_mode(SHUT))?;
        if user.is_own() { Ok(()) } else { fchown(&work, Some(user.uid), Some(user.gid)) }
    }

    /// Shuts the attempt's folder, and removes credentials that are left in it.
    pub(crate) fn shut(&self, attempt: AttemptId) -> io::Result<()> {
        crate::secrets::Folder::remove(&self.credentials(attempt))?;
        set_mode(&self.attempt(attempt), SHUT)
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

    /// A folder for what calls on a resource may keep and may lose.
    #[must_use]
    pub fn cache(&self, target: &TargetName, resource: &ResourceName) -> PathBuf {
        self.state.join("caches").join(format!("{target},{resource}"))
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

    /// Every attempt that has a folder.
    pub(crate) fn found_attempts(&self) -> io::Result<Vec<AttemptId>> {
        let names = names(&self.attempts())?;
        Ok(names.iter().filter_map(|name| uuid::Uuid::parse_str(name).ok()).map(AttemptId).collect())
    }

    /// Every step of an attempt that has a folder.
    pub(crate) fn found_steps(&self, attempt: AttemptId) -> io::Result<Vec<StepFolder>> {
        let steps = self.attempt(attempt).join("steps");
        match names(&steps) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => Ok(names?.iter().map(|name| StepFolder(steps.join(name))).collect()),
        }
    }

    /// Removes an attempt's folder, with all that is known of it.
    pub(crate) fn remove_attempt(&self, attempt: AttemptId) -> io::Result<()> {
        crate::secrets::Folder::remove(&self.credentials(attempt))?;
        fs::remove_dir_all(self.attempt(attempt))
    }

    fn attempts(&self) -> PathBuf {
        self.state.join("attempts")
    }

    fn attempt(&self, attempt: AttemptId) -> PathBuf {
        self.attempts().join(attempt.to_string())
    }
}

/// Names that are plain text: no others are made.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
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
/// *.spare      what `signalled` and `exit.json` are made of: on a full disk there is nothing else
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFolder(PathBuf);

impl StepFolder {
    /// That folder.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
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

    pub(crate) fn spare_exit(&self) -> PathBuf {
        self.0.join("exit.spare")
    }

    pub(crate) fn spare_signalled(&self) -> PathBuf {
        self.0.join("signalled.spare")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempts_folders_are_their_owners_alone_from_the_beginning() {
        let state = std::env::temp_dir().join(format!("holdfast-places-{}", uuid::Uuid::new_v4()));
        let (places, attempt) = (Places::below(&state), AttemptId(uuid::Uuid::from_u128(1)));
        places.prepare().expect("made");
        let step = places.make_step(attempt, &StepName::new("one").expect("a name")).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        let folder = places.attempt(attempt);
        for path in [folder.clone(), folder.join("work"), folder.join("steps"), step.path().to_owned()] {
            assert_eq!(mode(&path), SHUT, "{}", path.display());
        }
        fs::remove_dir_all(state).expect("removed");
    }
}

//! The services as child processes of this same binary.
//!
//! A child never outlives its dev: it asks the kernel itself for a SIGTERM when its parent dies ([`tie_to_parent`]). It leads a
//! process group of its own, so that a Ctrl-C in the terminal reaches dev alone, which ends its children in order. Its
//! environment has no `HOLDFAST_*`: what somebody set for the command line must not change a service's configuration.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::process::Command;
use tokio::sync::watch;

/// The parent that a child is tied to.
const PARENT: &str = "HOLDFAST_DEV_PARENT";

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("could not find the program that is running: {0}")]
    Program(#[source] io::Error),
    #[error("could not open the log {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("could not start {name}: {source}")]
    Spawn { name: String, source: io::Error },
    #[error("{name} ended with {status}: {said}")]
    Failed { name: String, status: ExitStatus, said: String },
}

/// Called by a child that dev started, before anything else: without its parent it does not go on. Does nothing elsewhere.
pub(super) fn tie_to_parent() -> io::Result<()> {
    let Some(parent) = std::env::var(PARENT).ok().and_then(|text| text.parse::<i32>().ok()) else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // It may have died before the line above.
    let is_there = rustix::process::getppid().is_some_and(|found| found.as_raw_nonzero().get() == parent);
    if is_there { Ok(()) } else { Err(io::Error::other("the holdfast dev that started this process is gone")) }
}

/// A running or ended child.
#[derive(Debug)]
pub(super) struct Child {
    name: String,
    log: PathBuf,
    process: OwnedFd,
    ended: watch::Receiver<Option<ExitStatus>>,
}

impl Child {
    /// Starts this binary with these arguments. What it writes goes to the log.
    ///
    /// Must be called on the process's main thread: the kernel takes the end of the starting thread for the parent's.
    pub(super) fn start(name: &str, arguments: &[&str], log: &Path) -> Result<Self, Error> {
        let error = |source| Error::Log { path: log.to_owned(), source };
        let file = fs::OpenOptions::new().create(true).append(true).open(log).map_err(error)?;
        let also = file.try_clone().map_err(error)?;
        let spawned = command(arguments)?.stdout(file).stderr(also).process_group(0).kill_on_drop(true).spawn();
        let spawned = spawned.map_err(|source| Error::Spawn { name: name.to_owned(), source })?;
        Self::watch(name, spawned, log).map_err(|source| Error::Spawn { name: name.to_owned(), source })
    }

    fn watch(name: &str, mut spawned: tokio::process::Child, log: &Path) -> io::Result<Self> {
        let id = spawned.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("it has no process id"))?;
        // Nobody has waited for it yet, so the number is still its own.
        let process = rustix::process::pidfd_open(id, PidfdFlags::empty())?;
        let (sender, ended) = watch::channel(None);
        tokio::spawn(async move {
            match spawned.wait().await {
                Ok(status) => drop(sender.send(Some(status))),
                Err(error) => tracing::error!(%error, "could not wait for a child"),
            }
        });
        Ok(Self { name: name.to_owned(), log: log.to_owned(), process, ended })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it has.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    /// Returns when it has ended. `None` where that could not be seen.
    pub(super) fn ended(&self) -> impl Future<Output = Option<ExitStatus>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move { ended.wait_for(Option::is_some).await.ok().and_then(|status| *status) }
    }

    /// It stands still from now on.
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end and waits, then ends it. One that was paused hears it too.
    pub(super) async fn stop(&self, patience: Duration) {
        self.signal(Signal::TERM);
        self.resume();
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            self.kill().await;
        }
    }

    /// Ends it.
    pub(super) async fn kill(&self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    fn signal(&self, signal: Signal) {
        if self.status().is_none() {
            // Fails only for a process that has just ended.
            let _ = rustix::process::pidfd_send_signal(&self.process, signal);
        }
    }

    /// The last lines of its log.
    pub(super) fn last_words(&self, lines: usize) -> Vec<String> {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect()
    }
}

/// Runs this binary to its end and gives what it wrote to stdout.
pub(super) async fn output(name: &str, arguments: &[&str]) -> Result<String, Error> {
    let output = command(arguments)?.kill_on_drop(true).output().await;
    let output = output.map_err(|source| Error::Spawn { name: name.to_owned(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { name: name.to_owned(), status: output.status, said })
}

fn command(arguments: &[&str]) -> Result<Command, Error> {
    let program = std::env::current_exe().map_err(Error::Program)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"HOLDFAST_") {
            command.env_remove(name);
        }
    }
    command.env(PARENT, std::process::id().to_string());
    Ok(command)
}

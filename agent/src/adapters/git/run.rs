//! One git process: a closed environment, a bound on its time and on its output, and its words made fit to be shown.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_common::text::{bounded, one_line};

use crate::child::{self, Bounds};
use crate::internal::with_causes;

/// No call takes longer, a push of much included.
const LONGEST: Duration = Duration::from_mins(10);
const MOST_OUTPUT: usize = 64 << 20;
const MOST_WORDS: usize = 16 * 1024;
const MOST_SHOWN: usize = 800;
/// Holds wherever git reads its settings: nothing of this host changes what a call does.
const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=false",
    "credential.useHttpPath=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "http.followRedirects=false",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "push.gpgSign=false",
    "push.recurseSubmodules=no",
];

/// Why a git process gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It ended, and said so.
    #[error("git {name}: {said}")]
    Said { name: &'static str, said: String },
    /// It could not be run to its end.
    #[error("could not run git {name}: {why}")]
    Run { name: &'static str, why: String },
}

/// How git is run for one call of ours.
pub(super) struct Git {
    environment: BTreeMap<String, String>,
    settings: Vec<String>,
    /// Never shown, whoever says them.
    secrets: Vec<String>,
    /// What people know by another name, and that name.
    shown_as: Option<(String, String)>,
    ends: Instant,
}

impl Git {
    pub(super) fn new(
        environment: BTreeMap<String, String>,
        settings: Vec<String>,
        secrets: Vec<String>,
        time: Option<Duration>,
    ) -> Self {
        let ends = Instant::now() + time.unwrap_or(Duration::from_hours(24));
        Self { environment, settings, secrets, shown_as: None, ends }
    }

    /// The same; where git's words have the one text, people are shown the other.
    pub(super) fn showing(self, said: &str, shown: &str) -> Self {
        Self { shown_as: Some((said.to_owned(), shown.to_owned())), ..self }
    }

    /// A git command that needs no repository.
    pub(super) fn command(&self, name: &'static str) -> Run<'_> {
        let mut command = Command::new("git");
        command.env_clear().envs(&self.environment).current_dir("/").stdin(Stdio::null());
        for setting in SETTINGS.iter().copied().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.arg(name);
        Run { git: self, name, command, input: None }
    }

    /// A git command in that repository.
    pub(super) fn within(&self, repository: &Path, name: &'static str) -> Run<'_> {
        let mut run = self.command(name);
        run.command.env("GIT_DIR", repository);
        run
    }

    /// What it said: printable, bounded, without a secret.
    pub(super) fn shown(&self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let text = self.secrets.iter().fold(text.into_owned(), |text, secret| text.replace(secret, "[redacted]"));
        let text = match &self.shown_as {
            Some((said, shown)) => text.replace(said, shown),
            None => text,
        };
        let lines =
            text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
        bounded(&lines.map(one_line).collect::<Vec<_>>().join("; "), MOST_SHOWN)
    }
}

/// A git command that is being put together.
pub(super) struct Run<'a> {
    git: &'a Git,
    name: &'static str,
    command: Command,
    input: Option<Vec<u8>>,
}

/// How it ended by itself.
pub(super) struct Ended {
    pub(super) success: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) said: String,
}

impl Run<'_> {
    pub(super) fn args<T: AsRef<std::ffi::OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(super) fn index(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    pub(super) fn folder(mut self, path: &Path) -> Self {
        self.command.current_dir(path);
        self
    }

    pub(super) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs it to its end, whatever it ends with.
    pub(super) fn end(mut self) -> Result<Ended, Error> {
        let failed = |why: String| Error::Run { name: self.name, why };
        if let Some(bytes) = &self.input {
            self.command.stdin(file_of(bytes).map_err(|error| failed(error.to_string()))?);
        }
        let left = self.git.ends.saturating_duration_since(Instant::now()).min(LONGEST);
        let bounds = Bounds { stdout: MOST_OUTPUT, stderr: MOST_WORDS };
        let output = child::output(&mut self.command, bounds, left).map_err(|error| failed(with_causes(&error)))?;
        if output.stdout.len() == MOST_OUTPUT {
            return Err(failed(format!("it said more than {MOST_OUTPUT} bytes")));
        }
        let said = self.git.shown(&output.stderr);
        Ok(Ended { success: output.status.success(), stdout: output.stdout, said })
    }

    /// Runs it, and takes its output where it succeeded.
    pub(super) fn output(self) -> Result<Vec<u8>, Error> {
        let name = self.name;
        let ended = self.end()?;
        if ended.success { Ok(ended.stdout) } else { Err(Error::Said { name, said: ended.said }) }
    }

    /// The same, as one line of text.
    pub(super) fn line(self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.output()?).trim_end().to_owned())
    }
}

/// A file without a name: an input of any length, without a pipe that blocks.
fn file_of(bytes: &[u8]) -> io::Result<Stdio> {
    let mut file = File::from(rustix::fs::memfd_create("holdfast-git", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_of_an_opened_folder_people_are_shown_by_its_own_name_and_no_secret() {
        let git =
            Git::new([].into(), Vec::new(), vec!["geheim".to_owned()], None).showing("/proc/self/fd/7/.", "/srv/a.git");
        let said = git.shown(b"hint: x\nfatal: '/proc/self/fd/7/.' is odd\nwith geheim\n");
        assert_eq!(said, "fatal: '/srv/a.git' is odd; with [redacted]");
    }
}

//! The command line, run as a process.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::process::without_holdfast;
use crate::wait;

/// How to run it.
#[derive(Clone, Debug)]
pub struct Cli {
    pub(crate) program: PathBuf,
    /// Also its home and working folder.
    pub(crate) folder: PathBuf,
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; -1 where a signal ended it.
    pub code: i32,
    /// Data.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
    line: String,
}

impl Cli {
    /// Runs it to its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        let child = self.command(arguments).spawn().expect("the program can be started");
        let line = format!("holdfast {}", arguments.join(" "));
        let output = wait::within(&line, wait::SOON * 2, child.wait_with_output()).await.expect("its output is read");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            line,
        }
    }

    /// The command itself, for tests that go on while it runs. It is killed when dropped.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = std::process::Command::new(&self.program);
        without_holdfast(&mut command);
        command.args(arguments).envs(self.environment.iter().cloned()).current_dir(&self.folder);
        command.env("HOME", &self.folder).env_remove("XDG_CONFIG_HOME").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = Command::from(command);
        command.kill_on_drop(true);
        command
    }
}

impl Ran {
    /// Panics with all that it said if it ended with another code.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}\nstdout:\n{}\nstderr:\n{}", self.line, self.stdout, self.stderr);
        self
    }

    /// Its stdout as one JSON value.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{}: {error}\nstdout:\n{}\nstderr:\n{}", self.line, self.stdout, self.stderr)
        })
    }
}

//! Reading a revision through a command.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::child::{self, Bounds};
use crate::internal::{self, AsUser};
use crate::policy::User;
use crate::secrets::Redactor;
use holdfast_common::id::{self, Revision};
use holdfast_common::text::{bounded, one_line};

const BOUNDS: Bounds = Bounds { stdout: 4096, stderr: 0 };

/// A command that reads.
#[derive(Clone, Debug)]
pub struct Inspection<'a> {
    /// Program and arguments.
    pub argv: &'a [String],
    /// The very file that runs, where the host's policy looked at one.
    pub program: Option<&'a Path>,
    /// Who it runs as; `None`: as the agent.
    pub user: Option<&'a User>,
    /// Takes secrets out of what it prints.
    pub redactor: &'a Redactor,
    /// Its whole environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Where it runs.
    pub folder: &'a Path,
    /// How long it may take.
    pub timeout: Duration,
}

/// Why there is no reading.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The argv is empty.
    #[error("the inspection command is empty")]
    Empty,
    /// It could not be run.
    #[error("could not run the inspection command")]
    Run(#[source] io::Error),
    /// It took too long and was killed.
    #[error("the inspection command did not end within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// It failed.
    #[error("the inspection command ended with {0}")]
    Failed(ExitStatus),
    /// It ended well and said nothing.
    #[error("the inspection command printed nothing")]
    Silent,
    /// What it said is no revision.
    #[error("the inspection command printed {line:?}, which is not a revision")]
    NotARevision {
        /// The first line, made printable and cut.
        line: String,
        /// Why not.
        source: id::Error,
    },
}

impl From<child::Error> for Error {
    fn from(error: child::Error) -> Self {
        match error {
            child::Error::Run(source) => Error::Run(source),
            child::Error::Timeout(bound) => Error::Timeout(bound),
        }
    }
}

/// Runs the command and takes the first line of its output as the revision. Blocks until it ended or was killed.
pub fn inspect(inspection: &Inspection<'_>) -> Result<Revision, Error> {
    let mut command = command(inspection)?;
    command.env_clear().envs(inspection.environment).current_dir(inspection.folder).stdin(Stdio::null());
    let output = child::output(&mut command, BOUNDS, inspection.timeout)?;
    if !output.status.success() {
        return Err(Error::Failed(output.status));
    }
    revision_in(&inspection.redactor.text(&String::from_utf8_lossy(&output.stdout)))
}

/// As another user by way of a process of our own, which becomes that user and then the command.
fn command(inspection: &Inspection<'_>) -> Result<Command, Error> {
    let (name, arguments) = inspection.argv.split_first().ok_or(Error::Empty)?;
    let program = inspection.program.map_or_else(|| name.into(), Path::to_owned);
    Ok(match inspection.user {
        None => {
            let mut command = Command::new(program);
            command.arg0(name).args(arguments);
            command
        }
        Some(user) => internal::as_user(&AsUser { user: user.clone(), program, argv: inspection.argv.to_vec() }),
    })
}

fn revision_in(text: &str) -> Result<Revision, Error> {
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty()).ok_or(Error::Silent)?;
    Revision::new(line).map_err(|source| Error::NotARevision { line: bounded(&one_line(line), 200), source })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn run(argv: &[&str], timeout: Duration) -> Result<Revision, Error> {
        let argv: Vec<String> = argv.iter().map(|part| (*part).to_owned()).collect();
        let environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let inspection = Inspection {
            argv: &argv,
            program: None,
            user: None,
            redactor: &Redactor::of([]),
            environment: &environment,
            folder: Path::new("/"),
            timeout,
        };
        inspect(&inspection)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_first_line_is_the_revision() {
        assert_eq!(run(&["printf", "v1\nmore\n"], LONG).unwrap().as_str(), "v1");
        assert_eq!(run(&["echo", " v1 "], LONG).unwrap().as_str(), "v1");
        // Arguments are data: nothing expands them.
        assert!(matches!(run(&["echo", "$(id)"], LONG), Err(Error::NotARevision { .. })));
    }

    #[test]
    fn whatever_is_no_revision_is_no_reading() {
        assert!(matches!(run(&["true"], LONG), Err(Error::Silent)));
        assert!(matches!(run(&["printf", "\nv1\n"], LONG), Err(Error::Silent)));
        assert!(matches!(run(&["false"], LONG), Err(Error::Failed(_))));
        assert!(matches!(run(&["/no/such/program"], LONG), Err(Error::Run(_))));
        assert!(matches!(run(&[], LONG), Err(Error::Empty)));
        let shown = run(&["printf", "\\033[31mred"], LONG).unwrap_err().to_string();
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let endless = run(&["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"], LONG).unwrap_err();
        assert!(matches!(endless, Error::NotARevision { line, .. } if line.len() <= 200));
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let result = run(&["sh", "-c", "sleep 1000 & sleep 1000"], Duration::from_millis(200));
        assert!(matches!(result, Err(Error::Timeout(_))));
    }

    #[test]
    fn a_child_that_keeps_the_pipe_does_not_hold_the_reading_up() {
        let started = Instant::now();
        assert_eq!(run(&["sh", "-c", "echo v1; sleep 20 >&1 &"], LONG).unwrap().as_str(), "v1");
        assert!(started.elapsed() < Duration::from_secs(15));
    }
}

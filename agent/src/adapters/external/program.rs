//! Running the program: alone with one credential set, its output bounded, and all but a change bounded in time.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use super::contract::Request;
use crate::adapters::system::{Credentials, Failure};
use crate::child::{self, Bounds};
use crate::internal::with_causes;

/// Of a call that is no step. Two of them fit into the time that our own process has.
pub(super) const TIMEOUT: Duration = Duration::from_secs(25);
/// Longest answer, in bytes.
pub(super) const MAX_ANSWER: usize = 256 * 1024;
const BOUNDS: Bounds = Bounds { stdout: MAX_ANSWER + 1, stderr: 16 * 1024 };

/// The program, and what it may know.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) credentials: Credentials,
    /// How long a look may take.
    pub(super) timeout: Duration,
}

impl Program<'_> {
    /// For a change: in our own group, so that whoever stops the step stops the program too. What it says beside its answer
    /// is the step's own output.
    pub(super) fn run(&self, request: &Request<'_>) -> Result<Vec<u8>, Failure> {
        let mut command = self.command(request)?;
        let (status, answer) =
            child::answer(&mut command, BOUNDS.stdout).map_err(|error| self.not_run(&with_causes(&error)))?;
        self.ended(status, answer)
    }

    /// For a look: in a group of its own, which is killed when its time is up.
    pub(super) fn run_briefly(&self, request: &Request<'_>) -> Result<Vec<u8>, Failure> {
        let mut command = self.command(request)?;
        let output =
            child::output(&mut command, BOUNDS, self.timeout).map_err(|error| self.not_run(&with_causes(&error)))?;
        // To where our own words go. Nobody may be reading.
        let _ = std::io::stderr().write_all(&output.stderr);
        self.ended(output.status, output.stdout)
    }

    /// Whatever the call was: our own environment holds the base and one credential set, and that is all the program gets.
    fn command(&self, request: &Request<'_>) -> Result<Command, Failure> {
        let executable = rustix::fs::access(self.path, rustix::fs::Access::EXEC_OK);
        executable.map_err(|error| Failure::NotBegun(format!("program {}: {error}", self.path.display())))?;
        let stdin = stdin(request).map_err(|error| Failure::NotBegun(format!("no file for the request: {error}")))?;
        let mut command = Command::new(self.path);
        command.env_clear().envs(self.credentials.variables()).stdin(stdin);
        Ok(command)
    }

    fn ended(&self, status: ExitStatus, answer: Vec<u8>) -> Result<Vec<u8>, Failure> {
        if !status.success() {
            return Err(Failure::Machinery(format!("program {} ended with {status}", self.path.display())));
        }
        if answer.len() > MAX_ANSWER {
            let text = format!("the answer of program {} has more than {MAX_ANSWER} bytes", self.path.display());
            return Err(Failure::Machinery(text));
        }
        Ok(answer)
    }

    fn not_run(&self, why: &str) -> Failure {
        Failure::Machinery(format!("program {}: {why}", self.path.display()))
    }
}

/// A file without a name: a pipe would block where a program does not read.
fn stdin(request: &Request<'_>) -> std::io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("holdfast-request", rustix::fs::MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, request)?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use holdfast_common::id::{DeploymentId, ResourceName, StepName, TargetName};

    use super::super::contract::{Asked, Operation, PROTOCOL};
    use super::*;

    #[test]
    fn a_look_that_does_not_end_is_ended_and_says_nothing() {
        // It writes without an end, and far more than may be kept.
        let path = Path::new("/usr/bin/yes");
        let program = Program { path, credentials: Credentials::default(), timeout: Duration::from_millis(200) };
        let (target, resource) = (TargetName::new("a").unwrap(), ResourceName::new("b").unwrap());
        let (step, settings) = (StepName::new("c").unwrap(), [].into());
        let deployment = DeploymentId(uuid::Uuid::from_u128(1));
        let operation = Operation {
            id: "x".to_owned(),
            deployment,
            step: &step,
            revision: None,
            expected_revision: None,
            settings: None,
        };
        let request = Request {
            protocol: PROTOCOL,
            call: Asked::Inspect,
            target: &target,
            resource: &resource,
            settings: &settings,
            operation,
            fence: None,
            archive: None,
            work: None,
        };
        let started = Instant::now();
        let ended = program.run_briefly(&request);
        assert!(matches!(&ended, Err(Failure::Machinery(why)) if why.contains("did not end within")), "{ended:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

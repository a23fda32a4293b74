//! The hidden subcommands of every program that carries the agent: `PROGRAM internal NAME ARGUMENT`.
//!
//! Not for people, no stable interface: a program calls only its own. They run before any runtime or thread is made.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use holdfast_common::id::OperationId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::adapters::halt::{self, Who};
use crate::adapters::release::{Applied, ApplySpec, RaiseSpec};
use crate::adapters::{git, release, system};
use crate::checks;
use crate::policy::User;
use crate::supervisor;

/// The first argument that makes a call one of these.
pub const INTERNAL: &str = "internal";

/// Runs a hidden subcommand if the arguments name one.
#[must_use]
pub fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != INTERNAL {
        return None;
    }
    let name = arguments.next().unwrap_or_default();
    let argument = arguments.next().unwrap_or_default();
    if name == name::SHIM {
        return Some(supervisor::shim_main(&argument));
    }
    if name == name::TRY_CGROUP {
        return Some(match supervisor::try_cgroup(argument.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => say(&error.to_string(), ExitCode::FAILURE),
        });
    }
    Some(run(&name.to_string_lossy(), &argument.to_string_lossy()))
}

/// Names of the subcommands.
pub mod name {
    /// Runs one step: the argument is the step's folder.
    pub const SHIM: &str = "shim";
    /// Applies a release: the argument is an `ApplySpec` in JSON.
    pub const RELEASE_APPLY: &str = "release-apply";
    /// Raises a release folder's fence: the argument is a `RaiseSpec` in JSON, the answer a `Raised`.
    pub const RELEASE_RAISE: &str = "release-raise";
    /// Reads an operation at a release folder: the argument is an `InspectSpec` in JSON, the answer a `Reading`.
    pub const RELEASE_INSPECT: &str = "release-inspect";
    /// Looks at what runs: the argument is a `CheckSpec` in JSON.
    pub const CHECK: &str = "check";
    /// Goes into a cgroup and out again: the argument is its path.
    pub const TRY_CGROUP: &str = "try-cgroup";
    /// One call on a system: the order in JSON comes on standard input.
    pub const SYSTEM: &str = "system";
    /// Tells git a password: the argument is what git asks of a credential helper.
    pub const GIT_CREDENTIAL: &str = "git-credential";
    /// Becomes a user, then a program: the argument is an `AsUser` in JSON.
    pub const AS_USER: &str = "as-user";
}

/// What to read.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
pub struct InspectSpec {
    /// The resource's folder.
    pub root: std::path::PathBuf,
    /// The operation.
    pub operation: OperationId,
}

/// What to become. Holds no secret: it can be seen in the list of processes for a moment.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
pub struct AsUser {
    /// Who.
    pub user: User,
    /// Which file.
    pub program: PathBuf,
    /// Its name, then its arguments. Never empty.
    pub argv: Vec<String>,
}

/// A command that becomes that user and then that program. Where the program can't be run it exits with 127.
pub(crate) fn as_user(what: &AsUser) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let argument = serde_json::to_string(what).expect("plain data serializes");
    command.args([INTERNAL, name::AS_USER, &argument]);
    command
}

fn become_it(what: AsUser) -> ExitCode {
    if let Err(error) = supervisor::become_user(&what.user) {
        return say(&format!("could not become user {}: {error}", what.user.name), ExitCode::from(127));
    }
    let mut command = Command::new(&what.program);
    if let Some((name, arguments)) = what.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    let error = command.exec();
    say(&format!("could not run {}: {error}", what.program.display()), ExitCode::from(127))
}

fn run(name: &str, argument: &str) -> ExitCode {
    match name {
        name::RELEASE_APPLY => with(argument, apply),
        name::RELEASE_RAISE => with(argument, raise),
        name::RELEASE_INSPECT => {
            with(argument, |spec: InspectSpec| answer(&release::inspect(&spec.root, &spec.operation)))
        }
        name::SYSTEM => system::main(),
        name::GIT_CREDENTIAL => git::credential_main(argument),
        name::CHECK => with(argument, checks::run),
        name::AS_USER => with(argument, become_it),
        _ => refuse("no such subcommand"),
    }
}

fn apply(spec: ApplySpec) -> ExitCode {
    halt::set_who(Who::Apply);
    match release::apply(&spec) {
        Ok(Applied::Flipped) => say("applied", ExitCode::SUCCESS),
        Ok(Applied::Already) => say("applied before, nothing changed", ExitCode::SUCCESS),
        Err(error) => say(&with_causes(&error), ExitCode::from(error.exit())),
    }
}

fn raise(spec: RaiseSpec) -> ExitCode {
    halt::set_who(Who::Raise);
    match release::raise(&spec.root, spec.fence) {
        Ok(raised) => answer(&raised),
        Err(error) => say(&with_causes(&error), ExitCode::from(error.exit())),
    }
}

fn with<T: DeserializeOwned>(argument: &str, act: impl FnOnce(T) -> ExitCode) -> ExitCode {
    match serde_json::from_str(argument) {
        Ok(spec) => act(spec),
        Err(error) => refuse(&error.to_string()),
    }
}

fn answer(value: &impl Serialize) -> ExitCode {
    let text = serde_json::to_string(value).expect("plain data serializes");
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn refuse(why: &str) -> ExitCode {
    say(&format!("{INTERNAL}: {why}"), ExitCode::from(2))
}

/// A failed write to a log that nobody reads changes nothing about the code.
fn say(text: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{text}");
    code
}

/// An error with everything below it, on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

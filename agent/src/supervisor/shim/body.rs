//! Runs the body, stops it when asked, and records how it ended.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_common::outcome::Exit;

use super::super::as_user;
use super::super::launch::{Body, Launch, armed_here};
use super::super::limits;
use super::super::process::Process;
use super::super::record::{ExitRecord, Written};
use super::group::Group;
use super::output::Copy;
use super::{Home, Known, Spares};
use crate::boottime::wall_now;
use crate::crash::{self, CrashPoint};
use crate::internal::{INTERNAL, name};
use crate::places::StepFolder;
use crate::secrets::{Folder, Redactor, VARIABLE};

/// What is told where the kernel counted it.
const LACKED_MEMORY: &str = "the kernel killed processes of the step for memory";

/// Runs it to its end and writes the exit record.
pub(super) fn run(folder: &StepFolder, launch: &Launch, known: Known, spares: Spares, home: &Home) -> io::Result<()> {
    let Spares { exit, signalled, stdout, stderr } = spares;
    let shown = show(launch, &known);
    let record = match shown.and_then(|shown| spawn(launch, &known, shown.as_ref(), home).map(|child| (child, shown))) {
        Ok((child, _gone_at_the_end)) => {
            let group = Group::led_by(&child, signalled, home)?;
            watch(folder, launch, child, (stdout, stderr), group, &known.redactor)?
        }
        Err(error) => not_spawned(launch, &error),
    };
    crash::point(CrashPoint::BeforeExitRecord);
    exit.replace(&folder.exit(), &serde_json::to_vec(&record).expect("plain data serializes"))
}

/// Puts the credentials where the command finds them.
fn show(launch: &Launch, known: &Known) -> io::Result<Option<Folder>> {
    if known.credentials.is_empty() {
        return Ok(None);
    }
    Folder::make(&launch.credentials_folder, &known.credentials, launch.user.as_ref()).map(Some)
}

fn spawn(launch: &Launch, known: &Known, shown: Option<&Folder>, home: &Home) -> io::Result<Child> {
    let mut command = match &launch.body {
        Body::Command { argv } => {
            let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(launch.program.as_deref().unwrap_or(program.as_ref()));
            command.arg0(program).args(arguments).env_clear();
            command.envs(known.credentials.variables());
            command.envs(shown.map(|folder| (VARIABLE, folder.path())));
            command
        }
        Body::Release { apply } => ours(name::RELEASE_APPLY, &serde_json::to_string(apply)?),
        Body::Check { check } => ours(name::CHECK, &serde_json::to_string(check)?),
        Body::System { .. } => {
            let mut command = ours(name::SYSTEM, "");
            command.envs(known.credentials.variables());
            command.envs(shown.map(|folder| (VARIABLE, folder.path())));
            command
        }
    };
    let stdin = match &launch.body {
        Body::System { order } => order.stdin()?,
        Body::Command { .. } | Body::Release { .. } | Body::Check { .. } => Stdio::null(),
    };
    command
        .envs(&launch.environment)
        .current_dir(&launch.work)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let user = match &launch.body {
        Body::Command { .. } | Body::Check { .. } => launch.user.as_ref(),
        Body::Release { .. } | Body::System { .. } => None,
    };
    let mut start = || limits::under(home.limits, || as_user::spawn(&mut command, user));
    match &home.cgroup {
        Some(cgroup) => cgroup.within(start),
        None => start(),
    }
}

/// A hidden subcommand of the running program.
fn ours(name: &str, argument: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([INTERNAL, name, argument]).env_clear().envs(armed_here());
    command
}

fn not_spawned(launch: &Launch, error: &io::Error) -> ExitRecord {
    let what = match &launch.body {
        Body::Command { argv } => argv.first().map_or("", String::as_str),
        Body::Release { .. } => "the release adapter",
        Body::Check { .. } => "the check",
        Body::System { order } => order.system.adapter().name(),
    };
    ExitRecord {
        at: wall_now(),
        exit: Exit::NotSpawned,
        stopped_by_us: false,
        killed: false,
        survivors: Vec::new(),
        stdout: Written::default(),
        stderr: Written::default(),
        detail: Some(format!("could not start {what:?}: {error}")),
    }
}

fn watch(
    folder: &StepFolder,
    launch: &Launch,
    mut child: Child,
    files: (File, File),
    mut group: Group<'_>,
    redactor: &Redactor,
) -> io::Result<ExitRecord> {
    crash::point(CrashPoint::AfterBodySpawn);
    let stdout = Copy::start(child.stdout.take().expect("asked for"), files.0, launch.output_bytes, redactor.clone())?;
    let stderr = Copy::start(child.stderr.take().expect("asked for"), files.1, launch.output_bytes, redactor.clone())?;
    let status = group.wait_for_leader(folder)?;
    group.empty_if_stopped();
    let until = Instant::now() + Duration::from(launch.drain);
    let (stdout, stderr) = (stdout.finish(until), stderr.finish(until));
    // Only now may its id, and with it its group's, be given to others.
    child.wait()?;
    let survivors = group.survivors();
    Ok(ExitRecord {
        at: wall_now(),
        exit: group.exit_of(status),
        stopped_by_us: group.is_stopped(),
        killed: group.is_killed(),
        survivors: survivors.iter().map(Process::survivor).collect(),
        stdout,
        stderr,
        detail: group.lacked_memory().then(|| LACKED_MEMORY.to_owned()),
    })
}

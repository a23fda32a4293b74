//! Runs the body, stops it when asked, and records how it ended.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_common::outcome::Exit;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process_group, pidfd_open, waitid,
};

use super::super::as_user;
use super::super::launch::{Body, Launch, armed_here};
use super::super::process::{self, Process};
use super::super::record::{ExitRecord, StopRequest, Written};
use super::super::wait::{self, Arrivals};
use super::output::Copy;
use super::{Known, SIGNALLED, Spares};
use crate::boottime::wall_now;
use crate::crash::{self, CrashPoint};
use crate::durable::Spare;
use crate::internal::{INTERNAL, name};
use crate::places::StepFolder;
use crate::secrets::{Folder, Redactor, VARIABLE};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long an orphan that ended may stay a zombie.
const REAP_EVERY: Duration = Duration::from_secs(1);

/// Runs it to its end and writes the exit record.
pub(super) fn run(folder: &StepFolder, launch: &Launch, known: Known, spares: Spares) -> io::Result<()> {
    let Spares { exit, signalled, stdout, stderr } = spares;
    let shown = show(launch, &known);
    let record = match shown.and_then(|shown| spawn(launch, &known, shown.as_ref()).map(|child| (child, shown))) {
        Ok((child, _gone_at_the_end)) => watch(folder, launch, child, (stdout, stderr), signalled, &known.redactor)?,
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

fn spawn(launch: &Launch, known: &Known, shown: Option<&Folder>) -> io::Result<Child> {
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
    };
    command
        .envs(&launch.environment)
        .current_dir(&launch.work)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let user = match &launch.body {
        Body::Command { .. } | Body::Check { .. } => launch.user.as_ref(),
        Body::Release { .. } => None,
    };
    as_user::spawn(&mut command, user)
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
    signalled: Spare,
    redactor: &Redactor,
) -> io::Result<ExitRecord> {
    crash::point(CrashPoint::AfterBodySpawn);
    let stdout = Copy::start(child.stdout.take().expect("asked for"), files.0, launch.output_bytes, redactor.clone())?;
    let stderr = Copy::start(child.stderr.take().expect("asked for"), files.1, launch.output_bytes, redactor.clone())?;
    let mut group = Group::led_by(&child, signalled)?;
    let status = group.wait_for_leader(folder)?;
    group.empty_if_stopped();
    let until = Instant::now() + Duration::from(launch.drain);
    let (stdout, stderr) = (stdout.finish(until), stderr.finish(until));
    // Only now may its id, and with it its group's, be given to others.
    child.wait()?;
    let survivors = survivors();
    Ok(ExitRecord {
        at: wall_now(),
        exit: group.exit_of(status),
        stopped_by_us: group.stop.is_some(),
        killed: group.killed,
        survivors: survivors.iter().map(Process::survivor).collect(),
        stdout,
        stderr,
        detail: None,
    })
}

/// The body's process group. Its leader is not reaped while this is used, so the group's number can't be a stranger's.
struct Group {
    leader: Pid,
    stop: Option<Stop>,
    killed: bool,
    signalled: Option<Spare>,
}

struct Stop {
    kill_at: Instant,
}

impl Group {
    fn led_by(child: &Child, signalled: Spare) -> io::Result<Self> {
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { leader, stop: None, killed: false, signalled: Some(signalled) })
    }

    fn wait_for_leader(&mut self, folder: &StepFolder) -> io::Result<WaitIdStatus> {
        let leader = pidfd_open(self.leader, PidfdFlags::empty()).ok();
        let mut arrivals = Arrivals::into(folder.path());
        let told_of_all = leader.is_some() && arrivals.is_some();
        loop {
            if let Some(arrivals) = &mut arrivals {
                arrivals.mark_seen();
            }
            self.act_on_request(folder);
            reap_orphans(self.leader);
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            match waitid(WaitId::Pid(self.leader), options) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let handles = leader.iter().map(AsFd::as_fd).chain(arrivals.iter().map(AsFd::as_fd));
            wait::readable(handles, self.look_in(told_of_all));
        }
    }

    /// How long nothing needs to be done unless something is told. Orphans that end are not told of.
    fn look_in(&self, told_of_all: bool) -> Duration {
        match &self.stop {
            Some(stop) => stop.kill_at.saturating_duration_since(Instant::now()).clamp(LOOK_EVERY, REAP_EVERY),
            None if told_of_all => REAP_EVERY,
            None => LOOK_EVERY,
        }
    }

    fn act_on_request(&mut self, folder: &StepFolder) {
        if self.stop.is_some() {
            self.kill_when_due();
        } else if let Ok(Some(request)) = StopRequest::read(folder) {
            self.signal(Signal::TERM);
            // For people only: that the request was acted on. The exit record tells it for good.
            let _ = self.signalled.take().map(|spare| spare.replace(&folder.signalled(), SIGNALLED));
            self.stop = Some(Stop { kill_at: Instant::now() + Duration::from(request.grace) });
        }
    }

    fn kill_when_due(&mut self) {
        if self.stop.as_ref().is_some_and(|stop| Instant::now() >= stop.kill_at) {
            self.signal(Signal::KILL);
            self.killed = true;
        }
    }

    /// After a stop nothing of the group may be left. A process that forks while the list is read can be missed in it,
    /// so an empty list is believed only after a SIGKILL, from which no fork escapes.
    fn empty_if_stopped(&mut self) {
        if self.stop.is_none() {
            return;
        }
        let mut swept = false;
        loop {
            reap_orphans(self.leader);
            let group = self.leader.as_raw_pid();
            // A list that can't be read proves nothing: look again.
            let is_empty = process::all().is_ok_and(|all| !all.iter().any(|one| one.group == group && one.is_alive()));
            match (is_empty, swept) {
                (true, true) => return,
                (true, false) => {
                    self.signal(Signal::KILL);
                    swept = true;
                }
                (false, _) => {
                    self.killed |= swept;
                    self.kill_when_due();
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The unreaped leader keeps the group there; it may have no living member, which is as well.
        let _ = kill_process_group(self.leader, signal);
    }

    fn exit_of(&self, status: WaitIdStatus) -> Exit {
        let ours = [Signal::TERM.as_raw(), Signal::KILL.as_raw()];
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Exited(code),
            (None, Some(signal)) => Exit::Signaled { signal, by_us: self.stop.is_some() && ours.contains(&signal) },
            (None, None) => Exit::Unknown,
        }
    }
}

/// What lives on of the step. Every orphan of it is a child of this process, so without children there is none, and the list
/// of all processes, which is long on a busy host, is not read.
fn survivors() -> Vec<Process> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, options) {
        Err(rustix::io::Errno::CHILD) => Vec::new(),
        Ok(_) | Err(_) => process::living_descendants(getpid().as_raw_pid()).unwrap_or_default(),
    }
}

/// Collects what came to this process as an orphan and ended. The leader stays.
fn reap_orphans(leader: Pid) {
    let any_ended = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    let Ok(Some(_)) = any_ended else { return };
    let Ok(processes) = process::all() else { return };
    let me = getpid().as_raw_pid();
    for process in processes.iter().filter(|process| process.parent == me && !process.is_alive()) {
        if let Some(pid) = Pid::from_raw(process.identity.pid).filter(|pid| *pid != leader) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

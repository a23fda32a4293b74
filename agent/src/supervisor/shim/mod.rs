//! The small process between the agent and a step's body. It outlives the agent.

mod body;
mod group;
mod output;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdfast_common::spec::StepEffect;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper, setsid};

use super::as_user;
use super::cgroup::Cgroup;
use super::launch::{Answer, Launch, Refusal};
use super::namespaces::Namespaces;
use super::process::Process;
use super::record::{Marks, StartRecord};
use crate::boottime::{BootId, BootTime, wall_now};
use crate::config::Limits;
use crate::crash::{self, CrashPoint};
use crate::durable::{self, Published, Spare};
use crate::places::StepFolder;
use crate::secrets::{Redactor, Secrets};

const LOCK_EVERY: Duration = Duration::from_millis(5);
/// Room for an exit record. One with very many survivors may be longer.
const EXIT_RECORD_BYTES: usize = 16 * 1024;
const SIGNALLED: &[u8] = b"SIGTERM";

/// Runs one step: the argument is its folder. The exit code tells nothing; the files do.
#[must_use]
pub fn shim_main(folder: &OsStr) -> ExitCode {
    let folder = StepFolder::at(folder.into());
    match begin(&folder) {
        Ok((launch, known, spares, home, _locks)) => {
            answer(&Answer::Started);
            crash::point(CrashPoint::AfterStartRecord);
            let recorded = body::run(&folder, &launch, known, spares, &home);
            crash::point(CrashPoint::AfterExitRecord);
            home.leave();
            // Without a record the step reads as gone, exit unknown: the truth.
            if recorded.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(refusal) => {
            answer(&Answer::Refused(refusal));
            ExitCode::FAILURE
        }
    }
}

/// Kernel locks, held until the process ends.
struct Locks {
    _target: Option<File>,
    _start: File,
}

/// What must be written also on a full disk.
struct Spares {
    exit: Spare,
    signalled: Spare,
    stdout: File,
    stderr: File,
}

fn spares(folder: &StepFolder) -> io::Result<Spares> {
    let exit = Spare::make(folder.spare_exit(), EXIT_RECORD_BYTES)?;
    let signalled = Spare::make(folder.spare_signalled(), SIGNALLED.len())?;
    Ok(Spares { exit, signalled, stdout: output::open(&folder.stdout())?, stderr: output::open(&folder.stderr())? })
}

/// Values that are read here and nowhere written but into a command's own folder and environment.
struct Known {
    credentials: Secrets,
    redactor: Redactor,
}

impl Known {
    /// A step whose secrets can't be told from its output does not begin.
    fn read(launch: &Launch) -> Result<Self, Refusal> {
        let refused = |error: &dyn std::error::Error| Refusal::Machinery { what: error.to_string() };
        let credentials = launch.credentials.read().map_err(|error| refused(&error))?;
        let all = launch.secrets.iter().map(|sources| sources.read()).collect::<Result<Vec<_>, _>>();
        Ok(Self { credentials, redactor: Redactor::of(&all.map_err(|error| refused(&error))?) })
    }
}

/// What keeps the body's processes together and in bounds.
struct Home {
    cgroup: Option<Cgroup>,
    /// What the cgroup does not bound.
    limits: Limits,
}

impl Home {
    fn make(launch: &Launch) -> io::Result<Self> {
        let Some(path) = &launch.cgroup else { return Ok(Self { cgroup: None, limits: launch.limits }) };
        let cgroup = Cgroup::make(path)?;
        Ok(Self { limits: cgroup.bound(launch.limits), cgroup: Some(cgroup) })
    }

    /// What lives on in there stays, and with it the cgroup.
    fn leave(&self) {
        let _removed_later = self.cgroup.as_ref().map(Cgroup::remove);
    }
}

fn begin(folder: &StepFolder) -> Result<(Launch, Known, Spares, Home, Locks), Refusal> {
    as_user::shut().map_err(machinery("could not shut this process to others"))?;
    let launch = read_launch(folder).map_err(machinery("could not read what to launch"))?;
    setsid().map_err(io::Error::from).map_err(machinery("could not make a session"))?;
    set_child_subreaper(Some(getpid())).map_err(io::Error::from).map_err(machinery("could not adopt orphans"))?;
    let target = match launch.effect {
        StepEffect::Mutates => Some(lock_target(&launch)?),
        StepEffect::None => None,
    };
    let known = Known::read(&launch)?;
    let spares = spares(folder).map_err(machinery("could not put aside room for the step's end"))?;
    crash::point(CrashPoint::BeforeStartRecord);
    if launch.not_after.is_some_and(|latest| BootTime::now() > latest) {
        return Err(Refusal::TooLate);
    }
    let home = Home::make(&launch).map_err(machinery("could not make the step's cgroup"))?;
    let record = start_record(&launch, home.cgroup.as_ref()).map_err(machinery("could not read who we are"))?;
    match durable::publish(&folder.start(), &record.bytes()).map_err(machinery("could not make the start record"))? {
        Published::First(start) => Ok((launch, known, spares, home, Locks { _target: target, _start: start })),
        Published::Stood => Err(Refusal::HasStartRecord),
    }
}

fn read_launch(folder: &StepFolder) -> io::Result<Launch> {
    let bytes = durable::read(&folder.launch())?.ok_or(io::ErrorKind::NotFound)?;
    serde_json::from_slice(&bytes).map_err(io::Error::from)
}

fn start_record(launch: &Launch, cgroup: Option<&Cgroup>) -> io::Result<StartRecord> {
    let namespaces = Namespaces::own()?;
    let me = Process::read(getpid().as_raw_pid())?.ok_or(io::ErrorKind::NotFound)?;
    let marks = Marks {
        shim: me.identity,
        boot: BootId::read()?,
        machine: launch.machine.clone(),
        namespaces: Some(namespaces),
        cgroup: cgroup.map(|cgroup| cgroup.path().to_owned()),
    };
    Ok(StartRecord::Started { at: wall_now(), marks })
}

/// The target's lock, or a refusal: no body runs without it.
fn lock_target(launch: &Launch) -> Result<File, Refusal> {
    let file = open_lock(&launch.target_lock).map_err(machinery("could not open the target's lock"))?;
    let end = Instant::now() + Duration::from(launch.lock_wait);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(LOCK_EVERY),
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(Refusal::TargetBusy),
            Err(error) => return Err(machinery("could not lock the target")(error.into())),
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// One line to the agent. It may be gone: then the files alone tell.
fn answer(answer: &Answer) {
    let text = serde_json::to_string(answer).expect("plain data serializes");
    let _ = writeln!(io::stdout(), "{text}");
}

fn machinery(what: &'static str) -> impl FnOnce(io::Error) -> Refusal {
    move |error| Refusal::Machinery { what: format!("{what}: {error}") }
}

//! Starts, watches and stops the processes of steps.
//!
//! ```text
//! agent --spawns--> shim (own session, holds the locks, outlives the agent) --spawns--> body (own process group)
//!   \                 |  start.json, exclusively, before the body runs
//!    \                |  stdout, stderr, with a bound
//!     `-- stop.json ->|  exit.json, durably
//! ```
//!
//! Agent and shim talk through files and kernel locks only, so a restarted agent knows as much as the one before. The
//! start record carries the shim's lock: while it is held the shim lives, and no recorded process id has to be trusted.
//! Whoever says "never started" makes the same record first, and then no shim can ever start that step.
//!
//! Only the shim signals its step while it lives: it alone sees the end, and has to know then whether a stop led to it. A shim
//! that stands still (stopped by a signal or a debugger) acts on no request until somebody lets it go on. That is told, and
//! neither it nor its step is signalled in its stead: to let it go on could begin a body after the stop was asked for.
//!
//! What can't be known: if the shim alone is killed, nobody saw how the body ended. What it left behind is found in the step's
//! own cgroup; where there is none, only what stayed in its session is. From another pid namespace nothing is found, and
//! nothing is concluded.

mod as_user;
mod cgroup;
mod cgroups;
mod launch;
mod limits;
mod namespaces;
mod process;
mod record;
mod shim;
mod survey;
mod wait;

use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::time::Millis;

use crate::boottime::wall_now;
use crate::crash::{self, CrashPoint};
use crate::durable::{self, Published};
use crate::internal::{INTERNAL, name};
use crate::places::StepFolder;

pub(crate) use as_user::{become_user, shut};
pub use cgroups::Cgroups;
pub(crate) use cgroups::try_cgroup;
pub(crate) use launch::armed_here;
pub use launch::{Body, Launch, Refusal};
pub use process::Survivor;
pub use record::{ExitRecord, StopRequest, Written};
pub use shim::shim_main;
pub use survey::{Known, Sight};

use launch::Answer;
use record::StartRecord;

/// How often a step is looked at where nothing tells of its change.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Kills everything below this process, until nothing is found there: what forks while it is listed is found the next time.
pub(crate) fn empty_below_this_process() -> io::Result<()> {
    while survey::kill_below(rustix::process::getpid())? > 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Why a step was not seen to start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Before any shim ran.
    #[error("could not prepare the step's folder")]
    Prepare(#[source] io::Error),
    /// No shim runs.
    #[error("could not start the shim")]
    Spawn(#[source] io::Error),
    /// The shim refused. It has not made the start record.
    #[error("the shim refused: {0}")]
    Refused(Refusal),
    /// The shim went without a word. Only the start record tells: see [`Supervisor::survey`] and
    /// [`Supervisor::tombstone`].
    #[error("the shim ended without a word")]
    ShimLost,
}

/// Who made the start record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Tombstone {
    /// It says "never started", now or already before: the step never ran and never can.
    Stands,
    /// It says "started": the step ran or runs.
    TooLate,
}

/// Runs shims.
#[derive(Debug)]
pub struct Supervisor {
    program: PathBuf,
    armed: Vec<(String, String)>,
    machine: String,
    children: Mutex<Vec<Child>>,
}

impl Default for Supervisor {
    fn default() -> Self {
        // The file that this process runs, also after an upgrade has replaced it.
        Self::running(Path::new("/proc/self/exe"))
    }
}

impl Supervisor {
    /// With shims that run `program`, which must call [`crate::internal::dispatch`] first.
    #[must_use]
    pub fn running(program: &Path) -> Self {
        let armed = launch::armed_here();
        Self { program: program.to_owned(), armed, machine: String::new(), children: Mutex::default() }
    }

    /// On the machine with that fingerprint. Without one, another boot is no proof that a step's processes are gone.
    #[must_use]
    pub fn on_machine(self, fingerprint: &str) -> Self {
        Self { machine: fingerprint.to_owned(), ..self }
    }

    /// Arms a crash point or a halt in the shims that are started from now on, instead of those of this process.
    #[cfg(feature = "bugs")]
    pub fn arm(&mut self, variable: &str, value: &str) {
        self.armed = vec![(variable.to_owned(), value.to_owned())];
    }

    /// Starts a step. Returns when its start record stands and stays. Blocks meanwhile.
    ///
    /// After any error but [`Error::ShimLost`] the step has not started; only [`Supervisor::tombstone`] makes sure that it
    /// never will.
    pub fn start(&self, folder: &StepFolder, launch: &Launch) -> Result<(), Error> {
        let text = serde_json::to_vec(launch).expect("plain data serializes");
        // Not synced: it is for the shim that is started now, and nothing is concluded from it later.
        durable::put(&folder.launch(), &text).map_err(Error::Prepare)?;
        crash::point(CrashPoint::BeforeShimSpawn);
        let mut child = self.spawn(folder).map_err(Error::Spawn)?;
        crash::point(CrashPoint::AfterShimSpawn);
        let pipe = child.stdout.take().expect("stdout was asked for");
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        let mut line = String::new();
        let read = BufReader::new(pipe).read_line(&mut line);
        match read.ok().and_then(|_| serde_json::from_str(&line).ok()) {
            Some(Answer::Started) => Ok(()),
            Some(Answer::Refused(refusal)) => Err(Error::Refused(refusal)),
            None => Err(Error::ShimLost),
        }
    }

    /// Makes the step's start record as "never started", unless it stands.
    pub fn tombstone(&self, folder: &StepFolder, why: &str) -> io::Result<Tombstone> {
        let record = StartRecord::NeverStarted { at: wall_now(), why: why.to_owned() };
        match durable::publish(&folder.start(), &record.bytes())? {
            Published::First(_) => Ok(Tombstone::Stands),
            Published::Stood => match StartRecord::read(folder)? {
                Some(StartRecord::NeverStarted { .. }) => Ok(Tombstone::Stands),
                Some(StartRecord::Started { .. }) => Ok(Tombstone::TooLate),
                None => Err(io::Error::other("the start record is gone")),
            },
        }
    }

    /// Asks the step's shim for a stop: SIGTERM to the body's group, SIGKILL after the grace. Works on shims of earlier
    /// agents; asking again changes nothing. Whether it was acted on, the exit record tells.
    pub fn request_stop(&self, folder: &StepFolder, grace: Millis) -> io::Result<()> {
        let request = StopRequest { grace, at: wall_now() };
        durable::publish(&folder.stop(), &serde_json::to_vec(&request).expect("plain data serializes")).map(drop)
    }

    /// Whether the shim has sent the stop signal.
    #[must_use]
    pub fn is_signalled(&self, folder: &StepFolder) -> bool {
        folder.signalled().exists()
    }

    /// The process id of the step's shim, for people, where the shim stands still: stopped by a signal or a debugger.
    pub fn standing_still(&self, folder: &StepFolder) -> io::Result<Option<i32>> {
        survey::standing_still(folder)
    }

    /// What is known of the step now. Changes nothing.
    pub fn survey(&self, folder: &StepFolder) -> io::Result<Known> {
        self.reap();
        survey::survey(folder, &self.machine)
    }

    /// [`Supervisor::survey`], again and again until the step is neither running nor yet to start, or the bound has
    /// passed. Blocks meanwhile.
    pub fn wait(&self, folder: &StepFolder, bound: Duration) -> io::Result<Known> {
        let end = Instant::now() + bound;
        loop {
            // The handle is taken before the look: a shim that ends after the look is seen to end by its handle.
            let shim = survey::handle_of_shim(folder);
            let known = self.survey(folder)?;
            let left = end.saturating_duration_since(Instant::now());
            if known.is_settled() || left.is_zero() {
                return Ok(known);
            }
            match (&known, shim) {
                (Known::Running, Some(shim)) => wait::readable([shim.as_fd()], left),
                // Nothing says when a record is made or the last of many processes has ended.
                (Known::Running | Known::NotYetStarted | Known::Gone { .. }, _) => {
                    std::thread::sleep(LOOK_EVERY.min(left))
                }
                (Known::NeverStarted { .. } | Known::Ended(_), _) => return Ok(known),
            }
        }
    }

    /// Signals the processes that a lost shim left behind: all in the step's cgroup, or each after it was recognized through a
    /// handle that can't come to mean another process. Returns how many were signalled.
    pub fn signal_survivors(&self, folder: &StepFolder, kill: bool) -> io::Result<usize> {
        survey::signal_survivors(folder, &self.machine, kill)
    }

    /// Removes what the step has left in the kernel, once none of its processes is there. Whether nothing is left.
    pub fn tidy(&self, folder: &StepFolder) -> io::Result<bool> {
        survey::tidy(folder)
    }

    /// Collects shims of this agent that have ended, so that none stays a zombie.
    fn reap(&self) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    fn spawn(&self, folder: &StepFolder) -> io::Result<Child> {
        Command::new(&self.program)
            .arg(INTERNAL)
            .arg(name::SHIM)
            .arg(folder.path())
            .env_clear()
            .envs(self.armed.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }
}

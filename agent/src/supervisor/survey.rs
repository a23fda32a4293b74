//! What is known of a step, from its files and the kernel's locks.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::process::{self, Identity, Process, Survivor};
use super::record::{ExitRecord, StartRecord};
use crate::boottime::BootId;
use crate::durable;
use crate::places::StepFolder;

/// What is known of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Known {
    /// There is no start record: it may start any moment, if a shim was spawned.
    NotYetStarted,
    /// It never ran and never can.
    NeverStarted {
        /// For people.
        why: String,
    },
    /// Its shim lives.
    Running,
    /// Its shim saw how it ended.
    Ended(ExitRecord),
    /// It started, its shim is gone, and nobody saw how it ended.
    Gone {
        /// Processes of its session that live. Empty on another boot. A process that left the session is not found.
        survivors: Vec<Survivor>,
        /// Whether the machine has booted since: then nothing of it can live.
        other_boot: bool,
    },
}

impl Known {
    /// Whether it will not change by itself: never started, ended, or gone with nothing left.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self {
            Known::NotYetStarted | Known::Running => false,
            Known::NeverStarted { .. } | Known::Ended(_) => true,
            Known::Gone { survivors, .. } => survivors.is_empty(),
        }
    }
}

pub(super) fn survey(folder: &StepFolder) -> io::Result<Known> {
    let (shim, boot) = match StartRecord::read(folder)? {
        None => return Ok(Known::NotYetStarted),
        Some(StartRecord::NeverStarted { why, .. }) => return Ok(Known::NeverStarted { why }),
        Some(StartRecord::Started { shim, boot, .. }) => (shim, boot),
    };
    if let Some(record) = ExitRecord::read(folder)? {
        return Ok(Known::Ended(record));
    }
    if durable::is_locked(&File::open(folder.start())?)? {
        return Ok(Known::Running);
    }
    // The shim is gone, so what it wrote is there now.
    if let Some(record) = ExitRecord::read(folder)? {
        return Ok(Known::Ended(record));
    }
    let other_boot = boot != BootId::read()?;
    let left = if other_boot { Vec::new() } else { left_of(shim)? };
    Ok(Known::Gone { survivors: left.iter().map(Process::survivor).collect(), other_boot })
}

pub(super) fn signal_survivors(folder: &StepFolder, kill: bool) -> io::Result<usize> {
    let Some(StartRecord::Started { shim, boot, .. }) = StartRecord::read(folder)? else { return Ok(0) };
    if boot != BootId::read()? || durable::is_locked(&File::open(folder.start())?)? {
        return Ok(0);
    }
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    let mut signalled = 0;
    for process in left_of(shim)? {
        signalled += usize::from(signal_if_still(&process, signal)?);
    }
    Ok(signalled)
}

/// A handle of the shim, while its process is there: it can be read once the process has ended.
pub(super) fn handle_of_shim(folder: &StepFolder) -> Option<OwnedFd> {
    let Ok(Some(StartRecord::Started { shim, .. })) = StartRecord::read(folder) else { return None };
    let handle = pidfd_open(Pid::from_raw(shim.pid)?, PidfdFlags::empty()).ok()?;
    let now = Process::read(shim.pid).ok()??;
    (now.identity == shim).then_some(handle)
}

/// The handle is taken first. If the process is then still the one that was meant, the handle can only mean that one.
fn signal_if_still(process: &Process, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(process.identity.pid) else { return Ok(false) };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(false) };
    match Process::read(process.identity.pid)? {
        Some(now) if now.identity == process.identity && now.session == process.session => {
            Ok(pidfd_send_signal(&handle, signal).is_ok())
        }
        Some(_) | None => Ok(false),
    }
}

/// The living members of the session that the shim led. A session's number is not given to others while one lives; if
/// another process leads a session of that number now, ours has no members left.
fn left_of(shim: Identity) -> io::Result<Vec<Process>> {
    let members: Vec<Process> = process::all()?.into_iter().filter(|process| process.session == shim.pid).collect();
    let taken_over = members.iter().any(|process| process.identity.pid == shim.pid && process.identity != shim);
    Ok(if taken_over {
        Vec::new()
    } else {
        members.into_iter().filter(|process| process.is_alive() && process.identity.started >= shim.started).collect()
    })
}

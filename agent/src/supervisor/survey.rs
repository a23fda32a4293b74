//! What is known of a step, from its files and the kernel's locks.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::cgroup::Cgroup;
use super::namespaces;
use super::process::{self, Identity, Process, Survivor};
use super::record::{ExitRecord, Marks, StartRecord};
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
        /// Processes of it that live, as far as [`Sight`] reaches.
        survivors: Vec<Survivor>,
        /// How far that is.
        sight: Sight,
    },
}

/// How far the processes of a step without a shim are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All of them: they have a cgroup of their own.
    Cgroup,
    /// Those of its session. One that left the session is not found.
    Session,
    /// This machine has booted since: none can live.
    Booted,
    /// Another boot, and perhaps of another machine, or another pid namespace: none is found from here, wherever they live.
    Nothing,
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

pub(super) fn survey(folder: &StepFolder, here: &str) -> io::Result<Known> {
    let marks = match StartRecord::read(folder)? {
        None => return Ok(Known::NotYetStarted),
        Some(StartRecord::NeverStarted { why, .. }) => return Ok(Known::NeverStarted { why }),
        Some(StartRecord::Started { marks, .. }) => marks,
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
    let (left, sight) = left_of(&marks, here)?;
    Ok(Known::Gone { survivors: left.iter().map(Process::survivor).collect(), sight })
}

pub(super) fn signal_survivors(folder: &StepFolder, here: &str, kill: bool) -> io::Result<usize> {
    let Some(StartRecord::Started { marks, .. }) = StartRecord::read(folder)? else { return Ok(0) };
    if durable::is_locked(&File::open(folder.start())?)? {
        return Ok(0);
    }
    let (left, sight) = left_of(&marks, here)?;
    if let (true, Sight::Cgroup, Some(cgroup)) = (kill && !left.is_empty(), sight, marks.cgroup) {
        return Cgroup::at(cgroup).kill().map(|()| left.len());
    }
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    let mut signalled = 0;
    for process in left {
        signalled += usize::from(signal_if_still(&process, signal)?);
    }
    Ok(signalled)
}

/// Removes the step's cgroup, if there is nothing in it and its shim is gone. Whether it is gone.
pub(super) fn tidy(folder: &StepFolder) -> io::Result<bool> {
    match StartRecord::read(folder)? {
        Some(StartRecord::Started { marks: Marks { cgroup: Some(cgroup), .. }, .. }) => {
            if durable::is_locked(&File::open(folder.start())?)? {
                return Ok(false);
            }
            Cgroup::at(cgroup.clone()).remove()?;
            Ok(!cgroup.exists())
        }
        Some(StartRecord::Started { marks: Marks { cgroup: None, .. }, .. } | StartRecord::NeverStarted { .. })
        | None => Ok(true),
    }
}

/// A handle of the shim, while its process is there: it can be read once the process has ended.
pub(super) fn handle_of_shim(folder: &StepFolder) -> Option<OwnedFd> {
    let Ok(Some(StartRecord::Started { marks: Marks { shim, namespaces, .. }, .. })) = StartRecord::read(folder) else {
        return None;
    };
    if !namespaces::are_shared(namespaces.as_ref()) {
        return None;
    }
    let handle = pidfd_open(Pid::from_raw(shim.pid)?, PidfdFlags::empty()).ok()?;
    let now = Process::read(shim.pid).ok()??;
    (now.identity == shim).then_some(handle)
}

/// The shim's process id, where the shim is there and stands still. The lock tells that a shim lives, not that it does anything.
pub(super) fn standing_still(folder: &StepFolder) -> io::Result<Option<i32>> {
    let Some(StartRecord::Started { marks: Marks { shim, boot, namespaces, .. }, .. }) = StartRecord::read(folder)?
    else {
        return Ok(None);
    };
    if boot != BootId::read()? || !namespaces::are_shared(namespaces.as_ref()) {
        return Ok(None);
    }
    let now = Process::read(shim.pid)?;
    Ok(now.filter(|now| now.identity == shim && now.is_stopped()).map(|_| shim.pid))
}

/// Kills what lives below a process, as far as it is found now. Returns how many were found.
pub(super) fn kill_below(of: Pid) -> io::Result<usize> {
    let below = process::living_descendants(of.as_raw_pid())?;
    for process in &below {
        signal_if_still(process, Signal::KILL)?;
    }
    Ok(below.len())
}

/// The handle is taken first. If the process is then still the one that was meant, the handle can only mean that one.
pub(super) fn signal_if_still(process: &Process, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(process.identity.pid) else { return Ok(false) };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(false) };
    match Process::read(process.identity.pid)? {
        Some(now) if now.identity == process.identity && now.session == process.session => {
            Ok(pidfd_send_signal(&handle, signal).is_ok())
        }
        Some(_) | None => Ok(false),
    }
}

/// What lives of a step without a shim, as far as it is seen from `here`, a machine by its fingerprint.
fn left_of(marks: &Marks, here: &str) -> io::Result<(Vec<Process>, Sight)> {
    let Marks { shim, boot, machine, namespaces, cgroup } = marks;
    if *boot != BootId::read()? {
        let is_this_machine = !machine.is_empty() && machine == here;
        return Ok((Vec::new(), if is_this_machine { Sight::Booted } else { Sight::Nothing }));
    }
    if !namespaces::are_shared(namespaces.as_ref()) {
        return Ok((Vec::new(), Sight::Nothing));
    }
    match cgroup.clone().map(|path| Cgroup::at(path).processes()) {
        Some(Ok(processes)) => Ok((processes, Sight::Cgroup)),
        Some(Err(_)) | None => Ok((session_of(*shim)?, Sight::Session)),
    }
}

/// The living members of the session that the shim led. A session's number is not given to others while one lives; if
/// another process leads a session of that number now, ours has no members left.
fn session_of(shim: Identity) -> io::Result<Vec<Process>> {
    let members: Vec<Process> = process::all()?.into_iter().filter(|process| process.session == shim.pid).collect();
    let taken_over = members.iter().any(|process| process.identity.pid == shim.pid && process.identity != shim);
    Ok(if taken_over {
        Vec::new()
    } else {
        members.into_iter().filter(|process| process.is_alive() && process.identity.started >= shim.started).collect()
    })
}

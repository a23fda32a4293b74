//! A process of an adapter, with whatever it starts: it can be stopped anywhere, and never outlives its test.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::support::{Paused, eventually, pid};

/// Runs in a group of its own.
pub(crate) struct Run {
    child: Option<Child>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn is_good(&self) -> bool {
        self.status == Some(0)
    }

    /// By the exits that say that nothing was changed.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.status, Some(65 | 73 | 74 | 78))
    }

    /// Whether it says that it changed nothing, since the operation had been applied.
    pub(crate) fn says_before(&self) -> bool {
        self.is_good() && self.stderr.contains("applied before")
    }
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        Self { child: Some(command.process_group(0).spawn().unwrap()) }
    }

    /// To its end.
    pub(crate) fn whole(command: Command) -> Ended {
        Self::start(command).end()
    }

    /// Waits until it, or a process of it, has stopped itself, or it has ended.
    pub(crate) fn pause(&self) -> Paused {
        let child = self.child.as_ref().expect("not ended yet");
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        eventually("the process stops or ends", || match waitid(WaitId::Pid(pid(child)), options).unwrap() {
            Some(status) if status.stopped() => Some(Paused::Stopped),
            Some(_) => Some(Paused::Ended),
            None => any_stopped(child.id()).then_some(Paused::Stopped),
        })
    }

    pub(crate) fn resume(&self) {
        kill_process_group(pid(self.child.as_ref().expect("not ended yet")), Signal::CONT).unwrap();
    }

    pub(crate) fn end(mut self) -> Ended {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let process = pid(self.child.as_ref().expect("not ended yet"));
        eventually("the process ends", || waitid(WaitId::Pid(process), options).unwrap());
        let output = self.child.take().expect("not ended yet").wait_with_output().unwrap();
        Ended {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Not reaped yet, so the group can't be anybody else's.
            let _ = kill_process_group(pid(child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

/// Whether a process of that group is stopped.
fn any_stopped(group: u32) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.into_iter().any(|stat| {
        // pid (name) state parent group ...
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        fields.first() == Some(&"T") && fields.get(2).and_then(|field| field.parse().ok()) == Some(group)
    })
}

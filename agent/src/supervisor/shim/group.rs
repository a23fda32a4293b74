//! All processes of a step: the body's process group, what is in the step's cgroup, and what came to the shim as an orphan.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use holdfast_common::outcome::Exit;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process_group, pidfd_open, waitid,
};

use super::super::process::{self, Process};
use super::super::record::StopRequest;
use super::super::survey::signal_if_still;
use super::super::wait::{self, Arrivals};
use super::{Home, SIGNALLED};
use crate::durable::Spare;
use crate::places::StepFolder;

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long an orphan that ended may stay a zombie.
const REAP_EVERY: Duration = Duration::from_secs(1);

/// The processes of a step, found by three marks. The body is not reaped while this is used, so its group's number can't be
/// a stranger's.
pub(super) struct Group<'a> {
    leader: Pid,
    home: &'a Home,
    stop: Option<Stop>,
    killed: bool,
    signalled: Option<Spare>,
}

struct Stop {
    kill_at: Instant,
}

impl<'a> Group<'a> {
    /// That of a body which was just started.
    pub(super) fn led_by(child: &Child, signalled: Spare, home: &'a Home) -> io::Result<Self> {
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { leader, home, stop: None, killed: false, signalled: Some(signalled) })
    }

    /// Whether a stop signal was sent.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether SIGKILL was needed.
    pub(super) fn is_killed(&self) -> bool {
        self.killed
    }

    /// Acts on a stop meanwhile.
    pub(super) fn wait_for_leader(&mut self, folder: &StepFolder) -> io::Result<WaitIdStatus> {
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
            self.terminate();
            // For people only: that the request was acted on. The exit record tells it for good.
            let _ = self.signalled.take().map(|spare| spare.replace(&folder.signalled(), SIGNALLED));
            self.stop = Some(Stop { kill_at: Instant::now() + Duration::from(request.grace) });
        }
    }

    fn kill_when_due(&mut self) {
        if self.stop.as_ref().is_some_and(|stop| Instant::now() >= stop.kill_at) {
            self.kill();
            self.killed = true;
        }
    }

    /// After a stop nothing of the step may be left. A process that forks while the list is read can be missed in it,
    /// so an empty list is believed only after a SIGKILL, from which no fork of the group or the cgroup escapes.
    pub(super) fn empty_if_stopped(&mut self) {
        if self.stop.is_none() {
            return;
        }
        let mut swept = false;
        loop {
            reap_orphans(self.leader);
            // A list that can't be read proves nothing: look again.
            let is_empty = self.living().is_ok_and(|living| living.is_empty());
            match (is_empty, swept) {
                (true, true) => return,
                (true, false) => {
                    self.kill();
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

    /// The group is told as a whole, each other process through a handle of its own.
    fn terminate(&self) {
        // The unreaped leader keeps the group there; it may have no living member, which is as well.
        let _ = kill_process_group(self.leader, Signal::TERM);
        self.signal_others(Signal::TERM);
    }

    fn kill(&self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
        match self.home.cgroup.as_ref().map(|cgroup| cgroup.kill()) {
            Some(Ok(())) => {}
            // Kernels before 5.14 can't.
            Some(Err(_)) | None => self.signal_others(Signal::KILL),
        }
    }

    fn signal_others(&self, signal: Signal) {
        let group = self.leader.as_raw_pid();
        for process in self.living().unwrap_or_default().iter().filter(|process| process.group != group) {
            // What can't be signalled is found alive again.
            let _ = signal_if_still(process, signal);
        }
    }

    /// Every process of the step that lives, each once.
    fn living(&self) -> io::Result<Vec<Process>> {
        let (all, group) = (process::all()?, self.leader.as_raw_pid());
        let mut living = process::below(getpid().as_raw_pid(), &all);
        living.extend(all.into_iter().filter(|one| one.group == group && one.is_alive()));
        living.extend(self.in_cgroup()?);
        Ok(living.into_iter().map(|one| (one.identity.pid, one)).collect::<BTreeMap<_, _>>().into_values().collect())
    }

    fn in_cgroup(&self) -> io::Result<Vec<Process>> {
        self.home.cgroup.as_ref().map_or(Ok(Vec::new()), |cgroup| cgroup.processes())
    }

    /// What lives on of the step, once the body is reaped. Every orphan of it is a child of this process, so without children
    /// and with an empty cgroup there is none, and the list of all processes, which is long on a busy host, is not read. A list
    /// that can't be read is not empty.
    pub(super) fn survivors(&self) -> Vec<Process> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let has_children = !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD));
        let below = if has_children { process::living_descendants(getpid().as_raw_pid()) } else { Ok(Vec::new()) };
        let or_somebody = |found: io::Result<Vec<Process>>| found.unwrap_or_else(|_| vec![Process::unseen()]);
        let found = or_somebody(below).into_iter().chain(or_somebody(self.in_cgroup()));
        found.map(|one| (one.identity.pid, one)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// A kernel that bounds the step's memory kills the whole of it.
    pub(super) fn exit_of(&self, status: WaitIdStatus) -> Exit {
        let ours = [Signal::TERM.as_raw(), Signal::KILL.as_raw()];
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Exited(code),
            (None, Some(signal)) if signal == Signal::KILL.as_raw() && !self.killed && self.lacked_memory() => {
                Exit::OutOfMemory
            }
            (None, Some(signal)) => Exit::Signaled { signal, by_us: self.stop.is_some() && ours.contains(&signal) },
            (None, None) => Exit::Unknown,
        }
    }

    /// Whether the kernel has killed any of it for memory, as far as it counts that for the step.
    pub(super) fn lacked_memory(&self) -> bool {
        self.home.cgroup.as_ref().is_some_and(|cgroup| cgroup.killed_for_memory() > 0)
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

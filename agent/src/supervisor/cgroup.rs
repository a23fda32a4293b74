//! A cgroup of its own for each step, where the kernel's version 2 of them can be written.
//!
//! ```text
//! <the agent's own cgroup>/           or the folder that the configuration names
//!   holdfast/
//!     <attempt>.<step>/               the body and all that comes of it, whatever session it makes for itself
//! ```
//!
//! The shim makes it before the start record, which names it, goes in to start the body and comes out again: where it can't
//! go in, no body starts. So whatever lives of the body lives in there, and one that is gone was empty: the kernel
//! removes no other. Only a process that is let to write to other cgroups gets out.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;

use super::process::Process;
use crate::config::Limits;

/// What the kernel calls a file system of cgroups of version 2.
const MAGIC: u64 = 0x6367_7270;
/// The folder of all steps.
const STEPS: &str = "holdfast";
/// The agent's own cgroup where the unit says `DelegateSubgroup=agent`: the steps' folder is beside it.
const AGENT: &str = "agent";

/// The cgroup that this process is in.
pub(super) fn own() -> io::Result<PathBuf> {
    let (mounts, own) = (fs::read_to_string("/proc/self/mountinfo")?, fs::read_to_string("/proc/self/cgroup")?);
    path_of(&mounts, &own).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no cgroups of version 2 are mounted"))
}

/// `id parent device root mount-point options [fields] - type source options`, and `0::path`.
fn path_of(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = own.strip_suffix(" (deleted)").unwrap_or(own);
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        let is_below = below.components().all(|part| part != std::path::Component::ParentDir);
        (after.starts_with("cgroup2 ") && is_below).then(|| Path::new(at).join(below))
    })
}

fn is_of_cgroups(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|kind| kind == MAGIC))
}

/// Where the steps' cgroups are made.
#[derive(Clone, Debug)]
pub(super) struct Tree(PathBuf);

impl Tree {
    /// In or beside this process's own.
    pub(super) fn of_agent() -> io::Result<Self> {
        let own = own()?;
        let parent = own.parent().filter(|parent| own.ends_with(AGENT) && is_of_cgroups(parent));
        Self::below(parent.unwrap_or(&own))
    }

    /// In that cgroup.
    pub(super) fn below(cgroup: &Path) -> io::Result<Self> {
        if !is_of_cgroups(cgroup) {
            return Err(io::Error::other(format!("{} is no cgroup of version 2", cgroup.display())));
        }
        let steps = cgroup.join(STEPS);
        make(&steps)?;
        Ok(Self(steps))
    }

    /// Has the kernel count and bound these in each step's cgroup. Where it does not, it says why.
    pub(super) fn control(&self, controller: &str) -> io::Result<()> {
        let parent = self.0.parent().ok_or(io::ErrorKind::NotFound)?;
        for cgroup in [parent, &self.0] {
            write(&cgroup.join("cgroup.subtree_control"), &format!("+{controller}"))?;
        }
        Ok(())
    }

    /// That of one step. Not made yet.
    pub(super) fn of(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// One step's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// One that may be there.
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes it. One that stands from a shim that never came to its start record is as good; one with processes is not.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        make(path)?;
        let made = Self(path.to_owned());
        match made.is_empty()? {
            true => Ok(made),
            false => Err(io::Error::other(format!("there are processes in {}", path.display()))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Bounds it. Gives back what the kernel does not bound here.
    pub(super) fn bound(&self, limits: Limits) -> Limits {
        let set =
            |file: &str, bound: Option<u64>| bound.filter(|most| write(&self.0.join(file), &most.to_string()).is_err());
        let left = Limits { pids: set("pids.max", limits.pids), memory_bytes: set("memory.max", limits.memory_bytes) };
        // A step that lost a part of itself is no step any more.
        let _older_kernel_or_no_such_controller = write(&self.0.join("memory.oom.group"), "1");
        left
    }

    /// Runs something in there, so that what it starts is there from its first instant, and brings this process out again.
    /// Needs a process that does nothing else meanwhile. One that can't come out ends here, and what it started is found inside.
    pub(super) fn within<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let outside = own()?;
        enter(&self.0)?;
        let done = act();
        match enter(&outside) {
            Ok(()) => done,
            Err(_) => std::process::abort(),
        }
    }

    /// Whether no process is in it, or it is gone, which only an empty one can be. An error: it can't be told from here.
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        match fs::read_to_string(self.0.join("cgroup.events")) {
            Ok(text) => Ok(text.lines().any(|line| line == "populated 0")),
            Err(error) if is_gone(&error) && self.would_be_seen() => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Its living processes, without this one. None only if the kernel says that none is there: one that can't be listed counts,
    /// as [`Process::unseen`].
    pub(super) fn processes(&self) -> io::Result<Vec<Process>> {
        if self.is_empty()? {
            return Ok(Vec::new());
        }
        let mut listed = self.listed()?;
        if listed.is_empty() && !self.is_empty()? {
            listed.push(Process::unseen());
        }
        let me = rustix::process::getpid().as_raw_pid();
        listed.retain(|process| process.identity.pid != me);
        Ok(listed)
    }

    /// The line of a process of another pid namespace is `0`.
    fn listed(&self) -> io::Result<Vec<Process>> {
        let mut listed = Vec::new();
        self.each(&mut |cgroup| {
            let Some(text) = unless_gone(fs::read_to_string(cgroup.join("cgroup.procs")))? else { return Ok(()) };
            for line in text.lines() {
                match line.parse::<i32>() {
                    Ok(0) | Err(_) => listed.push(Process::unseen()),
                    Ok(pid) => listed.extend(Process::read(pid)?.filter(Process::is_alive)),
                }
            }
            Ok(())
        })?;
        Ok(listed)
    }

    /// Sends SIGKILL to all in it at once: no fork escapes.
    pub(super) fn kill(&self) -> io::Result<()> {
        unless_gone(write(&self.0.join("cgroup.kill"), "1")).map(drop)
    }

    /// How many processes the kernel has killed in it for memory. Where it does not bound memory: none.
    pub(super) fn killed_for_memory(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }

    /// Removes it if nothing is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.each(&mut |cgroup| match fs::remove_dir(cgroup) {
            Err(error) if is_gone(&error) || error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
            other => other,
        })
    }

    /// It and those that processes made in it, the innermost first.
    fn each(&self, act: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
        each(&self.0, act)
    }

    /// Whether this process looks at the place where it would be.
    fn would_be_seen(&self) -> bool {
        self.0.ancestors().skip(1).find(|path| path.exists()).is_some_and(is_of_cgroups)
    }
}

fn each(cgroup: &Path, act: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in unless_gone(fs::read_dir(cgroup))?.into_iter().flatten() {
        let Some(entry) = unless_gone(entry)? else { continue };
        if unless_gone(entry.file_type())?.is_some_and(|kind| kind.is_dir()) {
            each(&entry.path(), act)?;
        }
    }
    act(cgroup)
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn enter(cgroup: &Path) -> io::Result<()> {
    write(&cgroup.join("cgroup.procs"), "0")
}

/// These files take no truncation, and are never made.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// It was removed, before or while it was read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if is_gone(&error) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_where_version_2_is_mounted() {
        let first = "24 1 0:22 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids";
        let alone = "25 1 0:23 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
        let inner = "25 1 0:23 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let path = |mounts: &str, own: &str| path_of(mounts, own).map(|path| path.to_string_lossy().into_owned());
        let both = format!("{first}\n{alone}\n");
        assert_eq!(path(&both, "9:pids:/a\n0::/unit\n").as_deref(), Some("/sys/fs/cgroup/unit"));
        assert_eq!(path(&both, "0::/unit (deleted)").as_deref(), Some("/sys/fs/cgroup/unit"));
        assert_eq!(path(inner, "0::/box/in").as_deref(), Some("/sys/fs/cgroup/in"));
        assert_eq!(path(inner, "0::/other"), None, "it is not below what is mounted");
        assert_eq!(path(alone, "0::/../outside"), None);
        assert_eq!(path(first, "0::/"), None);
        assert_eq!(path(alone, "9:pids:/a"), None);
    }

    #[test]
    fn a_folder_of_another_kind_proves_nothing() {
        let folder = std::env::temp_dir().join(format!("holdfast-no-cgroup-{}", std::process::id()));
        assert!(Tree::below(&std::env::temp_dir()).is_err());
        assert!(Cgroup::at(folder).is_empty().is_err(), "it is missing, and not because it was empty");
    }
}

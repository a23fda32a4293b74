//! A test's own folder. Nothing of it is left: neither files nor the processes that live in it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// What the names of such folders begin with.
const PREFIX: &str = "holdfast-it-";
/// Keeps the folder when it is set.
const KEEP: &str = "HOLDFAST_KEEP";

/// A temporary folder. Its end kills every process that works in it or was started with it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        end_abandoned();
        let own = std::process::id();
        let path = std::env::temp_dir().join(format!("{PREFIX}{own}-{:08x}", rand::random::<u32>()));
        fs::create_dir(&path).expect("a new folder among the temporary files");
        Self { path: path.canonicalize().expect("it was just made") }
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.join(name);
        fs::write(&path, text).expect("a test's own folder can be written");
        path
    }

    /// Process ids of what works in it or was started with it, other than this process.
    #[must_use]
    pub fn processes(&self) -> Vec<i32> {
        all_processes().filter(|pid| self.is_home_of(*pid)).collect()
    }

    fn is_home_of(&self, pid: i32) -> bool {
        is_home_of(&self.path, pid)
    }

    /// Kills them all, and those that they started meanwhile.
    pub fn end_processes(&self) {
        let begun = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || begun.elapsed() > Duration::from_secs(10) {
                return;
            }
            for pid in left {
                self.end(pid);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Takes away the disks that a test mounted in it.
    fn unmount(&self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
        for point in points.filter(|point| point.starts_with(&self.path) && *point != self.path) {
            let _best_effort = std::process::Command::new("umount").arg("-l").arg(point).status();
        }
    }

    /// The descriptor is opened before the process is looked at again, so that no stranger with the same number is hit.
    fn end(&self, pid: i32) {
        let Some(process) = open(pid) else { return };
        if self.is_home_of(pid) {
            let _gone_already = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

/// The same of a folder that somebody else keeps, of those in such a state only, like `T`.
#[must_use]
pub fn processes_in_state(folder: &Path, state: char) -> Vec<i32> {
    let is_so = |pid: &i32| crate::process::state_of(pid.unsigned_abs()) == Some(state) && is_home_of(folder, *pid);
    all_processes().filter(is_so).collect()
}

/// Every other process.
fn all_processes() -> impl Iterator<Item = i32> {
    let own = getpid().as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(move |pid| *pid != own)
}

fn is_home_of(folder: &Path, pid: i32) -> bool {
    let works_here = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let names = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let path = folder.as_os_str().as_encoded_bytes();
        bytes.windows(path.len()).any(|window| window == path)
    };
    works_here || names("cmdline") || names("environ")
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Ends what tests have left that were killed themselves: a folder names the process that made it.
fn end_abandoned() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let owner = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX)?.split_once('-'));
        let owner = owner.and_then(|(owner, _)| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            drop(Folder { path });
        }
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.end_processes();
        self.unmount();
        if std::env::var_os(KEEP).is_none() {
            let _best_effort = fs::remove_dir_all(&self.path);
        }
    }
}

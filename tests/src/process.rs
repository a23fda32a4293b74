//! One process under test, in a process group of its own, with its output in a file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait;

/// How to start one.
#[derive(Clone, Debug)]
pub struct Launch {
    /// For messages.
    pub name: String,
    /// What runs before the program, like `strace -f -o FILE`. Mostly empty.
    pub wrapper: Vec<String>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment beside this process's own, from which everything `HOLDFAST_*` is taken out.
    pub environment: BTreeMap<String, String>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Where its output goes, appended.
    pub log: PathBuf,
}

impl Launch {
    fn command(&self) -> Command {
        let words: Vec<&str> = self.wrapper.iter().map(String::as_str).collect();
        let mut command = match words.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log).expect("a log in the test's folder");
        let also = log.try_clone().expect("a second descriptor of the log");
        without_holdfast(&mut command);
        command.args(&self.arguments).envs(&self.environment).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log).stderr(also).process_group(0);
        command
    }
}

/// Takes what the environment of the test run says about Holdfast away from a process under test.
pub fn without_holdfast(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"HOLDFAST_") {
            command.env_remove(name);
        }
    }
}

/// A process that was started. Its end kills its group.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    log: PathBuf,
}

impl Process {
    /// Starts it.
    #[must_use]
    pub fn start(launch: &Launch) -> Self {
        let child = launch.command().spawn().unwrap_or_else(|error| panic!("could not start {}: {error}", launch.name));
        Self { name: launch.name.clone(), child, ended: None, log: launch.log.clone() }
    }

    /// Its process id; of the wrapper, where there is one.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("it is a child of this process");
        }
        self.ended
    }

    /// Waits for its end.
    pub async fn ended(&mut self, bound: Duration) -> ExitStatus {
        let what = format!("{} to end", self.name);
        wait::until(&what, bound, async || self.status().ok_or_else(|| "still there".to_owned())).await
    }

    /// `kill -9`. Returns when it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if self.ended.is_none() {
            self.ended = Some(self.child.wait().expect("it is a child of this process"));
        }
    }

    /// SIGTERM.
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// SIGSTOP. Returns when it has stopped.
    pub async fn freeze(&mut self) {
        self.signal(Signal::STOP);
        let pid = self.pid();
        wait::until_true(&format!("{} to stop", self.name), wait::SOON, || state_of(pid) == Some('T')).await;
    }

    /// SIGCONT.
    pub fn thaw(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Not yet waited for, so the number is still its own.
    fn signal(&mut self, signal: Signal) {
        if self.status().is_some() {
            return;
        }
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a child's number");
        let _just_gone = kill_process_group(pid, signal);
    }

    /// The last lines of its output.
    #[must_use]
    pub fn last_words(&self, lines: usize) -> String {
        last_lines(&self.log, lines)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// SIGSTOP to a process that is not this one's child.
pub fn pause(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _just_gone = kill_process(pid, Signal::STOP);
    }
}

/// SIGCONT to a process that is not this one's child.
pub fn resume(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _just_gone = kill_process(pid, Signal::CONT);
    }
}

/// `kill -9` of a process that is not this one's child, like a shim.
pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _just_gone = kill_process(pid, Signal::KILL);
    }
}

/// The last lines of a file.
#[must_use]
pub fn last_lines(path: &Path, lines: usize) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Like `R`, `S`, `T`, `Z`; `None` where there is no such process.
#[must_use]
pub fn state_of(pid: u32) -> Option<char> {
    field(pid, 0)?.chars().next()
}

/// When it was started, in the kernel's ticks since boot: with the number, it names one process of this boot.
#[must_use]
pub fn start_of(pid: u32) -> Option<u64> {
    field(pid, 19)?.parse().ok()
}

/// A field of `/proc/PID/stat` after the name in parentheses, which may hold anything.
fn field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(index).map(str::to_owned)
}

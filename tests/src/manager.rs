//! A service manager for one agent: it speaks the notify and watchdog protocols, ends the main process alone, starts it again
//! when it has ended, and can put another program in its place.
//!
//! ```text
//!   manager ── NOTIFY_SOCKET, WATCHDOG_USEC ──▶ main process ── shims, which no signal of the manager reaches
//!      ◀────── READY, WATCHDOG, STATUS ────────┘
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::without_holdfast;
use crate::wait;

/// How often it looks.
const PACE: Duration = Duration::from_millis(10);

/// What to keep running.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The program; replaced by [`Manager::upgrade`].
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment beside this process's own, from which everything `HOLDFAST_*` is taken out.
    pub environment: BTreeMap<String, String>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Where its output goes, appended.
    pub log: PathBuf,
    /// Where it is heard.
    pub socket: PathBuf,
    /// A request to start it again: a file that whoever can write there makes, as by the manager's own command.
    pub restart: PathBuf,
    /// Within what time it must say that it lives.
    pub watchdog: Duration,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every word, in order, of all starts; each start begins with `START`.
    pub words: Vec<String>,
    /// How often it was started.
    pub starts: u32,
    /// How often it was ended for a missed watchdog.
    pub missed: u32,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often a main process ended.
    pub ends: u32,
}

impl Seen {
    /// Whether the last start has said that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.last_start().iter().any(|word| word == "READY=1")
    }

    /// The last status of the last start.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        self.last_start().iter().rev().find_map(|word| word.strip_prefix("STATUS="))
    }

    /// What was said since the last start.
    #[must_use]
    pub fn last_start(&self) -> &[String] {
        let at = self.words.iter().rposition(|word| word == "START").map_or(0, |at| at + 1);
        &self.words[at..]
    }
}

/// It runs until it is dropped, and then takes its main process with it.
#[derive(Debug)]
pub struct Manager {
    unit: Unit,
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
    /// Set: the main process stays down when it ends.
    down: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Manager {
    /// Starts the unit, and keeps it running.
    #[must_use]
    pub fn start(unit: Unit) -> Self {
        let socket = UnixDatagram::bind(&unit.socket).expect("a socket in the test's folder");
        socket.set_nonblocking(true).expect("a socket");
        let (seen, over, down) = (Arc::default(), Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let keeper = Keeper {
            unit: unit.clone(),
            seen: Arc::clone(&seen),
            over: Arc::clone(&over),
            down: Arc::clone(&down),
            socket,
        };
        let thread = Some(std::thread::spawn(move || keeper.keep()));
        Self { unit, seen, over, down, thread }
    }

    /// What was seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    /// Waits until the unit was started so often and is ready.
    pub async fn until_ready(&self, starts: u32) -> Seen {
        wait::until(&format!("start {starts} to be ready"), wait::SOON, async || {
            let seen = self.seen();
            if seen.starts >= starts && seen.is_ready() { Ok(seen) } else { Err(format!("{seen:?}")) }
        })
        .await
    }

    /// Waits until what was seen is so.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Seen) -> bool) -> Seen {
        wait::until(what, wait::SOON, async || {
            let seen = self.seen();
            if is_so(&seen) { Ok(seen) } else { Err(format!("{seen:?}")) }
        })
        .await
    }

    /// SIGTERM to the main process alone. It is started again when it has ended.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGTERM to the main process alone, and it stays down when it has ended.
    pub fn stop(&self) {
        self.down.store(true, Ordering::SeqCst);
        self.terminate();
    }

    /// Starts it again after [`Manager::stop`].
    pub fn start_again(&self) {
        self.down.store(false, Ordering::SeqCst);
    }

    /// `kill -9` of the main process alone.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Puts another program in the place of the old one by a rename, as packages do: another inode under the same path.
    pub fn upgrade(&self, from: &Path) {
        let next = self.unit.program.with_extension("next");
        fs::copy(from, &next).expect("a copy of the program");
        fs::rename(&next, &self.unit.program).expect("one rename");
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = lock(&self.seen).pid {
            send(pid, signal);
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _its_panic_was_told = thread.join();
        }
    }
}

struct Keeper {
    unit: Unit,
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
    socket: UnixDatagram,
}

impl Keeper {
    fn keep(&self) {
        while !self.over.load(Ordering::SeqCst) {
            if self.down.load(Ordering::SeqCst) {
                std::thread::sleep(PACE);
                continue;
            }
            let mut child = self.spawn();
            self.watch(&mut child);
            let mut seen = lock(&self.seen);
            seen.pid = None;
            seen.ends += 1;
        }
    }

    fn spawn(&self) -> Child {
        let Unit { program, arguments, environment, folder, log, socket, watchdog, .. } = &self.unit;
        let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log in the test's folder");
        let mut command = Command::new(program);
        without_holdfast(&mut command);
        command.args(arguments).envs(environment).current_dir(folder).process_group(0);
        command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", watchdog.as_micros().to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second descriptor")).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("could not start {}: {error}", program.display()));
        let mut seen = lock(&self.seen);
        seen.starts += 1;
        seen.words.push("START".to_owned());
        seen.pid = Some(child.id());
        child
    }

    /// Until it has ended. The number is its own until it was waited for, which happens here alone.
    fn watch(&self, child: &mut Child) {
        let mut fed = None;
        loop {
            for word in self.heard() {
                if word == "READY=1" || (word == "WATCHDOG=1" && fed.is_some()) {
                    fed = Some(Instant::now());
                }
                lock(&self.seen).words.push(word);
            }
            if child.try_wait().expect("it is a child of this process").is_some() {
                return;
            }
            if self.over.load(Ordering::SeqCst) {
                send(child.id(), Signal::KILL);
            } else if fed.is_some_and(|at| at.elapsed() > self.unit.watchdog) {
                fed = None;
                lock(&self.seen).missed += 1;
                send(child.id(), Signal::ABORT);
            } else if fs::remove_file(&self.unit.restart).is_ok() {
                send(child.id(), Signal::TERM);
            }
            std::thread::sleep(PACE);
        }
    }

    fn heard(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let mut words = Vec::new();
        while let Ok(length) = self.socket.recv(&mut bytes) {
            words.extend(String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned));
        }
        words
    }
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _just_gone = kill_process(pid, signal);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

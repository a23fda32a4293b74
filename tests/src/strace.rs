//! What a process asked of the kernel, read from `strace`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::process::{Launch, Process};
use crate::wait;

/// Bytes that TLS 1.3 adds to what one record holds.
const TLS_OVERHEAD: u64 = 22;
/// Sizes of the HTTP/2 frames that keep a connection going: an acknowledgement of settings, a window update, a ping.
const CONTROL_FRAMES: [u64; 3] = [9, 13, 17];

/// Whether `strace` is there. It belongs to the tests: only who may not trace goes without it.
///
/// # Panics
/// As root, where it is missing.
#[must_use]
pub fn is_there() -> bool {
    let works = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    assert!(works || !rustix::process::geteuid().is_root(), "strace is missing or may not trace: see ./test");
    works
}

/// Whether this machine lets us trace; says how many tests it skips where it does not.
#[must_use]
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
pub fn can_be_had(tests: usize) -> bool {
    let can = is_there();
    if !can {
        eprintln!("SKIPPED: {tests} tests need strace");
    }
    can
}

/// What runs before a program so that its writes and syncs are written to that file.
#[must_use]
pub fn wrapper(file: &Path) -> Vec<String> {
    let calls = "trace=fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg";
    let file = file.to_str().expect("a test's paths are plain text");
    ["strace", "-f", "-ttt", "-yy", "-s", "0", "-e", calls, "-o", file].map(str::to_owned).into()
}

/// What becomes of every sync of a process from now on, as long as the answer lives, and no longer.
#[derive(Clone, Copy, Debug)]
pub enum Syncs {
    /// They fail.
    Fail,
    /// They hang, as on a disk that answers no more.
    Hang,
}

/// Does that to a running process, and writes its syncs and writes to that file, and what `strace` says beside it.
pub async fn attach(syncs: Syncs, pid: u32, file: &Path) -> Process {
    const WHOLE_TEST: &str = "inject=fsync,fdatasync:delay_enter=600000000";
    let inject = match syncs {
        Syncs::Fail => "inject=fsync,fdatasync:error=EIO",
        Syncs::Hang => WHOLE_TEST,
    };
    let (calls, pid) = ("trace=fsync,fdatasync,pwrite64", pid.to_string());
    let output = file.to_str().expect("a test's paths are plain text");
    let arguments = ["-f", "-ttt", "-yy", "-s", "0", "-e", calls, "-e", inject, "-o", output, "-p", &pid];
    let log = file.with_extension("strace.log");
    let process = Process::start(&Launch {
        name: format!("strace of process {pid}"),
        wrapper: Vec::new(),
        program: "strace".into(),
        arguments: arguments.map(str::to_owned).into(),
        environment: std::collections::BTreeMap::new(),
        folder: file.parent().expect("it is in a folder").to_owned(),
        log: log.clone(),
    });
    wait::until_true("strace to be attached", wait::SOON, || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("attached"))
    })
    .await;
    process
}

/// An instant on the clock that traces show.
#[must_use]
pub fn mark() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970")
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it began.
    pub at: Duration,
    /// Its name.
    pub name: String,
    /// The file or socket of its first argument.
    pub on: String,
    /// What it gave, like the bytes that were written; `None` where it did not return.
    pub result: Option<i64>,
    /// Its line, and the line at which it returned.
    entered: usize,
    left: Option<usize>,
}

impl Call {
    /// A sync of a file whose path ends so, that did not fail.
    #[must_use]
    pub fn is_sync_of(&self, end: &str) -> bool {
        self.is_sync() && self.on.ends_with(end) && self.result == Some(0)
    }

    /// A sync of anything, also one that failed.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        matches!(self.name.as_str(), "fsync" | "fdatasync")
    }

    /// A write to a TCP socket that says something: not one of the frames that keep a connection going.
    #[must_use]
    pub fn is_said(&self) -> bool {
        let writes = matches!(self.name.as_str(), "write" | "writev" | "sendto" | "sendmsg");
        writes && self.on.starts_with("TCP") && !is_control(self.size())
    }

    fn size(&self) -> u64 {
        self.result.and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
    }
}

/// Whether so many bytes can be nothing but control frames in one record, or an alert of TLS itself.
fn is_control(size: u64) -> bool {
    fn sums(rest: u64) -> bool {
        rest == 0 || CONTROL_FRAMES.iter().any(|frame| rest >= *frame && sums(rest - frame))
    }
    const ALERT: u64 = 2;
    size <= TLS_OVERHEAD + ALERT || (size < 72 && sums(size - TLS_OVERHEAD))
}

/// A trace, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Every call.
    pub calls: Vec<Call>,
}

impl Trace {
    /// Reads it. To be called when the traced process has ended.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_default();
        let mut calls: Vec<Call> = Vec::new();
        let mut unfinished: HashMap<&str, usize> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let Some((pid, at, rest)) = head(line) else { continue };
            if rest.starts_with("<... ") {
                if let Some(call) = unfinished.remove(pid).and_then(|index| calls.get_mut(index)) {
                    call.result = result(rest);
                    call.left = Some(number);
                }
                continue;
            }
            let Some(mut call) = call(at, rest, number) else { continue };
            if rest.ends_with("<unfinished ...>") {
                unfinished.insert(pid, calls.len());
            } else {
                call.result = result(rest);
                call.left = Some(number);
            }
            calls.push(call);
        }
        Self { calls }
    }

    /// Without what was said on other sockets than the first: an agent's session comes before its outputs.
    #[must_use]
    pub fn of_first_socket(mut self) -> Self {
        let first = self.calls.iter().find(|call| call.is_said()).map(|call| call.on.clone());
        self.calls.retain(|call| !call.is_said() || Some(&call.on) == first.as_ref());
        self
    }

    /// Whether the first thing that was said on a socket after the mark was said after a sync of such a file, which also
    /// began after the mark.
    ///
    /// # Errors
    /// What is there instead.
    pub fn says_after_sync(&self, mark: Duration, file: &str) -> Result<(), String> {
        let after: Vec<&Call> = self.calls.iter().filter(|call| call.at >= mark).collect();
        let said = after.iter().find(|call| call.is_said()).ok_or("nothing was said")?;
        let synced = |call: &&&Call| call.is_sync_of(file) && call.left.is_some_and(|left| left < said.entered);
        match after.iter().find(synced) {
            Some(_) => Ok(()),
            None => Err(format!("{} bytes were said on {} before any sync of {file}", said.size(), said.on)),
        }
    }
}

fn head(line: &str) -> Option<(&str, Duration, &str)> {
    let (pid, rest) = line.split_once(' ')?;
    let (at, rest) = rest.trim_start().split_once(' ')?;
    Some((pid, Duration::from_secs_f64(at.parse().ok()?), rest))
}

fn call(at: Duration, text: &str, line: usize) -> Option<Call> {
    let (name, arguments) = text.split_once('(')?;
    let first = arguments.split([',', ')', ' ']).next()?;
    let on = first.split_once('<').map(|(_, on)| on.strip_suffix('>').unwrap_or(on)).unwrap_or_default();
    let (name, on) = (name.to_owned(), on.to_owned());
    Some(Call { at, name, on, result: None, entered: line, left: None })
}

fn result(text: &str) -> Option<i64> {
    let (_, result) = text.rsplit_once(" = ")?;
    result.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
10 100.000100 fdatasync(5</d/holdfast.db-wal>) = 0
11 100.000200 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\"..., 35, MSG_NOSIGNAL, NULL, 0) = 35
10 100.000300 fdatasync(5</d/holdfast.db-wal> <unfinished ...>
11 100.000400 writev(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, [...], 2) = 150
10 100.000500 <... fdatasync resumed>) = 0
11 100.000600 write(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\"..., 200 <unfinished ...>
10 100.000700 fsync(5</d/holdfast.db-wal>) = -1 EIO (Input/output error) (INJECTED)
11 100.000800 <... write resumed>) = 200
";

    fn trace() -> Trace {
        let file = std::env::temp_dir().join(format!("strace-{:016x}", rand::random::<u64>()));
        fs::write(&file, TRACE).expect("a temporary file");
        let trace = Trace::read(&file);
        fs::remove_file(&file).expect("it was just made");
        trace
    }

    #[test]
    fn calls_are_read_also_where_others_come_in_between() {
        let trace = trace();
        let results: Vec<_> = trace.calls.iter().map(|call| call.result).collect();
        assert_eq!(results, [Some(0), Some(35), Some(0), Some(150), Some(200), Some(-1)]);
        assert_eq!(trace.calls[3].on, "TCP:[127.0.0.1:1->127.0.0.1:2]");
        assert!(trace.calls[3].is_said() && !trace.calls[1].is_said(), "a window update says nothing");
        assert!(trace.calls[0].is_sync_of("-wal") && !trace.calls[5].is_sync_of("-wal"), "a failed sync is none");
    }

    #[test]
    fn what_is_said_while_a_sync_is_under_way_is_said_before_it() {
        let micros = |micros| Duration::from_secs(100) + Duration::from_micros(micros);
        assert_eq!(trace().says_after_sync(micros(50), "holdfast.db-wal"), Ok(()));
        assert!(trace().says_after_sync(micros(250), "holdfast.db-wal").is_err());
        assert!(trace().says_after_sync(micros(650), "holdfast.db-wal").is_err(), "nothing was said");
    }

    #[test]
    fn only_small_sums_of_control_frames_are_taken_for_them() {
        assert!([24, 31, 35, 39, 44, 48, 52].into_iter().all(is_control));
        assert!([42, 80, 150, 345].into_iter().all(|size| !is_control(size)));
    }
}

//! What agents leave running.
//!
//! A step's shim outlives its agent by design. Dev makes itself the one that orphans below it fall to, so at its end it
//! finds them among its own children, where a process id can't have been given to anybody else.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

/// How long a leftover has between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(50);

/// Makes this process inherit the orphans below it.
pub(super) fn inherit() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// A process that was left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pid: Pid,
    /// Its command line, cut to what a person reads.
    pub(super) command: String,
}

/// Ends all that is left and tells what it was. To be called when every child that dev started has ended.
pub(super) async fn end() -> Vec<Leftover> {
    let mut told = Vec::new();
    let begun = tokio::time::Instant::now();
    loop {
        // What a shim ran falls to this process when the shim ends, so it takes several rounds.
        let left = children();
        if left.is_empty() {
            return told;
        }
        let signal = if begun.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
        for leftover in left {
            let _ = rustix::process::kill_process(leftover.pid, signal);
            if !told.contains(&leftover) {
                told.push(leftover);
            }
        }
        tokio::time::sleep(PACE).await;
    }
}

/// The living children of this process. Dead ones are cleared away.
fn children() -> Vec<Leftover> {
    let own = rustix::process::getpid();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| parent(*number) == Some(own.as_raw_nonzero().get()))
        .filter_map(Pid::from_raw)
        .filter(|pid| is_alive(*pid))
        .map(|pid| Leftover { pid, command: command_line(pid) })
        .collect()
}

fn is_alive(pid: Pid) -> bool {
    matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

/// The fourth field; the second is a name in parentheses that may hold anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(pid: Pid) -> String {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    holdfast_common::text::one_line(text.trim()).chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_orphan_is_found_told_and_ended() {
        inherit().expect("any process may");
        // The shell ends at once and leaves one that does not listen to SIGTERM.
        let orphan = ["-c", "(trap '' TERM; echo up; exec sleep 1000 >/dev/null 2>&1) &"];
        let output = tokio::process::Command::new("sh").args(orphan).output().await.expect("a shell");
        assert_eq!(output.stdout, b"up\n");
        let told = end().await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(children().is_empty());
    }
}

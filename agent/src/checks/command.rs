//! A command that exits with 0 is healthy. It runs like a step: an argv without a shell, in the environment and folder of the
//! check, which has nothing of the agent's.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use holdfast_common::text::{bounded, one_line};
use rustix::process::{WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};

use crate::supervisor::empty_below_this_process;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long what it wrote is waited for after it ended: a child of it may hold the pipe open.
const DRAIN: Duration = Duration::from_millis(200);
/// As much of its standard error is read; the rest is thrown away.
const KEPT_BYTES: usize = 4096;
/// Longest last line that goes into a reason.
const LINE_BYTES: usize = 200;

/// What a look leaves behind comes to this process, which can then find it.
pub(super) fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)
}

/// Runs it once. Stays in the check's own process group, so that a stop reaches it; nothing of it is left afterwards.
pub(super) fn look(argv: &[String], bound: Duration) -> Result<(), String> {
    let (program, arguments) = argv.split_first().ok_or("the command is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start {program:?}: {error}"))?;
    let said = collect(&mut child);
    let ended = wait(&mut child, Instant::now() + bound);
    let said = match &ended {
        Ok(Some(status)) if !status.success() => said.recv_timeout(DRAIN).unwrap_or_default(),
        Ok(Some(_) | None) | Err(_) => String::new(),
    };
    let cleared = empty_below_this_process();
    reap();
    match ended.and_then(|status| cleared.map(|()| status)) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(format!("{}{said}", words(status))),
        Ok(None) => Err(super::no_answer(bound)),
        Err(error) => Err(format!("could not wait for {program:?}: {error}")),
    }
}

fn words(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit {code}"),
        None => status.to_string(),
    }
}

/// The last line that it writes to standard error, as the end of a sentence.
fn collect(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                let surplus = kept.len().saturating_sub(KEPT_BYTES);
                kept.drain(..surplus);
            }
            let text = String::from_utf8_lossy(&kept);
            let line = text.lines().rfind(|line| !line.trim().is_empty()).map(one_line);
            // Nobody waits any more after the bound.
            let _ = sender.send(line.map(|line| format!(": {}", bounded(&line, LINE_BYTES))).unwrap_or_default());
        });
    }
    receiver
}

/// `None` when it did not end in time.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            empty_below_this_process()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Takes the ended children of this process, adopted ones too. Only while no [`Child`] is waited for.
fn reap() {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, options) {}
}

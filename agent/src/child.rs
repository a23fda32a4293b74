//! A child of a known length of life: its output is read up to a bound, and at its time it is killed with its group.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long output is waited for after the child itself ended: a child of it may hold the pipe open.
const DRAIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How it ended, and what it wrote, as far as the bounds let it.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// What may be kept of each stream, in bytes; what is more is read and thrown away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) stdout: usize,
    pub(crate) stderr: usize,
}

/// Why there is no end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("could not run it")]
    Run(#[from] io::Error),
    #[error("it did not end within {} s", .0.as_secs_f32())]
    Timeout(Duration),
}

/// Runs it in a group of its own. Blocks until it ended or was killed.
pub(crate) fn output(command: &mut Command, bounds: Bounds, timeout: Duration) -> Result<Output, Error> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let stdout = Stream::read(child.stdout.take().expect("stdout was asked for"), bounds.stdout);
    let stderr = Stream::read(child.stderr.take().expect("stderr was asked for"), bounds.stderr);
    let status = wait(&mut child, timeout)?;
    Ok(Output { status, stdout: stdout.finish(), stderr: stderr.finish() })
}

/// Runs it in our own group, for as long as it takes, with our own standard error. What it wrote to its standard output comes
/// with its end.
pub(crate) fn answer(command: &mut Command, bound: usize) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let stdout = Stream::read(child.stdout.take().expect("stdout was asked for"), bound);
    let status = child.wait()?;
    Ok((status, stdout.finish()))
}

/// Read to the end in a thread of its own, so that a full pipe never blocks the child.
struct Stream {
    kept: Arc<Mutex<Vec<u8>>>,
    finished: mpsc::Receiver<()>,
}

impl Stream {
    fn read(mut pipe: impl Read + Send + 'static, bound: usize) -> Self {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let (finished, receiver) = mpsc::channel();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = bound.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(&buffer[..room]);
            }
            // Nobody waits any more after the bound.
            let _ = finished.send(());
        });
        Self { kept, finished: receiver }
    }

    /// Its end or the bound, whichever comes first: both let us look at what is there.
    fn finish(self) -> Vec<u8> {
        let _ = self.finished.recv_timeout(DRAIN);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn wait(child: &mut Child, timeout: Duration) -> Result<ExitStatus, Error> {
    let end = Instant::now() + timeout;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= end {
            kill_all(child);
            child.wait()?;
            return Err(Error::Timeout(timeout));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The child is not reaped yet, so its group can't be anybody else's.
fn kill_all(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

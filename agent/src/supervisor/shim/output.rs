//! Copies a body's output to a file, with a bound and without known secrets. The body is never blocked: what is too much is read
//! and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Instant;

use super::super::record::Written;
use crate::secrets::Redactor;

/// Opens an output file, made if it is not there.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// One output on its way to its file.
pub(super) struct Copy {
    file: File,
    written: Arc<Mutex<Written>>,
    finished: mpsc::Receiver<()>,
}

impl Copy {
    /// Reads the pipe to its end in a thread of its own.
    pub(super) fn start(
        mut pipe: impl Read + Send + 'static,
        file: File,
        bound: u64,
        mut redactor: Redactor,
    ) -> io::Result<Self> {
        let mut sink = file.try_clone()?;
        let written = Arc::new(Mutex::new(Written { held_open: true, ..Written::default() }));
        let shared = Arc::clone(&written);
        let (sender, finished) = mpsc::channel();
        std::thread::Builder::new().spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => {
                        let clean = redactor.next(&buffer[..count]);
                        keep(&mut sink, &clean, bound, redactor.redacted(), &shared);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            keep(&mut sink, &redactor.end(), bound, redactor.redacted(), &shared);
            lock(&shared).held_open = false;
            // Nobody waits any more after the bound.
            let _ = sender.send(());
        })?;
        Ok(Self { file, written, finished })
    }

    /// Waits for the end of the output, at most until then, and makes the file stay. What was cut is only counted: the file
    /// holds the output and nothing else, so that offsets in it are the output's.
    pub(super) fn finish(self, until: Instant) -> Written {
        let _ = self.finished.recv_timeout(until.saturating_duration_since(Instant::now()));
        let written = *lock(&self.written);
        if written.kept > 0 || written.cut > 0 {
            let _ = self.file.sync_all();
        }
        written
    }
}

/// What can't be written (a full disk) is cut too.
fn keep(sink: &mut File, bytes: &[u8], bound: u64, redacted: u64, written: &Mutex<Written>) {
    let mut written = lock(written);
    written.redacted = redacted;
    let length = bytes.len() as u64;
    let room = if written.cut > 0 { 0 } else { bound.saturating_sub(written.kept).min(length) };
    let room = usize::try_from(room).expect("not more than the buffer has");
    let kept = write(sink, &bytes[..room]);
    written.kept += kept;
    written.cut += length - kept;
}

/// How many bytes are in the file: on a full disk it may be a part.
fn write(sink: &mut File, bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => break,
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    (bytes.len() - rest.len()) as u64
}

fn lock(written: &Mutex<Written>) -> std::sync::MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

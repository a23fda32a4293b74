//! A log that nobody reads holds nobody up.
//!
//! Standard error may be a pipe or a socket whose reader is stuck, and whoever logs may be the thread that heartbeats come from. So
//! each piece is written only while there is room for it; a record that finds none for a moment is lost, and counted in the next one
//! that is read.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A pipe that is said to have room has it for so many bytes.
const PIECE: usize = 4096;
/// How long a reader may take before its records are lost; none, once it has kept somebody waiting.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What became of the records before.
#[derive(Debug, Default)]
pub(super) struct Unread {
    lost: u64,
    /// The last one was written in part.
    torn: bool,
}

/// Of the process's standard error.
pub(super) static STDERR: Mutex<Unread> = Mutex::new(Unread { lost: 0, torn: false });

/// Writes records, or loses them.
pub(super) struct Patient<W> {
    to: W,
    unread: &'static Mutex<Unread>,
    json: bool,
}

impl<W: Write + AsFd> Patient<W> {
    pub(super) fn new(to: W, unread: &'static Mutex<Unread>, json: bool) -> Self {
        Self { to, unread, json }
    }

    fn put(&mut self, record: &[u8], unread: &mut Unread) -> io::Result<()> {
        let mut written = 0;
        for piece in record.chunks(PIECE) {
            let patience = if unread.lost == 0 { PATIENCE } else { Timespec { tv_sec: 0, tv_nsec: 0 } };
            if !has_room(&self.to, &patience) {
                unread.lost += 1;
                unread.torn |= written > 0;
                return Ok(());
            }
            self.to.write_all(piece)?;
            written += piece.len();
        }
        Ok(())
    }

    fn note(&self, unread: &Unread) -> String {
        let Unread { lost, torn } = unread;
        let begin = if *torn { "\n" } else { "" };
        let what = "records of this log were lost: nobody read it";
        match self.json {
            true => format!("{begin}{{\"level\":\"WARN\",\"message\":\"{what}\",\"lost\":{lost}}}\n"),
            false => format!("{begin} WARN {lost} {what}\n"),
        }
    }
}

impl<W: Write + AsFd> Write for Patient<W> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let mut unread: MutexGuard<'_, Unread> = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.lost > 0 && has_room(&self.to, &Timespec { tv_sec: 0, tv_nsec: 0 }) {
            self.to.write_all(self.note(&unread).as_bytes())?;
            *unread = Unread::default();
        }
        self.put(record, &mut unread)?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// What can't be asked is written to, as if there were no such question.
fn has_room(to: &impl AsFd, patience: &Timespec) -> bool {
    let mut asked = [PollFd::new(to, PollFlags::OUT)];
    match poll(&mut asked, Some(patience)) {
        Ok(0) => false,
        Ok(_) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_log_that_nobody_reads_keeps_nobody_waiting_and_tells_what_was_lost() {
        static UNREAD: Mutex<Unread> = Mutex::new(Unread { lost: 0, torn: false });
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut log = Patient::new(File::from(std::os::fd::OwnedFd::from(writer)), &UNREAD, false);
        let record = format!("{}\n", "x".repeat(10_000));
        let begun = Instant::now();
        for _ in 0..1_000 {
            log.write_all(record.as_bytes()).expect("it is taken");
        }
        // One moment of patience, and none after it.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let lost = UNREAD.lock().expect("no test panics with it").lost;
        assert!(lost > 900, "{lost} were lost");

        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            File::from(std::os::fd::OwnedFd::from(reader)).read_to_string(&mut text).map(|_| text)
        });
        let told = |log: &mut Patient<File>| {
            log.write_all(b"again\n").expect("it is taken");
            UNREAD.lock().expect("no test panics with it").lost == 0
        };
        let bound = Instant::now() + Duration::from_secs(30);
        while !told(&mut log) {
            assert!(Instant::now() < bound, "the reader is back");
            std::thread::yield_now();
        }
        drop(log);
        let text = reading.join().expect("no panic").expect("read");
        let told: Vec<&str> = text.lines().filter(|line| line.contains("records of this log were lost")).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(" WARN ") && text.ends_with("again\n"), "{told:?}");
    }
}

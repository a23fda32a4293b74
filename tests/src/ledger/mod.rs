//! What the target itself underwent: the command under test writes down when it begins and ends, and the oracle reads it.
//!
//! ```text
//! begin <operation> <attempt> <fence> <pid> <start> <boot time>     before the effect, durable
//! end <operation> <attempt> <pid> <boot time>                       after it
//! dead <pid> <boot time>                                            a later begin saw that the process is gone
//! attested <deployment> <boot time>                                 a person's attestation was recorded
//! ```
//!
//! One file is one target. A missing end counts as open until the process is seen dead: by number and start, never by number
//! alone. Lines are appended under a lock and synced, so their order is the order in which things happened.

mod line;
mod oracle;
mod program;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_agent::boottime::BootTime;
use rustix::fs::{FlockOperation, flock};

pub use line::Line;
pub use oracle::{Interval, Overlap, intervals, overlaps};
pub use program::run;

use crate::folder::Folder;
use crate::wait;

/// The word after the program's name that makes it the command under test.
pub const COMMAND: &str = "ledger";

/// A target's ledger, and the gates that its commands wait for.
#[derive(Clone, Debug)]
pub struct Ledger {
    program: PathBuf,
    path: PathBuf,
}

impl Ledger {
    /// The ledger of that name in the test's folder.
    #[must_use]
    pub fn new(program: &Path, folder: &Folder, name: &str) -> Self {
        Self { program: program.to_owned(), path: folder.join(&format!("{name}.ledger")) }
    }

    /// The command under test: begins, ends at once, exits 0.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let words = [self.program.as_path(), Path::new(COMMAND), Path::new("--file"), &self.path];
        words.map(|word| word.to_str().expect("a test's paths are plain text").to_owned()).into()
    }

    /// The same with more options: see [`program`].
    #[must_use]
    pub fn command_with(&self, options: &[&str]) -> Vec<String> {
        self.command().into_iter().chain(options.iter().map(|option| (*option).to_owned())).collect()
    }

    /// A command that ends only when the gate of that name is opened.
    #[must_use]
    pub fn gated(&self, gate: &str) -> Vec<String> {
        let path = self.gate(gate);
        self.command_with(&["--wait-for", path.to_str().expect("a test's paths are plain text")])
    }

    /// A command that has done everything, and is still there until the gate of that name is opened.
    #[must_use]
    pub fn lingering(&self, gate: &str) -> Vec<String> {
        let path = self.gate(gate);
        self.command_with(&["--linger", path.to_str().expect("a test's paths are plain text")])
    }

    /// Lets every command behind the gate end, now and later.
    pub fn open_gate(&self, gate: &str) {
        fs::write(self.gate(gate), "").expect("a test's own folder can be written");
    }

    fn gate(&self, gate: &str) -> PathBuf {
        self.path.with_extension(format!("{gate}.gate"))
    }

    /// Everything that was written, in order. Waits for a writer to let go, so that whoever is seen to have begun can be frozen
    /// without keeping the lock from others.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => panic!("could not open the ledger: {error}"),
        };
        flock(&file, FlockOperation::LockShared).expect("the ledger can be locked");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("the ledger can be read");
        text.lines().map(Line::parse).collect()
    }

    /// Each time that a command began, in order.
    #[must_use]
    pub fn intervals(&self) -> Vec<Interval> {
        intervals(&self.lines())
    }

    /// Waits until commands have begun that many times in all.
    pub async fn until_begun(&self, count: usize) -> Vec<Interval> {
        wait::until(&format!("{count} begins in the ledger"), wait::SOON, async || {
            let intervals = self.intervals();
            if intervals.len() >= count { Ok(intervals) } else { Err(format!("{} begins", intervals.len())) }
        })
        .await
    }

    /// Waits until the interval of that index has its end.
    pub async fn until_ended(&self, index: usize) {
        self.until_ended_within(index, wait::SOON).await;
    }

    /// The same with another bound.
    pub async fn until_ended_within(&self, index: usize, bound: Duration) {
        wait::until(&format!("the end of interval {index} in the ledger"), bound, async || {
            let intervals = self.intervals();
            match intervals.get(index) {
                Some(interval) if interval.ended.is_some() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// How often a command of that operation came to its end: what the target underwent.
    #[must_use]
    pub fn effects(&self, operation: &str) -> usize {
        self.intervals().iter().filter(|one| one.operation == operation && one.ended.is_some()).count()
    }

    /// Writes down that a person's attestation about the deployment was recorded: from here on, its open intervals are allowed
    /// to be overlapped. To be called after the coordinator's answer and before any decision.
    pub fn attested(&self, deployment: &str) {
        let line = Line::Attested { deployment: deployment.to_owned(), at: BootTime::now() };
        append(&self.path, &mut |_| vec![line.clone()]).expect("a test's own ledger can be written");
    }

    /// The oracle. Panics where two intervals overlap without an attestation in between.
    #[track_caller]
    pub fn check(&self) {
        let found = overlaps(&self.lines());
        assert!(found.is_empty(), "two mutations of one target overlap: {found:#?}");
    }

    /// The oracle, and that commands began exactly so many times.
    #[track_caller]
    pub fn check_begun(&self, count: usize) {
        self.check();
        let intervals = self.intervals();
        assert_eq!(intervals.len(), count, "commands began another number of times: {intervals:#?}");
    }
}

/// Appends what `make` makes of the lines that are there, in one write under the file's lock, synced.
fn append(path: &Path, make: &mut dyn FnMut(&[Line]) -> Vec<Line>) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).read(true).open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    let known: Vec<Line> = text.lines().map(Line::parse).collect();
    let new: String = make(&known).iter().map(|line| format!("{line}\n")).collect();
    file.write_all(new.as_bytes())?;
    file.sync_all()
}

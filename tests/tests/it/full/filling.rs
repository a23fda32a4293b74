//! Fills disks while a process stands still at a point, whatever the test waits for meanwhile.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_tests::folder::processes_in_state;
use holdfast_tests::process::resume;
use holdfast_tests::small_disk::{Of, SmallDisk};

const PACE: Duration = Duration::from_millis(20);

/// A thread that waits for the note of a point, fills, and lets who stands still go on.
pub(crate) struct Filling {
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    folder: PathBuf,
    note: PathBuf,
    /// As the note names it. Empty while none is watched.
    point: String,
    disks: Vec<SmallDisk>,
    of: Of,
    /// Whether they are freed as soon as a service has said that its disk is full.
    free_when_told: bool,
    full: bool,
    over: bool,
}

impl Filling {
    /// Fills nothing yet.
    pub(crate) fn begin(folder: &Path, note: &Path, disks: Vec<SmallDisk>, of: Of, free_when_told: bool) -> Self {
        let (folder, note, point) = (folder.to_owned(), note.to_owned(), String::new());
        let shared = Shared { folder, note, point, disks, of, free_when_told, full: false, over: false };
        let shared = Arc::new(Mutex::new(shared));
        let watched = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !lock(&watched).turn() {
                std::thread::sleep(PACE);
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// Waits for that point, `name:n=stop`. Points at which a process dies fill nothing.
    pub(crate) fn watch(&self, point: &str) {
        let stops = point.ends_with("=stop");
        let name = point.trim_start_matches("coordinator:").split(':').next().unwrap_or_default();
        lock(&self.shared).point = if stops { name.to_owned() } else { String::new() };
    }

    /// Whether a process stood still and the disks were filled.
    pub(crate) fn was_full(&self) -> bool {
        lock(&self.shared).full
    }

    pub(crate) fn free(&self) {
        lock(&self.shared).free();
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        lock(&self.shared).over = true;
        let _it_panicked_and_said_why = self.thread.take().map(JoinHandle::join);
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn turn(&mut self) -> bool {
        let reached =
            !self.point.is_empty() && std::fs::read_to_string(&self.note).is_ok_and(|note| note == self.point);
        if reached && !self.full {
            self.disks.iter().for_each(|disk| disk.fill(self.of));
            self.full = true;
        }
        if self.full {
            processes_in_state(&self.folder, 'T').into_iter().for_each(resume);
        }
        if self.full && self.free_when_told && says_full(&self.folder) {
            self.free();
        }
        self.over
    }

    fn free(&mut self) {
        self.disks.iter().for_each(SmallDisk::free);
        self.free_when_told = false;
    }
}

/// Whether a service has said in its log that its disk is full.
pub(crate) fn says_full(folder: &Path) -> bool {
    ["coordinator", "web-01", "web-02"].iter().any(|name| {
        let log = std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default();
        log.contains("the disk is full") || log.contains("the disk is nearly full")
    })
}

//! What a release folder underwent, told by the kernel: each rename onto `current` is an event of its folder.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// The flips of one folder, since it was watched.
pub(crate) struct Flips {
    events: OwnedFd,
    revisions: Vec<String>,
    seen: BTreeSet<String>,
}

impl Flips {
    /// From now on, beside what is known to have been before.
    pub(crate) fn of(root: &Path, before: Vec<String>) -> Self {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        // Two like events in a row become one. Whoever flips opens the folder before and after, which comes in between.
        inotify::add_watch(&events, root, WatchFlags::MOVED_TO | WatchFlags::OPEN).unwrap();
        Self { events, revisions: before, seen: folders(root).into_iter().collect() }
    }

    /// The revisions in the order of their flips. The last flip shows in `current`; what was flipped before it, unseen, are
    /// the releases that came with it, by their fences.
    pub(crate) fn so_far(&mut self, root: &Path) -> Vec<String> {
        let flips = self.count();
        let Some(current) = (flips > 0).then(|| served(root)) else { return self.revisions.clone() };
        let mut fresh: Vec<String> = folders(root).into_iter().filter(|name| !self.seen.contains(name)).collect();
        fresh.retain(|name| *name != current);
        fresh.sort_by_key(|name| name.rsplit_once('.').and_then(|(_, fence)| fence.parse::<u64>().ok()));
        let unseen = flips - 1;
        assert!(unseen == 0 || unseen == fresh.len(), "{flips} flips among {fresh:?} and {current}");
        let flipped = fresh.into_iter().take(unseen).chain([current]);
        for name in flipped {
            self.revisions.push(revision(root, &name));
            self.seen.insert(name);
        }
        self.revisions.clone()
    }

    fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        let mut count = 0;
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW), "events were lost");
            let is_move = event.events().contains(ReadFlags::MOVED_TO);
            let is_current = event.file_name().is_some_and(|name| name.to_bytes() == b"current");
            count += usize::from(is_move && is_current);
        }
        count
    }
}

/// The folder that `current` names.
fn served(root: &Path) -> String {
    let target = std::fs::read_link(root.join("current")).unwrap();
    target.file_name().unwrap().to_str().unwrap().to_owned()
}

fn folders(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("releases")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// By what its file says: `v2` is the archive of revision `0002`.
fn revision(root: &Path, folder: &str) -> String {
    let content = std::fs::read_to_string(root.join("releases").join(folder).join("index.html")).unwrap();
    let number: u32 = content.strip_prefix('v').unwrap().parse().unwrap();
    format!("{number:04}")
}

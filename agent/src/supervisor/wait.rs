//! Waiting without looking again and again: the kernel says when a process ended and when a folder changed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

/// Returns when one of these can be read, or the time is over, or for no reason.
pub(super) fn readable<'a>(of: impl IntoIterator<Item = BorrowedFd<'a>>, at_most: Duration) {
    let mut handles: Vec<PollFd<'_>> =
        of.into_iter().map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN)).collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(at_most.subsec_nanos()),
    };
    // After an error, as after a signal, the caller looks at the world itself.
    let _looked_at_anyway = poll(&mut handles, Some(&timeout));
}

/// Tells when a file got a name in a folder.
pub(super) struct Arrivals(File);

impl Arrivals {
    /// `None` where the kernel has no more of these to give: then the caller has to look again and again.
    pub(super) fn into(folder: &Path) -> Option<Self> {
        let handle: OwnedFd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok()?;
        inotify::add_watch(&handle, folder, inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO).ok()?;
        Some(Self(File::from(handle)))
    }

    /// What arrived until now is seen.
    pub(super) fn mark_seen(&mut self) {
        let mut buffer = [0; 4096];
        while matches!(self.0.read(&mut buffer), Ok(1..)) {}
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

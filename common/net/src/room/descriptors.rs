//! Open files, as far as the system allows this process.

use std::fmt;
use std::fs::{self, File};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

/// Between two counts.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// How many descriptors are open, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptors {
    /// There are enough.
    Enough,
    /// New work would risk what runs.
    Low {
        /// Open now.
        open: u64,
        /// The process's bound.
        limit: u64,
    },
}

impl Descriptors {
    /// Counts them. Without a descriptor to count them with, there are none left.
    #[must_use]
    pub fn now() -> Self {
        let Some(limit) = getrlimit(Resource::Nofile).current else { return Descriptors::Enough };
        let open = fs::read_dir("/proc/self/fd").map_or(limit, |entries| entries.count() as u64);
        Self::judge(open, limit)
    }

    /// A sixteenth is kept free, at least 16 and at most 256: a step takes about ten for a moment.
    #[must_use]
    pub fn judge(open: u64, limit: u64) -> Self {
        let kept_free = (limit / 16).clamp(16, 256);
        if open.saturating_add(kept_free) > limit { Descriptors::Low { open, limit } } else { Descriptors::Enough }
    }

    /// Whether there are enough for new work.
    #[must_use]
    pub fn are_enough(self) -> bool {
        match self {
            Descriptors::Enough => true,
            Descriptors::Low { .. } => false,
        }
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Descriptors::Enough => write!(f, "there are enough descriptors"),
            Descriptors::Low { open, limit } => {
                write!(f, "{open} of {limit} descriptors are open; no new work is taken")
            }
        }
    }
}

/// Counts them every second as long as anybody wants to know. Needs a tokio runtime.
#[must_use]
pub fn watch_descriptors() -> watch::Receiver<Descriptors> {
    let known = watch::Sender::new(Descriptors::now());
    let watched = known.subscribe();
    tokio::spawn(async move {
        while !known.is_closed() {
            tokio::time::sleep(COUNT_EVERY).await;
            let (before, now) = (*known.borrow(), Descriptors::now());
            match (before.are_enough(), now.are_enough()) {
                (true, false) => tracing::warn!("{now}"),
                (false, true) => tracing::info!("{now}"),
                (true, true) | (false, false) => {}
            }
            known.send_if_modified(|known| std::mem::replace(known, now) != now);
        }
    });
    watched
}

/// A descriptor that is kept for the moment in which there is no other.
#[derive(Debug)]
pub struct Spare(Option<File>);

impl Spare {
    /// Takes one, if there is one.
    #[must_use]
    pub fn take() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Gives it back for the time of `work`, if there is one.
    pub async fn lend<R>(&mut self, work: impl Future<Output = R>) -> Option<R> {
        let spare = self.0.take()?;
        drop(spare);
        let result = work.await;
        self.0 = File::open("/dev/null").ok();
        Some(result)
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// Takes one again where it was lost.
    pub fn renew(&mut self) {
        if self.0.is_none() {
            *self = Self::take();
        }
    }
}

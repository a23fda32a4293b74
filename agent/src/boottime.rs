//! The clock that leases are counted on: it goes on while the machine is suspended, and nobody can set it.

use std::fs;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_common::time::Wall;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds since this machine booted, suspend included. Means nothing after another boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootTime(u64);

impl BootTime {
    /// The time now.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).expect("boot time is not negative");
        let nanoseconds = u64::try_from(now.tv_nsec).expect("nanoseconds are not negative");
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
    }

    /// From milliseconds since boot. Saturates.
    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Milliseconds since boot.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// This instant and `span` later. Saturates.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier`; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: BootTime) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The wall clock now, for people to read.
#[must_use]
pub fn wall_now() -> Wall {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
    };
    Wall(micros)
}

/// One boot of one machine, as its kernel names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

impl BootId {
    /// Of the running kernel.
    pub fn read() -> io::Result<Self> {
        Ok(Self(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_goes_forward_and_saturates() {
        let first = BootTime::now();
        assert!(BootTime::now() >= first);
        assert_eq!(first.after(Duration::from_secs(2)).since(first), Duration::from_secs(2));
        assert_eq!(first.since(first.after(Duration::from_secs(1))), Duration::ZERO);
        assert!(first.after(Duration::MAX) > first);
        assert_eq!(BootId::read().expect("a boot id"), BootId::read().expect("the same"));
    }
}

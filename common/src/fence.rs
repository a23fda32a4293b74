//! The generation of ownership of a target.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number that strictly grows per target with every lease and every fence-off.
///
/// The store's epoch is in the high 24 bits and a counter in the low 40. Machines see one decimal number, people
/// `epoch.counter`. Two fences are compared in one place only, the coordinator core's `authority`, and on the
/// agent's and the resource's side by their own highest-seen checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(u64);

const COUNTER_BITS: u32 = 40;
const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;
const EPOCH_MAX: u64 = (1 << 24) - 1;

/// A store's generation: raised when the store was restored from the past. 1 in a new store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u32);

impl Fence {
    /// From the wire or the store. Zero is "missing" on the wire and is never a fence.
    #[must_use]
    pub fn from_u64(number: u64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// The one decimal number that machines see.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The first fence of an epoch, or `None` past the last epoch.
    #[must_use]
    pub fn first(epoch: Epoch) -> Option<Self> {
        (u64::from(epoch.0) <= EPOCH_MAX && epoch.0 > 0).then(|| Self((u64::from(epoch.0) << COUNTER_BITS) | 1))
    }

    /// The next fence after this one in `epoch`, or `None` on overflow: then nothing more is granted.
    /// `epoch` below this fence's own is `None` too.
    #[must_use]
    pub fn next(self, epoch: Epoch) -> Option<Self> {
        match epoch.cmp(&self.epoch()) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => (self.counter() < COUNTER_MAX).then(|| Self(self.0 + 1)),
            std::cmp::Ordering::Greater => Self::first(epoch),
        }
    }

    /// The store epoch that allocated it.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        Epoch(u32::try_from(self.0 >> COUNTER_BITS).expect("24 bits fit"))
    }

    /// Counts within the epoch, from 1.
    #[must_use]
    pub fn counter(self) -> u64 {
        self.0 & COUNTER_MAX
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch().0, self.counter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_strictly_grows_and_overflow_refuses() {
        let first = Fence::first(Epoch(1)).expect("first");
        let second = first.next(Epoch(1)).expect("second");
        assert!(second > first);
        assert_eq!(second.to_string(), "1.2");
        assert!(second.next(Epoch(2)).expect("jump") > second);
        assert_eq!(second.next(Epoch(0)), None);
        let last = Fence((1 << COUNTER_BITS) | COUNTER_MAX);
        assert_eq!(last.next(Epoch(1)), None);
        assert_eq!(Fence::first(Epoch(1 << 24)), None);
        assert_eq!(Fence::from_u64(0), None);
    }
}

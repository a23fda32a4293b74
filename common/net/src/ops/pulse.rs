use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::State;

/// What a work loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It waits for something to do.
    Rests,
    /// It is in the middle of a turn.
    Works,
}

/// Whether a work loop turns: the loop says when a turn begins and ends, anybody may ask for how long it has been at it.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pulse {
    base: Instant,
    /// Milliseconds since `base`, doubled, plus 1 while it works: one word, so that both are of the same instant.
    since: Arc<AtomicU64>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self::new()
    }
}

impl Pulse {
    /// Of a loop that rests.
    #[must_use]
    pub fn new() -> Self {
        Self { base: Instant::now(), since: Arc::default() }
    }

    /// A turn begins.
    pub fn works(&self) {
        self.set(1);
    }

    /// A turn ends.
    pub fn rests(&self) {
        self.set(0);
    }

    fn set(&self, works: u64) {
        self.since.store(self.elapsed() << 1 | works, Ordering::Relaxed);
    }

    /// What it does, and for how long.
    #[must_use]
    pub fn doing(&self) -> (Doing, Duration) {
        let since = self.since.load(Ordering::Relaxed);
        let doing = if since & 1 == 1 { Doing::Works } else { Doing::Rests };
        (doing, Duration::from_millis(self.elapsed().saturating_sub(since >> 1)))
    }

    /// Whether a turn is over within `bound`, and whether it takes up what waits for it within the same.
    #[must_use]
    pub fn state(&self, bound: Duration, waiting: usize) -> State {
        let (doing, length) = self.doing();
        let seconds = length.as_secs();
        match doing {
            Doing::Works if length > bound => State::Not(format!("in the middle of a turn for {seconds} s")),
            Doing::Rests if length > bound && waiting > 0 => {
                State::Not(format!("has not taken up what waits for {seconds} s"))
            }
            Doing::Works | Doing::Rests => State::Ok,
        }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX) & (u64::MAX >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_is_seen_and_a_long_rest_only_while_something_waits() {
        let pulse = Pulse::new();
        let none = Duration::ZERO;
        let past = Pulse { base: Instant::now() - Duration::from_secs(60), since: Arc::clone(&pulse.since) };
        assert_eq!(past.state(none, 0), State::Ok);
        assert_eq!(past.state(none, 1), State::Not("has not taken up what waits for 60 s".to_owned()));
        past.works();
        assert_eq!(past.state(Duration::from_secs(1), 9), State::Ok, "it has just begun");
        let later = Pulse { base: past.base - Duration::from_secs(60), since: Arc::clone(&pulse.since) };
        assert_eq!(later.doing().0, Doing::Works);
        assert_eq!(later.state(Duration::from_secs(1), 0), State::Not("in the middle of a turn for 60 s".to_owned()));
        later.rests();
        assert_eq!(later.state(Duration::from_secs(1), 9), State::Ok);
    }
}

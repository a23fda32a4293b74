//! Offers that an agent was sent and has not answered: one whose session lives and whose work does not gets no more.

use std::time::{Duration, Instant};

/// So many offers in a row whose time passed without an answer are enough.
const ENOUGH: usize = 2;
/// How many are remembered.
const REMEMBERED: usize = 16;

/// The unanswered ones of one session, the oldest first: until when each could be answered.
#[derive(Debug, Default)]
pub(super) struct Offers(Vec<Instant>);

impl Offers {
    pub(super) fn sent(&mut self, now: Instant, ttl: Duration) {
        if self.0.len() < REMEMBERED {
            self.0.push(now + ttl);
        }
    }

    /// An answer, whatever it says, to whichever: the agent takes up what it is offered. Says whether it was thought not to.
    pub(super) fn answered(&mut self, now: Instant) -> bool {
        let ignored = self.ignored(now).is_some();
        self.0.clear();
        ignored
    }

    /// How many were ignored, where that is enough to send no more.
    pub(super) fn ignored(&self, now: Instant) -> Option<usize> {
        let ignored = self.0.iter().filter(|until| **until <= now).count();
        (ignored >= ENOUGH).then_some(ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_offers_without_an_answer_are_enough_and_one_answer_makes_up_for_them() {
        let (mut offers, start, ttl) = (Offers::default(), Instant::now(), Duration::from_secs(30));
        assert_eq!(offers.ignored(start), None);
        offers.sent(start, ttl);
        assert_eq!(offers.ignored(start + ttl), None, "one may have had bad luck");
        offers.sent(start + ttl, ttl);
        assert_eq!(offers.ignored(start + ttl), None, "the second can still be answered");
        assert_eq!(offers.ignored(start + ttl * 2), Some(2));
        assert!(offers.answered(start + ttl * 2));
        assert_eq!(offers.ignored(start + ttl * 9), None);
        assert!(!offers.answered(start + ttl * 9));
        (0..100).for_each(|_| offers.sent(start, ttl));
        assert_eq!(offers.ignored(start + ttl), Some(REMEMBERED));
    }
}

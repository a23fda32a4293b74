//! Delays between tries: exponential growth to a maximum, with full jitter, without end.
//!
//! Of the `backoff` crate only the growth is used. Its own jitter can exceed the maximum and can't be seeded, its
//! default gives up after a quarter of an hour, and its retry functions take every error for a passing one.

use std::time::Duration;

use ::backoff::Clock;
use ::backoff::backoff::Backoff as _;
use ::backoff::exponential::ExponentialBackoff;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// tokio's clock, so that tests can pause it.
#[derive(Clone, Copy, Debug)]
struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> std::time::Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// A series of delays. The bound of each is twice that of the one before, up to the maximum; the delay is drawn evenly
/// between zero and its bound, so that many who lost the same server do not come back at once.
#[derive(Debug)]
pub struct Backoff {
    bounds: ExponentialBackoff<TokioClock>,
    jitter: StdRng,
}

impl Backoff {
    /// The first delay is at most `initial`, every one at most `max`. The same seed gives the same delays.
    #[must_use]
    pub fn new(initial: Duration, max: Duration, seed: u64) -> Self {
        let initial = initial.min(max);
        let bounds = ExponentialBackoff {
            current_interval: initial,
            initial_interval: initial,
            randomization_factor: 0.0,
            multiplier: 2.0,
            max_interval: max,
            start_time: TokioClock.now(),
            max_elapsed_time: None,
            clock: TokioClock,
        };
        Self { bounds, jitter: StdRng::seed_from_u64(seed) }
    }

    /// How long to wait before the next try.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "a series without an end is no iterator")]
    pub fn next(&mut self) -> Duration {
        self.next_within(self.bounds.max_interval)
    }

    /// The same for a try that can't wait longer than that. The delay is drawn anew, not cut: many who are in such a hurry are
    /// spread too.
    #[must_use]
    pub fn next_within(&mut self, longest: Duration) -> Duration {
        let bound = self.bounds.next_backoff().unwrap_or(self.bounds.max_interval).min(self.bounds.max_interval);
        self.jitter.random_range(Duration::ZERO..=bound.min(longest))
    }

    /// A delay that does not grow, drawn evenly between its half and the whole.
    #[must_use]
    pub fn about(&mut self, longest: Duration) -> Duration {
        self.jitter.random_range(longest / 2..=longest)
    }

    /// Begins again with the first bound: for after a success.
    pub fn reset(&mut self) {
        self.bounds.reset();
    }

    /// The same with another first bound from now on.
    pub fn reset_to(&mut self, initial: Duration) {
        self.bounds.initial_interval = initial.min(self.bounds.max_interval);
        self.bounds.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(30);

    fn bound(index: u32) -> Duration {
        INITIAL.saturating_mul(2_u32.saturating_pow(index)).min(MAX)
    }

    #[test]
    fn no_delay_exceeds_its_bound_or_the_maximum() {
        for seed in 0..500 {
            let mut backoff = Backoff::new(INITIAL, MAX, seed);
            for index in 0..40 {
                let delay = backoff.next();
                assert!(delay <= bound(index), "seed {seed}, delay {index}: {delay:?}");
            }
        }
    }

    #[test]
    fn a_delay_that_does_not_grow_is_spread_and_never_longer_nor_a_storm() {
        let mut backoff = Backoff::new(INITIAL, MAX, 7);
        let delays: std::collections::BTreeSet<_> = (0..100).map(|_| backoff.about(MAX)).collect();
        assert!(delays.iter().all(|delay| (MAX / 2..=MAX).contains(delay)), "{delays:?}");
        assert!(delays.len() > 50, "all of many at once: {delays:?}");
    }

    #[test]
    fn delays_grow_and_start_again_after_a_reset() {
        let mean = |backoffs: &mut [Backoff]| {
            let sum: Duration = backoffs.iter_mut().map(Backoff::next).sum();
            sum / u32::try_from(backoffs.len()).expect("few")
        };
        let mut backoffs: Vec<_> = (0..400).map(|seed| Backoff::new(INITIAL, MAX, seed)).collect();
        let means: Vec<_> = (0..8).map(|_| mean(&mut backoffs)).collect();
        assert!(means.is_sorted(), "{means:?}");
        assert!(means[7] > means[0] * 50, "{means:?}");
        backoffs.iter_mut().for_each(Backoff::reset);
        assert!(mean(&mut backoffs) <= INITIAL);
        backoffs.iter_mut().for_each(|backoff| backoff.reset_to(INITIAL * 20));
        assert!(mean(&mut backoffs) > INITIAL * 5);
    }

    #[test]
    fn those_in_a_hurry_wait_no_longer_and_do_not_come_together() {
        let longest = INITIAL * 4;
        let last = |seed| {
            let mut backoff = Backoff::new(INITIAL, MAX, seed);
            (0..10).map(|_| backoff.next_within(longest)).last().expect("ten")
        };
        let mut delays: Vec<Duration> = (0..400).map(last).collect();
        delays.sort();
        assert!(delays[399] <= longest);
        assert!(delays[100] < longest / 3 && delays[300] > longest / 2, "{delays:?}");
    }

    #[test]
    fn full_jitter_spreads_over_the_whole_bound() {
        let mut quarters = [0_u32; 4];
        for seed in 0..1000 {
            let share = Backoff::new(MAX, MAX, seed).next().as_secs_f64() / MAX.as_secs_f64();
            quarters[((share * 4.0) as usize).min(3)] += 1;
        }
        assert!(quarters.iter().all(|count| (180..320).contains(count)), "{quarters:?}");
    }

    #[test]
    fn a_seed_repeats_its_delays() {
        let series = |seed| -> Vec<Duration> {
            let mut backoff = Backoff::new(INITIAL, MAX, seed);
            (0..20).map(|_| backoff.next()).collect()
        };
        assert_eq!(series(7), series(7));
        assert_ne!(series(7), series(8));
    }
}

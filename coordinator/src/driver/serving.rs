//! The serving clock: how long coordinators have served on this store, over all runs.
//!
//! Leases and deadlines live on it. It stands still while no coordinator runs, and also while one is stopped: of a gap
//! between two steps at most [`STRIDE`] counts, so that a suspended machine or a stuck disk lapses no live lease. What
//! a run has served is written with every commit and at least every second while anything depends on it, first more
//! often than that, so that a loop of crashes keeps no dead lease either.

use std::time::Duration;

use holdfast_common::time::{Millis, Serving};
use holdfast_coordinator_core::state::Run;

use super::Moment;
use crate::store::RunStart;

/// The longest gap between two steps that counts.
const STRIDE: Duration = Duration::from_secs(2);

const FIRST_WRITE: Duration = Duration::from_millis(100);
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// Advances with each step.
#[derive(Clone, Debug)]
pub(super) struct ServingClock {
    start: RunStart,
    served: Duration,
    last_step: Duration,
    written: Duration,
}

impl ServingClock {
    pub(super) fn new(start: RunStart, now: Moment) -> Self {
        Self { start, served: Duration::ZERO, last_step: now.monotonic, written: Duration::ZERO }
    }

    /// A step begins.
    pub(super) fn advance(&mut self, now: Moment) {
        self.served += now.monotonic.saturating_sub(self.last_step).min(STRIDE);
        self.last_step = now.monotonic.max(self.last_step);
    }

    /// A step begins while nothing can be written: a coordinator that can't record does not serve.
    pub(super) fn stand_still(&mut self, now: Moment) {
        self.last_step = now.monotonic.max(self.last_step);
    }

    pub(super) fn run(&self) -> Run {
        self.start.run
    }

    /// The instant of the current step.
    pub(super) fn now(&self) -> Serving {
        self.start.base.after(self.served())
    }

    /// What this run has served so far.
    pub(super) fn served(&self) -> Millis {
        Millis(u64::try_from(self.served.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn mark_written(&mut self) {
        self.written = self.served;
    }

    /// How long until it is to be written again, for those that depend on it.
    pub(super) fn write_in(&self) -> Duration {
        let pause = self.written.clamp(FIRST_WRITE, WRITE_EVERY);
        (self.written + pause).saturating_sub(self.served)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_common::time::Wall;

    fn at(millis: u64) -> Moment {
        Moment { wall: Wall(0), monotonic: Duration::from_millis(millis) }
    }

    #[test]
    fn a_gap_counts_as_one_stride_and_time_never_goes_back() {
        let mut clock = ServingClock::new(RunStart { run: Run(3), base: Serving(500) }, at(1_000));
        clock.advance(at(1_700));
        assert_eq!(clock.now(), Serving(1_200));
        clock.advance(at(61_700));
        assert_eq!(clock.now(), Serving(3_200));
        clock.advance(at(2_000));
        assert_eq!(clock.now(), Serving(3_200));
        clock.advance(at(61_800));
        assert_eq!(clock.now(), Serving(3_300));
    }

    #[test]
    fn while_nothing_can_be_written_it_stands_still() {
        let mut clock = ServingClock::new(RunStart { run: Run(1), base: Serving(0) }, at(0));
        clock.advance(at(500));
        clock.stand_still(at(1_000));
        clock.stand_still(at(90_000));
        clock.advance(at(90_100));
        assert_eq!(clock.now(), Serving(600));
    }

    #[test]
    fn served_time_is_written_soon_after_a_start_and_every_second_later() {
        let mut clock = ServingClock::new(RunStart { run: Run(1), base: Serving(0) }, at(0));
        assert_eq!(clock.write_in(), Duration::from_millis(100));
        let mut writes = Vec::new();
        for millis in (0..4_000).step_by(10) {
            clock.advance(at(millis));
            if clock.write_in().is_zero() {
                clock.mark_written();
                writes.push(millis);
            }
        }
        assert_eq!(writes, [100, 200, 400, 800, 1_600, 2_600, 3_600]);
    }
}

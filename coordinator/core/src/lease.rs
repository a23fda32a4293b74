//! When a lease lives, and how long the next try waits. All on serving time: nothing here knows a wall clock.

use holdfast_common::id::AttemptId;
use holdfast_common::spec::RetrySpec;
use holdfast_common::time::{Millis, Serving};

use crate::bugs::{self, Bug};
use crate::input::{Jitter, Now};
use crate::state::{Away, Lease, Run, TargetState};

/// When a lease lapses, should nothing be heard any more. A planned absence moves that once, until the agent is heard again.
pub(crate) fn lapses_at(lease: &Lease, margin: Millis) -> Serving {
    let silent = lease.heard.after(lease.ttl);
    let away = lease.away.as_ref().filter(|away| !away.is_back).map(|away| away.until);
    away.map_or(silent, |until| until.max(silent)).after(margin)
}

/// What a planned absence gives a lease: what was asked for, at most `bound`, once. `None` where it gives nothing.
pub(crate) fn away(lease: &Lease, now: Now, asked: Millis, bound: Millis) -> Option<Away> {
    let had = lease.away.is_some() && !bugs::on(Bug::AwayAgain);
    let added = asked.min(bound);
    (!had && added > Millis(0)).then(|| Away {
        since: now.wall,
        added,
        until: now.serving.after(lease.ttl).after(added),
        is_back: false,
    })
}

/// Whether a lease lives at this instant.
pub(crate) fn lives(lease: &Lease, now: Now) -> bool {
    now.serving < lapses_at(lease, now.lease_margin)
}

/// Full jitter within a bound that doubles with every try before it: `tries` is 1 for the first delay.
pub(crate) fn backoff(retry: &RetrySpec, tries: u32, jitter: Jitter) -> Millis {
    let doubled = 1_u64.checked_shl(tries.saturating_sub(1).min(40)).unwrap_or(u64::MAX);
    let bound = retry.backoff_initial.0.saturating_mul(doubled).min(retry.backoff_max.0);
    Millis(bound.saturating_mul(u64::from(jitter.0.min(1_000))) / 1_000)
}

impl TargetState {
    /// Moves the attempt's last sign of life. In memory only, never written: [`crate::Event::LeaseRenewed`] is written
    /// for the first one in a run. Never moves it back.
    pub fn hear(&mut self, attempt: AttemptId, heard: Serving) {
        let live = self.current.as_mut().and_then(|deployment| deployment.attempts.last_mut());
        if let Some(lease) = live.filter(|live| live.id == attempt).and_then(|live| live.lease.as_mut()) {
            lease.heard = lease.heard.max(heard);
        }
    }

    /// After a restart: renewals within a lease's last written run were in memory only, so it counts as heard until that
    /// run was over, which is when the run after it began. `began` tells when, in serving time, a run began.
    pub fn resume(&mut self, began: impl Fn(Run) -> Option<Serving>) {
        let live = self.current.as_mut().and_then(|deployment| deployment.attempts.last_mut());
        if let Some(lease) = live.and_then(|live| live.lease.as_mut())
            && let Some(after) = began(Run(lease.written_run.0 + 1))
        {
            lease.heard = lease.heard.max(after);
        }
    }
}

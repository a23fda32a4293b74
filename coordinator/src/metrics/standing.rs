use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::state::{DeploymentState, Waiting};

/// How every target stands on which something is current or waits.
#[derive(Debug, Default)]
pub(super) struct Standing(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    targets: BTreeMap<TargetName, Stands>,
    since: BTreeMap<DeploymentId, Wall>,
}

#[derive(Debug)]
struct Stands {
    open: [i64; 4],
    uncertain: Option<DeploymentId>,
    reserved: bool,
    on_hold: bool,
    without_agent: bool,
}

/// All of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Deployments that are queued, active, uncertain, held.
    pub(super) open: [i64; 4],
    pub(super) uncertain: i64,
    pub(super) reserved: i64,
    pub(super) on_hold: i64,
    pub(super) without_agent: i64,
    pub(super) oldest: Duration,
}

impl Standing {
    pub(super) fn put(&self, target: &TargetName, state: &TargetState, now: Wall) {
        let mut open = [0; 4];
        for place in state.current.iter().chain(&state.queue).filter_map(|deployment| place(deployment.state)) {
            open[place] += 1;
        }
        let current = state.current.as_ref();
        let uncertain = current.filter(|held| held.state == DeploymentState::Uncertain).map(|held| held.id);
        let mut inner = self.lock();
        let Inner { targets, since } = &mut *inner;
        let before = targets.remove(target).and_then(|stands| stands.uncertain);
        if let Some(gone) = before.filter(|before| Some(*before) != uncertain) {
            since.remove(&gone);
        }
        if let Some(uncertain) = uncertain {
            since.entry(uncertain).or_insert(now);
        }
        let on_hold = state.hold.is_some();
        if on_hold || open != [0; 4] {
            let waiting = current.and_then(|deployment| deployment.waiting.as_ref());
            let without_agent = matches!(waiting, Some(Waiting::NoEligibleAgent { .. }));
            let reserved = current.is_some();
            targets.insert(target.clone(), Stands { open, uncertain, reserved, on_hold, without_agent });
        }
    }

    pub(super) fn uncertain_since(&self, deployment: DeploymentId, at: Wall) {
        self.lock().since.insert(deployment, at);
    }

    pub(super) fn sum(&self, now: Wall) -> Sum {
        let inner = self.lock();
        let mut sum = Sum::default();
        for stands in inner.targets.values() {
            for (total, count) in sum.open.iter_mut().zip(stands.open) {
                *total += count;
            }
            sum.reserved += i64::from(stands.reserved);
            sum.on_hold += i64::from(stands.on_hold);
            sum.without_agent += i64::from(stands.without_agent);
            let Some(uncertain) = stands.uncertain else { continue };
            sum.uncertain += 1;
            let micros = inner.since.get(&uncertain).map_or(0, |since| now.0.saturating_sub(since.0).max(0));
            sum.oldest = sum.oldest.max(Duration::from_micros(micros.unsigned_abs()));
        }
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(state: DeploymentState) -> Option<usize> {
    match state {
        DeploymentState::Queued => Some(0),
        DeploymentState::Active => Some(1),
        DeploymentState::Uncertain => Some(2),
        DeploymentState::Held => Some(3),
        DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => None,
    }
}

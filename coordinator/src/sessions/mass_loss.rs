//! When many agents fall silent at once, the fault is nearer than theirs: the coordinator suspects itself.
//!
//! | it | when | comes to |
//! | --- | --- | --- |
//! | trusts itself | more than a share of the agents in contact fell silent within a while, and no fewer than a few | it suspects itself |
//! | suspects itself | of those who were there, no more than the share is still missing | it trusts itself |
//! | suspects itself | patience is over | it trusts itself: they are gone |
//!
//! While it suspects itself it hands out nothing new and recovers nothing by itself. What is under way goes on, and permits of live
//! leases are granted: whoever asks for one is heard. Nothing of this is about safety: leases and fences see to that without it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use holdfast_common::id::AgentName;
use holdfast_net::ops::{Health, State};
use tokio_util::sync::CancellationToken;

use super::Directory;
use crate::driver::Handle;

/// From when on a loss is a mass loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// More than so many percent of the agents in contact.
    pub percent: u8,
    /// No fewer agents than these.
    pub at_least: usize,
    /// Within so long.
    pub within: Duration,
    /// How long it suspects itself at most.
    pub patience: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { percent: 50, at_least: 5, within: Duration::from_secs(15), patience: Duration::from_secs(600) }
    }
}

/// The coordinator suspects itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// Agents that fell silent and are not back.
    pub missing: usize,
    /// Of so many that were in contact.
    pub of: usize,
    since: Duration,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { missing, of, .. } = self;
        write!(f, "{missing} of {of} agents fell silent at once, so the coordinator or its network may be at fault")
    }
}

/// What a look found to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Change {
    /// It suspects itself from now on.
    Suspects(Suspicion),
    /// Enough are back.
    Back,
    /// Patience is over.
    Gone(Suspicion),
}

/// Who is in contact, and who was. Instants count from any fixed one.
#[derive(Debug, Default)]
pub struct MassLoss {
    bounds: Bounds,
    in_contact: usize,
    /// Agents that fell silent and are not back, and when.
    missing: BTreeMap<AgentName, Duration>,
    suspicion: Option<Suspicion>,
}

impl MassLoss {
    /// Nobody is in contact.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// An agent that had no session has one.
    pub fn came(&mut self, agent: &AgentName) {
        self.in_contact += 1;
        self.missing.remove(agent);
    }

    /// An agent left as it said it would.
    pub fn left(&mut self) {
        self.in_contact = self.in_contact.saturating_sub(1);
    }

    /// An agent fell silent.
    pub fn fell_silent(&mut self, agent: &AgentName, now: Duration) {
        self.left();
        self.missing.insert(agent.clone(), now);
    }

    /// Whether it suspects itself, as of the last look.
    #[must_use]
    pub fn suspicion(&self) -> Option<Suspicion> {
        self.suspicion
    }

    /// Decides anew.
    pub fn look(&mut self, now: Duration) -> Option<Change> {
        let (before, since) = (self.suspicion, self.suspicion.map_or(now, |suspicion| suspicion.since));
        if before.is_none() {
            let within = self.bounds.within;
            self.missing.retain(|_, at| now.saturating_sub(*at) <= within);
        }
        let missing = self.missing.len();
        let of = missing + self.in_contact;
        let too_many = missing * 100 > of * usize::from(self.bounds.percent);
        let found = Suspicion { missing, of, since };
        let (suspicion, change) = match before {
            None if too_many && missing >= self.bounds.at_least => (Some(found), Some(Change::Suspects(found))),
            None => (None, None),
            Some(_) if !too_many => (None, Some(Change::Back)),
            Some(_) if now.saturating_sub(since) >= self.bounds.patience => (None, Some(Change::Gone(found))),
            Some(_) => (Some(found), None),
        };
        if before.is_some() && suspicion.is_none() {
            // Those who are still missing are not counted again.
            self.missing.clear();
        }
        self.suspicion = suspicion;
        change
    }
}

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The part of readiness that says so.
pub fn register(health: &Health, directory: &Arc<Directory>) {
    let directory = Arc::clone(directory);
    health.ready("agents", move || match directory.suspicion() {
        None => State::Ok,
        Some(suspicion) => State::Not(format!("nothing new is handed out: {suspicion}")),
    });
}

/// Looks until `stop`, and tells each change.
pub async fn watch(directory: Arc<Directory>, driver: Handle, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
        let Some(change) = directory.look_for_mass_loss() else { continue };
        match change {
            Change::Suspects(suspicion) => tracing::error!("nothing new is handed out: {suspicion}"),
            Change::Back => tracing::warn!("enough agents are back: work is handed out again"),
            Change::Gone(suspicion) => {
                tracing::warn!("they did not come back, so work is handed out again: {suspicion}")
            }
        }
        driver.agents_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn agent(number: usize) -> AgentName {
        AgentName::new(format!("web-{number:02}")).expect("a name")
    }

    fn of(agents: usize) -> MassLoss {
        let mut world = MassLoss::new(Bounds::default());
        (0..agents).for_each(|number| world.came(&agent(number)));
        world
    }

    fn lose(world: &mut MassLoss, agents: std::ops::Range<usize>, now: Duration) {
        agents.for_each(|number| world.fell_silent(&agent(number), now));
    }

    #[test]
    fn more_than_a_share_at_once_is_suspect_and_half_is_not() {
        for (agents, lost, suspect) in
            [(20, 10, false), (20, 11, true), (8, 5, true), (5, 5, true), (4, 4, false), (9, 4, false)]
        {
            let mut world = of(agents);
            lose(&mut world, 0..lost, at(100));
            assert_eq!(world.look(at(101)).is_some(), suspect, "{lost} of {agents}");
            let expected = Suspicion { missing: lost, of: agents, since: at(101) };
            assert_eq!(world.suspicion(), suspect.then_some(expected));
        }
    }

    #[test]
    fn who_leaves_one_after_the_other_or_by_plan_is_no_mass() {
        let mut world = of(20);
        for number in 0..20 {
            lose(&mut world, number..number + 1, at(number as u64 * 4));
            assert_eq!(world.look(at(number as u64 * 4)), None, "{number}");
            if number == 8 {
                break;
            }
        }
        let mut world = of(20);
        (0..20).for_each(|_| world.left());
        assert_eq!(world.look(at(1)), None);
    }

    #[test]
    fn it_ends_when_enough_are_back_and_those_who_are_not_are_not_counted_again() {
        let mut world = of(20);
        lose(&mut world, 0..16, at(10));
        assert!(matches!(world.look(at(10)), Some(Change::Suspects(_))));
        (0..5).for_each(|number| world.came(&agent(number)));
        assert_eq!(world.look(at(60)), None, "11 of 20 are missing, long after");
        world.came(&agent(5));
        assert_eq!(world.look(at(61)), Some(Change::Back));
        assert_eq!((world.suspicion(), world.look(at(62))), (None, None));
    }

    #[test]
    fn it_ends_when_patience_is_over() {
        let mut world = of(10);
        lose(&mut world, 0..10, at(10));
        assert!(matches!(world.look(at(11)), Some(Change::Suspects(_))));
        assert_eq!(world.look(at(610)), None);
        assert!(matches!(world.look(at(611)), Some(Change::Gone(Suspicion { missing: 10, of: 10, .. }))));
        assert_eq!((world.suspicion(), world.look(at(612))), (None, None));
    }
}

//! A driver begins on its store: a new run, and every target on which something is current or waits.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use holdfast_common::id::DeploymentId;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::Event;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_net::room::Room;
use rand::RngCore;

use super::decide::Inner;
use super::full::Full;
use super::input::Draw;
use super::serving::ServingClock;
use super::step::{Driver, core_now};
use super::targets::Targets;
use super::{Inbox, Moment, Sessions, Settings};
#[cfg(feature = "bugs")]
use crate::bugs;
use crate::metrics::Metrics;
use crate::room::{Endless, Space};
use crate::store::rows::EventFilter;
use crate::store::{self, Reader, Store, Transaction};
use crate::verify::Verdict;

impl<S: Store> Driver<S> {
    /// Begins a new run on the store and loads every target on which something is current or waits.
    ///
    /// `random` gives identities and jitter. A target that can't be read is left out and logged: it answers with its
    /// error when it is asked.
    pub fn open(
        mut store: S,
        sessions: Arc<dyn Sessions>,
        random: Box<dyn RngCore + Send>,
        settings: Settings,
        inbox: &Inbox,
        now: Moment,
    ) -> Result<Self, store::Error> {
        let mut tx = store.begin()?;
        let start = tx.start_run(now.wall)?;
        tx.commit()?;
        let clock = ServingClock::new(start, now);
        let core_now = core_now(&store, &clock, now, settings.lease_margin);
        let inner = Inner {
            targets: Targets::default(),
            sessions,
            draw: Draw::new(random),
            clock,
            now: core_now,
            published: inbox.published.clone(),
            metrics: Arc::default(),
            gate: Room::Plenty,
            absence: settings.absence,
            verdict: Verdict::default(),
            suspected: false,
        };
        #[cfg(feature = "bugs")]
        bugs::forward(|name| holdfast_coordinator_core::bugs::set(holdfast_coordinator_core::bugs::Bug::parse(name)));
        let mut driver = Self {
            store,
            inner,
            full: Full::new(Box::new(Endless)),
            monotonic: now.monotonic,
            unseen: BTreeSet::new(),
            lease_margin: settings.lease_margin,
            broken: false,
        };
        driver.load_busy()?;
        let newest = driver.store.reader().newest()?;
        driver.inner.published.committed.send_replace(newest.0);
        Ok(driver)
    }

    /// Measures into these instead of its own.
    pub fn measured(mut self, metrics: Arc<Metrics>) -> Result<Self, store::Error> {
        self.inner.metrics = metrics;
        let reader = self.store.reader();
        for name in self.inner.targets.names() {
            let Some(target) = self.inner.targets.get(name) else { continue };
            let held = target.state.current.as_ref();
            if let Some(held) = held.filter(|held| held.state == DeploymentState::Uncertain)
                && let Some(since) = uncertain_since(&reader, held.id)?
            {
                self.inner.metrics.uncertain_since(held.id, since);
            }
            self.inner.metrics.stands(name, &target.state, self.inner.now.wall);
        }
        Ok(self)
    }

    /// Grants nothing while something stands against it.
    #[must_use]
    pub fn audited(mut self, verdict: Verdict) -> Self {
        self.inner.verdict = verdict;
        self
    }

    /// On a disk that can fill up.
    #[must_use]
    pub fn on(mut self, space: Box<dyn Space>) -> Self {
        self.full = Full::new(space);
        self
    }

    fn load_busy(&mut self) -> Result<(), store::Error> {
        let Self { store, inner, unseen, .. } = self;
        let mut tx = store.begin()?;
        for name in tx.busy_targets()? {
            match inner.targets.load(&mut tx, &name, inner.now) {
                Ok(_) => {}
                Err(error) if error.is_contained() => {
                    tracing::error!(target = %name, %error, "a target can't be read: nothing is granted on it");
                }
                Err(error) => return Err(error),
            }
        }
        unseen.extend(inner.targets.names().cloned());
        let mut live = inner.published.live.write().unwrap_or_else(PoisonError::into_inner);
        for name in inner.targets.names() {
            let Some(target) = inner.targets.get(name) else { continue };
            let deployments = target.state.current.iter().chain(&target.state.queue);
            live.extend(deployments.map(|deployment| (deployment.id, name.clone())));
        }
        Ok(())
    }
}

/// When the deployment became uncertain, by its events.
fn uncertain_since(reader: &Reader, deployment: DeploymentId) -> Result<Option<Wall>, store::Error> {
    const PAGE: u32 = 500;
    let mut filter = EventFilter { deployment: Some(deployment), limit: PAGE, ..EventFilter::default() };
    let mut since = None;
    loop {
        let page = reader.events(&filter)?;
        for stored in &page {
            if let Event::DeploymentMoved { state, .. } = &stored.recorded.event {
                since = (*state == DeploymentState::Uncertain).then_some(stored.recorded.at);
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => filter.after = last.order,
            Some(_) | None => return Ok(since),
        }
    }
}

//! Who watches a deployment: each gets what is committed about it from memory, and nothing else wakes it.
//!
//! A watcher begins to listen, then reads the store, then goes on with what it hears: so it misses nothing. One that is too
//! slow is let go and begins again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_coordinator_core::event::Recorded;
use tokio::sync::mpsc;

use super::inbox::Published;
use crate::store::rows::StoredEvent;
use crate::store::{Appended, GlobalOrder};

/// Events that may wait for one watcher.
const WAITING: usize = 256;

type Listener = mpsc::Sender<Arc<StoredEvent>>;

/// By deployment, as long as somebody watches.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<HashMap<DeploymentId, Vec<Listener>>>);

/// The events of one write.
pub(super) struct Entry {
    pub(super) target: TargetName,
    pub(super) events: Vec<Recorded>,
    pub(super) appended: Appended,
}

impl Entry {
    fn into_stored(self) -> impl Iterator<Item = StoredEvent> {
        let Self { target, events, appended: Appended { newest, hashes } } = self;
        let first = newest.0.saturating_sub(events.len() as u64) + 1;
        (first..).zip(events).zip(hashes).map(move |((order, recorded), hash)| StoredEvent {
            order: GlobalOrder(order),
            target: target.clone(),
            recorded,
            hash,
        })
    }
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeploymentId, Vec<Listener>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These were committed.
    pub(super) fn tell(&self, entries: Vec<Entry>) {
        let mut watchers = self.lock();
        if watchers.is_empty() {
            return;
        }
        for event in entries.into_iter().flat_map(Entry::into_stored) {
            let listeners = event.recorded.deployment.and_then(|deployment| watchers.get_mut(&deployment));
            if let Some(listeners) = listeners {
                let event = Arc::new(event);
                listeners.retain(|listener| listener.try_send(event.clone()).is_ok());
            }
        }
    }
}

/// What is committed about one deployment from now on.
pub struct News {
    published: Arc<Published>,
    deployment: DeploymentId,
    receiver: mpsc::Receiver<Arc<StoredEvent>>,
}

impl News {
    pub(super) fn new(published: &Arc<Published>, deployment: DeploymentId) -> Self {
        let (listener, receiver) = mpsc::channel(WAITING);
        published.watchers.lock().entry(deployment).or_default().push(listener);
        Self { published: published.clone(), deployment, receiver }
    }

    /// The next event. `None` where this fell too far behind: what comes next is to be read from the store.
    pub async fn next(&mut self) -> Option<Arc<StoredEvent>> {
        self.receiver.recv().await
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.receiver.close();
        let mut watchers = self.published.watchers.lock();
        if let Some(listeners) = watchers.get_mut(&self.deployment) {
            listeners.retain(|listener| !listener.is_closed());
            if listeners.is_empty() {
                watchers.remove(&self.deployment);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use holdfast_common::id::AttemptId;
    use holdfast_common::time::Wall;
    use holdfast_coordinator_core::Event;
    use holdfast_coordinator_core::state::EventSequence;
    use uuid::Uuid;

    use super::super::channel;
    use super::*;

    fn entry(deployment: DeploymentId, newest: u64) -> Vec<Entry> {
        let event = Event::OfferAccepted { attempt: AttemptId(Uuid::nil()) };
        let recorded = Recorded { sequence: EventSequence(newest), at: Wall(1), deployment: Some(deployment), event };
        let events = vec![Recorded { deployment: None, ..recorded.clone() }, recorded];
        let appended = Appended { newest: GlobalOrder(newest), hashes: vec!["a".to_owned(), "b".to_owned()] };
        vec![Entry { target: TargetName::new("shop@prod").unwrap(), events, appended }]
    }

    fn heard(news: &mut News) -> Vec<(u64, String)> {
        let next = || news.next().now_or_never().flatten();
        std::iter::from_fn(next).map(|event| (event.order.0, event.hash.clone())).collect()
    }

    #[test]
    fn each_watcher_hears_of_its_deployment_only_and_none_stays_behind() {
        let (_handle, inbox) = channel();
        let published = &inbox.published;
        let [one, other] = [1, 2].map(|id| DeploymentId(Uuid::from_u128(id)));
        let (mut first, mut second) = (News::new(published, one), News::new(published, one));
        published.watchers.tell(entry(other, 2));
        published.watchers.tell(entry(one, 4));
        let expected = [(4, "b".to_owned())];
        assert_eq!((heard(&mut first), heard(&mut second)), (expected.to_vec(), expected.to_vec()));
        drop(first);
        published.watchers.tell(entry(one, 6));
        assert_eq!(heard(&mut second), [(6, "b".to_owned())]);
        drop(second);
        assert!(published.watchers.lock().is_empty());
    }

    #[test]
    fn a_watcher_that_is_too_slow_is_let_go() {
        let (_handle, inbox) = channel();
        let deployment = DeploymentId(Uuid::from_u128(1));
        let mut slow = News::new(&inbox.published, deployment);
        (0..=WAITING as u64).for_each(|place| inbox.published.watchers.tell(entry(deployment, 2 * place + 2)));
        assert_eq!(heard(&mut slow).len(), WAITING);
        assert_eq!(slow.next().now_or_never().map(|event| event.is_none()), Some(true), "it is told so");
    }
}

//! What waits for the driver.

use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use holdfast_common::claim::Claim;
use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_common::report::{Disposition, Report};
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::input::Speaker;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::watchers::Watchers;
use super::{Asked, BATCH, Error, Handle, Told};
use crate::store::AgentRow;

/// Messages that may wait at once. More wait in their callers.
pub(super) const WAITING: usize = 1024;

/// One thing to do. Made by a [`Handle`], consumed by a driver.
pub struct Message {
    pub(super) body: Body,
    /// Given back when the message is taken, so that the queue is bounded.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// Called on the driver's thread, after the commit that covers what it tells. Never blocks.
pub(super) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

pub(super) enum Body {
    Ask { target: TargetName, asked: Box<Asked>, reply: Reply<Told> },
    State { target: TargetName, reply: oneshot::Sender<Option<Arc<TargetState>>> },
    TargetOf { deployment: DeploymentId, reply: oneshot::Sender<Option<TargetName>> },
    Orphan { report: Box<OrphanReport>, reply: Reply<Disposition> },
    Agent { row: Box<AgentRow>, reply: Reply<()> },
    Refused { who: String, what: String, why: String },
    SessionStarted(Speaker),
    AgentsChanged,
    Several(Vec<Message>),
    Stop(oneshot::Sender<()>),
}

pub(super) struct OrphanReport {
    pub(super) speaker: Speaker,
    pub(super) claim: Claim,
    pub(super) report: Report,
}

/// What the driver makes known to every handle.
pub(super) struct Published {
    /// Deployments that have not ended, so that their targets are found without asking.
    pub(super) live: RwLock<HashMap<DeploymentId, TargetName>>,
    /// The global order of the last committed event.
    pub(super) committed: watch::Sender<u64>,
    /// Who watches a deployment.
    pub(super) watchers: Watchers,
}

impl Published {
    pub(super) fn target_of(&self, deployment: DeploymentId) -> Option<TargetName> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(&deployment).cloned()
    }
}

/// Where messages wait. Dropping it answers everyone with [`Error::Stopped`].
pub struct Inbox {
    receiver: mpsc::Receiver<Message>,
    pub(super) published: Arc<Published>,
}

/// What was taken from the inbox.
pub struct Taken {
    /// For [`super::Driver::step`].
    pub messages: Vec<Message>,
    /// Set when the driver is to stop after these: to be told once the store is closed.
    pub stop: Option<oneshot::Sender<()>>,
}

/// A handle and the inbox that it fills.
#[must_use]
pub fn channel() -> (Handle, Inbox) {
    let (sender, receiver) = mpsc::channel();
    let published = Arc::new(Published {
        live: RwLock::default(),
        committed: watch::Sender::new(0),
        watchers: Watchers::default(),
    });
    let handle = Handle::new(sender, Arc::new(Semaphore::new(WAITING)), published.clone());
    (handle, Inbox { receiver, published })
}

impl Inbox {
    /// Waits for a first message, at most so long, and takes what else is there. `None` for ever.
    ///
    /// When every handle is gone it answers like a stop.
    #[must_use]
    pub fn wait(&self, at_most: Option<Duration>) -> Taken {
        let first = match at_most {
            Some(span) => self.receiver.recv_timeout(span),
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match first {
            Ok(message) => self.take(Some(message)),
            Err(RecvTimeoutError::Timeout) => self.take(None),
            Err(RecvTimeoutError::Disconnected) => Taken { messages: Vec::new(), stop: Some(oneshot::channel().0) },
        }
    }

    /// Takes what is there, without waiting.
    #[must_use]
    pub fn take_now(&self) -> Taken {
        self.take(None)
    }

    fn take(&self, first: Option<Message>) -> Taken {
        let mut taken = Taken { messages: Vec::new(), stop: None };
        let mut next = first;
        while taken.messages.len() < BATCH {
            match next.take().or_else(|| self.receiver.try_recv().ok()) {
                Some(Message { body: Body::Stop(stop), .. }) => {
                    taken.stop = Some(stop);
                    break;
                }
                Some(message) => taken.messages.push(message),
                None => break,
            }
        }
        taken
    }
}

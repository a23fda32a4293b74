//! What waits for the driver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, DeploymentId, OperatorName, TargetName};
use holdfast_common::report::{Disposition, Report};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::input::Speaker;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::fleet::{Change, Settled};
use super::identities::Judge;
use super::watchers::Watchers;
use super::{Asked, BATCH, Error, Handle, Told};
use crate::store::{AgentRow, DrainRow, TokenRow};

/// Messages that may wait at once. More wait in their callers.
pub(super) const WAITING: usize = 1024;

/// One thing to do. Made by a [`Handle`], consumed by a driver.
pub struct Message {
    pub(super) body: Body,
    /// Given back when the message is done with, so that the queue is bounded.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl Message {
    /// What was gathered into one piece, piece by piece.
    pub(super) fn each(self) -> Vec<Message> {
        match self.body {
            Body::Several(several) => several,
            body => vec![Message { body, _room: self._room }],
        }
    }

    /// Answers whoever asked that it was not done.
    pub(super) fn refuse(self, why: Error) {
        match self.body {
            Body::Ask { reply, .. } => reply.say(Err(why)),
            Body::Orphan { reply, .. } => reply.say(Err(why)),
            Body::Agent { reply, .. } => reply.say(Err(why)),
            Body::Identify { judge, .. } => judge.refuse(why),
            Body::Drain { reply, .. } => reply.say(Err(why)),
            Body::Resume { reply, .. } => reply.say(Err(why)),
            Body::MakeToken { reply, .. } | Body::RevokeToken { reply, .. } => reply.say(Err(why)),
            Body::Fleet { reply, .. } => reply.say(Err(why)),
            Body::State { .. }
            | Body::TargetOf { .. }
            | Body::Refused { .. }
            | Body::SessionStarted(_)
            | Body::AgentsChanged
            | Body::Stop(_) => {}
            Body::Several(several) => several.into_iter().for_each(|message| message.refuse(why.clone())),
        }
    }
}

/// Takes an answer.
type Hear<T> = Box<dyn FnOnce(T) + Send>;

/// The way back to whoever asked: called on the driver's thread, after the commit that covers what it tells. Never blocks. A
/// step that could not be written is done again from its messages, so it is used up only when it is said.
pub(super) struct Reply<T>(Arc<Mutex<Option<Hear<T>>>>);

impl<T> Clone for Reply<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Reply<T> {
    /// Says it to `then`.
    pub(super) fn to(then: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(then)))))
    }

    /// The first answer counts.
    pub(super) fn say(&self, answer: T) {
        let then = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(then) = then {
            then(answer);
        }
    }
}

impl<T: Send + 'static> Reply<T> {
    /// Says it to whoever waits.
    pub(super) fn new() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self::to(move |answer| drop(sender.send(answer))), receiver)
    }
}

pub(super) enum Body {
    Ask { target: TargetName, asked: Box<Asked>, reply: Reply<Result<Told, Error>> },
    State { target: TargetName, reply: Reply<Option<Arc<TargetState>>> },
    TargetOf { deployment: DeploymentId, reply: Reply<Option<TargetName>> },
    Orphan { report: Box<OrphanReport>, reply: Reply<Result<Disposition, Error>> },
    Agent { row: Box<AgentRow>, reply: Reply<Result<(), Error>> },
    Identify { agent: AgentName, judge: Arc<dyn Judge> },
    MakeToken { row: Box<TokenRow>, reply: Reply<Result<bool, Error>> },
    RevokeToken { row: Box<TokenRow>, by: OperatorName, reply: Reply<Result<bool, Error>> },
    Fleet { change: Box<Change>, reply: Reply<Result<Settled, Error>> },
    Drain { row: Box<DrainRow>, reply: Reply<Result<Wall, Error>> },
    Resume { agent: AgentName, by: OperatorName, reply: Reply<Result<bool, Error>> },
    Refused { who: String, what: String, why: String },
    SessionStarted(Speaker),
    AgentsChanged,
    Several(Vec<Message>),
    Stop(oneshot::Sender<()>),
}

#[derive(Clone)]
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
    /// Agents changed, and the driver has not taken it up: it is told once for all of them.
    pub(super) changed: AtomicBool,
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
    // Bounded by the room that each message takes, but for three that can't heap up: pieces, whose messages have room, news of agents,
    // which is told once until it is taken up, and one stop.
    let (sender, receiver) = mpsc::channel();
    let published = Arc::new(Published {
        live: RwLock::default(),
        committed: watch::Sender::new(0),
        changed: AtomicBool::new(false),
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
                Some(message) => {
                    if matches!(message.body, Body::AgentsChanged) {
                        // Before it is looked at who is there: what changes from now on is told again.
                        self.published.changed.store(false, Ordering::SeqCst);
                    }
                    taken.messages.push(message);
                }
                None => break,
            }
        }
        taken
    }
}

//! What the driver's thread is told.

use holdfast_agent_core::decide::Refused;
use holdfast_common::id::{AttemptId, EvidenceId, Revision, SessionId, StepName};
use holdfast_common::outcome::{Exit, Reading, StepEnd};
use holdfast_common::report::Reread;
use holdfast_proto::v1::{ConnectRequest, Hello};
use tokio::sync::{mpsc, oneshot};

use crate::session::{FromCoordinator, Hurry, Welcome};

/// What the driver's thread is told.
#[derive(Debug)]
pub enum Event {
    /// The session wants to introduce itself.
    Hello(oneshot::Sender<Hello>),
    /// A session began.
    Up(Welcome, mpsc::Sender<ConnectRequest>),
    /// The session is over. How soon another one is needed is answered.
    Down(oneshot::Sender<Hurry>),
    /// The coordinator said something in a session.
    Message(SessionId, FromCoordinator),
    /// The hands did or saw something.
    Hand(HandEvent),
    /// Somebody asks the agent to stop, once more.
    Leave,
    /// Write what is left and end the thread. Work goes on under its shims.
    Stop,
}

/// What the hands did or saw. An attempt here is the one whose folder holds the records.
#[derive(Debug)]
pub enum HandEvent {
    /// A step's archive was looked at: why it is refused, where it is.
    Examined(AttemptId, StepName, Option<Refused>),
    /// A carried step's resource was read again, or could not be.
    Reread(AttemptId, StepName, Reread),
    /// A step's start record stands and its body runs.
    Started(AttemptId, StepName),
    /// A step is over, as told by its exit and its resource.
    Ended(AttemptId, StepName, Told),
    /// A stop signal was sent, or nothing was there to signal.
    StopActed(AttemptId, String),
    /// What was asked for could not be done yet: why, for people.
    StopHeldUp(AttemptId, String),
    /// A tombstone stands: the step never began and never can.
    Tombstoned(AttemptId, StepName),
    /// After a restart: the step had not begun.
    FoundNotStarted(AttemptId),
    /// After a restart, or in answer to a tombstone: the step's shim lives.
    FoundRunning(AttemptId),
    /// An inquiry was done.
    Inquired(EvidenceId, Finding),
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// As far as anybody knows.
    pub end: StepEnd,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// Read back.
    pub observed: Option<Revision>,
    /// For people.
    pub detail: String,
}

/// What came of an inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The resource was read.
    Read(Reading),
    /// The fence was raised, and the resource read after it.
    Raised(Reading),
    /// It could not be done.
    Failed(String),
}

//! Why the driver did not do what was asked.

use std::sync::Arc;

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_coordinator_core::Refusal;
use holdfast_net::room::Room;

use crate::store;
use crate::verify::Finding;

/// Why not. Nothing has changed, except where [`Error::Stopped`] says that nobody knows.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The core refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The target was never declared.
    #[error("target {0} is not declared")]
    NotDeclared(TargetName),
    /// The request id stands for another request.
    #[error("this request id was used for another request, which is deployment {existing}")]
    RequestIdReused {
        /// What it stands for.
        existing: DeploymentId,
    },
    /// A resource of the declaration belongs to another target.
    #[error("resource {} belongs to target {}", .0.resource, .0.target)]
    ResourceTaken(store::Taken),
    /// A rule of the store refused what was decided, or what it holds of the target is damaged. A fault of Holdfast.
    #[error("the store refused")]
    Store(#[source] Arc<store::Error>),
    /// What was decided can't follow from the state that it was decided on. A fault of Holdfast.
    #[error("a decision contradicts the state: {0}")]
    Contradiction(String),
    /// The store does not follow from its events: nothing is granted until it does. Nothing was recorded.
    #[error("the store differs from its events: {0}")]
    Unsound(Box<Finding>),
    /// The disk has no room for it. Nothing was recorded.
    #[error("{0}")]
    NoRoom(Room),
    /// The driver has stopped or is stopping. What was asked may have been taken.
    #[error("the coordinator is stopping")]
    Stopped,
}

impl Error {
    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Error::Refused(refusal) => refusal.code(),
            Error::NotDeclared(_) => Code::TargetNotFound,
            Error::RequestIdReused { .. } => Code::RequestIdReused,
            Error::ResourceTaken(_) => Code::ResourceTaken,
            Error::Store(_) => Code::StoreFailed,
            Error::Contradiction(_) => Code::Internal,
            Error::Unsound(_) => Code::StoreUnsound,
            Error::NoRoom(_) => Code::DiskFull,
            Error::Stopped => Code::NotServing,
        }
    }
}

/// The store failed, and nobody knows what is on disk. The process must stop.
#[derive(Debug, thiserror::Error)]
#[error("the store failed: nothing more is answered")]
pub struct Fatal(#[source] pub store::Error);

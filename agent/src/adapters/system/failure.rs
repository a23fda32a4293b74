//! Why a call did not do what it was to do.

use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;

use crate::adapters::exit;

/// What stood in the way. All but [`Part`](Self::Part) and the last say that nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The resource has seen a higher fence.
    #[error("refused: fence {fence} was fenced off here{}", highest.map_or(String::new(), |highest| format!(", the highest seen is {highest}")))]
    FencedOff {
        /// The attempt's.
        fence: Fence,
        /// The resource's, where it tells.
        highest: Option<Fence>,
    },
    /// The revision before is not the expected one.
    #[error("refused: the revision here is {}, expected was {expected}", found.as_ref().map_or("not known".to_owned(), Revision::to_string))]
    Revision {
        /// As the attempt expected.
        expected: Revision,
        /// As it is.
        found: Option<Revision>,
    },
    /// What is to be put in place is not fit for it.
    #[error("refused: {0}")]
    Content(String),
    /// The resource is not what it was declared to be, or does not let us in.
    #[error("refused: {0}")]
    Resource(String),
    /// The resource asks for another try later, and has begun nothing.
    #[error("{0}")]
    Transient(String),
    /// A part of the operation is there, the rest was refused, and nothing of it is under way.
    #[error("after a part of the operation was applied: {0}")]
    Part(String),
    /// It could not be begun.
    #[error("could not begin: {0}")]
    NotBegun(String),
    /// Anything else: what became of the change is not said by this, and it may be under way.
    #[error("{0}")]
    Machinery(String),
}

impl Failure {
    /// What the process exits with.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Failure::FencedOff { .. } => exit::REFUSED_FENCE,
            Failure::Revision { .. } => exit::REFUSED_REVISION,
            Failure::Content(_) => exit::REFUSED_CONTENT,
            Failure::Resource(_) => exit::REFUSED_RESOURCE,
            Failure::Transient(_) => exit::TRANSIENT,
            Failure::Part(_) => exit::PART,
            Failure::NotBegun(_) => exit::NOT_BEGUN,
            Failure::Machinery(_) => exit::MACHINERY,
        }
    }
}

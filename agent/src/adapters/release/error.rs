//! Why a release was not applied or a fence not raised.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;

use crate::adapters::exit;
use crate::archive;

/// What stood in the way.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The resource has seen a higher fence, or this one was raised against this attempt.
    #[error("refused: fence {fence} was fenced off here")]
    FencedOff {
        /// The attempt's fence.
        fence: Fence,
    },
    /// The revision before is not the expected one.
    #[error("refused: the revision here is {}, expected was {expected}", shown(found))]
    Revision {
        /// As the attempt expected.
        expected: Revision,
        /// As it is.
        found: Option<Revision>,
    },
    /// The revision to put back is not there any more.
    #[error("refused: revision {revision} is not retained here")]
    NotRetained {
        /// As it was asked for.
        revision: Revision,
    },
    /// A fence so far above all others that no coordinator can have counted there.
    #[error("refused: fence {fence} is more than {limit} above the highest one here")]
    TooFar {
        /// The fence.
        fence: Fence,
        /// Largest step.
        limit: u64,
    },
    /// `current` is something that Holdfast did not make and must not replace.
    #[error("refused: {} is not a symbolic link", path.display())]
    NotALink {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else can swap names under the agent.
    #[error("refused: {} is not safe to act in: {why}", path.display())]
    NotSafe {
        /// Which folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The archive.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    /// A call failed.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// The verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of ours has content that is not ours.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

fn shown(revision: &Option<Revision>) -> String {
    revision.as_ref().map_or("not known".to_owned(), Revision::to_string)
}

/// Names the call in an I/O error.
pub(super) fn io_at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}

impl Error {
    /// What `internal release-apply` exits with.
    #[must_use]
    pub fn exit(&self) -> u8 {
        match self {
            Error::FencedOff { .. } | Error::TooFar { .. } => exit::REFUSED_FENCE,
            Error::Revision { .. } | Error::NotRetained { .. } => exit::REFUSED_REVISION,
            Error::Archive(error) if error.is_refusal() => exit::REFUSED_CONTENT,
            Error::NotALink { .. } | Error::NotSafe { .. } => exit::REFUSED_RESOURCE,
            Error::Archive(_) | Error::Io { .. } | Error::Damaged { .. } => exit::MACHINERY,
        }
    }
}

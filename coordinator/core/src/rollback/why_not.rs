//! What stands in the way of going back, in words.

use holdfast_common::id::{ResourceName, Revision, StepName};
use holdfast_common::rollback::DataRange;
use holdfast_common::time::Wall;

/// Why a target can't go back over a deployment now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyNot {
    /// Nothing to undo.
    #[error("#{number} has changed nothing")]
    NothingChanged {
        /// The deployment.
        number: u64,
    },
    /// What a rollback left in part can't be undone by another.
    #[error("#{number} is a rollback itself, and left its changes in part: deploy a release instead")]
    IsRollback {
        /// The rollback.
        number: u64,
    },
    /// Its file says nothing of going back.
    #[error("the file of #{number} has no [rollback]")]
    NoWay {
        /// The deployment.
        number: u64,
    },
    /// Nothing would tell whether what was gone back to is healthy.
    #[error("no health check is declared for what was there before #{number}")]
    NoCheck {
        /// The deployment.
        number: u64,
    },
    /// Data is gone, and nobody has tried to bring it back.
    #[error("step {step} of #{number} destroyed data, and no recovery of it was tested")]
    Destroyed {
        /// The deployment.
        number: u64,
        /// The step.
        step: StepName,
    },
    /// The adapter can't go back by itself, and the file has no steps for it.
    #[error("{resource} has no reverse transition, and the file of #{number} has no steps of its own for it")]
    NoReverse {
        /// The deployment.
        number: u64,
        /// The resource.
        resource: ResourceName,
    },
    /// Nobody knows what was there before.
    #[error("what {resource} had before #{number} is not on record")]
    NothingBefore {
        /// The deployment.
        number: u64,
        /// The resource.
        resource: ResourceName,
    },
    /// What was there before is gone.
    #[error("{resource} does not retain {revision} any more")]
    NotRetained {
        /// The resource.
        resource: ResourceName,
        /// The revision.
        revision: Revision,
    },
    /// The window has passed.
    #[error("the time until which the file of #{number} calls going back compatible has passed")]
    WindowOver {
        /// The deployment.
        number: u64,
        /// Until when.
        until: Wall,
    },
    /// The version of the data is not within what the release before can live with.
    #[error("the file of #{number} says that going back is compatible with data {range}, and {}", data(.version.as_ref()))]
    DataOutside {
        /// The deployment.
        number: u64,
        /// What the release before can live with.
        range: DataRange,
        /// The resource with the data and its version, where one is on record.
        version: Option<(ResourceName, Revision)>,
    },
}

impl WhyNot {
    /// Whether a person may say how they know that it is compatible all the same.
    #[must_use]
    pub fn may_be_attested(&self) -> bool {
        match self {
            WhyNot::WindowOver { .. } | WhyNot::DataOutside { .. } => true,
            WhyNot::NothingChanged { .. }
            | WhyNot::IsRollback { .. }
            | WhyNot::NoWay { .. }
            | WhyNot::NoCheck { .. }
            | WhyNot::Destroyed { .. }
            | WhyNot::NoReverse { .. }
            | WhyNot::NothingBefore { .. }
            | WhyNot::NotRetained { .. } => false,
        }
    }
}

fn data(version: Option<&(ResourceName, Revision)>) -> String {
    match version {
        Some((resource, version)) => format!("{resource} is at {version}"),
        None => "the version of the data is not on record".to_owned(),
    }
}

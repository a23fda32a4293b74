//! Where a deployment has come to rest, and what a command that waited for it exits with.

use clap::ValueEnum;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_proto::v1::{self, DeploymentState};

use crate::failure::Failure;

/// It moves no further by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Uncertain or held: the target is reserved and somebody must decide.
    NeedsDecision,
    /// Ended well.
    Succeeded,
    /// Ended, and failed.
    Failed,
    /// Ended after a cancel.
    Cancelled,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// Succeeded, failed or cancelled
    Terminal,
    /// Terminal, or uncertain, or held: somebody must decide
    #[default]
    Settled,
}

impl Rest {
    /// Of a state on the wire; `None` while it may still move by itself. A state that this version does not know is
    /// refused, never taken for one that it does.
    pub fn of(state: i32) -> Result<Option<Rest>, Failure> {
        match DeploymentState::try_from(state) {
            Ok(DeploymentState::Queued | DeploymentState::Active) => Ok(None),
            Ok(DeploymentState::Uncertain | DeploymentState::Held) => Ok(Some(Rest::NeedsDecision)),
            Ok(DeploymentState::Succeeded) => Ok(Some(Rest::Succeeded)),
            Ok(DeploymentState::Failed) => Ok(Some(Rest::Failed)),
            Ok(DeploymentState::Cancelled) => Ok(Some(Rest::Cancelled)),
            Ok(DeploymentState::Unspecified) | Err(_) => Err(Problem::new(
                Code::ProtocolVersion,
                format!("the coordinator tells a state that this version does not know: number {state}"),
            )
            .not_known("where the deployment stands")
            .next("use a holdfast of the coordinator's version: holdfast whoami tells it")
            .into()),
        }
    }

    /// Of a deployment.
    pub fn of_deployment(deployment: &v1::Deployment) -> Result<Option<Rest>, Failure> {
        Self::of(deployment.summary.as_ref().map_or(0, |summary| summary.state))
    }

    /// Of a command that wanted the deployment to succeed.
    #[must_use]
    pub fn exit(self) -> ExitCode {
        match self {
            Rest::NeedsDecision => ExitCode::NeedsDecision,
            Rest::Succeeded => ExitCode::Done,
            Rest::Failed => ExitCode::Failed,
            Rest::Cancelled => ExitCode::Cancelled,
        }
    }

    /// Of a command that wanted it stopped: a success means that the cancel came too late.
    #[must_use]
    pub fn exit_of_cancel(self) -> ExitCode {
        match self {
            Rest::Succeeded => ExitCode::CancelTooLate,
            Rest::NeedsDecision | Rest::Failed | Rest::Cancelled => self.exit(),
        }
    }
}

impl Goal {
    /// Whether this is what is waited for.
    #[must_use]
    pub fn is_reached(self, rest: Rest) -> bool {
        match (self, rest) {
            (Goal::Terminal, Rest::NeedsDecision) => false,
            (Goal::Terminal, Rest::Succeeded | Rest::Failed | Rest::Cancelled) | (Goal::Settled, _) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_exits_as_the_reference_says() {
        for (state, watched, cancelled) in [
            (DeploymentState::Succeeded, 0, 13),
            (DeploymentState::Failed, 10, 10),
            (DeploymentState::Cancelled, 11, 11),
            (DeploymentState::Uncertain, 12, 12),
            (DeploymentState::Held, 12, 12),
        ] {
            let rest = Rest::of(state as i32).expect("known").expect("at rest");
            assert_eq!((rest.exit() as u8, rest.exit_of_cancel() as u8), (watched, cancelled), "{state:?}");
        }
        for state in [DeploymentState::Queued, DeploymentState::Active] {
            assert_eq!(Rest::of(state as i32).expect("known"), None);
        }
    }

    #[test]
    fn a_state_of_another_version_is_no_outcome() {
        for state in [0, 8, -1, i32::MAX] {
            let failure = Rest::of(state).expect_err("unknown");
            assert_eq!(failure.exit(), ExitCode::Precondition);
        }
    }

    #[test]
    fn an_uncertain_deployment_is_settled_and_not_terminal() {
        assert!(Goal::Settled.is_reached(Rest::NeedsDecision));
        assert!(!Goal::Terminal.is_reached(Rest::NeedsDecision));
        assert!(Goal::Terminal.is_reached(Rest::Cancelled));
    }
}

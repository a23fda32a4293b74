//! What a decision is, and what is to be done after its commit.

use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, DeploymentId, EvidenceId, IncarnationId, ResourceName, StepName};
use holdfast_common::report::{Disposition, PermitDenial};
use holdfast_common::time::{Millis, Serving};

use crate::event::Event;
use crate::state::{DeploymentState, InquiryKind};

/// What follows from an input: facts to write, and the answer to give once they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    /// To be written in one transaction, in order.
    pub events: Vec<Event>,
    /// To be given after the commit.
    pub answer: Answer,
}

/// The answer to whoever gave the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done; nothing to tell.
    Done,
    /// The deployment was recorded.
    Submitted {
        /// Counts per target.
        number: u64,
    },
    /// The lease lives; heard at this serving time. Not written unless the decision has an event for it.
    Renewed {
        /// The new last sign of life.
        heard: Serving,
        /// How long the lease lasts from then.
        ttl: Millis,
    },
    /// The attempt is not current: the agent stops its steps without effect and starts nothing more.
    Superseded,
    /// The permit is on record.
    Permitted,
    /// No permit.
    Denied(PermitDenial),
    /// The one answer to a report.
    Answered(Disposition),
    /// The stop is on record.
    CancelRecorded,
    /// The deployment never began and is cancelled.
    CancelledAtOnce,
    /// The deployment had ended before the request.
    CancelTooLate(DeploymentState),
    /// The inquiry is on record and will be sent.
    InquiryOpened(EvidenceId),
    /// The decision is on record; the deployment now stands here.
    Decided(DeploymentState),
}

/// What should be under way. Derived from state by `due`, so that a crash between commit and send loses nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Gather the candidates and feed `Input::Assign`.
    Assign {
        /// For this deployment.
        deployment: DeploymentId,
    },
    /// Find out who reaches the resource in question and feed `Input::Recover`.
    Recover {
        /// For this deployment.
        deployment: DeploymentId,
    },
    /// Send the offer to the attempt's agent, in a session of the attempt's incarnation.
    Offer {
        /// To whom.
        agent: AgentName,
        /// To which journal.
        incarnation: IncarnationId,
        /// The lease.
        claim: Claim,
    },
    /// Tell the attempt's agent that a stop is asked for, until it confirms.
    Cancel {
        /// To whom.
        agent: AgentName,
        /// About which attempt.
        claim: Claim,
    },
    /// Ask an agent about a resource, until it answers.
    Inquire {
        /// Whom.
        agent: AgentName,
        /// Which inquiry.
        inquiry: EvidenceId,
        /// About which resource.
        resource: ResourceName,
        /// About which step's operation.
        deployment: DeploymentId,
        /// The step.
        step: StepName,
        /// What.
        kind: InquiryKind,
    },
}

//! What may be asked of the driver, and what it tells.

use std::sync::Arc;

use holdfast_common::claim::Claim;
use holdfast_common::id::{
    AttemptId, DeploymentId, EvidenceId, OperatorName, RequestId, ResourceName, Revision, StepName,
};
use holdfast_common::recovery::{Attestation, DecisionKind, Runner};
use holdfast_common::report::{Declined, Report};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, TargetSpec};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::input::{Finding, Speaker, Until, Via};
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::EvidenceSequence;
use holdfast_coordinator_core::{Answer, TargetState};

/// An input of the core without what the driver draws or looks up itself: identities, jitter, what the store
/// remembers, which agents there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Declare the target, or declare it anew.
    Declare {
        /// As declared. Its name is the target that is asked.
        spec: TargetSpec,
        /// By whom.
        by: OperatorName,
    },
    /// Ask for a deployment. The same request id with the same content is the same deployment.
    Submit {
        /// The client's name for it.
        request: RequestId,
        /// SHA-256 of the request's content, as the client sent it.
        digest: [u8; 32],
        /// What is asked for, resolved.
        spec: DeploymentSpec,
        /// By whom.
        by: OperatorName,
        /// Refuse instead of waiting when the target is held.
        no_queue: bool,
    },
    /// Ask to go back to an earlier revision. The same request id with the same content is the same deployment.
    Rollback {
        /// The client's name for it.
        request: RequestId,
        /// SHA-256 of the request's content, as the client sent it.
        digest: [u8; 32],
        /// What to go back to.
        to: Revision,
        /// The numbers of the deployments that the asker was shown to be undone, the newest first.
        shown: Vec<u64>,
        /// By whom.
        by: OperatorName,
        /// Why.
        reason: String,
        /// How they know that it is compatible all the same.
        attested: Option<String>,
        /// What resources were seen to retain.
        retained: Retained,
    },
    /// An agent answered an offer.
    OfferAnswered {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// `None` accepts.
        declined: Option<Declined>,
    },
    /// A sign of life under a claim.
    Heard {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// On which stream.
        via: Via,
    },
    /// An agent says that it goes and will be back.
    Detached {
        /// Who.
        speaker: Speaker,
        /// About what it holds.
        claim: Claim,
        /// How long it will be away.
        away: Millis,
    },
    /// An agent asks to begin a mutating step.
    PermitRequested {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// Which step.
        step: StepName,
        /// The plan it holds.
        plan: PlanDigest,
    },
    /// An agent says what it observed.
    Reported {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// What.
        report: Report,
    },
    /// An agent came back and its journal speaks of an attempt.
    JournalSpoke {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// What the journal says of the runner.
        runner: Runner,
        /// For people.
        detail: String,
    },
    /// Ask for a stop.
    Cancel {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
        /// Why.
        reason: String,
    },
    /// Ask for a look at the open step's resource.
    Inspect {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
    },
    /// Ask for a raise of the open step's resource above the old attempt.
    FenceOff {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
        /// Why.
        reason: String,
    },
    /// An agent answered an inquiry.
    InquiryAnswered {
        /// Who.
        speaker: Speaker,
        /// Which inquiry.
        inquiry: EvidenceId,
        /// What it found.
        finding: Finding,
    },
    /// A person says what they know.
    Attest {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who.
        by: OperatorName,
        /// What.
        attestation: Attestation,
    },
    /// A person says which revision they saw at a resource.
    AttestRevision {
        /// Who.
        by: OperatorName,
        /// Where.
        resource: ResourceName,
        /// What they saw.
        revision: Revision,
        /// How they know.
        how: String,
    },
    /// A person decides.
    Decide {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who.
        by: OperatorName,
        /// What.
        kind: DecisionKind,
        /// Why.
        reason: String,
        /// The last evidence they were shown.
        shown: EvidenceSequence,
        /// What resources were seen to retain: for a decision to go back.
        retained: Retained,
    },
    /// Put the target on hold, or replace its hold.
    Hold {
        /// Who.
        by: OperatorName,
        /// Why.
        reason: String,
        /// When it is to end by itself.
        until: Option<Until>,
    },
    /// Take the target's hold away.
    Unhold {
        /// Who.
        by: OperatorName,
    },
}

impl Asked {
    /// What an operator asked, and which one: kept when it is refused. `None` for what agents say.
    pub(super) fn by_operator(&self) -> Option<(&'static str, &OperatorName)> {
        match self {
            Asked::Declare { by, .. } => Some(("declare", by)),
            Asked::Submit { by, .. } => Some(("submit", by)),
            Asked::Rollback { by, .. } => Some(("roll back", by)),
            Asked::Cancel { by, .. } => Some(("cancel", by)),
            Asked::Inspect { by, .. } => Some(("inspect", by)),
            Asked::FenceOff { by, .. } => Some(("fence off", by)),
            Asked::Attest { by, .. } | Asked::AttestRevision { by, .. } => Some(("attest", by)),
            Asked::Decide { by, .. } => Some(("decide", by)),
            Asked::Hold { by, .. } => Some(("hold", by)),
            Asked::Unhold { by } => Some(("unhold", by)),
            Asked::OfferAnswered { .. }
            | Asked::Heard { .. }
            | Asked::Detached { .. }
            | Asked::PermitRequested { .. }
            | Asked::Reported { .. }
            | Asked::JournalSpoke { .. }
            | Asked::InquiryAnswered { .. } => None,
        }
    }

    /// The attempt under whose lease it is said.
    pub(super) fn attempt(&self) -> Option<AttemptId> {
        match self {
            Asked::OfferAnswered { claim, .. }
            | Asked::Heard { claim, .. }
            | Asked::PermitRequested { claim, .. }
            | Asked::Reported { claim, .. } => Some(claim.attempt),
            Asked::Declare { .. }
            | Asked::Submit { .. }
            | Asked::Rollback { .. }
            | Asked::Detached { .. }
            | Asked::JournalSpoke { .. }
            | Asked::Cancel { .. }
            | Asked::Inspect { .. }
            | Asked::FenceOff { .. }
            | Asked::InquiryAnswered { .. }
            | Asked::Attest { .. }
            | Asked::AttestRevision { .. }
            | Asked::Decide { .. }
            | Asked::Hold { .. }
            | Asked::Unhold { .. } => None,
        }
    }

    /// The deployment it is about, where it names one.
    pub(super) fn deployment(&self) -> Option<DeploymentId> {
        match self {
            Asked::OfferAnswered { claim, .. }
            | Asked::Heard { claim, .. }
            | Asked::Detached { claim, .. }
            | Asked::PermitRequested { claim, .. }
            | Asked::Reported { claim, .. }
            | Asked::JournalSpoke { claim, .. } => Some(claim.deployment),
            Asked::Cancel { deployment, .. }
            | Asked::Inspect { deployment, .. }
            | Asked::FenceOff { deployment, .. }
            | Asked::Attest { deployment, .. }
            | Asked::Decide { deployment, .. } => Some(*deployment),
            Asked::Declare { .. }
            | Asked::Submit { .. }
            | Asked::Rollback { .. }
            | Asked::InquiryAnswered { .. }
            | Asked::AttestRevision { .. }
            | Asked::Hold { .. }
            | Asked::Unhold { .. } => None,
        }
    }
}

/// The core's answer, and what the caller needs beside it. On disk before it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Told {
    /// The answer.
    pub answer: Answer,
    /// The deployment it is about.
    pub deployment: Option<DeploymentId>,
    /// Whether the submission had been recorded before.
    pub existed: bool,
    /// Of a submission: the target's state after the commit.
    pub after: Option<Arc<TargetState>>,
}

impl Told {
    /// The deployment that was recorded just now.
    pub(super) fn submitted(&self) -> Option<DeploymentId> {
        let recorded = matches!(self.answer, Answer::Submitted { .. }) && !self.existed;
        self.deployment.filter(|_| recorded)
    }
}

//! Why something that an operator asked for is not done. Changes nothing.

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, DeploymentLabel, ResourceName, Revision};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::OrderKey;

use crate::rollback::WhyNot;
use crate::state::{DeploymentState, EvidenceSequence, HighestOrder, OperatorHold};

/// Why not. Reports, permits and heartbeats are never refused: they have answers of their own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The target was never declared.
    #[error("the target is not declared")]
    NotDeclared,
    /// A declaration that would change resources or agents under a deployment.
    #[error("{holder} holds the target: its resources can't change now")]
    TargetInUse {
        /// Who holds it.
        holder: DeploymentLabel,
    },
    /// The target is held, and the caller does not want to wait.
    #[error("{holder} holds the target and is {state:?}")]
    TargetHeld {
        /// Who holds it.
        holder: DeploymentLabel,
        /// How it stands.
        state: DeploymentState,
    },
    /// Too many wait already.
    #[error("{waiting} deployments wait already")]
    QueueFull {
        /// How many.
        waiting: usize,
    },
    /// A pinned revision is not the recorded one.
    #[error("resource {resource} has revision {recorded:?}, the file expects {expected}")]
    RevisionMismatch {
        /// The resource.
        resource: ResourceName,
        /// What the file pins.
        expected: Revision,
        /// What is recorded.
        recorded: Option<Revision>,
    },
    /// A deployment with a higher order key held the target before.
    #[error("order key {order} is lower than {}, which {before} had", .highest.key)]
    OrderPassed {
        /// What the file claims.
        order: OrderKey,
        /// The highest that held the target.
        highest: HighestOrder,
        /// Who had it.
        before: DeploymentLabel,
    },
    /// An operator has put the target on hold, and the caller does not want to wait.
    #[error("{} has put the target on hold", .0.by)]
    TargetOnHold(OperatorHold),
    /// There is no hold to take away.
    #[error("the target is not on hold")]
    NotOnHold,
    /// A person's word on an unread resource that does not say what they saw.
    #[error("the deployment waits for the revision of {resource}: say which one you saw")]
    ObservedMissing {
        /// The resource.
        resource: ResourceName,
    },
    /// A word on a resource that the target does not have.
    #[error("the target has no resource {resource}")]
    NoSuchResource {
        /// The resource.
        resource: ResourceName,
    },
    /// No such deployment on this target.
    #[error("no deployment {0} on this target")]
    DeploymentNotFound(DeploymentId),
    /// Neither uncertain nor held.
    #[error("the deployment is {state:?}: there is nothing to reconcile")]
    NothingToReconcile {
        /// Where it stands.
        state: DeploymentState,
    },
    /// The decision lacks its proof.
    #[error("{kind:?} is not open: {why_not}")]
    DecisionNotOpen {
        /// Which.
        kind: DecisionKind,
        /// What is missing.
        why_not: String,
    },
    /// Newer evidence came.
    #[error("evidence {newest:?} arrived after {shown:?}, which the decision was shown")]
    EvidenceMoved {
        /// What the decision was shown.
        shown: EvidenceSequence,
        /// What there is.
        newest: EvidenceSequence,
    },
    /// Nothing to look at, no means to look, or nobody who reaches it.
    #[error("can't inspect: {why}")]
    CannotInspect {
        /// Why.
        why: String,
    },
    /// No open step, one that no fence holds back, or nobody who reaches its resource.
    #[error("can't fence off: {why}")]
    CannotFenceOff {
        /// Why.
        why: String,
    },
    /// No deployment whose changes stand had found that revision, or has steps of its own that bring it.
    #[error("no deployment that stands here had found {revision}, or has steps of its own that bring it")]
    NothingToGoBackTo {
        /// What was asked for.
        revision: Revision,
    },
    /// The way back is not compatible now.
    #[error("can't go back: {0}")]
    CannotGoBack(WhyNot),
    /// What stands is not what the asker was shown.
    #[error("going back there undoes {} now, and you were shown {}", numbers(.now), numbers(.shown))]
    PlaceMoved {
        /// What the asker was shown to be undone.
        shown: Vec<u64>,
        /// What would be undone now.
        now: Vec<u64>,
    },
    /// The store's fences are used up.
    #[error("no fence is left in this epoch")]
    FenceExhausted,
    /// A fault of this program: the decision contradicts the state. Nothing of it may be written.
    #[error("a decision contradicts the state: {because}")]
    Broken {
        /// Which event could not follow.
        because: &'static str,
    },
}

impl Refusal {
    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Refusal::NotDeclared => Code::TargetNotFound,
            Refusal::TargetInUse { .. } => Code::TargetInUse,
            Refusal::TargetHeld { state, .. } => match state {
                DeploymentState::Uncertain => Code::TargetUncertain,
                DeploymentState::Held => Code::TargetWaitsForDecision,
                DeploymentState::Queued
                | DeploymentState::Active
                | DeploymentState::Succeeded
                | DeploymentState::Failed
                | DeploymentState::Cancelled => Code::TargetBusy,
            },
            Refusal::QueueFull { .. } => Code::QueueFull,
            Refusal::RevisionMismatch { .. } => Code::RevisionMismatch,
            Refusal::OrderPassed { .. } => Code::OrderPassed,
            Refusal::TargetOnHold(_) => Code::TargetOnHold,
            Refusal::NotOnHold => Code::NotOnHold,
            Refusal::ObservedMissing { .. } => Code::ObservedMissing,
            Refusal::DeploymentNotFound(_) => Code::DeploymentNotFound,
            Refusal::NothingToReconcile { .. } | Refusal::NoSuchResource { .. } => Code::NothingToReconcile,
            Refusal::DecisionNotOpen { .. } => Code::DecisionNotOpen,
            Refusal::EvidenceMoved { .. } => Code::EvidenceMoved,
            Refusal::CannotInspect { .. } => Code::CannotInspect,
            Refusal::CannotFenceOff { .. } => Code::CannotFenceOff,
            Refusal::NothingToGoBackTo { .. } => Code::NothingToGoBackTo,
            Refusal::CannotGoBack(_) => Code::CannotGoBack,
            Refusal::PlaceMoved { .. } => Code::PlaceMoved,
            Refusal::FenceExhausted => Code::FenceExhausted,
            Refusal::Broken { .. } => Code::Internal,
        }
    }
}

/// Like `#12, #11`.
fn numbers(numbers: &[u64]) -> String {
    match numbers {
        [] => "nothing".to_owned(),
        some => some.iter().map(|number| format!("#{number}")).collect::<Vec<_>>().join(", "),
    }
}

//! What is kept but is not authority, what was asked, and what was decided on it.

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{
    AgentName, AttemptId, EvidenceId, IncarnationId, OperatorName, ResourceName, Revision, StepName,
};
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::recovery::{Attestation, DecisionKind, Runner};
use holdfast_common::report::{FiledReason, Report};
use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

/// Counts a deployment's evidence from 1. Freshness is decided by it, never by a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvidenceSequence(pub u64);

/// What is kept but is not authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its identity.
    pub id: EvidenceId,
    /// Its place among the deployment's evidence.
    pub sequence: EvidenceSequence,
    /// When the coordinator received it.
    pub received_at: Wall,
    /// What it is.
    pub body: EvidenceBody,
}

/// What a piece of evidence is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum EvidenceBody {
    /// A report that was not accepted.
    LateReport {
        /// Its claim, as sent.
        claim: Claim,
        /// Who sent it.
        agent: AgentName,
        /// From which journal.
        incarnation: IncarnationId,
        /// What it said.
        report: Report,
        /// Why it is evidence only.
        filed: FiledReason,
    },
    /// A read-only look at a resource.
    Inspection {
        /// The inquiry it answers.
        inquiry: EvidenceId,
        /// The attempt that it was asked about; `None` for a look at a resource before any attempt.
        attempt: Option<AttemptId>,
        /// Whether its request was committed after the runner was out.
        after_runner_out: bool,
        /// Who looked.
        agent: AgentName,
        /// At which resource.
        resource: ResourceName,
        /// For which step.
        step: StepName,
        /// What was seen.
        reading: Reading,
    },
    /// A resource's fence was raised, confirmed by the resource.
    FencedOff {
        /// The inquiry it answers.
        inquiry: EvidenceId,
        /// The attempt that it was asked about.
        attempt: Option<AttemptId>,
        /// Through whom.
        agent: AgentName,
        /// At which resource.
        resource: ResourceName,
        /// For which step.
        step: StepName,
        /// The fence that now refuses everything below.
        fence: Fence,
    },
    /// An inspection or fence-off could not be done.
    InquiryFailed {
        /// The inquiry it answers.
        inquiry: EvidenceId,
        /// Through whom.
        agent: AgentName,
        /// Why, for people.
        detail: String,
    },
    /// What a journal said about an attempt when its agent came back.
    JournalWord {
        /// Who.
        agent: AgentName,
        /// From which journal.
        incarnation: IncarnationId,
        /// Of which attempt.
        attempt: AttemptId,
        /// What it said of the runner.
        runner: Runner,
        /// For people.
        detail: String,
    },
    /// A person's reading.
    Attested {
        /// Who.
        by: OperatorName,
        /// The attempt that was the last one then; `None` before any.
        attempt: Option<AttemptId>,
        /// What.
        attestation: Attestation,
    },
    /// A copy of an agent was seen, or its journal contradicted a resource: what that journal says, or said, proves nothing.
    IdentityLocked {
        /// Which agent.
        agent: AgentName,
        /// The journal.
        incarnation: IncarnationId,
        /// What was seen, for people.
        because: String,
    },
    /// A person said which copy is the agent: what that journal says from now on counts again.
    IdentityUnlocked {
        /// Which agent.
        agent: AgentName,
        /// The journal.
        incarnation: IncarnationId,
        /// Who.
        by: OperatorName,
    },
    /// A remark.
    Note {
        /// Who.
        by: OperatorName,
        /// What.
        text: String,
    },
}

/// A question to a resource, recorded before it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Its identity; the answer names it.
    pub id: EvidenceId,
    /// The attempt it is about; `None` for a look at a resource before any attempt.
    pub attempt: Option<AttemptId>,
    /// Who is asked.
    pub agent: AgentName,
    /// About which resource.
    pub resource: ResourceName,
    /// About which step's operation.
    pub step: StepName,
    /// What is asked.
    pub kind: InquiryKind,
    /// Whether the runner was out when it was recorded.
    pub after_runner_out: bool,
    /// The evidence that had been recorded before it.
    pub after: EvidenceSequence,
}

/// What is asked of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum InquiryKind {
    /// A look.
    Inspect,
    /// A raise to this fence, allocated durably with the inquiry.
    FenceOff {
        /// The fence.
        fence: Fence,
    },
}

/// A recorded recovery decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Who decided.
    pub by: OperatorName,
    /// When it was recorded.
    pub at: Wall,
    /// What.
    pub kind: DecisionKind,
    /// Why.
    pub reason: String,
    /// The attempt that it settles.
    pub attempt: Option<AttemptId>,
    /// The step that was in question, where there was one.
    pub step: Option<StepName>,
    /// What was known of the runner.
    pub runner: Runner,
    /// What was known of the open step.
    pub target: OperationState,
    /// The revision that was observed.
    pub observed: Option<Revision>,
    /// The last evidence that the decision was shown.
    pub shown: EvidenceSequence,
    /// The evidence that proves it.
    pub evidence: Vec<EvidenceId>,
    /// Whether it rests on a person's attestation.
    pub attested: bool,
    /// Whether it rests on the report of the attempt's own agent, which could not be checked and which the target trusts.
    #[serde(default)]
    pub trusted: bool,
}

//! What is known of one target. Only `apply` changes it, event by event.

use std::collections::{BTreeMap, VecDeque};

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, DeploymentLabel, EvidenceId, IncarnationId, OperatorName, RequestId,
    ResourceName, Revision, StepName,
};
use holdfast_common::outcome::{Exit, OperationState, Reading, StepEnd};
use holdfast_common::recovery::{Attestation, DecisionKind, Runner};
use holdfast_common::report::{DeclineReason, FiledReason, Report};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, TargetSpec};
use holdfast_common::time::{Millis, Serving, Wall};
use serde::{Deserialize, Serialize};

/// Counts a target's events from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSequence(pub u64);

/// Counts coordinator starts on one store from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Run(pub u64);

/// One target: what is reserved as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetState {
    /// As declared last.
    pub spec: TargetSpec,
    /// The last event that is part of this state.
    pub sequence: EventSequence,
    /// The highest fence ever allocated on it. None before the first lease.
    pub fence: Option<Fence>,
    /// The number of the next deployment: `shop@prod#12`.
    pub next_number: u64,
    /// The agent whose host holds the target's host-bound resources, once a lease has bound it.
    pub home: Option<AgentName>,
    /// What is known of each resource.
    pub resources: BTreeMap<ResourceName, ResourceKnowledge>,
    /// The deployment that holds the reservation.
    pub current: Option<Deployment>,
    /// Those that wait for it, in order.
    pub queue: VecDeque<Deployment>,
}

/// What is known of one resource's revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "known")]
pub enum ResourceKnowledge {
    /// Nothing was ever recorded of it.
    #[default]
    Never,
    /// Recorded from an observation or an attestation.
    Revision {
        /// The revision; `None` where the adapter tells none.
        revision: Option<Revision>,
        /// When the coordinator recorded it.
        at: Wall,
    },
    /// A deployment ended and left it changed in part, or nobody knows how. The queue waits for a reading.
    Unknown {
        /// The deployment that left it so.
        since: DeploymentId,
    },
}

/// One requested, controlled change of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Its identity.
    pub id: DeploymentId,
    /// Counts per target.
    pub number: u64,
    /// The client's name for the submission.
    pub request: RequestId,
    /// What was asked for.
    pub spec: DeploymentSpec,
    /// What permits are bound to.
    pub plan: PlanDigest,
    /// Who asked.
    pub submitted_by: OperatorName,
    /// When it was recorded.
    pub submitted_at: Wall,
    /// Where it stands.
    pub state: DeploymentState,
    /// Why it waits, while it is queued or active between attempts.
    pub waiting: Option<Waiting>,
    /// No new attempt before this instant.
    pub not_before: Option<Serving>,
    /// When it took the reservation.
    pub reserved_at: Option<Wall>,
    /// The revision recorded for each resource when it took the reservation.
    pub expected: BTreeMap<ResourceName, Option<Revision>>,
    /// Its attempts, in order. The last one may be current.
    pub attempts: Vec<Attempt>,
    /// The request to stop it, where there is one.
    pub cancel: Option<Cancellation>,
    /// What is kept beside the accepted observations, in order of arrival.
    pub evidence: Vec<Evidence>,
    /// Readings and fence-offs that were asked for and not answered yet.
    pub inquiries: Vec<Inquiry>,
    /// What was decided about it, in order.
    pub decisions: Vec<DecisionRecord>,
    /// When and how it ended.
    pub ended: Option<Ended>,
}

/// Where a deployment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeploymentState {
    /// Waits. No attempt of it was ever permitted to change anything.
    Queued,
    /// An attempt is under way, or was permitted and another will follow.
    Active,
    /// A mutation may be in progress or done, and contact is lost. Keeps the reservation.
    Uncertain,
    /// Execution is known to have ended; what it left is partial or unknown. Keeps the reservation.
    Held,
    /// Every step was applied.
    Succeeded,
    /// Ended without success, as observed or decided.
    Failed,
    /// Ended on a request to stop, as observed or decided.
    Cancelled,
}

impl DeploymentState {
    /// Whether nothing can change it any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => true,
            DeploymentState::Queued | DeploymentState::Active | DeploymentState::Uncertain | DeploymentState::Held => {
                false
            }
        }
    }
}

/// Why nothing of a deployment runs now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Waiting {
    /// Another deployment holds the target.
    Reservation {
        /// The holder.
        holder: DeploymentLabel,
    },
    /// No agent can take it.
    NoEligibleAgent {
        /// Each agent's why.
        agents: BTreeMap<AgentName, String>,
    },
    /// The next attempt waits for its delay.
    Backoff {
        /// The delay that was drawn.
        delay: Millis,
    },
    /// A resource's revision is unknown.
    UnreadRevision {
        /// The resource.
        resource: ResourceName,
    },
    /// About to be offered.
    Assignment,
}

/// How a deployment ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// When it was recorded.
    pub at: Wall,
    /// Whether a decision ended it, rather than an observation under a live lease.
    pub by_decision: bool,
    /// One sentence that claims no more than the recorded facts.
    pub because: String,
    /// Whether it is told only that nothing was ever changed, over all attempts.
    pub never_mutated: bool,
    /// Whether a cancel was recorded and it succeeded all the same.
    pub cancel_too_late: bool,
}

/// One try by one agent under one fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its identity.
    pub id: AttemptId,
    /// Counts the deployment's attempts from 1.
    pub number: u32,
    /// The agent it was offered to.
    pub agent: AgentName,
    /// The journal it is bound to.
    pub incarnation: IncarnationId,
    /// Its fence.
    pub fence: Fence,
    /// Where it stands.
    pub state: AttemptState,
    /// The lease, until it ended or lapsed.
    pub lease: Option<Lease>,
    /// When it was offered.
    pub offered_at: Wall,
    /// Its steps, in the deployment's order.
    pub steps: Vec<StepRun>,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Leased and offered; the agent has not answered.
    Offered,
    /// The agent has taken it.
    Running,
    /// Accepted: every step was applied.
    Succeeded,
    /// Accepted: a step failed.
    Failed,
    /// Accepted: it was asked to stop and is over.
    Stopped,
    /// The agent did not take it.
    Declined(DeclineReason),
    /// Contact was lost; it was never permitted to change anything.
    Lapsed,
    /// Contact was lost; every permit was closed.
    Interrupted,
    /// Contact was lost or the end is unknown, with a permit open.
    Uncertain,
    /// It was uncertain, and a decision settled it.
    Resolved,
}

/// Permission to act as the current owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// How long it lasts without a renewal.
    pub ttl: Millis,
    /// The run that last wrote a renewal.
    pub written_run: Run,
    /// The last sign of the right session under the right fence. Between written renewals it moves in memory only; after
    /// a restart it is the start of the run after `written_run`.
    pub heard: Serving,
}

/// One step in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRun {
    /// The step.
    pub name: StepName,
    /// Where it stands.
    pub state: StepState,
    /// When its permit was recorded. A permit is open from then until [`StepState`] closes it.
    pub permitted_at: Option<Wall>,
    /// Its start, said at (agent) and received at (coordinator).
    pub started: Option<Seen>,
    /// Its end, said at and received at.
    pub ended: Option<Seen>,
    /// When it is over its deadline, in serving time.
    pub deadline: Option<Serving>,
    /// Set when it passed its deadline without an observed end.
    pub over_deadline: bool,
    /// How its process ended.
    pub exit: Option<Exit>,
    /// The revision read back.
    pub observed: Option<Revision>,
    /// The agent's sentence about the end.
    pub detail: String,
}

/// When something was said and when it was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The agent's clock.
    pub said_at: Wall,
    /// The coordinator's clock.
    pub received_at: Wall,
}

/// Where a step of an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun, no permit.
    Pending,
    /// May have begun: the permit is recorded, nothing was heard since.
    Permitted,
    /// Its start was reported.
    Started,
    /// Over, as told.
    Ended(StepEnd),
    /// Applied in an earlier attempt.
    Carried {
        /// Whether the resource was read again at the start of this attempt.
        reread: bool,
    },
}

/// A request to stop: a timeline, never an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancellation {
    /// Who or what asked.
    pub cause: CancelCause,
    /// Why.
    pub reason: String,
    /// When it was recorded.
    pub recorded_at: Wall,
    /// When the agent confirmed it. Missing means not observed.
    pub delivered: Option<Seen>,
    /// When the agent sent the signal. Missing means not observed.
    pub acted: Option<Seen>,
    /// When the terminal observation came, whatever it was. Missing means not observed.
    pub observed: Option<Seen>,
}

/// Who or what asked for a stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum CancelCause {
    /// A person.
    Operator {
        /// Who.
        by: OperatorName,
    },
    /// A deadline.
    Timeout {
        /// Of this step.
        step: StepName,
    },
}

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
        /// What.
        attestation: Attestation,
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
}

/// What the store remembers of an attempt that is not in the target's current deployment any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    /// Its deployment.
    pub deployment: DeploymentId,
    /// Its identity.
    pub id: AttemptId,
    /// The agent it was leased to.
    pub agent: AgentName,
    /// The journal it was leased to.
    pub incarnation: IncarnationId,
    /// Its fence.
    pub fence: Fence,
    /// How it ended.
    pub state: AttemptState,
    /// Where the deployment's evidence stands.
    pub last_evidence: EvidenceSequence,
}

//! What was written. One event is one fact; what follows from all of them is [`crate::state`].

use std::collections::BTreeMap;

use holdfast_common::fence::Fence;
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, IncarnationId, OperatorName, RequestId, ResourceName, Revision, StepName,
};
use holdfast_common::outcome::FailureClass;
use holdfast_common::report::{DeclineReason, Report};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, TargetSpec};
use holdfast_common::time::{Millis, Serving, Wall};
use serde::{Deserialize, Serialize};

use crate::state::{
    AttemptState, Away, CancelCause, DecisionRecord, DeploymentState, Ended, EventSequence, Evidence, HoldEnd, Inquiry,
    Kind, OperatorHold, ResourceKnowledge, Run, Waiting,
};

/// One event with its place and time. The store adds the hash that chains it to the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its place among the target's events.
    pub sequence: EventSequence,
    /// When it was recorded, for people.
    pub at: Wall,
    /// The deployment it is about, where there is one.
    pub deployment: Option<DeploymentId>,
    /// The fact.
    pub event: Event,
}

/// One fact about one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The target was declared, or declared anew.
    TargetDeclared {
        /// As declared.
        spec: TargetSpec,
        /// By whom.
        by: OperatorName,
    },
    /// A deployment was asked for.
    Submitted {
        /// Its identity.
        deployment: DeploymentId,
        /// Counts per target.
        number: u64,
        /// The client's name for it.
        request: RequestId,
        /// Whether it brings something new or goes back.
        #[serde(default, skip_serializing_if = "Kind::is_deploy")]
        kind: Kind,
        /// What was asked for.
        spec: DeploymentSpec,
        /// What permits will be bound to.
        plan: PlanDigest,
        /// By whom.
        by: OperatorName,
        /// Until when an agent must have taken it, in serving time.
        #[serde(default)]
        queue_deadline: Option<Serving>,
    },
    /// The target is held for it from now on.
    Reserved {
        /// The deployment.
        deployment: DeploymentId,
        /// The revisions recorded at this moment.
        expected: BTreeMap<ResourceName, Option<Revision>>,
    },
    /// Why it waits has changed.
    Waits {
        /// The deployment.
        deployment: DeploymentId,
        /// Why.
        why: Waiting,
        /// No new attempt before this instant.
        not_before: Option<Serving>,
    },
    /// A lease was granted and is offered. Raises the fence and the attempt number.
    LeaseGranted {
        /// The deployment.
        deployment: DeploymentId,
        /// The attempt.
        attempt: AttemptId,
        /// Counts the deployment's attempts.
        number: u32,
        /// To whom.
        agent: AgentName,
        /// To which journal.
        incarnation: IncarnationId,
        /// Under which fence.
        fence: Fence,
        /// For how long without a renewal.
        ttl: Millis,
        /// In which run.
        run: Run,
        /// When, in serving time.
        serving: Serving,
        /// The steps that are carried over from earlier attempts.
        carried: Vec<StepName>,
        /// Those of them whose resource is read again before anything else of the attempt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reread: Vec<StepName>,
        /// The attempt that it goes on with: its open permit moves here, its process is not started again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        readmits: Option<AttemptId>,
    },
    /// The lease's first renewal in a run, or after a planned absence.
    LeaseRenewed {
        /// The attempt.
        attempt: AttemptId,
        /// The run.
        run: Run,
        /// When, in serving time.
        serving: Serving,
    },
    /// The agent said that it goes and will be back: its lease outlasts that. Its next renewal says that it is back.
    AgentAway {
        /// The attempt.
        attempt: AttemptId,
        /// The absence.
        away: Away,
        /// When it said so, in serving time.
        serving: Serving,
    },
    /// The agent took the offer.
    OfferAccepted {
        /// The attempt.
        attempt: AttemptId,
        /// Of the first one that is taken: when the deployment is over its own deadline, in serving time.
        #[serde(default)]
        deadline: Option<Serving>,
    },
    /// The agent did not take the offer. Not counted as a try.
    OfferDeclined {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: DeclineReason,
        /// In the agent's words, where it has more to say.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// The attempt may begin one mutating step.
    PermitGranted {
        /// The attempt.
        attempt: AttemptId,
        /// The step.
        step: StepName,
        /// When the step is over its deadline, in serving time.
        deadline: Option<Serving>,
    },
    /// A report changed the state of its attempt.
    ReportAccepted {
        /// The attempt.
        attempt: AttemptId,
        /// The report.
        report: Report,
        /// The deadline of a step that it started, in serving time.
        deadline: Option<Serving>,
    },
    /// The attempt is over, by its own accepted word or by losing contact.
    AttemptEnded {
        /// The attempt.
        attempt: AttemptId,
        /// How.
        state: AttemptState,
        /// One sentence for people.
        because: String,
    },
    /// Something is kept as evidence.
    EvidenceFiled {
        /// Of this deployment: current, waiting or ended.
        deployment: DeploymentId,
        /// The evidence.
        evidence: Evidence,
    },
    /// A question to a resource was recorded. It is sent after this.
    InquiryOpened {
        /// The deployment.
        deployment: DeploymentId,
        /// The question. A fence-off's fence raises the target's.
        inquiry: Inquiry,
        /// Who asked.
        by: OperatorName,
        /// Why; empty for a look.
        #[serde(default)]
        reason: String,
    },
    /// A stop was asked for.
    CancelRecorded {
        /// The deployment.
        deployment: DeploymentId,
        /// Who or what asked.
        cause: CancelCause,
        /// Why.
        reason: String,
    },
    /// A stop was asked for of a deployment that had ended. Kept in its history; changes nothing.
    CancelAfterEnd {
        /// The deployment.
        deployment: DeploymentId,
        /// Who asked.
        by: OperatorName,
        /// Why.
        reason: String,
        /// What it had ended as.
        ended_as: DeploymentState,
    },
    /// A step passed its deadline without an observed end.
    DeadlinePassed {
        /// The attempt.
        attempt: AttemptId,
        /// The step.
        step: StepName,
    },
    /// The deployment passed its own deadline without an end.
    DeploymentDeadlinePassed {
        /// The deployment.
        deployment: DeploymentId,
    },
    /// The deployment moved to a state that is not terminal.
    DeploymentMoved {
        /// The deployment.
        deployment: DeploymentId,
        /// Where to.
        state: DeploymentState,
        /// One sentence that claims no more than the recorded facts.
        because: String,
        /// When the policy may move, in serving time, where it acts at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy_at: Option<Serving>,
    },
    /// The policy moves at another instant than it was to.
    PolicyScheduled {
        /// The deployment.
        deployment: DeploymentId,
        /// When, in serving time.
        at: Serving,
    },
    /// Another attempt will follow by itself, without a decision.
    RetryScheduled {
        /// The deployment.
        deployment: DeploymentId,
        /// The attempt before it.
        after: AttemptId,
        /// The number of that attempt.
        number: u32,
        /// The step that did not end well, where it is about one.
        step: Option<StepName>,
        /// What kind of failure it was.
        class: FailureClass,
        /// How long it waits: drawn within the bound that doubles with every try.
        delay: Millis,
        /// Tries that are used up.
        used: u32,
        /// Tries that are left, this one included.
        left: u32,
    },
    /// A person or policy decided.
    Decided {
        /// The deployment.
        deployment: DeploymentId,
        /// The record.
        record: DecisionRecord,
    },
    /// The deployment ended. Its reservation, where it held one, ends with it.
    DeploymentEnded {
        /// The deployment.
        deployment: DeploymentId,
        /// As what.
        state: DeploymentState,
        /// How.
        ended: Ended,
    },
    /// What is known of a resource's revision changed.
    RevisionRecorded {
        /// The resource.
        resource: ResourceName,
        /// What is known.
        knowledge: ResourceKnowledge,
    },
    /// An operator has put the target on hold, or replaced a hold.
    HoldPlaced {
        /// The hold.
        hold: OperatorHold,
    },
    /// The target is not on hold any more.
    HoldEnded {
        /// How it ended.
        how: HoldEnd,
    },
}

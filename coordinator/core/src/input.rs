//! What can happen to a target. Every identity, instant and draw that a decision may need comes with it.

use holdfast_common::claim::Claim;
use holdfast_common::fence::Epoch;
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, EvidenceId, IncarnationId, OperatorName, RequestId, ResourceName, Revision,
    StepName,
};
use holdfast_common::outcome::Reading;
use holdfast_common::recovery::{Attestation, DecisionKind, Runner};
use holdfast_common::report::{Declined, Report};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, TargetSpec};
use holdfast_common::time::{Millis, Serving, Wall};

use crate::rollback::Retained;
use crate::state::{Deployment, DeploymentState, EvidenceSequence, PastAttempt, Run};

/// The instant of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For people.
    pub wall: Wall,
    /// For leases and deadlines.
    pub serving: Serving,
    /// The coordinator's run.
    pub run: Run,
    /// The store's epoch: new fences are allocated in it.
    pub epoch: Epoch,
    /// How long after the last sign of life, beyond its TTL, a lease lapses. In milliseconds.
    pub lease_margin: Millis,
}

/// Who speaks: known from the certificate and the session, never from a field of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// From the certificate.
    pub agent: AgentName,
    /// From the session's `Hello`.
    pub incarnation: IncarnationId,
}

/// On which stream of its agent a sign of life came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// Its session.
    Session,
    /// An upload of output, which is in no order with the session.
    Upload,
}

/// An agent as it looks for an assignment now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Who.
    pub agent: AgentName,
    /// Its journal; `None` while it has no session.
    pub incarnation: Option<IncarnationId>,
    /// Why it can't take anything of this target now, in words for people; `None` where it can.
    pub unfit: Option<String>,
}

/// What the store remembers that the target's state does not hold any more. Read in the same transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The attempt of the claim, where it is not in the current deployment.
    pub attempt: Option<PastAttempt>,
    /// What was answered to the same report sequence of the same incarnation.
    pub answered: Option<Answered>,
}

/// An earlier answer to the same report sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The content was the same.
    Same,
    /// The content was another.
    Different,
}

/// What the store remembers of a deployment that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastDeployment {
    /// Its identity.
    pub id: DeploymentId,
    /// What it ended as.
    pub state: DeploymentState,
    /// Where its evidence stands.
    pub last_evidence: EvidenceSequence,
}

/// What happened, or is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Declare the target, or declare it anew. The only input that needs no state.
    Declare {
        /// As declared.
        spec: TargetSpec,
        /// By whom.
        by: OperatorName,
    },
    /// Ask for a deployment.
    Submit {
        /// Its identity, drawn by the caller. The caller has looked the request id up in the same transaction: it is new.
        deployment: DeploymentId,
        /// The client's name for it.
        request: RequestId,
        /// What is asked for, resolved against the target as declared.
        spec: DeploymentSpec,
        /// By whom.
        by: OperatorName,
        /// Refuse instead of waiting when the target is held.
        no_queue: bool,
    },
    /// Agents came, went or changed, or something is to be assigned: pick one.
    Assign {
        /// Every agent that the target's selector matches, by name.
        candidates: Vec<Candidate>,
        /// The identity of the attempt, should there be one. Drawn by the caller.
        attempt: AttemptId,
    },
    /// Ask to go back to an earlier revision.
    Rollback {
        /// Its identity, drawn by the caller. The caller has looked the request id up in the same transaction: it is new.
        deployment: DeploymentId,
        /// The client's name for it.
        request: RequestId,
        /// What to go back to: the nearest place where a resource had it.
        to: Revision,
        /// The numbers of the deployments that the asker was shown to be undone, the newest first.
        shown: Vec<u64>,
        /// By whom.
        by: OperatorName,
        /// Why.
        reason: String,
        /// How they know that it is compatible all the same, where a window or a range of data says otherwise.
        attested: Option<String>,
        /// Deployments of the target that ended, in any order.
        past: Vec<Deployment>,
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
        /// For the back-off, drawn by the caller: 0 to 1,000 thousandths.
        jitter: Jitter,
    },
    /// A sign of life under a claim: heartbeat, progress or log of the right session.
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
        /// What a lease is given for that at most, as the coordinator is configured.
        bound: Millis,
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
        /// What the store remembers.
        memory: Memory,
        /// The identity of the evidence, should it be filed. Drawn by the caller.
        evidence: EvidenceId,
        /// For the back-off, drawn by the caller.
        jitter: Jitter,
    },
    /// An agent came back and its journal speaks of an attempt of this target.
    JournalSpoke {
        /// Who.
        speaker: Speaker,
        /// About what.
        claim: Claim,
        /// What the journal says of the runner.
        runner: Runner,
        /// For people.
        detail: String,
        /// The identity of the evidence. Drawn by the caller.
        evidence: EvidenceId,
    },
    /// A copy of an agent was seen: the word of its journal is no proof.
    IdentityLocked {
        /// Which agent.
        agent: AgentName,
        /// The journal.
        incarnation: IncarnationId,
        /// What was seen, for people.
        because: String,
        /// The identity of the evidence. Drawn by the caller.
        evidence: EvidenceId,
    },
    /// A person said which copy is the agent: what its journal says from now on counts.
    IdentityUnlocked {
        /// Which agent.
        agent: AgentName,
        /// The journal.
        incarnation: IncarnationId,
        /// Who.
        by: OperatorName,
        /// The identity of the evidence. Drawn by the caller.
        evidence: EvidenceId,
    },
    /// Time has passed: leases, deadlines, delays.
    Tick {
        /// For the back-off, drawn by the caller.
        jitter: Jitter,
    },
    /// Ask for a stop.
    Cancel {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
        /// Why.
        reason: String,
        /// Where it ended already, what the store remembers.
        past: Option<PastDeployment>,
    },
    /// Ask for a look at the open step's resource.
    Inspect {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
        /// The inquiry's identity. Drawn by the caller.
        id: EvidenceId,
        /// Agents that reach the resource now, by name.
        reachable: Vec<AgentName>,
    },
    /// Ask for a raise of the open step's resource above the old attempt.
    FenceOff {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who asks.
        by: OperatorName,
        /// The inquiry's identity. Drawn by the caller.
        id: EvidenceId,
        /// Agents that reach the resource now, by name.
        reachable: Vec<AgentName>,
        /// Why.
        reason: String,
    },
    /// The policy may make its next move.
    Recover {
        /// The identity of its inquiry, should there be one. Drawn by the caller.
        inquiry: EvidenceId,
        /// The identity of the evidence, should there be one. Drawn by the caller.
        evidence: EvidenceId,
        /// The identity of the attempt, should the decision lease one at once. Drawn by the caller.
        attempt: AttemptId,
        /// Agents that reach the resource in question now, by name.
        reachable: Vec<AgentName>,
    },
    /// An agent answered an inquiry.
    InquiryAnswered {
        /// Who.
        speaker: Speaker,
        /// Which inquiry.
        inquiry: EvidenceId,
        /// What it found.
        finding: Finding,
        /// The identity of the evidence. Drawn by the caller.
        evidence: EvidenceId,
    },
    /// A person says what they know.
    Attest {
        /// Which deployment.
        deployment: DeploymentId,
        /// Who.
        by: OperatorName,
        /// What.
        attestation: Attestation,
        /// The identity of the evidence. Drawn by the caller.
        evidence: EvidenceId,
    },
    /// A person says which revision they saw at a resource, and nothing of any attempt.
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
        /// The identity of the evidence, for a note. Drawn by the caller.
        evidence: EvidenceId,
        /// The identity of the attempt, should the decision lease one at once. Drawn by the caller.
        attempt: AttemptId,
        /// What a decision to go back needs; looked up and drawn by the caller for such a one only.
        back: Option<Back>,
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
    /// Take the hold away.
    Unhold {
        /// Who.
        by: OperatorName,
    },
}

/// What a decision to go back needs beside its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The identity of the rollback. Drawn by the caller.
    pub deployment: DeploymentId,
    /// The name of its submission. Drawn by the caller.
    pub request: RequestId,
    /// Deployments of the target that ended, in any order.
    pub past: Vec<Deployment>,
    /// What resources were seen to retain.
    pub retained: Retained,
}

/// When a hold is to end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// As people name it.
    pub shown: Wall,
    /// How long that is from now.
    pub lasts: Millis,
}

/// What came of an inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The resource was read.
    Read(Reading),
    /// The resource confirmed the raise, and what was read after it.
    Raised {
        /// Read after the raise.
        reading: Reading,
    },
    /// It could not be done.
    Failed {
        /// Why, for people.
        detail: String,
    },
}

/// A draw of the caller for full jitter: 0 to 1,000 thousandths of the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(pub u16);

//! One deployment, as its events leave it.

use std::collections::BTreeMap;

use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, DeploymentLabel, IncarnationId, OperatorName, RequestId, ResourceName,
    Revision, StepName,
};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::spec::{DeploymentSpec, PlanDigest, StepSpec};
use holdfast_common::time::{Millis, Serving, Wall};
use serde::{Deserialize, Serialize};

use super::{Attempt, DecisionRecord, Evidence, EvidenceBody, EvidenceSequence, Inquiry, Seen};

/// One requested, controlled change of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Its identity.
    pub id: DeploymentId,
    /// Counts per target.
    pub number: u64,
    /// The client's name for the submission.
    pub request: RequestId,
    /// Whether it brings something new or goes back.
    #[serde(default, skip_serializing_if = "Kind::is_deploy")]
    pub kind: Kind,
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
    /// Until when an agent must have taken it, in serving time. Gone once one has.
    #[serde(default)]
    pub queue_deadline: Option<Serving>,
    /// When it is over its own deadline, in serving time: counted from when an agent first took it.
    #[serde(default)]
    pub deadline: Option<Serving>,
    /// Set when it passed its own deadline without an end.
    #[serde(default)]
    pub over_deadline: bool,
    /// When the policy may move, in serving time, while it is uncertain or held and the policy acts at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_at: Option<Serving>,
    /// Why it is held, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
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

/// What the word of a journal is worth for a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust<'a> {
    /// No copy of its agent was ever seen while it mattered.
    Whole,
    /// What came after a person said which copy is the agent counts.
    Again {
        /// When it was locked last.
        locked: EvidenceSequence,
        /// When a person ended that.
        unlocked: EvidenceSequence,
    },
    /// None of it counts.
    Locked {
        /// Since when.
        since: EvidenceSequence,
        /// What was seen.
        because: &'a str,
    },
}

impl Trust<'_> {
    /// Whether what stands at that place counts.
    #[must_use]
    pub fn covers(&self, sequence: EvidenceSequence) -> bool {
        match self {
            Trust::Whole => true,
            Trust::Again { unlocked, .. } => sequence > *unlocked,
            Trust::Locked { .. } => false,
        }
    }

    /// The evidence up to which a reading may have been asked for on a word that does not count. Later ones were not: while it
    /// is locked no word counts.
    #[must_use]
    pub fn doubted_until(&self) -> EvidenceSequence {
        match self {
            Trust::Whole => EvidenceSequence::default(),
            Trust::Again { locked, .. } | Trust::Locked { since: locked, .. } => *locked,
        }
    }

    /// The evidence after which a word is worth something else than before.
    #[must_use]
    pub fn changed_at(&self) -> EvidenceSequence {
        match self {
            Trust::Whole => EvidenceSequence::default(),
            Trust::Again { unlocked, .. } => *unlocked,
            Trust::Locked { since, .. } => *since,
        }
    }
}

impl Deployment {
    /// What the word of that journal is worth now.
    #[must_use]
    pub fn trust(&self, incarnation: IncarnationId) -> Trust<'_> {
        self.evidence.iter().fold(Trust::Whole, |trust, evidence| match &evidence.body {
            EvidenceBody::IdentityLocked { incarnation: of, because, .. } if *of == incarnation => {
                Trust::Locked { since: evidence.sequence, because }
            }
            EvidenceBody::IdentityUnlocked { incarnation: of, .. } if *of == incarnation => {
                Trust::Again { locked: trust.doubted_until(), unlocked: evidence.sequence }
            }
            EvidenceBody::IdentityLocked { .. }
            | EvidenceBody::IdentityUnlocked { .. }
            | EvidenceBody::LateReport { .. }
            | EvidenceBody::Inspection { .. }
            | EvidenceBody::FencedOff { .. }
            | EvidenceBody::InquiryFailed { .. }
            | EvidenceBody::JournalWord { .. }
            | EvidenceBody::Attested { .. }
            | EvidenceBody::Note { .. } => trust,
        })
    }

    /// Its last attempt while that may still act.
    #[must_use]
    pub fn live(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.state.is_live())
    }

    /// Whether a permit was ever recorded for any of its attempts.
    #[must_use]
    pub fn ever_permitted(&self) -> bool {
        self.attempts.iter().any(Attempt::ever_permitted)
    }

    /// An attempt and those whose running process it went on with, the newest first.
    pub fn lineage<'a>(&'a self, attempt: &'a Attempt) -> impl Iterator<Item = &'a Attempt> {
        let before = |later: &&'a Attempt| self.attempts.iter().find(|other| Some(other.id) == later.readmits);
        std::iter::successors(Some(attempt), before)
    }

    /// Whether that attempt is this one, or one whose running process it went on with.
    #[must_use]
    pub fn is_of(&self, attempt: &Attempt, id: AttemptId) -> bool {
        self.lineage(attempt).any(|one| one.id == id)
    }

    /// The evidence that was weighed when the attempt was readmitted: a word that is not newer says nothing of it. 0 for an
    /// attempt that began by itself.
    #[must_use]
    pub fn weighed_before(&self, attempt: &Attempt) -> EvidenceSequence {
        let Some(earlier) = attempt.readmits else { return EvidenceSequence::default() };
        let made = |record: &&DecisionRecord| record.kind == DecisionKind::Readmit && record.attempt == Some(earlier);
        self.decisions.iter().rfind(made).map(|record| record.shown).unwrap_or_default()
    }

    /// The sequence of its newest evidence.
    #[must_use]
    pub fn newest_evidence(&self) -> EvidenceSequence {
        self.evidence.last().map(|evidence| evidence.sequence).unwrap_or_default()
    }

    /// How often it was tried. A declined offer is no try.
    #[must_use]
    pub fn tries(&self) -> u32 {
        let tries = self.attempts.iter().filter(|attempt| attempt.state.is_try()).count();
        u32::try_from(tries).unwrap_or(u32::MAX)
    }

    /// How many tries may still follow by themselves.
    #[must_use]
    pub fn tries_left(&self) -> u32 {
        self.spec.retry.max_attempts.saturating_sub(self.tries())
    }

    /// Whether it waits for an agent to take it for the first time: what its time in the queue is for.
    #[must_use]
    pub fn is_in_queue(&self) -> bool {
        self.state == DeploymentState::Queued && self.live().is_none() && self.cancel.is_none()
    }

    /// Whether it or a step of it was seen to be over its deadline.
    #[must_use]
    pub fn any_over_deadline(&self) -> bool {
        self.over_deadline || self.attempts.iter().any(|attempt| attempt.steps.iter().any(|step| step.over_deadline))
    }

    /// The step of that name as it was asked for.
    #[must_use]
    pub fn step(&self, name: &StepName) -> Option<&StepSpec> {
        self.spec.steps.iter().find(|step| &step.name == name)
    }
}

/// Whether a deployment brings something new or goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Kind {
    /// It brings what its file says.
    #[default]
    Deploy,
    /// It goes back over earlier ones.
    Rollback(RollbackOf),
}

impl Kind {
    /// Whether it brings what its file says.
    #[must_use]
    pub fn is_deploy(&self) -> bool {
        matches!(self, Kind::Deploy)
    }

    /// What it goes back over, where it goes back.
    #[must_use]
    pub fn rollback(&self) -> Option<&RollbackOf> {
        match self {
            Kind::Rollback(of) => Some(of),
            Kind::Deploy => None,
        }
    }
}

/// What a rollback goes back over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackOf {
    /// Those whose changes it undoes, the newest first. Never empty.
    pub undoes: Vec<Undone>,
    /// What it was put on top of.
    pub base: Base,
    /// Why, in the words of whoever asked.
    pub reason: String,
    /// How they know that it is compatible all the same, where a window or a range of data says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attested: Option<String>,
}

/// A deployment that a rollback undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Undone {
    /// Its identity.
    pub id: DeploymentId,
    /// Counts per target.
    pub number: u64,
}

/// What a rollback was put on top of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// A target at rest: it takes its turn.
    AtRest,
    /// A deployment that was decided to be undone, and what it left is known: it was handed the reservation.
    Known,
    /// The same, and what was left is partial or unknown: until one of its own changes is applied, no end of it frees
    /// the target by itself.
    Unresolved,
}

impl Base {
    /// Whether the reservation was handed over to it.
    #[must_use]
    pub fn is_handed_over(self) -> bool {
        match self {
            Base::AtRest => false,
            Base::Known | Base::Unresolved => true,
        }
    }
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
    /// Nobody holds the target, and another deployment is before it.
    Turn {
        /// The first in the queue.
        after: DeploymentLabel,
    },
    /// An operator has put the target on hold.
    Hold {
        /// Who.
        by: OperatorName,
        /// Why, in their words.
        why: String,
        /// When it ends by itself, for people.
        until: Option<Wall>,
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
        /// When it is over at the earliest, for people: it stands still while no coordinator serves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Wall>,
    },
    /// A resource's revision is unknown.
    UnreadRevision {
        /// The resource.
        resource: ResourceName,
    },
    /// About to be offered.
    Assignment,
}

impl Waiting {
    /// For a delay that begins at `now`.
    #[must_use]
    pub fn backoff(delay: Millis, now: Wall) -> Waiting {
        Waiting::Backoff { delay, not_before: Some(now.after(delay)) }
    }
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
    /// Whether it succeeded after a deadline of it had passed.
    #[serde(default)]
    pub after_deadline: bool,
    /// Whether every change was applied, and a check after them failed.
    #[serde(default)]
    pub not_healthy: bool,
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
    /// What kept the agent from acting on it when it last said so. It claims no stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<HeldUp>,
}

/// Something kept an agent from acting on a request to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldUp {
    /// When that was seen.
    pub seen: Seen,
    /// What. Data, never interpreted.
    pub why: String,
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
    /// Its time in the queue was over before an agent took it.
    QueueTimeout,
    /// Its own deadline.
    DeploymentTimeout,
}

impl CancelCause {
    /// Whether a deadline asked, and no person.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            CancelCause::Operator { .. } => false,
            CancelCause::Timeout { .. } | CancelCause::QueueTimeout | CancelCause::DeploymentTimeout => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use holdfast_common::explain::explain_state;
    use holdfast_common::id::TargetName;

    use super::*;

    /// A new reason does not compile until it stands here.
    fn next(why: Option<&Waiting>) -> Option<Waiting> {
        let target = TargetName::new("shop@prod").expect("a name");
        let resource = ResourceName::new("site").expect("a name");
        let by = OperatorName::new("anna").expect("a name");
        match why {
            None => Some(Waiting::Reservation { holder: DeploymentLabel { target, number: 1 } }),
            Some(Waiting::Reservation { .. }) => Some(Waiting::Turn { after: DeploymentLabel { target, number: 1 } }),
            Some(Waiting::Turn { .. }) => Some(Waiting::Hold { by, why: String::new(), until: None }),
            Some(Waiting::Hold { .. }) => Some(Waiting::NoEligibleAgent { agents: BTreeMap::new() }),
            Some(Waiting::NoEligibleAgent { .. }) => Some(Waiting::backoff(Millis(1), Wall(0))),
            Some(Waiting::Backoff { .. }) => Some(Waiting::UnreadRevision { resource }),
            Some(Waiting::UnreadRevision { .. }) => Some(Waiting::Assignment),
            Some(Waiting::Assignment) => None,
        }
    }

    #[test]
    fn every_reason_to_wait_is_explained() {
        let all: Vec<Waiting> = std::iter::successors(next(None), |why| next(Some(why))).collect();
        assert_eq!(all.len(), 7);
        for why in all {
            let whole = serde_json::to_value(&why).expect("plain data");
            let word = whole["reason"].as_str().expect("tagged");
            assert!(explain_state(word).is_some(), "{word} is not explained");
        }
    }
}

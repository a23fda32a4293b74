//! Rows, as they are written and read.

use std::collections::BTreeMap;

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, DeploymentId, IncarnationId, OperatorName, TargetName};
use holdfast_common::report::Report;
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::Recorded;
use holdfast_coordinator_core::state::{Deployment, DeploymentState};

use super::{Digest, GlobalOrder};

/// An event with its place among all events.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Its place among the events of all targets.
    pub order: GlobalOrder,
    /// Its target.
    pub target: TargetName,
    /// The event.
    pub recorded: Recorded,
    /// Its hash, which covers the one before.
    pub hash: String,
}

/// An event as its row has it, whatever that is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// Its place among the events of all targets.
    pub order: i64,
    /// Its target.
    pub target: String,
    /// Its place on the target.
    pub sequence: i64,
    /// The deployment that it is about, where there is one.
    pub deployment: Option<String>,
    /// Microseconds since 1970.
    pub at: i64,
    /// JSON, as it was hashed.
    pub body: String,
    /// The hash of the event before it.
    pub before_hash: String,
    /// Its own.
    pub hash: String,
}

/// Something that was done and is about no target: chained like events, in one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActRow {
    /// Counts them from 1.
    pub sequence: u64,
    /// When.
    pub at: Wall,
    /// Who did it.
    pub by: String,
    /// What, in one word: `token_made`.
    pub kind: String,
    /// To what.
    pub about: String,
    /// How, for people.
    pub detail: String,
    /// The hash of the one before it.
    pub before_hash: String,
    /// Its own: see [`super::chain::ActLink`].
    pub hash: String,
}

/// A new act, before it has its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When.
    pub at: Wall,
    /// Who did it.
    pub by: String,
    /// What, in one word.
    pub kind: &'static str,
    /// To what.
    pub about: String,
    /// How, for people.
    pub detail: String,
}

/// A target in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRow {
    /// As declared last.
    pub spec: TargetSpec,
    /// By whom.
    pub declared_by: OperatorName,
    /// When.
    pub declared_at: Wall,
    /// The highest fence ever allocated.
    pub fence: Option<Fence>,
    /// The deployment that holds it.
    pub holder: Option<DeploymentId>,
    /// How many wait for it.
    pub waiting: u64,
}

/// A deployment with its target.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentRow {
    /// Counts the deployments of all targets in the order of their submission. Pages go by it.
    pub place: u64,
    /// Its target.
    pub target: TargetName,
    /// All that is recorded of it.
    pub record: Deployment,
}

/// Which deployments to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFilter {
    /// Of this target only.
    pub target: Option<TargetName>,
    /// Of one of these targets only, which are those that the asker may view; `None` means any.
    pub among: Option<Vec<TargetName>>,
    /// In one of these states only; empty means any.
    pub states: Vec<DeploymentState>,
    /// Older than this [`DeploymentRow::place`] only.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// Which events to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// After this one only.
    pub after: GlobalOrder,
    /// Of this target only.
    pub target: Option<TargetName>,
    /// About this deployment only.
    pub deployment: Option<DeploymentId>,
    /// At most so many.
    pub limit: u32,
}

/// What an operator's token allows. The token itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Of the token.
    pub hash: Digest,
    /// Whose.
    pub name: OperatorName,
    /// What it allows, and where, each like `operator:shop@*`.
    pub grants: Vec<String>,
    /// Not after this.
    pub expires_at: Option<Wall>,
    /// When it was made.
    pub created_at: Option<Wall>,
    /// By whom over the API; `None` for one that was made on the coordinator's host.
    pub created_by: Option<OperatorName>,
}

/// What is known of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// As its certificate names it.
    pub name: AgentName,
    /// SHA-256 of its certificate, lower-case hex.
    pub fingerprint: String,
    /// The first instant of that certificate.
    pub certificate_since: Option<Wall>,
    /// The end of that certificate.
    pub certificate_until: Option<Wall>,
    /// The journal it spoke from last.
    pub incarnation: IncarnationId,
    /// What it says of itself.
    pub labels: BTreeMap<String, String>,
    /// The last sign of life that was written.
    pub last_heard: Wall,
}

/// What a host joins with. The token itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinTokenRow {
    /// By which it is listed and taken back.
    pub id: String,
    /// Of the token.
    pub hash: Digest,
    /// The only name that may join with it.
    pub agent: Option<AgentName>,
    /// What targets select the agent by that joins with it.
    pub labels: BTreeMap<String, String>,
    /// Not after this.
    pub expires_at: Wall,
    /// When it was made.
    pub created_at: Wall,
    /// By whom.
    pub created_by: String,
    /// It was taken back.
    pub revoked: bool,
    /// Who joined with it; `None` while nobody has.
    pub used: Option<Use>,
}

/// How a join token was used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The agent.
    pub by: AgentName,
    /// Of its public key: the same again is the same enrolment.
    pub key: Digest,
}

/// A certificate of an agent. The agent need not have shown it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRow {
    /// SHA-256, lower-case hex.
    pub fingerprint: String,
    /// Whose; `None` for one from elsewhere that was revoked before it was ever seen.
    pub agent: Option<AgentName>,
    /// When it was signed, or first written down.
    pub issued_at: Wall,
    /// Its end, where this coordinator signed it.
    pub expires_at: Option<Wall>,
    /// From when on it opens nothing.
    pub revoked_at: Option<Wall>,
}

/// An agent that an operator lets have nothing new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRow {
    /// Which.
    pub agent: AgentName,
    /// Who said so.
    pub by: OperatorName,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Wall,
}

/// A report on a deployment that this store does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanRow {
    /// Who sent it.
    pub agent: AgentName,
    /// From which journal.
    pub incarnation: IncarnationId,
    /// About what, as sent.
    pub claim: Claim,
    /// What it said.
    pub report: Report,
    /// Of claim and report.
    pub content: Digest,
    /// When it came.
    pub received_at: Wall,
}

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRow {
    /// Who asked, as far as known.
    pub who: String,
    /// For what.
    pub what: String,
    /// Why not.
    pub why: String,
    /// When.
    pub at: Wall,
}

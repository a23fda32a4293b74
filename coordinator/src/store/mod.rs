//! What is kept: events, and what follows from them.
//!
//! ```text
//!   driver --begin--> Transaction --write*--> commit        one commit covers a whole batch
//!                         |                      |
//!                         +- events, hash chain  +- fsync, then the driver speaks
//!                         +- projections, walls
//!   readers ----------------- committed rows only
//! ```
//!
//! Events are the truth; snapshots and rows for listing follow from them and are written in the same transaction.
//! The schema is a second wall: one reservation and one open permit per target, a fence that only grows, ends and
//! events that are never rewritten. A write that runs into it changes nothing and hurts no other write of its batch.
//! Every store passes [`suite`].

use std::path::PathBuf;

use holdfast_common::claim::Claim;
use holdfast_common::fence::Epoch;
use holdfast_common::id::{
    AgentName, DeploymentId, IncarnationId, OperatorName, RequestId, ResourceName, StoreId, TargetName,
};
use holdfast_common::report::{Disposition, Report, ReportSequence};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::{Millis, Serving, Wall};
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::event::Recorded;
use holdfast_coordinator_core::identity;
use holdfast_coordinator_core::input::{Answered, PastDeployment};
use holdfast_coordinator_core::state::{Deployment, PastAttempt, Run};

pub mod chain;
mod digest;
pub(crate) mod resource;
pub mod rows;
pub mod sqlite;
#[cfg(test)]
pub(crate) mod suite;

pub use digest::Digest;
pub use rows::{Act, ActRow, AgentRow, CertificateRow, DrainRow, JoinTokenRow, OrphanRow, RefusalRow, TokenRow, Use};
pub use sqlite::reader::Reader;

/// After how many events of a target its state is kept whole, so that a load replays fewer than that.
pub const SNAPSHOT_EVERY: u64 = 100;

/// One database, with one writer.
pub trait Store: Send {
    /// All or nothing.
    type Transaction<'a>: Transaction
    where
        Self: 'a;

    /// Which database this is.
    fn identity(&self) -> Identity;

    /// Begins the only transaction that writes. Dropped before its commit it leaves nothing.
    fn begin(&mut self) -> Result<Self::Transaction<'_>, Error>;

    /// As [`Store::begin`], for writes of which none is expected to be refused. One that is takes all others with it
    /// ([`Error::Spoiled`]), so that nothing has to be kept for taking it back alone.
    fn begin_together(&mut self) -> Result<Self::Transaction<'_>, Error>;

    /// Connections for reading, beside the writer.
    fn reader(&self) -> Reader;

    /// Makes what can be made of the room that the store has: what its log holds goes to where it belongs, and the log begins
    /// anew. Without the room for that it changes nothing and is no error.
    fn make_room(&mut self) -> Result<(), Error>;
}

/// Many writes, one commit. Each write is atomic in itself: an error that [`Error::is_contained`] undoes that one
/// only, but in a transaction that was begun together.
pub trait Transaction {
    /// Writes a new run: one start of a coordinator on this store.
    fn start_run(&mut self, at: Wall) -> Result<RunStart, Error>;

    /// How long the run has served. Never shrinks.
    fn serve(&mut self, run: Run, served: Millis) -> Result<(), Error>;

    /// The serving time at which a run began; `None` for a run that never was.
    fn run_began(&mut self, run: Run) -> Result<Option<Serving>, Error>;

    /// The target's state by snapshot and replay; `None` if it was never declared.
    fn load(&mut self, target: &TargetName) -> Result<Option<TargetState>, Error>;

    /// The targets on which something is current or waits, or that are on hold, by name.
    fn busy_targets(&mut self) -> Result<Vec<TargetName>, Error>;

    /// Appends events and brings every projection up to date.
    fn write(&mut self, write: &Write<'_>) -> Result<Appended, Error>;

    /// The submission of that request id.
    fn submission(&mut self, request: RequestId) -> Result<Option<Submission>, Error>;

    /// The target of a deployment.
    fn target_of(&mut self, deployment: DeploymentId) -> Result<Option<TargetName>, Error>;

    /// An attempt, as it stands or ended.
    fn past_attempt(&mut self, claim: &Claim) -> Result<Option<PastAttempt>, Error>;

    /// A deployment of that target that ended.
    fn past_deployment(&mut self, target: &TargetName, id: DeploymentId) -> Result<Option<PastDeployment>, Error>;

    /// Deployments of that target that ended, whole: the last ones, at most so many.
    fn past_deployments(&mut self, target: &TargetName, limit: u32) -> Result<Vec<Deployment>, Error>;

    /// Whether a report of that sequence was answered before, and with what content.
    fn answered(
        &mut self,
        incarnation: IncarnationId,
        sequence: ReportSequence,
        content: Digest,
    ) -> Result<Option<Answered>, Error>;

    /// A resource of `spec` that another target has, or that it names twice.
    fn taken(&mut self, spec: &TargetSpec) -> Result<Option<Taken>, Error>;

    /// Keeps a report on a deployment that this store does not know. False if the same was kept before.
    fn keep_orphan(&mut self, orphan: &OrphanRow) -> Result<bool, Error>;

    /// Keeps that somebody was refused. Older ones go when there are too many.
    fn keep_refusal(&mut self, refusal: &RefusalRow) -> Result<(), Error>;

    /// Writes what is known of an agent.
    fn put_agent(&mut self, agent: &AgentRow) -> Result<(), Error>;

    /// Who the agent is; a new identity for one that was never heard of.
    fn agent_identity(&mut self, agent: &AgentName) -> Result<identity::Identity, Error>;

    /// Writes who the agent is.
    fn put_agent_identity(&mut self, agent: &AgentName, identity: &identity::Identity) -> Result<(), Error>;

    /// Writes that an agent gets nothing new, in the place of an earlier word on it. Answers since when that is so: the first
    /// word's instant stays.
    fn put_drain(&mut self, drain: &DrainRow) -> Result<Wall, Error>;

    /// It gets new work again. False if that was so.
    fn remove_drain(&mut self, agent: &AgentName) -> Result<bool, Error>;

    /// Writes a token, or replaces the one of the same name.
    fn put_token(&mut self, token: &TokenRow) -> Result<(), Error>;

    /// The token of that name.
    fn token(&mut self, name: &OperatorName) -> Result<Option<TokenRow>, Error>;

    /// Takes a token away. False if there was none of that name.
    fn remove_token(&mut self, name: &OperatorName) -> Result<bool, Error>;

    /// Writes a join token. Of one that is there, only whether it was used or taken back changes.
    fn put_join_token(&mut self, token: &JoinTokenRow) -> Result<(), Error>;

    /// The join token of that hash.
    fn join_token(&mut self, hash: Digest) -> Result<Option<JoinTokenRow>, Error>;

    /// The join token that is listed so.
    fn join_token_of(&mut self, id: &str) -> Result<Option<JoinTokenRow>, Error>;

    /// Writes a certificate. Of one that is there, only its revocation changes.
    fn put_certificate(&mut self, certificate: &CertificateRow) -> Result<(), Error>;

    /// The certificate of that fingerprint.
    fn certificate(&mut self, fingerprint: &str) -> Result<Option<CertificateRow>, Error>;

    /// The agent that showed the certificate of that fingerprint last.
    fn agent_with(&mut self, fingerprint: &str) -> Result<Option<AgentName>, Error>;

    /// Revokes every certificate that was signed for the agent.
    fn revoke_certificates(&mut self, agent: &AgentName, at: Wall) -> Result<(), Error>;

    /// Forgets join tokens and certificates that ended before that instant. Acts tell of them for ever.
    fn forget_ended(&mut self, before: Wall) -> Result<(), Error>;

    /// Keeps what was done and is about no target, at the end of its chain.
    fn keep_act(&mut self, act: &Act) -> Result<(), Error>;

    /// Makes it durable. After [`Error::NoRoom`] nothing of it is there. Any other error means that nobody knows whether it
    /// is: the process must stop.
    fn commit(self) -> Result<(), Error>;
}

/// Which database this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Made once, with the database.
    pub store: StoreId,
    /// Raised when the database was restored from the past. 1 at first.
    pub epoch: Epoch,
}

/// A run that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStart {
    /// Its number.
    pub run: Run,
    /// The serving time of all earlier runs together: the instant at which it begins.
    pub base: Serving,
}

/// Counts the events of all targets from 1, in the order of their commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalOrder(pub u64);

/// Where the events of one write stand. They follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The place of the last one.
    pub newest: GlobalOrder,
    /// The hash of each, in order.
    pub hashes: Vec<String>,
}

/// What one input changes.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The state that it was decided on. Another version in the store refuses the write.
    pub before: Option<&'a TargetState>,
    /// The state with the events applied.
    pub after: &'a TargetState,
    /// The events, in order.
    pub events: &'a [Recorded],
    /// Deployments that ended with these events, as they were at their end.
    pub ended: &'a [Deployment],
    /// The content of the submission among the events.
    pub submission: Option<Digest>,
    /// The report that was answered.
    pub report: Option<AnsweredReport>,
    /// `after` without what is in memory only, where [`snapshot_due`] asks for it.
    pub snapshot: Option<&'a TargetState>,
}

/// Whether the state after these events is to be kept whole.
#[must_use]
pub fn snapshot_due(before: Option<&TargetState>, after: &TargetState) -> bool {
    before.map_or(0, |state| state.sequence.0) / SNAPSHOT_EVERY != after.sequence.0 / SNAPSHOT_EVERY
}

/// A report that was answered, remembered so that the same report is answered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredReport {
    /// Whose journal.
    pub incarnation: IncarnationId,
    /// Its place there.
    pub sequence: ReportSequence,
    /// Of claim and report.
    pub content: Digest,
    /// The answer.
    pub disposition: Disposition,
}

impl AnsweredReport {
    /// Of a report under its claim.
    #[must_use]
    pub fn new(incarnation: IncarnationId, claim: &Claim, report: &Report, disposition: Disposition) -> Self {
        Self { incarnation, sequence: report.sequence, content: Digest::of(&(claim, report)), disposition }
    }
}

/// What a request id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The deployment.
    pub deployment: DeploymentId,
    /// Its target.
    pub target: TargetName,
    /// Counts per target.
    pub number: u64,
    /// Of the request's content.
    pub content: Digest,
}

/// A resource that is spoken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The resource that was to be declared.
    pub resource: ResourceName,
    /// Who has it.
    pub target: TargetName,
}

/// How a store fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Could not be opened or made.
    #[error("could not open the store {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process writes it.
    #[error("could not open the store {path}: another coordinator has it")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A database of something else.
    #[error("could not open the store {path}: it is not a Holdfast store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Made by a newer version, or with other migrations.
    #[error("could not bring the schema up to date: {detail}")]
    Migration {
        /// What does not fit.
        detail: String,
    },
    /// The second wall: a rule of the schema refused a write. Nothing of that write is there.
    #[error("a rule of the store refused the write: {rule}")]
    Wall {
        /// The rule, as the store names it.
        rule: String,
    },
    /// The target moved since the state was read.
    #[error("target {target} is at event {found} in the store, the write was decided on {expected}")]
    Moved {
        /// The target.
        target: TargetName,
        /// The last event of the state that the write was decided on.
        expected: u64,
        /// The last event in the store.
        found: u64,
    },
    /// What is stored can't be read back as what was written.
    #[error("the store is damaged: {what}: {detail}")]
    Damaged {
        /// Which row.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A write of a transaction that was begun together was refused. Nothing of the transaction can be committed any more; what
    /// it was for can be done again with each write apart.
    #[error("a write was refused, and with it all of its transaction")]
    Spoiled {
        /// Why it was refused.
        source: Box<Error>,
    },
    /// The disk has no room. Nothing of the transaction is there, and nothing of it was synced: it can be done again once
    /// there is room.
    #[error("could not {doing}: the disk has no room")]
    NoRoom {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Reading or writing failed. Nobody knows what is on disk: the process must stop.
    #[error("could not {doing}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether only the one write or read is refused, and the store is sound for all others.
    #[must_use]
    pub fn is_contained(&self) -> bool {
        match self {
            Error::Wall { .. } | Error::Moved { .. } | Error::Damaged { .. } => true,
            Error::Open { .. }
            | Error::InUse { .. }
            | Error::Foreign { .. }
            | Error::Migration { .. }
            | Error::Spoiled { .. }
            | Error::NoRoom { .. }
            | Error::Failed { .. } => false,
        }
    }

    /// Whether opening may have failed because the disk is full: then it can be tried again once there is room.
    #[must_use]
    pub fn may_lack_room(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, SystemIoFailure};
        match self {
            Error::NoRoom { .. } => true,
            Error::Open { source, .. } | Error::Failed { source, .. } => {
                let io = source.downcast_ref().is_some_and(crate::room::is_no_room);
                let sqlite = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
                io || matches!(sqlite, Some(CannotOpen | DiskFull | SystemIoFailure))
            }
            Error::InUse { .. }
            | Error::Foreign { .. }
            | Error::Migration { .. }
            | Error::Wall { .. }
            | Error::Moved { .. }
            | Error::Damaged { .. }
            | Error::Spoiled { .. } => false,
        }
    }

    /// Whether one more connection for reading could not be opened: the file is open already, so only descriptors lack.
    #[must_use]
    pub fn lacks_descriptors(&self) -> bool {
        let Error::Failed { source, .. } = self else { return false };
        let code = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        code == Some(rusqlite::ErrorCode::CannotOpen)
    }

    /// A row that does not read back.
    pub(crate) fn damaged(what: impl Into<String>, detail: impl std::fmt::Display) -> Self {
        Error::Damaged { what: what.into(), detail: detail.to_string() }
    }
}

/// Kept with a report on a deployment that is not known.
#[must_use]
pub fn orphan(agent: AgentName, incarnation: IncarnationId, claim: Claim, report: Report, at: Wall) -> OrphanRow {
    let content = Digest::of(&(&claim, &report));
    OrphanRow { agent, incarnation, claim, report, content, received_at: at }
}

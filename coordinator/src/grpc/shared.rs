//! What every handler works with.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, TargetName};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::state::{Deployment, DeploymentState};
use holdfast_net::room::{Descriptors, Room};
use holdfast_proto::v1;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::archives::Archives;
use crate::auth::{Revocations, WallClock};
use crate::driver::Handle;
use crate::grpc::agent::PaceBounds;
use crate::grpc::enroll::Signer;
use crate::grpc::files::Files;
use crate::grpc::view::deployment::summary;
use crate::grpc::view::held_back::held_back;
use crate::logs::Logs;
use crate::sessions::Directory;
use crate::store::{Identity, Reader};
use crate::verify::Verdict;

/// Who can act where the coordinator itself stands still.
const WHO_RUNS_IT: &str = "which whoever runs it can change (its /readyz?verbose says more)";

/// Cheap to clone.
#[derive(Clone)]
pub struct Shared {
    /// Decides, commits, answers.
    pub driver: Handle,
    /// Reads what is committed.
    pub reader: Reader,
    /// Agents and their sessions.
    pub directory: Arc<Directory>,
    /// What steps wrote.
    pub logs: Logs,
    /// Archives that were uploaded.
    pub archives: Archives,
    /// Reads operators' files.
    pub files: Files,
    /// Where files that were attached to attestations are kept, by their hash.
    pub attachments: PathBuf,
    /// Whether the disk has room for new work.
    pub room: watch::Receiver<Room>,
    /// Whether there are descriptors for new work.
    pub descriptors: watch::Receiver<Descriptors>,
    /// Whether the store follows from its events, as far as anybody looked.
    pub verdict: Verdict,
    /// Certificates that open nothing any more.
    pub revocations: Revocations,
    /// What certificates of hosts that join are signed with.
    pub signer: Signer,
    /// Which store this is.
    pub identity: Identity,
    /// What agents are told at their `Welcome`.
    pub limits: Limits,
    /// For people.
    pub clock: WallClock,
    /// The coordinator is stopping.
    pub stop: CancellationToken,
}

/// What agents are told at their `Welcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often an agent renews its leases.
    pub heartbeat_interval: Millis,
    /// Largest text of a report, in bytes.
    pub max_text_bytes: u32,
    /// Largest output kept of one stream of a step, in bytes.
    pub max_log_bytes: u64,
    /// How fast each may speak.
    pub pace: PaceBounds,
}

impl Shared {
    /// Returns once there is room for what is no result. What waits for it is kept at its source meanwhile.
    pub async fn room_for_more(&self) {
        let mut room = self.room.clone();
        let _a_driver_that_is_gone_records_nothing = room.wait_for(Room::takes_new_work).await;
    }

    /// Why the coordinator itself hands out nothing new now. On no record: there may be no room for one.
    #[must_use]
    pub fn standstill(&self) -> Option<String> {
        if let Some(lack) = self.room.borrow().lack() {
            return Some(format!("the coordinator's disk has no room for new work: {lack}"));
        }
        if let Some(found) = self.verdict.against() {
            return Some(format!("{}, so nothing is granted: {found}", Code::StoreUnsound.title()));
        }
        self.directory.suspicion().map(|suspicion| format!("nothing new is handed out: {suspicion}"))
    }

    /// Why the coordinator itself permits no step now, and who can act.
    #[must_use]
    pub fn no_permit(&self) -> Option<String> {
        let room = *self.room.borrow();
        if !room.can_promise() {
            return Some(format!("none is granted while the coordinator's disk is full, {WHO_RUNS_IT}: {room}"));
        }
        let found = self.verdict.against()?;
        Some(format!("none is granted, {WHO_RUNS_IT}: {}: {found}", Code::StoreUnsound.title()))
    }

    /// Why the deployment does not go on now, beyond what is recorded of it: the coordinator itself, or the room of its agent's
    /// host. On no record: there may be no room for one.
    #[must_use]
    pub fn waits_now(&self, deployment: &Deployment) -> Option<String> {
        match (deployment.state, deployment.live()) {
            (DeploymentState::Queued | DeploymentState::Active, None) if deployment.reserved_at.is_some() => {
                self.standstill()
            }
            (DeploymentState::Active, Some(attempt)) => {
                let no_room = self.directory.no_room(&attempt.agent);
                held_back(deployment, self.no_permit().as_deref(), no_room.as_ref())
            }
            (
                DeploymentState::Queued
                | DeploymentState::Active
                | DeploymentState::Uncertain
                | DeploymentState::Held
                | DeploymentState::Succeeded
                | DeploymentState::Failed
                | DeploymentState::Cancelled,
                _,
            ) => None,
        }
    }

    /// On one line, with why it does not go on now.
    #[must_use]
    pub fn summary(&self, target: &TargetName, deployment: &Deployment) -> v1::DeploymentSummary {
        let mut shown = summary(target, deployment);
        self.tell(&mut shown, deployment);
        shown
    }

    /// Puts into what is shown of it why it does not go on now.
    pub fn tell(&self, shown: &mut v1::DeploymentSummary, deployment: &Deployment) {
        if let Some(why) = self.waits_now(deployment) {
            shown.because = if shown.because.is_empty() { why } else { format!("{}; {why}", shown.because) };
        }
    }

    /// Now, for people.
    #[must_use]
    pub fn now(&self) -> Wall {
        (self.clock)()
    }

    /// How long ago the agent was last heard, for people; `None` if it never was.
    #[must_use]
    pub fn silence(&self, agent: &AgentName) -> Option<Millis> {
        let heard = self.directory.last_heard(agent)?;
        let micros = self.now().0.saturating_sub(heard.0).max(0);
        Some(Millis(u64::try_from(micros / 1000).unwrap_or_default()))
    }
}

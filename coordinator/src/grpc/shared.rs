//! What every handler works with.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_common::id::AgentName;
use holdfast_common::time::{Millis, Wall};
use tokio_util::sync::CancellationToken;

use crate::archives::Archives;
use crate::auth::WallClock;
use crate::driver::Handle;
use crate::logs::Logs;
use crate::sessions::Directory;
use crate::store::{Identity, Reader};

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
    /// Where files that were attached to attestations are kept, by their hash.
    pub attachments: PathBuf,
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
}

impl Shared {
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

//! The agent's configuration: TOML, each key also `HOLDFAST_*`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use holdfast_agent_core::leave::{Manner, Mode};
use holdfast_common::adapter::Adapter;
use holdfast_common::time::Millis;
use holdfast_net::ops;
use holdfast_net::telemetry::Format;
use serde::Deserialize;

/// All of it. Unknown keys are errors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the journal, the attempts' folders and the locks are. One agent per folder.
    pub state_dir: PathBuf,
    /// Where the coordinator is.
    pub coordinator: Coordinator,
    /// Who this agent is.
    pub identity: Identity,
    /// What targets select agents by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What this host allows, whatever the coordinator says.
    #[serde(default)]
    pub policy: Policy,
    /// How archives are fetched.
    #[serde(default)]
    pub fetch: Fetch,
    /// The disk that `state_dir` is on.
    #[serde(default)]
    pub disk: Disk,
    /// The log.
    #[serde(default)]
    pub log: Log,
    /// Health and metrics.
    #[serde(default)]
    pub ops: ops::Settings,
    /// How it leaves when it is to stop.
    #[serde(default)]
    pub stop: Stop,
}

/// How the agent leaves when it is to stop: see [`holdfast_agent_core::leave`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// `detach`: work goes on under its shims. `finish`: it waits for its work first.
    pub mode: StopMode,
    /// Of `finish`: longest wait for work. Then it detaches.
    pub finish_within: Span,
    /// How long it says that it will be away. Leases outlast that within the coordinator's own bound.
    pub away: Span,
}

/// What a stop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Nothing.
    Detach,
    /// What is held.
    Finish,
}

impl Default for Stop {
    fn default() -> Self {
        let (finish_within, away) = (Span(Millis::from_secs(10 * 60)), Span(Millis::from_secs(60)));
        Self { mode: StopMode::Detach, finish_within, away }
    }
}

impl Stop {
    /// As the core has it.
    #[must_use]
    pub fn manner(self) -> Manner {
        let mode = match self.mode {
            StopMode::Detach => Mode::Detach,
            StopMode::Finish => Mode::Finish,
        };
        Manner { mode, finish_within: self.finish_within.0, away: self.away.0 }
    }
}

/// The disk that `state_dir` is on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Bytes that are put aside for the journal and the ends of steps, beside some for each attempt. Offers are taken while as
    /// much again is free.
    pub reserve_bytes: u64,
}

impl Default for Disk {
    fn default() -> Self {
        Self { reserve_bytes: 4 * 1024 * 1024 }
    }
}

/// Where the coordinator is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coordinator {
    /// `https://host:port` or `host:port`.
    pub address: String,
    /// PEM file with the authority that signed the coordinator's certificate.
    pub ca: PathBuf,
    /// The name in the coordinator's certificate, where it is not the address's host.
    #[serde(default)]
    pub server_name: Option<String>,
}

/// Who this agent is: the name is the certificate's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// PEM file.
    pub certificate: PathBuf,
    /// PEM file.
    pub key: PathBuf,
}

/// What this host allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Adapters that may run here: `command`, `release`, and `check` for health checks over HTTP and TCP. A check by a
    /// command is a command.
    pub adapters: BTreeSet<String>,
    /// Targets that may run here, by name; `*` at the end stands for any rest. Empty allows all.
    pub targets: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            adapters: [Adapter::Command, Adapter::Release, Adapter::Check]
                .map(|adapter| adapter.name().to_owned())
                .into(),
            targets: Vec::new(),
        }
    }
}

impl Policy {
    /// Whether this target may run here.
    #[must_use]
    pub fn allows_target(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|pattern| fits(pattern, name))
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// How archives are fetched, from https URLs and from the coordinator.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fetch {
    /// PEM file with the only authorities that https servers are trusted by. Missing: the host's own.
    pub ca: Option<PathBuf>,
    /// Hosts that archives may come from, by name; `*` at the end stands for any rest. Empty allows all.
    pub hosts: Vec<String>,
    /// Largest archive, in bytes.
    pub max_bytes: u64,
    /// Bytes of fetched archives that are kept for the next time.
    pub cache_bytes: u64,
    /// How long a fetch may take, cuts included.
    pub timeout: Span,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            ca: None,
            hosts: Vec::new(),
            max_bytes: 4 << 30,
            cache_bytes: 4 << 30,
            timeout: Span(Millis::from_secs(15 * 60)),
        }
    }
}

impl Fetch {
    /// Whether archives may come from this host.
    #[must_use]
    pub fn allows_host(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| fits(pattern, host))
    }
}

/// A length of time, written like `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Millis);

impl TryFrom<String> for Span {
    type Error = holdfast_common::time::NotADuration;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Span)
    }
}

/// The log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `text` or `json`.
    pub format: Format,
    /// Like `info` or `info,holdfast_agent=debug`.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: Format::Text, filter: "info".to_owned() }
    }
}

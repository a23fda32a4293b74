//! The agent's configuration: TOML, each key also `HOLDFAST_*`.

mod allow;
mod resource;
mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_common::time::Millis;
use holdfast_net::ops;
use holdfast_net::telemetry::Format;
use serde::Deserialize;

pub use allow::Policy;
pub(crate) use allow::fits;
pub use resource::{CredentialSet, CredentialSets, Resource};
pub use steps::{Cgroup, Keep, Limits, Supervisor};

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
    /// The resources that this host allows, each in a table `[[resource]]`. None: all, within the policy.
    #[serde(default)]
    pub resource: Vec<Resource>,
    /// How archives are fetched.
    #[serde(default)]
    pub fetch: Fetch,
    /// The disk that `state_dir` is on.
    #[serde(default)]
    pub disk: Disk,
    /// How steps are kept together.
    #[serde(default)]
    pub supervisor: Supervisor,
    /// What each step may use.
    #[serde(default)]
    pub limits: Limits,
    /// How long the folders of attempts stay.
    #[serde(default)]
    pub keep: Keep,
    /// The log.
    #[serde(default)]
    pub log: Log,
    /// Health and metrics.
    #[serde(default)]
    pub ops: ops::Settings,
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

//! The agent's configuration: TOML, each key also `HOLDFAST_*`.

mod allow;
mod at;
mod resource;
mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_agent_core::leave::{Manner, Mode};
use holdfast_common::time::Millis;
use holdfast_net::channel::Addresses;
use holdfast_net::ops;
use holdfast_net::telemetry::Format;
use serde::Deserialize;

use crate::enrol::Folder;
pub use allow::Policy;
pub(crate) use allow::fits;
pub(crate) use at::lies_below;
pub use at::{NotAPlace, Place};
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
    /// Programs of external adapters, by the name that targets use.
    #[serde(default)]
    pub external: BTreeMap<String, PathBuf>,
    /// How archives are fetched.
    #[serde(default)]
    pub fetch: Fetch,
    /// By what this machine is known again.
    #[serde(default)]
    pub machine: Machine,
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

/// By what this machine is known again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// A file whose first line stands for the machine, instead of `/etc/machine-id` and what the firmware says.
    pub id_file: Option<PathBuf>,
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
    /// `https://host:port` or `host:port`, or a list of such: tried in turn, each name looked up at every try.
    pub address: Addresses,
    /// PEM file with the authority that signed the coordinator's certificate. Missing: those in the identity's folder.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The name in the coordinator's certificate, where it is not the address's host.
    #[serde(default)]
    pub server_name: Option<String>,
}

/// Who this agent is: the name is the certificate's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// PEM file, of a certificate from elsewhere.
    pub certificate: Option<PathBuf>,
    /// PEM file.
    pub key: Option<PathBuf>,
    /// The folder that `holdfast-agent join` wrote, in their place.
    pub dir: Option<PathBuf>,
}

/// Where the agent's certificates are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// Whom the coordinator is trusted by.
    pub ca: PathBuf,
    /// The agent's own.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Where that is renewed.
    pub folder: Option<Folder>,
}

/// Identity and authorities don't go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTogether {
    /// Neither, or both.
    #[error("identity: expected either `dir`, which holdfast-agent join writes, or both `certificate` and `key`")]
    Identity,
    /// Nobody says whom to trust.
    #[error("coordinator.ca is missing: only an identity's folder says whom to trust")]
    Ca,
}

impl Config {
    /// Where the certificates are.
    pub fn certificates(&self) -> Result<Certificates, NotTogether> {
        let ca = self.coordinator.ca.clone();
        match (&self.identity.dir, &self.identity.certificate, &self.identity.key) {
            (Some(dir), None, None) => {
                let folder = Folder::at(dir);
                Ok(Certificates {
                    ca: ca.unwrap_or_else(|| folder.authorities()),
                    certificate: folder.certificate(),
                    key: folder.key(),
                    folder: Some(folder),
                })
            }
            (None, Some(certificate), Some(key)) => {
                let ca = ca.ok_or(NotTogether::Ca)?;
                Ok(Certificates { ca, certificate: certificate.clone(), key: key.clone(), folder: None })
            }
            (Some(_), _, _) | (None, _, _) => Err(NotTogether::Identity),
        }
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

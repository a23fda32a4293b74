//! The coordinator's configuration: a TOML file, each key of which `HOLDFAST_*` overrides.
//!
//! ```toml
//! data_dir = "/var/lib/holdfast"
//!
//! [listen]
//! address = "0.0.0.0:7443"
//!
//! [tls]
//! cert = "/etc/holdfast/coordinator.pem"
//! key = "/etc/holdfast/coordinator.key"
//! client_ca = "/etc/holdfast/agents-ca.pem"
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_common::time::Millis;
pub use holdfast_net::config::Span;
use holdfast_net::ops;
use holdfast_net::telemetry::Format;
use serde::Deserialize;

use crate::ca::Files;
use crate::grpc::PaceBounds;
use crate::sessions::Bounds;

/// All of it. A relative path is relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the store, outputs and attachments are. Made if it is not there.
    pub data_dir: PathBuf,
    /// Where to listen.
    #[serde(default)]
    pub listen: Listen,
    /// Certificates and keys.
    pub tls: Tls,
    /// The authority that signs the certificates of hosts that join.
    #[serde(default)]
    pub ca: Ca,
    /// How hosts become agents.
    #[serde(default)]
    pub enrol: Enrol,
    /// Leases.
    #[serde(default)]
    pub lease: Lease,
    /// Heartbeats.
    #[serde(default)]
    pub heartbeat: Heartbeat,
    /// How much one agent may say.
    #[serde(default)]
    pub agents: Agents,
    /// Outputs of steps.
    #[serde(default)]
    pub output: Output,
    /// Archives that are uploaded with deployments.
    #[serde(default)]
    pub archives: Archives,
    /// The disk that `data_dir` is on.
    #[serde(default)]
    pub disk: Disk,
    /// The look at the whole store, again and again.
    #[serde(default)]
    pub audit: Audit,
    /// When so many agents fall silent at once that the coordinator suspects itself.
    #[serde(default)]
    pub mass_loss: MassLoss,
    /// The log on stderr.
    #[serde(default)]
    pub log: Log,
    /// Health and metrics.
    #[serde(default)]
    pub ops: ops::Settings,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address and port. Port 0 takes a free one.
    pub address: SocketAddr,
    /// A file that gets the address that was taken.
    pub address_file: Option<PathBuf>,
}

impl Default for Listen {
    fn default() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 7443)), address_file: None }
    }
}

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The coordinator's certificate chain.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority that signs agents' certificates, where that is not the coordinator's own, or not it alone.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
}

/// The coordinator's own authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ca {
    /// Its certificates; `ca/ca.pem` in `data_dir` if nothing else is said.
    pub cert: Option<PathBuf>,
    /// Its key; `ca/ca.key` in `data_dir` if nothing else is said. Without this file nothing is signed.
    pub key: Option<PathBuf>,
}

/// How hosts become agents.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Enrol {
    /// How long an agent's certificate is good. Agents renew it when two thirds are over.
    pub certificate_life: Span,
}

impl Default for Enrol {
    fn default() -> Self {
        Self { certificate_life: Span(Millis::from_secs(30 * 24 * 3600)) }
    }
}

/// Leases.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lease {
    /// How long after its TTL a lease lapses.
    pub margin: Span,
    /// What a lease is given at most, once, for an absence of its agent that the agent announced. Zero gives nothing.
    pub detach: Span,
}

impl Default for Lease {
    fn default() -> Self {
        Self { margin: Span(Millis::from_secs(2)), detach: Span(Millis::from_secs(120)) }
    }
}

/// Heartbeats.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Heartbeat {
    /// How often agents renew their leases.
    pub interval: Span,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { interval: Span(Millis::from_secs(5)) }
    }
}

/// How much one agent may say. One that says more is read more slowly; nothing of it is lost, and nobody else waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agents {
    /// Messages a second, for ever. Each claim of a heartbeat counts as one, and each 4 KiB.
    pub messages_per_second: u32,
    /// Messages at once, after a rest.
    pub burst: u32,
}

impl Default for Agents {
    fn default() -> Self {
        let PaceBounds { per_second, burst } = PaceBounds::default();
        Self { messages_per_second: per_second, burst }
    }
}

impl Agents {
    /// As sessions are read by it.
    #[must_use]
    pub fn pace(&self) -> PaceBounds {
        PaceBounds { per_second: self.messages_per_second, burst: self.burst }
    }
}

/// Outputs of steps.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Bytes kept of each output of a step.
    pub max_bytes: u64,
    /// Bytes kept of all outputs together. The oldest of deployments that ended go first.
    pub keep_bytes_total: u64,
    /// How long outputs are kept after their deployment ended.
    pub keep_age: Span,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            max_bytes: 16 * 1024 * 1024,
            keep_bytes_total: 10 * 1024 * 1024 * 1024,
            keep_age: Span(Millis::from_secs(90 * 24 * 3600)),
        }
    }
}

/// Archives that are uploaded with deployments.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Archives {
    /// Bytes of one archive.
    pub max_bytes: u64,
    /// Bytes of all archives together. The longest unused go first; what a deployment may still need stays.
    pub keep_bytes_total: u64,
    /// How long an archive stays that nothing uses.
    pub keep_age: Span,
}

impl Default for Archives {
    fn default() -> Self {
        Self {
            max_bytes: 1024 * 1024 * 1024,
            keep_bytes_total: 20 * 1024 * 1024 * 1024,
            keep_age: Span(Millis::from_secs(30 * 24 * 3600)),
        }
    }
}

/// The disk that `data_dir` is on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disk {
    /// Bytes that are put aside for results, beside some for each attempt under way. New work is taken while as much again is
    /// free.
    pub reserve_bytes: u64,
}

impl Default for Disk {
    fn default() -> Self {
        Self { reserve_bytes: 16 * 1024 * 1024 }
    }
}

/// The look at the whole store, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// How long after one whole look the next begins.
    pub every: Span,
}

impl Default for Audit {
    fn default() -> Self {
        Self { every: Span(Millis::from_secs(15 * 60)) }
    }
}

/// When so many agents fall silent at once that the coordinator suspects itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MassLoss {
    /// More than so many percent of the agents in contact.
    pub percent: u8,
    /// No fewer agents than these.
    pub at_least: usize,
    /// Within so long.
    pub within: Span,
    /// How long it hands out nothing new at most.
    pub patience: Span,
}

impl Default for MassLoss {
    fn default() -> Self {
        let Bounds { percent, at_least, within, patience } = Bounds::default();
        let span = |bound: Duration| Span(Millis(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX)));
        Self { percent, at_least, within: span(within), patience: span(patience) }
    }
}

impl MassLoss {
    /// As the sessions judge by them.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let Self { percent, at_least, within, patience } = self;
        Bounds { percent: *percent, at_least: *at_least, within: within.0.into(), patience: patience.0.into() }
    }
}

/// The log on stderr.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// `text` or `json`.
    pub format: Format,
    /// Like `info` or `info,holdfast_coordinator=debug`.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: Format::Text, filter: "info".to_owned() }
    }
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file or a variable.
    #[error(transparent)]
    Load(#[from] holdfast_net::config::Error),
    /// Nobody says whose agents are let in.
    #[error("tls.client_ca: is missing, and there is no authority of the coordinator's own")]
    NoAuthority,
    /// A value that makes no sense.
    #[error("{key}: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong.
        why: &'static str,
    },
}

/// The store's file in a data folder.
#[must_use]
pub fn store_in(data_dir: &Path) -> PathBuf {
    data_dir.join("holdfast.db")
}

impl Config {
    /// From a file and the environment.
    pub fn load(file: Option<&Path>) -> Result<Self, Error> {
        let config: Self = holdfast_net::config::load(file, std::env::vars_os())?;
        config.check()?;
        Ok(config)
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        store_in(&self.data_dir)
    }

    /// Where the coordinator's own authority is, or would be.
    #[must_use]
    pub fn authority(&self) -> Files {
        let inside = |name: &str| self.data_dir.join("ca").join(name);
        Files {
            certificates: self.ca.cert.clone().unwrap_or_else(|| inside("ca.pem")),
            key: self.ca.key.clone().unwrap_or_else(|| inside("ca.key")),
        }
    }

    /// The files of every authority whose agents are let in.
    pub fn client_authorities(&self) -> Result<Vec<PathBuf>, Error> {
        let own = self.authority().certificates;
        if self.tls.client_ca.is_none() && !own.exists() {
            return Err(Error::NoAuthority);
        }
        Ok(self.tls.client_ca.iter().cloned().chain([own]).collect())
    }

    fn check(&self) -> Result<(), Error> {
        const LONGEST_HEARTBEAT: Millis = Millis::from_secs(3600);
        const LEAST_MESSAGES: u32 = 10;
        let interval = self.heartbeat.interval.0;
        if interval.0 == 0 || interval > LONGEST_HEARTBEAT {
            return Err(Error::Value { key: "heartbeat.interval", why: "must be above zero and at most an hour" });
        }
        if self.enrol.certificate_life.0 < Millis::from_secs(1) {
            return Err(Error::Value { key: "enrol.certificate_life", why: "must be at least a second" });
        }
        if self.lease.margin.0 > LONGEST_HEARTBEAT {
            return Err(Error::Value { key: "lease.margin", why: "must be at most an hour" });
        }
        if self.lease.detach.0 > LONGEST_HEARTBEAT {
            return Err(Error::Value { key: "lease.detach", why: "must be at most an hour" });
        }
        if self.agents.messages_per_second < LEAST_MESSAGES || self.agents.burst < LEAST_MESSAGES {
            return Err(Error::Value { key: "agents.messages_per_second, agents.burst", why: "must be at least 10" });
        }
        if self.ops.live_within.0.0 == 0 || self.ops.ready_within.0.0 == 0 {
            return Err(Error::Value { key: "ops.live_within, ops.ready_within", why: "must be above zero" });
        }
        if self.audit.every.0 < Millis(100) {
            return Err(Error::Value { key: "audit.every", why: "must be at least 100ms" });
        }
        if !(1..=100).contains(&self.mass_loss.percent) {
            return Err(Error::Value { key: "mass_loss.percent", why: "must be 1 to 100; 100 turns it off" });
        }
        if self.mass_loss.at_least == 0 {
            return Err(Error::Value { key: "mass_loss.at_least", why: "must be at least 1" });
        }
        if self.output.max_bytes == 0 {
            return Err(Error::Value { key: "output.max_bytes", why: "must be above zero" });
        }
        if self.output.keep_bytes_total < self.output.max_bytes.saturating_mul(2) {
            return Err(Error::Value {
                key: "output.keep_bytes_total",
                why: "must have room for both outputs of a step: twice output.max_bytes",
            });
        }
        if self.archives.max_bytes > self.archives.keep_bytes_total {
            return Err(Error::Value { key: "archives.max_bytes", why: "must be at most archives.keep_bytes_total" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let path = std::env::temp_dir().join(format!("holdfast-config-{}.toml", uuid::Uuid::new_v4()));
        std::fs::write(&path, text).unwrap();
        let read = holdfast_net::config::load::<Config>(Some(&path), []).map_err(Error::from);
        let checked = read.and_then(|config| config.check().map(|()| config));
        std::fs::remove_file(&path).unwrap();
        checked.map_err(|error| error.to_string())
    }

    const LEAST: &str = "data_dir = \"/d\"\n[tls]\ncert = \"c\"\nkey = \"k\"\nclient_ca = \"a\"\n";

    #[test]
    fn the_least_is_where_the_data_and_the_certificates_are() {
        let config = read(LEAST).expect("enough");
        assert_eq!(config.listen.address.to_string(), "127.0.0.1:7443");
        assert_eq!(config.heartbeat.interval, Span(Millis(5_000)));
        assert_eq!(config.store(), Path::new("/d/holdfast.db"));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (more, named) in [
            ("[heartbeat]\ninterval = \"0s\"", "heartbeat.interval"),
            ("[heartbeat]\ninterval = \"often\"", "heartbeat.interval"),
            ("[heartbeat]\nintervall = \"5s\"", "did you mean"),
            ("[lease]\nmargin = \"2h\"", "lease.margin"),
            ("[agents]\nburst = 0", "agents.burst"),
            ("[lease]\ndetach = \"2h\"", "lease.detach"),
            ("[output]\nmax_bytes = 0", "output.max_bytes"),
            ("[output]\nkeep_bytes_total = 1000", "output.keep_bytes_total"),
            ("[output]\nkeep_age = \"long\"", "output.keep_age"),
            ("[archives]\nkeep_bytes_total = 5", "archives.max_bytes"),
            ("[audit]\nevery = \"1ms\"", "audit.every"),
            ("[mass_loss]\npercent = 0", "mass_loss.percent"),
            ("[mass_loss]\nat_least = 0", "mass_loss.at_least"),
            ("[listen]\naddress = \"somewhere\"", "listen.address"),
        ] {
            let told = read(&format!("{LEAST}{more}\n")).expect_err(more);
            assert!(told.contains(named), "{more}: {told}");
        }
    }

    #[test]
    fn every_key_has_its_variable() {
        let names: Vec<_> = holdfast_net::config::variables::<Config>().into_iter().map(|v| v.name).collect();
        for name in ["HOLDFAST_DATA_DIR", "HOLDFAST_LISTEN_ADDRESS", "HOLDFAST_TLS_CLIENT_CA", "HOLDFAST_LEASE_MARGIN"]
        {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
    }
}

//! What an agent offers, and why it can't take a target's work.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::adapter::Adapter;
use holdfast_common::id::{IncarnationId, ResourceName, TargetName};
use holdfast_common::spec::{ResourceSpec, TargetSpec};
use holdfast_common::text::{bounded, one_line};
use holdfast_proto::convert::Hello;
use holdfast_proto::{PROTOCOL_VERSION, v1};

use super::pattern;

/// What an agent said of itself in its last `Hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its journal.
    pub incarnation: IncarnationId,
    /// What it says of its host.
    pub labels: BTreeMap<String, String>,
    /// The adapters that its host offers.
    pub adapters: BTreeSet<String>,
    /// Patterns of targets that its host allows; empty allows all.
    pub targets: Vec<String>,
    /// For people.
    pub version: String,
    /// Which process of the agent said it; empty where it did not tell.
    pub instance: String,
}

/// Why an agent can't take a target's work. Shown as words for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It and this coordinator have no version of the protocol in common.
    #[error(
        "it speaks protocol {} and this coordinator speaks {PROTOCOL_VERSION}: upgrade the older of the two", versions(.0)
    )]
    Protocol(Vec<u32>),
    /// Its host's policy.
    #[error("its host does not allow {0}")]
    Target(TargetName),
    /// An adapter that a resource is reached by.
    #[error("its host does not offer the adapter {0} of resource {1}")]
    Resource(&'static str, ResourceName),
    /// An adapter that a step is done by.
    #[error("its host does not offer the adapter {0}, which a step needs")]
    Step(&'static str),
}

impl Unfit {
    /// As metrics tell it apart.
    pub const WORDS: &[&str] = &["protocol", "target", "adapter"];

    /// Its place in [`Self::WORDS`].
    pub(super) fn place(&self) -> usize {
        match self {
            Unfit::Protocol(_) => 0,
            Unfit::Target(_) => 1,
            Unfit::Resource(..) | Unfit::Step(_) => 2,
        }
    }
}

fn versions(versions: &[u32]) -> String {
    match versions {
        [] => "of no version".to_owned(),
        some => some.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}

impl From<&Hello> for Profile {
    fn from(hello: &Hello) -> Self {
        Self {
            incarnation: hello.incarnation,
            labels: hello.labels.clone(),
            adapters: hello.adapters.clone(),
            targets: hello.targets.clone(),
            version: hello.version.clone(),
            instance: hello.instance.clone(),
        }
    }
}

impl Profile {
    /// As far as a Hello of another version can be read: labels, so that whoever selects by them hears of it.
    pub(crate) fn of_stranger(hello: &v1::Hello) -> Self {
        const MOST: usize = 64;
        const LONGEST: usize = 256;
        let short = |text: &str| text.len() <= LONGEST;
        let labels = hello.labels.iter().filter(|(name, value)| short(name) && short(value)).take(MOST);
        Self {
            incarnation: IncarnationId(hello.incarnation.parse().unwrap_or_default()),
            labels: labels.map(|(name, value)| (one_line(name), one_line(value))).collect(),
            adapters: BTreeSet::new(),
            targets: Vec::new(),
            version: bounded(&one_line(&hello.version), LONGEST),
            instance: String::new(),
        }
    }

    /// Whether it has every label that the target selects by.
    pub(crate) fn matches(&self, target: &TargetSpec) -> bool {
        matches(&self.labels, target)
    }

    /// Whether another process says that it is the same agent, as far as both tell.
    pub(super) fn is_of_another_process(&self, other: &str) -> bool {
        !self.instance.is_empty() && !other.is_empty() && self.instance != other
    }

    /// Why it can't take this target's work; `None` where it can.
    pub(super) fn unfit(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Option<Unfit> {
        if !self.allows(&target.name) {
            return Some(Unfit::Target(target.name.clone()));
        }
        if let Some(missing) = target.resources.iter().find(|resource| !self.offers(resource)) {
            return Some(Unfit::Resource(adapter(missing), missing.name.clone()));
        }
        let missing = needs.iter().map(|adapter| adapter.name()).find(|name| !self.adapters.contains(*name))?;
        Some(Unfit::Step(missing))
    }

    /// Whether its host's policy lets it work on that target, as far as it told.
    pub(super) fn allows(&self, target: &TargetName) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|pattern| pattern::fits(pattern, target.as_str()))
    }

    /// Whether its host offers the resource's adapter.
    pub(super) fn offers(&self, resource: &ResourceSpec) -> bool {
        self.adapters.contains(adapter(resource))
    }
}

/// Whether these labels have all that the target selects by.
pub(super) fn matches(labels: &BTreeMap<String, String>, target: &TargetSpec) -> bool {
    target.agents.iter().all(|(name, value)| labels.get(name) == Some(value))
}

fn adapter(resource: &ResourceSpec) -> &'static str {
    resource.adapter.adapter().name()
}

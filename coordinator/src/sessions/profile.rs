//! What an agent offers, and why it can't take a target's work.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::adapter::Adapter;
use holdfast_common::id::{IncarnationId, TargetName};
use holdfast_common::spec::{ResourceAdapter, ResourceSpec, TargetSpec};
use holdfast_proto::convert::Hello;

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
}

impl From<&Hello> for Profile {
    fn from(hello: &Hello) -> Self {
        Self {
            incarnation: hello.incarnation,
            labels: hello.labels.clone(),
            adapters: hello.adapters.clone(),
            targets: hello.targets.clone(),
            version: hello.version.clone(),
        }
    }
}

impl Profile {
    /// Whether it has every label that the target selects by.
    pub(crate) fn matches(&self, target: &TargetSpec) -> bool {
        matches(&self.labels, target)
    }

    /// Why it can't take this target's work, in words; `None` where it can.
    pub(super) fn unfit(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Option<String> {
        if !self.allows(&target.name) {
            return Some(format!("its host does not allow {}", target.name));
        }
        if let Some(missing) = target.resources.iter().find(|resource| !self.offers(resource)) {
            return Some(format!(
                "its host does not offer the adapter {} of resource {}",
                adapter(missing),
                missing.name
            ));
        }
        let missing = needs.iter().map(|adapter| adapter.name()).find(|name| !self.adapters.contains(*name))?;
        Some(format!("its host does not offer the adapter {missing}, which a step needs"))
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
    match resource.adapter {
        ResourceAdapter::Command { .. } => "command",
        ResourceAdapter::Release { .. } => "release",
    }
}

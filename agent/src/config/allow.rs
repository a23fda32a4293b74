//! `[policy]`: what this host allows, whatever the coordinator says.

use std::collections::BTreeSet;

use holdfast_common::adapter::Adapter;
use serde::Deserialize;

/// What this host allows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Adapters that may run here, by name. `check` is for health checks over HTTP and TCP; a check by a command is a command.
    /// Empty allows none.
    pub adapters: BTreeSet<String>,
    /// Targets that may run here, by name; `*` at the end stands for any rest. Empty allows all.
    pub targets: Vec<String>,
    /// Programs that may run here, by absolute path; `*` at the end stands for any rest. What counts is the file that a command
    /// comes to after every link. Empty allows all.
    pub commands: Vec<String>,
    /// The user that commands run as, by name or as `UID:GID`, where their resource names none. Missing: the agent's own.
    pub run_as: Option<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            adapters: Adapter::ALL.map(|adapter| adapter.name().to_owned()).into(),
            targets: Vec::new(),
            commands: Vec::new(),
            run_as: None,
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

/// Whether a name fits a pattern: `*` at its end stands for any rest.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

//! `[[resource]]`: one thing that steps may change on this host, and with what.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Place, fits};

/// What this host allows for a resource, and for several where a name ends in `*`. The first that fits counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Of which targets, by name; `*` at the end stands for any rest.
    pub target: String,
    /// The resource's name in its target; `*` at the end stands for any rest.
    pub name: String,
    /// The only adapter that may change it, by name.
    pub adapter: String,
    /// Of a release: its folder is this one or below. Missing allows any.
    #[serde(default)]
    pub root: Option<PathBuf>,
    /// Of a repository, an API or a database: it is one of these places or below. Missing allows any, but none on the network
    /// that would be shown a credential.
    #[serde(default)]
    pub at: Option<Vec<Place>>,
    /// Of commands: who they run as, by name or as `UID:GID`. Missing: `run_as` of the policy.
    #[serde(default)]
    pub user: Option<String>,
    /// Of commands: who the inspection command runs as. Missing: as the others.
    #[serde(default)]
    pub inspect_user: Option<String>,
    /// What proves at the resource who asks.
    #[serde(default)]
    pub credentials: CredentialSets,
}

impl Resource {
    /// Whether this is said of that resource. Of a pattern: whether it is said of every resource that fits the pattern.
    #[must_use]
    pub fn is_of(&self, target: &str, name: &str) -> bool {
        fits(&self.target, target) && fits(&self.name, name)
    }
}

/// Three sets, so that a look can't change anything and a change can't raise a fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CredentialSets {
    /// Of steps that change the resource, under a permit.
    pub deploy: CredentialSet,
    /// Of the inspection command.
    pub inspect: CredentialSet,
    /// Of what raises the resource's fence.
    pub fence: CredentialSet,
}

impl CredentialSets {
    /// Whether there is nothing in any of them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, &CredentialSet); 3] {
        [("deploy", &self.deploy), ("inspect", &self.inspect), ("fence", &self.fence)]
    }
}

/// Where secret values come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CredentialSet {
    /// Files by the name that a command finds them under.
    pub files: BTreeMap<String, PathBuf>,
    /// A file with lines like `KEY=VALUE`, for the command's environment.
    pub environment_file: Option<PathBuf>,
    /// The name of a credential that systemd hands to the service: a file of that name.
    pub systemd: Option<String>,
}

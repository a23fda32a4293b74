//! Refs of a Git repository, and commits on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Archive;
use crate::adapter::{Capability, Enforce, Inspect};

/// Refs of a repository, as far as they are below one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Git {
    /// The remote: an absolute path, or `https://`, `http://` or `ssh://` without credentials.
    pub url: String,
    /// Branches that are changed together. Never empty.
    pub branches: Vec<String>,
    /// The folder in the repository that the resource is; empty: all of it.
    pub path: String,
}

impl Git {
    /// The push is a compare-and-swap of each branch and of the ref that holds the fence, all or none. A push that reached the
    /// remote goes on without its process.
    pub(super) const CAPABILITY: Capability =
        Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: true };

    /// Repository, branches and folder: several resources can live in one repository. Where folders lie in each other, or only
    /// some branches are shared, the ledgers in the repository itself tell.
    pub(super) fn place(&self) -> String {
        let url = self.url.trim_end_matches('/');
        let mut branches: Vec<&str> = self.branches.iter().map(String::as_str).collect();
        branches.sort_unstable();
        format!("git:{} {} {}", url.strip_suffix(".git").unwrap_or(url), branches.join(","), self.path)
    }
}

/// Puts files in place of what is in the resource's folder, and commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Files to copy, all of them.
    pub archive: Option<Archive>,
    /// Files to write, by path below the resource's folder. They win over those of the archive.
    pub files: BTreeMap<String, String>,
    /// Whether what is in the folder and is neither in the archive nor in the files stays.
    pub keep: bool,
    /// The first line of the commit's message; `None`: one that names deployment and revision.
    pub message: Option<String>,
}

//! `[supervisor]`, `[limits]` and `[keep]`: how steps are kept together, what each may use, and how long their folders stay.

use std::path::PathBuf;

use holdfast_common::time::Millis;
use serde::{Deserialize, Serialize};

use super::Span;

/// How steps are kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Supervisor {
    /// Where each step gets a cgroup of its own.
    pub cgroup: Cgroup,
}

/// Where each step gets a cgroup of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Cgroup {
    /// In the agent's, where version 2 can be written there; else nowhere.
    #[default]
    Auto,
    /// Nowhere.
    Off,
    /// In this one, by its absolute path, or the agent does not start.
    At(PathBuf),
}

impl TryFrom<String> for Cgroup {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Cgroup::Auto),
            "off" => Ok(Cgroup::Off),
            path if path.starts_with('/') => Ok(Cgroup::At(path.into())),
            _ => Err(format!("{text:?} is neither \"auto\" nor \"off\" nor an absolute path")),
        }
    }
}

/// What each command and each check may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Processes and threads at once. Missing: no bound.
    pub pids: Option<u64>,
    /// Bytes of memory. Missing: no bound.
    pub memory_bytes: Option<u64>,
}

/// How long the folders of attempts stay that are over and of which everything was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keep {
    /// The newest of them, by number.
    pub attempts: usize,
    /// The oldest, since they ended.
    pub age: Span,
}

impl Default for Keep {
    fn default() -> Self {
        Self { attempts: 200, age: Span(Millis::from_secs(30 * 24 * 60 * 60)) }
    }
}

//! What a shim is told, and what it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_common::spec::{CheckSpec, StepEffect};
use holdfast_common::time::Millis;
use serde::{Deserialize, Serialize};

use crate::adapters::release::ApplySpec;
use crate::adapters::system::Order;
use crate::boottime::BootTime;
use crate::config::Limits;
use crate::policy::User;
use crate::secrets::Sources;

/// One step to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// A mutating step must get the target's lock first.
    pub effect: StepEffect,
    /// The target's lock file.
    pub target_lock: PathBuf,
    /// How long the shim waits for that lock: the shim of the step before may be on its last lines.
    pub lock_wait: Millis,
    /// The latest instant at which the body may begin, on this boot. Checked right before the start record is made.
    pub not_after: Option<BootTime>,
    /// What runs.
    pub body: Body,
    /// The body's whole environment.
    pub environment: BTreeMap<String, String>,
    /// The very file that a command runs, where the host's policy looked at one.
    #[serde(default)]
    pub program: Option<PathBuf>,
    /// Who commands and checks run as; `None`: as the agent.
    #[serde(default)]
    pub user: Option<User>,
    /// Where a command's credentials come from: paths, no values.
    #[serde(default)]
    pub credentials: Sources,
    /// The folder that they are put into for the time of the command.
    #[serde(default)]
    pub credentials_folder: PathBuf,
    /// Where the values come from that are taken out of the outputs.
    #[serde(default)]
    pub secrets: Vec<Sources>,
    /// The step's own cgroup, to be made; `None`: there are none on this host.
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// What commands and checks may use.
    #[serde(default)]
    pub limits: Limits,
    /// The machine's fingerprint; empty where it can't be told.
    #[serde(default)]
    pub machine: String,
    /// Where the body runs.
    pub work: PathBuf,
    /// Bound on each of the two output files.
    pub output_bytes: u64,
    /// How long output is waited for after the body ended: a child of it may hold the pipe open.
    pub drain: Millis,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Body {
    /// Program and arguments, no shell.
    Command {
        /// Never empty.
        argv: Vec<String>,
    },
    /// The running program's own way to apply a release.
    Release {
        /// What to apply.
        apply: ApplySpec,
    },
    /// The running program's own way to change a system.
    System {
        /// What to ask of it.
        order: Box<Order>,
    },
    /// The running program's own way to look at what runs.
    Check {
        /// What to look at, and until when.
        check: CheckSpec,
    },
}

/// The shim's one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer", content = "why")]
pub(super) enum Answer {
    /// The start record stands.
    Started,
    /// It was not made by this shim.
    Refused(Refusal),
}

/// Why a shim did not start its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Refusal {
    /// Another mutating step of the target runs on this host.
    #[error("another step of the target is running on this host")]
    TargetBusy,
    /// A start record stands: this step was started before, or never may be.
    #[error("the step has a start record")]
    HasStartRecord,
    /// The latest instant has passed.
    #[error("it came too late")]
    TooLate,
    /// Something could not be done.
    #[error("{what}")]
    Machinery {
        /// What, and what the system said.
        what: String,
    },
}

/// Crash points and halts that are armed in this process go on to shims, and to nothing else.
#[cfg(feature = "bugs")]
pub(crate) fn armed_here() -> Vec<(String, String)> {
    ["HOLDFAST_CRASH", "HOLDFAST_CRASH_NOTE", "HOLDFAST_HALT"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect()
}

#[cfg(not(feature = "bugs"))]
pub(crate) fn armed_here() -> Vec<(String, String)> {
    Vec::new()
}

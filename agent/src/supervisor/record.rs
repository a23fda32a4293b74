//! The files that shim and agent leave for each other.

use std::io;
use std::path::PathBuf;

use holdfast_common::outcome::Exit;
use holdfast_common::time::{Millis, Wall};
use serde::{Deserialize, Serialize};

use super::namespaces::Namespaces;
use super::process::{Identity, Survivor};
use crate::boottime::BootId;
use crate::durable;
use crate::places::StepFolder;

/// Made once, exclusively.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(super) enum StartRecord {
    /// A shim began. It holds a kernel lock on this file for as long as it lives.
    Started {
        /// When, for people.
        at: Wall,
        /// By what its processes are known.
        #[serde(flatten)]
        marks: Marks,
    },
    /// Nobody ever may begin.
    NeverStarted {
        /// When, for people.
        at: Wall,
        /// For people.
        why: String,
    },
}

/// By what the processes of a step are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marks {
    /// The shim, which leads its session.
    pub(super) shim: Identity,
    /// The boot on which the shim's id means anything.
    pub(super) boot: BootId,
    /// The machine that booted, by its fingerprint; empty where it could not be told.
    #[serde(default)]
    pub(super) machine: String,
    /// The shim's, in which its id and the cgroup's path mean anything; `None` in records of earlier versions.
    #[serde(default)]
    pub(super) namespaces: Option<Namespaces>,
    /// The cgroup that the body never ran outside of.
    #[serde(default)]
    pub(super) cgroup: Option<PathBuf>,
}

impl StartRecord {
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data serializes")
    }

    pub(super) fn read(folder: &StepFolder) -> io::Result<Option<Self>> {
        durable::read(&folder.start())?.map(|bytes| parse(&bytes, "start record")).transpose()
    }
}

/// A stop was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// From SIGTERM to SIGKILL.
    pub grace: Millis,
    /// When, for people.
    pub at: Wall,
}

impl StopRequest {
    pub(super) fn read(folder: &StepFolder) -> io::Result<Option<Self>> {
        durable::read(&folder.stop())?.map(|bytes| parse(&bytes, "stop request")).transpose()
    }
}

/// How a body was seen to end, by the shim that was its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// When, for people.
    pub at: Wall,
    /// How.
    pub exit: Exit,
    /// Whether a stop signal was sent before it ended. Then nothing of the step was left when this was written, as far as it
    /// could be found.
    pub stopped_by_us: bool,
    /// Whether SIGKILL was needed.
    pub killed: bool,
    /// Processes of the step that lived on: children that the body left behind.
    pub survivors: Vec<Survivor>,
    /// Its standard output.
    pub stdout: Written,
    /// Its standard error.
    pub stderr: Written,
    /// For people: why it could not be started, where it could not, and what else happened to it.
    pub detail: Option<String>,
}

impl ExitRecord {
    pub(super) fn read(folder: &StepFolder) -> io::Result<Option<Self>> {
        durable::read(&folder.exit())?.map(|bytes| parse(&bytes, "exit record")).transpose()
    }
}

/// What became of one output. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// In the file.
    pub kept: u64,
    /// Values of secrets that were taken out of it.
    #[serde(default)]
    pub redacted: u64,
    /// Read and thrown away, beyond the bound.
    pub cut: u64,
    /// Something still held the pipe open when its reading ended: more may have come.
    pub held_open: bool,
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> io::Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("the {what} is damaged: {error}")))
}

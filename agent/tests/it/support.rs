//! What several tests of the agent share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use holdfast_agent::adapters::release::{ApplySpec, Content, RaiseSpec};
use holdfast_agent::internal::{INTERNAL, InspectSpec, name};
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::{DeploymentId, OperationId, Revision, StepName};
use holdfast_common::outcome::Reading;
use holdfast_common::spec::hex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_holdfast-agent");

/// A temporary folder that goes away.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-test-{}", Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn fence(counter: u64) -> Fence {
    fence_in(1, counter)
}

pub(crate) fn fence_in(epoch: u32, counter: u64) -> Fence {
    Fence::from_u64(Fence::first(Epoch(epoch)).unwrap().as_u64() + counter - 1).unwrap()
}

pub(crate) fn operation(number: u128) -> OperationId {
    OperationId { deployment: DeploymentId(Uuid::from_u128(number)), step: StepName::new("switch").unwrap() }
}

/// An archive with one file, and its digest.
pub(crate) fn archive(folder: &Path, content: &str) -> (PathBuf, String) {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    builder.append_data(&mut header, "index.html", content.as_bytes()).unwrap();
    let bytes = builder.into_inner().unwrap().finish().unwrap();
    let path = folder.join(format!("{content}.tar.gz"));
    std::fs::write(&path, &bytes).unwrap();
    (path, hex(&Sha256::digest(&bytes)))
}

/// A release folder with its archives.
pub(crate) struct Site {
    pub(crate) folder: Folder,
    pub(crate) root: PathBuf,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let root = folder.0.join("site");
        Self { folder, root }
    }

    pub(crate) fn spec(&self, number: u128, fence: Fence) -> ApplySpec {
        let (archive, sha256) = archive(&self.folder.0, &format!("v{number}"));
        ApplySpec {
            root: self.root.clone(),
            operation: operation(number),
            fence,
            revision: Revision::new(format!("v{number}")).unwrap(),
            expected_revision: None,
            content: Content::Archive { path: archive, sha256 },
            retain: 5,
        }
    }

    /// What is served now.
    pub(crate) fn served(&self) -> Option<String> {
        std::fs::read_to_string(self.root.join("current/index.html")).ok()
    }

    /// Reads in a process of its own.
    pub(crate) fn inspect(&self, number: u128) -> Reading {
        let spec = InspectSpec { root: self.root.clone(), operation: operation(number) };
        let output = internal(name::RELEASE_INSPECT, &spec).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn internal(name: &str, spec: &impl serde::Serialize) -> Command {
    let mut command = Command::new(AGENT);
    command.arg(INTERNAL).arg(name).arg(serde_json::to_string(spec).unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn apply(spec: &ApplySpec) -> Command {
    internal(name::RELEASE_APPLY, spec)
}

pub(crate) fn raise(root: &Path, fence: Fence) -> Command {
    internal(name::RELEASE_RAISE, &RaiseSpec { root: root.to_owned(), fence })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    Stopped,
    Ended,
}

/// Waits until the child has stopped itself or has ended.
pub(crate) fn wait_for_pause(child: &Child) -> Paused {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid(child)), options).unwrap().unwrap();
    if status.stopped() { Paused::Stopped } else { Paused::Ended }
}

pub(crate) fn resume(child: &Child) {
    kill_process(pid(child), Signal::CONT).unwrap();
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Waits for a condition, at most 20 seconds.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Every path below a folder, with what a change would change.
pub(crate) fn everything(root: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            found.insert(path.clone(), (metadata.len(), metadata.modified().unwrap()));
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

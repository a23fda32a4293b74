//! The release folder as a subject.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdfast_agent::adapters::release::{self, ApplySpec, Content, RaiseSpec};
use holdfast_agent::internal::{INTERNAL, InspectSpec, name};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use uuid::Uuid;

use super::flips::Flips;
use super::{Named, Subject};
use crate::support::{AGENT, Site, apply, archive, fence, internal};

/// A release folder.
pub(crate) struct ReleaseSubject {
    site: Site,
    flips: RefCell<Flips>,
    kept: Option<Vec<String>>,
}

impl ReleaseSubject {
    pub(crate) fn new() -> Self {
        let mut site = Site::new();
        site.root = site.folder.0.join("disk/site");
        std::fs::create_dir_all(&site.root).unwrap();
        let flips = RefCell::new(Flips::of(&site.root, Vec::new()));
        Self { site, flips, kept: None }
    }

    /// With an archive of its own: another attempt may be reading one.
    fn spec(&self, named: &Named, fence: Fence) -> ApplySpec {
        let place = self.aside(&Uuid::new_v4().to_string());
        std::fs::create_dir(&place).unwrap();
        let (path, sha256) = archive(&place, &format!("v{}", named.operation.deployment.0.as_u128()));
        ApplySpec {
            root: self.site.root.clone(),
            operation: named.operation.clone(),
            fence,
            revision: named.revision.clone(),
            expected_revision: named.expected.clone(),
            content: Content::Archive { path, sha256 },
            retain: 5,
        }
    }

    fn aside(&self, name: &str) -> PathBuf {
        self.site.folder.0.join(name)
    }
}

/// With its links as they are.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

impl Subject for ReleaseSubject {
    fn capability(&self) -> Capability {
        Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: false }
    }

    fn calls(&self) -> Vec<&'static str> {
        vec![
            "exchange",
            "sync-slots",
            "take-next",
            "remove-taken",
            "sync-root",
            "write-floor",
            "record-preparing",
            "unpack",
            "make-slot",
            "make-next",
            "flip",
            "record-applied",
        ]
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        apply(&self.spec(named, fence))
    }

    fn inspect(&self, named: &Named) -> Command {
        let spec = InspectSpec { root: self.site.root.clone(), operation: named.operation.clone() };
        internal(name::RELEASE_INSPECT, &spec)
    }

    /// Two calls of the program, as the agent makes them.
    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        let raise = RaiseSpec { root: self.site.root.clone(), fence };
        let inspect = InspectSpec { root: self.site.root.clone(), operation: named.operation.clone() };
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "\"$0\" \"$1\" \"$2\" \"$3\" > /dev/null && exec \"$0\" \"$1\" \"$4\" \"$5\"",
            AGENT,
            INTERNAL,
        ]);
        command.args([name::RELEASE_RAISE, &serde_json::to_string(&raise).unwrap()]);
        command.args([name::RELEASE_INSPECT, &serde_json::to_string(&inspect).unwrap()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(command)
    }

    fn underwent(&self) -> Vec<String> {
        self.flips.borrow_mut().so_far(&self.site.root)
    }

    fn back_up(&mut self) {
        self.kept = Some(self.underwent());
        copy(&self.site.root, &self.aside("backup"));
    }

    fn restore(&mut self) {
        std::fs::remove_dir_all(&self.site.root).unwrap();
        copy(&self.aside("backup"), &self.site.root);
        let kept = self.kept.clone().expect("there is a backup");
        self.flips = RefCell::new(Flips::of(&self.site.root, kept));
    }

    /// Its disk is not mounted: not even the folder above is there.
    fn down(&mut self) {
        std::fs::rename(self.aside("disk"), self.aside("unmounted")).unwrap();
    }

    fn up(&mut self) {
        std::fs::rename(self.aside("unmounted"), self.aside("disk")).unwrap();
    }

    fn replace(&mut self) {
        std::fs::rename(&self.site.root, self.aside("other")).unwrap();
        let _raised = release::raise(&self.site.root, fence(1)).unwrap();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let mut command = self.apply(named, fence);
        command.env("HOLDFAST_HALT", "apply.record-applied=abort");
        Some(command)
    }
}

//! The example program of `examples/external`, behind the external adapter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{ResourceName, TargetName};
use holdfast_common::system::{Change, External, ExternalChange, System};

use super::{Named, Subject, system};
use crate::support::{AGENT, Folder};

/// A folder of flags.
pub(crate) struct ExternalSubject {
    folder: Folder,
}

impl ExternalSubject {
    pub(crate) fn new() -> Self {
        let subject = Self { folder: Folder::new() };
        std::fs::create_dir(subject.place()).unwrap();
        subject
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.folder.0.join("disk")
    }

    fn order(&self, named: &Named, call: Call) -> Order {
        let settings = [("folder".to_owned(), self.place().to_str().unwrap().to_owned())].into();
        let Capability { inspect, enforce, outlives } = self.capability();
        let change = ExternalChange { archive: None, settings: [("checkout".to_owned(), "on".to_owned())].into() };
        Order {
            target: TargetName::new("shop@prod").unwrap(),
            resource: ResourceName::new("flags").unwrap(),
            system: System::External(External { program: "flags".to_owned(), inspect, enforce, outlives, settings }),
            operation: Operation {
                id: named.operation.clone(),
                revision: Some(named.revision.clone()),
                expected_revision: named.expected.clone(),
                change: Some(Change::External(change)),
            },
            call,
            program: Some(example().to_owned()),
            is_placed: false,
            cache: self.folder.0.join("cache"),
        }
    }
}

/// The example, built as whoever copies it would, and with the places where the suite stops it.
pub(crate) fn example() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let debug = Path::new(AGENT).parent().unwrap();
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--offline", "-p", "holdfast-example-adapter", "--features", "halts"]);
        command.arg("--target-dir").arg(debug.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(command.status().unwrap().success(), "the example does not build");
        debug.join("holdfast-example-adapter")
    })
}

/// What the folder's own files say, read by none of the program's code.
fn revisions(log: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(log).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.')).collect();
    files.sort();
    let read = |path: PathBuf| serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap();
    let changes = files.into_iter().map(read).filter(|entry| !entry["operation"].is_null());
    changes.map(|entry| entry["revision"].as_str().unwrap().to_owned()).collect()
}

impl Subject for ExternalSubject {
    fn capability(&self) -> Capability {
        Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: false }
    }

    /// Our own process's, and in between the program's.
    fn calls(&self) -> Vec<&'static str> {
        vec!["ask", "decide", "append", "sync", "answer", "take-answer"]
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        system(&self.order(named, Call::Apply { fence, archive: None, work: self.folder.0.clone() }), &[])
    }

    fn inspect(&self, named: &Named) -> Command {
        system(&self.order(named, Call::Inspect), &[])
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        Some(system(&self.order(named, Call::Raise { fence }), &[]))
    }

    fn underwent(&self) -> Vec<String> {
        revisions(&self.place().join("log"))
    }

    fn back_up(&mut self) {
        let copied = Command::new("cp").arg("-a").arg(self.place()).arg(self.folder.0.join("backup")).status();
        assert!(copied.unwrap().success());
    }

    fn restore(&mut self) {
        std::fs::remove_dir_all(self.place()).unwrap();
        std::fs::rename(self.folder.0.join("backup"), self.place()).unwrap();
    }

    fn down(&mut self) {
        std::fs::rename(self.place(), self.folder.0.join("unmounted")).unwrap();
    }

    fn up(&mut self) {
        std::fs::rename(self.folder.0.join("unmounted"), self.place()).unwrap();
    }

    fn replace(&mut self) {
        self.down();
        std::fs::create_dir(self.place()).unwrap();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let mut command = self.apply(named, fence);
        command.env("HOLDFAST_HALT", "apply.answer=abort");
        Some(command)
    }
}

//! The example program of `examples/external`, behind the external adapter.

use std::path::PathBuf;
use std::process::Command;

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{ResourceName, TargetName};
use holdfast_common::system::{Change, External, ExternalChange, System};

use super::folder::FolderSubject;
use super::{Named, Subject, system};

/// A folder of flags.
pub(crate) struct ExternalSubject {
    disk: FolderSubject,
}

impl ExternalSubject {
    pub(crate) fn new() -> Self {
        Self { disk: FolderSubject::new() }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.disk.place()
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
            program: Some(holdfast_tests_flags::program().to_owned()),
            is_placed: false,
            cache: self.disk.beside("cache"),
        }
    }
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
        system(&self.order(named, Call::Apply { fence, archive: None, work: self.disk.around().to_owned() }), &[])
    }

    fn inspect(&self, named: &Named) -> Command {
        system(&self.order(named, Call::Inspect), &[])
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        Some(system(&self.order(named, Call::Raise { fence }), &[]))
    }

    fn underwent(&self) -> Vec<String> {
        holdfast_tests_flags::underwent(&self.place())
    }

    fn back_up(&mut self) {
        self.disk.back_up();
    }

    fn restore(&mut self) {
        self.disk.restore();
    }

    fn down(&mut self) {
        self.disk.down();
    }

    fn up(&mut self) {
        self.disk.up();
    }

    fn replace(&mut self) {
        self.disk.replace();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let mut command = self.apply(named, fence);
        command.env("HOLDFAST_HALT", "apply.answer=abort");
        Some(command)
    }
}

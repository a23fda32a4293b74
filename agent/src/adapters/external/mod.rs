//! What a program of the host changes and reads, over the contract of `docs/external-adapters.md`.
//!
//! ```text
//!   our own process ──request, JSON──▶ the program ──▶ the resource
//!                   ◀─answer, JSON──
//! ```
//!
//! The program is never taken at more than its word. An answer that is none, or that is cut, unknown or for another call, says
//! nothing of the effect; and nothing of a reading gets through that the target does not declare.

mod contract;
mod program;

use std::path::Path;

use holdfast_agent_core::outcome::Look;
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::system::{Change, External as Declared};

use self::contract::{Answer, Asked, Operation, PROTOCOL, Read, Reason, Request};
use self::program::Program;
use super::halt;
use super::system::{Adapter, Applied, Call, Credentials, Failure, Order, Raised};

/// One call by way of the host's program.
#[derive(Debug)]
pub struct External<'a> {
    order: &'a Order,
    declared: &'a Declared,
    program: Program<'a>,
}

impl<'a> External<'a> {
    /// The program is the one that the host names.
    pub fn new(order: &'a Order, declared: &'a Declared, credentials: Credentials) -> Result<Self, Failure> {
        match &order.program {
            Some(path) => {
                Ok(Self { order, declared, program: Program { path, credentials, timeout: program::TIMEOUT } })
            }
            None => Err(Failure::Resource(format!("this host names no program {:?}", declared.program))),
        }
    }

    fn described(&self) -> Result<Capability, Failure> {
        match self.ask(Asked::Describe, None)? {
            Answer::Described { capability } => Ok(capability.into()),
            other => Err(self.other(Asked::Describe, other)),
        }
    }

    /// Whether the program can prove all that the target declares.
    pub fn keeps_its_word(&self) -> Result<(), Failure> {
        let (can, declared) = (self.described()?, self.declared);
        let lacks = [
            (can.inspect < declared.inspect, "inspect"),
            (can.enforce < declared.enforce, "enforce"),
            (can.outlives && !declared.outlives, "outlives"),
        ];
        match lacks.iter().find(|(lacks, _)| *lacks) {
            None => Ok(()),
            Some((_, key)) => Err(Failure::Resource(format!(
                "the target declares more of {key} than program {:?} can prove",
                declared.program
            ))),
        }
    }

    fn ask(&self, asked: Asked, fence: Option<Fence>) -> Result<Answer, Failure> {
        let request = self.request(asked, fence);
        let text = match asked {
            // A step has a time of its own, and a way of its own to be stopped.
            Asked::Apply => self.program.run(&request)?,
            Asked::Describe | Asked::Examine | Asked::Inspect | Asked::Raise => self.program.run_briefly(&request)?,
        };
        contract::answer(&text).map_err(|why| Failure::Machinery(format!("{}: {why}", self.said(asked))))
    }

    fn request(&self, asked: Asked, fence: Option<Fence>) -> Request<'a> {
        let (archive, work) = places(&self.order.call);
        let operation = &self.order.operation;
        Request {
            protocol: PROTOCOL,
            call: asked,
            target: &self.order.target,
            resource: &self.order.resource,
            settings: &self.declared.settings,
            operation: Operation {
                id: operation.id.to_string(),
                deployment: operation.id.deployment,
                step: &operation.id.step,
                revision: operation.revision.as_ref(),
                expected_revision: operation.expected_revision.as_ref(),
                settings: match &operation.change {
                    Some(Change::External(change)) => Some(&change.settings),
                    Some(Change::Migrate(_) | Change::Commit(_) | Change::Submit(_)) | None => None,
                },
            },
            fence: fence.map(|fence| fence.as_u64().to_string()),
            archive,
            work,
        }
    }

    /// What an answer comes to that is not the one hoped for.
    fn other(&self, asked: Asked, answer: Answer) -> Failure {
        match answer {
            Answer::Refused { reason, detail } if asked.may_be_refused() => self.refused(reason, detail),
            Answer::Transient { detail } => Failure::Transient(detail),
            Answer::Failed { detail } => Failure::Machinery(detail),
            Answer::Refused { .. }
            | Answer::Described { .. }
            | Answer::Fit
            | Answer::Applied
            | Answer::AppliedBefore
            | Answer::Read { .. }
            | Answer::Raised => Failure::Machinery(format!(
                "{}: the outcome {:?} is none of this call",
                self.said(asked),
                answer.word()
            )),
        }
    }

    fn refused(&self, reason: Reason, detail: String) -> Failure {
        match (reason, &self.order.call, &self.order.operation.expected_revision) {
            (Reason::Fence, Call::Apply { fence, .. } | Call::Raise { fence }, _) => {
                Failure::FencedOff { fence: *fence, highest: None }
            }
            (Reason::Revision, _, Some(expected)) => Failure::Revision { expected: expected.clone(), found: None },
            (Reason::Content, _, _) => Failure::Content(detail),
            (Reason::Fence | Reason::Revision | Reason::Resource, _, _) => Failure::Resource(detail),
        }
    }

    fn said(&self, asked: Asked) -> String {
        format!("the answer of program {:?} to {:?} can't be taken", self.declared.program, asked.word())
    }

    /// No more than the target declares.
    fn within_declared(&self, read: Read) -> Reading {
        let operation = &self.order.operation;
        let state = match (self.declared.inspect, &read.revision, &operation.revision) {
            (Inspect::Operation, _, _) => read.state,
            (Inspect::Revision, Some(observed), Some(wanted)) => {
                match Look::by_revision(observed, wanted, operation.expected_revision.as_ref()) {
                    Look::Read(state) => state,
                    Look::CannotInspect | Look::NotRead { .. } => OperationState::Unknown,
                }
            }
            (Inspect::Revision | Inspect::None, _, _) => OperationState::Unknown,
        };
        let tells_revision = self.declared.inspect != Inspect::None;
        let keeps_fence = self.declared.enforce == Enforce::Fence;
        Reading {
            resource_identity: read.resource_identity,
            state,
            revision: read.revision.filter(|_| tells_revision),
            active: read.active.filter(|_| self.declared.inspect == Inspect::Operation),
            highest_fence: read.highest_fence.filter(|_| keeps_fence),
            retained: Vec::new(),
            detail: read.detail,
        }
    }
}

fn places(call: &Call) -> (Option<&Path>, Option<&Path>) {
    match call {
        Call::Examine { archive, work } | Call::Apply { archive, work, .. } => (archive.as_deref(), Some(work)),
        Call::Inspect | Call::Raise { .. } => (None, None),
    }
}

impl Adapter for External<'_> {
    fn examine(&self) -> Result<(), Failure> {
        self.keeps_its_word()?;
        match self.ask(Asked::Examine, None)? {
            Answer::Fit => Ok(()),
            other => Err(self.other(Asked::Examine, other)),
        }
    }

    fn apply(&self, fence: Fence) -> Result<Applied, Failure> {
        halt::before("ask");
        let answer = self.ask(Asked::Apply, Some(fence));
        halt::before("take-answer");
        match answer? {
            Answer::Applied => Ok(Applied::Now),
            Answer::AppliedBefore => Ok(Applied::Before),
            other => Err(self.other(Asked::Apply, other)),
        }
    }

    fn inspect(&self) -> Result<Reading, Failure> {
        match self.ask(Asked::Inspect, None)? {
            Answer::Read { reading } => Ok(self.within_declared(reading)),
            other => Err(self.other(Asked::Inspect, other)),
        }
    }

    fn raise(&self, fence: Fence) -> Result<Raised, Failure> {
        if self.declared.enforce != Enforce::Fence {
            return Err(Failure::Resource("it is declared to keep no fence".to_owned()));
        }
        match self.ask(Asked::Raise, Some(fence))? {
            Answer::Raised => Ok(Raised::Now),
            other => Err(self.other(Asked::Raise, other)),
        }
    }
}

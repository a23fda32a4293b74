//! Hands that run nothing: a step has begun and ended as soon as it is launched, or ends when a file is there.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_agent::driver::{Event, Finding, HandEvent, Hands, Sender, Told};
use holdfast_agent::session::Inquiry;
use holdfast_agent_core::work::{Assignment, Boot};
use holdfast_common::id::{AttemptId, StepName};
use holdfast_common::outcome::{Exit, StepEnd};
use holdfast_common::report::Reread;
use holdfast_common::spec::{StepBody, StepSpec};

/// Instead of a program: the step ends when the file that follows is there.
pub(super) const UNTIL: &str = "until";
/// How often such a step looks.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Deft {
    events: Sender,
}

impl Deft {
    pub(super) fn new(events: Sender) -> Self {
        Self { events }
    }

    fn tell(&self, event: HandEvent) {
        let _driver_stopped = self.events.send(Event::Hand(event));
    }

    fn end_when_there(&self, gate: PathBuf, attempt: AttemptId, step: StepName) {
        let events = self.events.clone();
        std::thread::spawn(move || {
            while !gate.exists() {
                std::thread::sleep(LOOK);
            }
            let _driver_stopped = events.send(Event::Hand(HandEvent::Ended(attempt, step, applied())));
        });
    }
}

impl Hands for Deft {
    fn examine(&mut self, assignment: &Assignment, step: &StepSpec) {
        self.tell(HandEvent::Examined(assignment.claim.attempt, step.name.clone(), None));
    }

    fn reread(&mut self, assignment: &Assignment, step: &StepSpec) {
        let found = Reread::Failed { detail: "nothing here can be read".to_owned() };
        self.tell(HandEvent::Reread(assignment.claim.attempt, step.name.clone(), found));
    }

    fn launch(&mut self, assignment: &Assignment, step: &StepSpec, _not_after: Option<Boot>) {
        let attempt = assignment.claim.attempt;
        self.tell(HandEvent::Started(attempt, step.name.clone()));
        match gate(step) {
            Some(gate) => self.end_when_there(gate, attempt, step.name.clone()),
            None => self.tell(HandEvent::Ended(attempt, step.name.clone(), applied())),
        }
    }

    fn stop(&mut self, assignment: &Assignment, _step: &StepSpec) {
        self.tell(HandEvent::StopActed(assignment.claim.attempt, "there is no process to signal".to_owned()));
    }

    fn tombstone(&mut self, assignment: &Assignment, step: &StepSpec) {
        self.tell(HandEvent::Tombstoned(assignment.claim.attempt, step.name.clone()));
    }

    /// What these hands did is gone with their process.
    fn survey(&mut self, assignment: &Assignment, step: &StepSpec) {
        let told = Told { end: StepEnd::Unknown, exit: None, observed: None, detail: String::new() };
        self.tell(HandEvent::Ended(assignment.claim.attempt, step.name.clone(), told));
    }

    fn inquire(&mut self, inquiry: Inquiry) {
        self.tell(HandEvent::Inquired(inquiry.id, Finding::Failed("nothing here can be read".to_owned())));
    }
}

fn gate(step: &StepSpec) -> Option<PathBuf> {
    let StepBody::Command { argv, .. } = &step.body else { return None };
    match argv.as_slice() {
        [first, gate] if first == UNTIL => Some(PathBuf::from(gate)),
        _ => None,
    }
}

fn applied() -> Told {
    Told { end: StepEnd::Applied, exit: Some(Exit::Exited(0)), observed: None, detail: String::new() }
}

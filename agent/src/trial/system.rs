//! A system that keeps a ledger of its own: each call in a process with one credential set, as in normal work.

use holdfast_common::adapter::{Adapter, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::TargetName;
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::system::{External, System};

use super::command::desk;
use super::{Trial, Verdict, never};
use crate::adapters::external;
use crate::adapters::system::{Call, Credentials};
use crate::config::Config;
use crate::hands::{About, Desk, call_environment, shown};
use crate::places::Places;
use crate::policy::Grant;
use crate::secrets;

/// What every question here needs.
struct Question<'a> {
    about: About<'a>,
    desk: &'a Desk<'a>,
    grant: &'a Grant,
}

impl Trial {
    pub(super) fn system(&mut self, config: &Config, system: &System, grant: &Grant) {
        let places = Places::below(&config.state_dir);
        let desk = match desk(&places, grant) {
            Ok(desk) => desk,
            Err(why) => return self.found("it can be read", Verdict::False, why),
        };
        let (target, resource, operation) = (self.target.clone(), self.resource.clone(), never());
        let step = nothing(&operation);
        let about = About { target: &target, resource: &resource, system, operation: &operation, step: &step };
        let question = Question { about, desk: &desk, grant };
        if let System::External(declared) = system {
            self.described(declared, &question);
        }
        match question.about.inspect(&desk, grant) {
            Ok(reading) => {
                self.found("it can be read", Verdict::Shown, "with the inspect credentials".to_owned());
                self.reading(&reading);
                self.owner(&question, &reading);
                self.raises(&question, &reading);
            }
            Err(why) if self.declares.inspect == Inspect::None => self.found("it can be read", Verdict::Gap, why),
            Err(why) => self.found("it can be read", Verdict::False, why),
        }
    }

    /// The program of an external adapter says what it can prove; the target may declare no more.
    fn described(&mut self, declared: &External, question: &Question<'_>) {
        let what = "the program can prove what is declared";
        match describe(declared, question) {
            Ok(()) => self.found(what, Verdict::Shown, String::new()),
            Err(why) => self.found(what, Verdict::False, why),
        }
    }

    /// A call for somebody else's target must not be answered as if the resource were theirs.
    fn owner(&mut self, question: &Question<'_>, before: &Reading) {
        let what = "another target is not let in";
        if before.resource_identity.is_empty() {
            return self.found(what, Verdict::NotTried, "it belongs to nobody yet".to_owned());
        }
        let other = TargetName::new("holdfast-adapter-test").expect("a plain name");
        let about = About { target: &other, ..question.about };
        match about.inspect(question.desk, question.grant) {
            Err(why) => self.found(what, Verdict::Shown, why),
            Ok(reading) if reading.state == OperationState::Unknown => self.found(what, Verdict::Shown, reading.detail),
            Ok(_) => self.found(what, Verdict::Gap, "the resource does not say whose it is".to_owned()),
        }
    }

    /// A raise to where the fence stands changes nothing, and shows who may raise it.
    fn raises(&mut self, question: &Question<'_>, before: &Reading) {
        let (good, refused) =
            ("a raise that changes nothing goes well, twice", "the inspect credentials can't raise the fence");
        if self.declares.enforce != Enforce::Fence {
            return self.found(good, Verdict::Gap, "it keeps no fence".to_owned());
        }
        let Some(highest) = before.highest_fence.filter(|_| before.active.is_none()) else {
            let why = "it has seen no fence yet, or is being changed just now".to_owned();
            self.found(good, Verdict::NotTried, why.clone());
            return self.found(refused, Verdict::NotTried, why);
        };
        let twice = [question.raise(highest), question.raise(highest)].into_iter().collect::<Result<Vec<_>, _>>();
        let after = twice.and_then(|_| question.about.inspect(question.desk, question.grant));
        self.unchanged(good, before, after);
        self.kept_apart(refused, question, highest);
    }

    fn kept_apart(&mut self, what: &'static str, question: &Question<'_>, highest: Fence) {
        let sets = &question.grant.credentials;
        let tried = question.about.read(question.desk, question.grant, Call::Raise { fence: highest }, &sets.inspect);
        let (verdict, detail) = match tried {
            Err(why) => (Verdict::Shown, why),
            Ok(_) if sets.inspect == sets.fence => (Verdict::Gap, "both sets are the same".to_owned()),
            // Its server compares the role before anything else, so it is no matter of what would have changed.
            Ok(_) if self.adapter == Adapter::Postgres => (Verdict::False, "they were let in".to_owned()),
            Ok(_) => (Verdict::Gap, "they were let in where nothing was to be changed".to_owned()),
        };
        self.found(what, verdict, detail);
    }

    /// What was tried has left the resource as it was.
    pub(super) fn unchanged(&mut self, what: &'static str, before: &Reading, after: Result<Reading, String>) {
        let seen =
            |reading: &Reading| (reading.resource_identity.clone(), reading.revision.clone(), reading.highest_fence);
        match after {
            Ok(after) if seen(&after) == seen(before) => {
                self.found(what, Verdict::Shown, "identity, revision and highest fence stayed".to_owned());
            }
            Ok(after) => {
                self.found(what, Verdict::False, format!("it was {:?} and is {:?}", seen(before), seen(&after)))
            }
            Err(why) => self.found(what, Verdict::False, why),
        }
    }
}

impl Question<'_> {
    fn raise(&self, fence: Fence) -> Result<Reading, String> {
        self.about.raise(self.desk, self.grant, fence)
    }
}

fn describe(declared: &External, question: &Question<'_>) -> Result<(), String> {
    let set = secrets::sources(&question.grant.credentials.inspect)?;
    let credentials = set.read().map_err(|error| error.to_string())?;
    let folder = shown(question.desk.places, &credentials).map_err(|error| error.to_string())?;
    let environment = call_environment(&credentials, folder.as_ref());
    let order = question.about.order(question.desk.places, question.grant, Call::Inspect);
    let program = external::External::new(&order, declared, Credentials::of(environment));
    let kept = program.and_then(|program| program.keeps_its_word());
    kept.map_err(|failure| question.desk.redactor.text(&failure.to_string()))
}

/// A step that asks for nothing.
fn nothing(operation: &holdfast_common::id::OperationId) -> StepSpec {
    StepSpec {
        name: operation.step.clone(),
        effect: StepEffect::None,
        resource: None,
        retry: RetryClass::Pure,
        body: StepBody::Restore,
        revision: None,
        expected_revision: None,
        timeout: None,
        data: DataEffect::None,
    }
}

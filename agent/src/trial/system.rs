//! A system that keeps a ledger of its own: each call in a process with one credential set, as in normal work.

use holdfast_common::adapter::{Adapter, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::TargetName;
use holdfast_common::outcome::Reading;
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::system::{External, System};

use super::command::desk;
use super::{Trial, Verdict, never};
use crate::adapters::external;
use crate::adapters::system::{Call, Credentials, Raised};
use crate::config::{Config, CredentialSet};
use crate::hands::{About, Desk, Failed, call_environment, shown};
use crate::places::Places;
use crate::policy::Grant;
use crate::secrets;

/// Where an adapter sees that a fence stands, before it would ask for it.
const NOT_SENT: &str = "the fence stands there already, so nothing was sent";

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
        match question.inspect() {
            Ok(reading) => {
                self.found("it can be read", Verdict::Shown, "with the inspect credentials".to_owned());
                self.reading(&reading, tells_itself(system));
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
        match (about.inspect(question.desk, question.grant), question.inspect()) {
            (Ok(reading), _) if reading.resource_identity == before.resource_identity => {
                self.found(what, Verdict::Gap, "the resource does not say whose it is".to_owned());
            }
            (Ok(reading), _) => self.found(what, Verdict::Shown, reading.detail),
            // Its own target is heard at the same time, so it is no matter of the way there.
            (Err(why), Ok(_)) => self.found(what, Verdict::Shown, why),
            (Err(why), Err(_)) => self.found(what, Verdict::Unclear, why),
        }
    }

    /// A raise to where the fence stands changes nothing, and shows who may raise it.
    fn raises(&mut self, question: &Question<'_>, before: &Reading) {
        let (good, refused) =
            ("a raise that changes nothing goes well, twice", "the inspect credentials can't raise the fence");
        if self.declares.enforce != Enforce::Fence {
            return self.found(good, Verdict::Gap, "it keeps no fence".to_owned());
        }
        let why = match (before.highest_fence, &before.active) {
            (Some(highest), None) => {
                self.raise_twice(good, question, before, highest);
                return self.kept_apart(refused, question, highest);
            }
            (Some(_), Some(_)) => "it is being changed just now",
            (None, _) => "it tells no fence yet",
        };
        self.found(good, Verdict::NotTried, why.to_owned());
        self.found(refused, Verdict::NotTried, why.to_owned());
    }

    fn raise_twice(&mut self, what: &'static str, question: &Question<'_>, before: &Reading, highest: Fence) {
        let set = &question.grant.credentials.fence;
        let first = question.raise(highest, set);
        match first.and_then(|_| question.raise(highest, set)) {
            Ok(Raised::Now) => self.unchanged(what, before, question.inspect()),
            Ok(Raised::Before) => self.found(what, Verdict::NotTried, NOT_SENT.to_owned()),
            Ok(Raised::NotLetIn(said)) => self.found(what, Verdict::False, said),
            Ok(Raised::Unsaid(said)) => self.found(what, Verdict::Unclear, said),
            Err(failed) => self.found(what, Verdict::False, failed.why),
        }
    }

    fn kept_apart(&mut self, what: &'static str, question: &Question<'_>, highest: Fence) {
        let sets = &question.grant.credentials;
        if sets.inspect == sets.fence {
            return self.found(what, Verdict::Gap, "both sets are the same".to_owned());
        }
        let (verdict, detail) = match question.raise(highest, &sets.inspect) {
            // Its server compares the role before anything else, so it is no matter of what would have changed.
            Ok(Raised::Now) if self.adapter == Adapter::Postgres => (Verdict::False, "they were let in".to_owned()),
            Ok(Raised::Now) => (Verdict::Gap, "they were let in where nothing was to be changed".to_owned()),
            Ok(Raised::Before) => (Verdict::NotTried, NOT_SENT.to_owned()),
            Ok(Raised::NotLetIn(said)) => (Verdict::Shown, said),
            Ok(Raised::Unsaid(said)) => (Verdict::Unclear, said),
            Err(failed) if failed.is_refusal() => (Verdict::Shown, failed.why),
            Err(failed) => (Verdict::Unclear, failed.why),
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
    fn inspect(&self) -> Result<Reading, String> {
        self.about.inspect(self.desk, self.grant)
    }

    fn raise(&self, fence: Fence, set: &CredentialSet) -> Result<Raised, Failed> {
        self.about.raise_with(self.desk, self.grant, fence, set).map(|after| after.raised)
    }
}

/// Whether its target declares where the resource itself is read, beside its operations.
fn tells_itself(system: &System) -> bool {
    match system {
        System::Http(http) => http.resource.is_some(),
        System::Postgres(_) | System::Git(_) | System::External(_) => true,
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

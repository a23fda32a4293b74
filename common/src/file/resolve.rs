//! From a file, inputs and a target to what is recorded: nothing is open afterwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapter::Adapter;
use crate::code::Code;
use crate::file::deployment::Order;
use crate::file::reader::{Complaint, Place, Reader};
use crate::file::rollback::{self, Rollback, WayBack};
use crate::file::step::{Step, Work};
use crate::file::system::Fill;
use crate::file::template::Template;
use crate::file::verify::{Check, ProbeText};
use crate::file::{DeploymentFile, Errors, MAX_RESOLVED, field};
use crate::id::{ResourceName, Revision, TargetName};
use crate::rollback::{DataEffect, RollbackSpec, Way};
use crate::spec::{
    CheckSpec, DeploymentSpec, OrderKey, Probe, ResourceAdapter, ResourceSpec, RetryClass, StepBody, StepEffect,
    StepSpec, TargetSpec,
};

impl DeploymentFile {
    /// Everything that can be said without the target. Without given values it is said without the inputs that have no
    /// default; with them, as [`resolve`](Self::resolve) would take them.
    pub fn check(&self, given: &BTreeMap<String, String>) -> Result<(), Errors> {
        let mut reader = Reader::default();
        let values = match given.is_empty() {
            true => self.inputs.defaults(),
            false => self.inputs.values(&mut reader, given),
        };
        if !reader.faults.is_empty() {
            return self.done(reader, None);
        }
        self.no_command_without_a_way_back(&mut reader);
        let mut strings = Strings { reader: &mut reader, values: &values, left: MAX_RESOLVED };
        for step in self.all_steps() {
            strings.body(step);
            strings.revision(step.revision.as_ref());
            strings.revision(step.expected_revision.as_ref());
        }
        for check in &self.checks {
            strings.probe(&check.probe);
        }
        strings.order(self.order.as_ref());
        self.done(reader, Some(()))
    }

    /// What a command did is not taken back by the previous revision, on whatever target.
    fn no_command_without_a_way_back(&self, reader: &mut Reader) {
        match self.rollback.as_ref().map(|rollback| &rollback.way) {
            Some(WayBack::PreviousRevision) => {}
            Some(WayBack::Steps(_)) | None => return,
        }
        for step in &self.steps {
            let Some(why) = rollback::irreversible_anywhere(step) else { continue };
            reader.fault(Code::InvalidValue, step.place.clone(), not_undone(step, &why));
        }
    }

    /// Types the inputs, substitutes them, and ties each step to a resource of the target.
    ///
    /// `target` is the declaration of `target_override`, or else of the target that the file names.
    pub fn resolve(
        &self,
        inputs: &BTreeMap<String, String>,
        target_override: Option<&TargetName>,
        target: &TargetSpec,
    ) -> Result<DeploymentSpec, Errors> {
        let mut reader = Reader::default();
        self.right_target(&mut reader, target_override, target);
        let values = self.inputs.values(&mut reader, inputs);
        if !reader.faults.is_empty() {
            return self.done(reader, None);
        }
        let mut strings = Strings { reader: &mut reader, values: &values, left: MAX_RESOLVED };
        strings.one_switch_each(&self.steps, target);
        let mut steps: Vec<_> = self.steps.iter().map(|step| strings.step(step, target)).collect();
        steps.extend(self.checks.iter().map(|check| strings.check(check)));
        let steps = steps.into_iter().collect::<Option<Vec<_>>>();
        let order = strings.order(self.order.as_ref());
        let rollback = self.rollback.as_ref().and_then(|rollback| strings.rollback(rollback, &self.steps, target));
        let spec = steps.map(|steps| DeploymentSpec {
            target: target.name.clone(),
            inputs: values.clone(),
            lease_ttl: self.lease_ttl,
            steps,
            cancel_grace: self.cancel_grace,
            retry: self.retry.clone(),
            timeouts: self.timeouts,
            policy: self.policy,
            order,
            rollback,
        });
        self.done(reader, spec)
    }

    fn right_target(&self, reader: &mut Reader, target_override: Option<&TargetName>, target: &TargetSpec) {
        let place = Place { at: 0, path: "target".to_owned() };
        match target_override.or(self.target.as_ref()) {
            Some(name) if *name == target.name => {}
            Some(name) => {
                let message = format!("asked for \"{name}\", and the target at hand is \"{}\"", target.name);
                reader.fault(Code::InvalidValue, place, message);
            }
            None => reader.fault(Code::MissingKey, place, "the file names no target: add \"target\", or use --target"),
        }
    }

    fn done<T>(&self, reader: Reader, value: Option<T>) -> Result<T, Errors> {
        match value.filter(|_| reader.faults.is_empty()) {
            Some(value) => Ok(value),
            None => Err(Errors::of(&self.text, reader.faults)),
        }
    }
}

fn not_undone(step: &Step, why: &str) -> String {
    format!(
        "the step \"{}\" can't be undone by strategy = \"previous-revision\": {why}; declare [[rollback.step]] instead",
        step.name
    )
}

/// The resource that a step names, or the only one that it can mean.
fn resource_of<'t>(step: &Step, target: &'t TargetSpec) -> Option<&'t ResourceSpec> {
    match (&step.resource, step.effect, target.resources.as_slice()) {
        (Some(name), StepEffect::Mutates | StepEffect::None, _) => target.resource(&name.value),
        (None, StepEffect::Mutates, [only]) => Some(only),
        (None, StepEffect::Mutates | StepEffect::None, _) => None,
    }
}

impl Fill for Strings<'_> {
    fn fill(&mut self, template: &Template, rule: fn(&str) -> Result<(), Complaint>) -> Option<String> {
        self.string(template, rule)
    }
}

/// Substitutes, and counts what comes of it.
struct Strings<'a> {
    reader: &'a mut Reader,
    values: &'a BTreeMap<String, String>,
    left: usize,
}

impl Strings<'_> {
    fn step(&mut self, step: &Step, target: &TargetSpec) -> Option<StepSpec> {
        let resource = self.resource(step, target);
        let body = self.body(step);
        let revision = self.revision(step.revision.as_ref());
        let expected_revision = self.revision(step.expected_revision.as_ref());
        Some(StepSpec {
            name: step.name.clone(),
            effect: step.effect,
            resource: resource?,
            retry: step.retry,
            body: body?,
            revision,
            expected_revision,
            timeout: step.timeout,
            data: step.data.value,
        })
    }

    /// A final step without effect: run again in every attempt, after everything that changes anything.
    fn check(&mut self, check: &Check) -> Option<StepSpec> {
        let probe = self.probe(&check.probe)?;
        let Check { hold, interval, give_up, .. } = *check;
        Some(StepSpec {
            name: check.name.clone(),
            effect: StepEffect::None,
            resource: None,
            retry: RetryClass::Pure,
            body: StepBody::Check(CheckSpec { probe, hold, interval, give_up }),
            revision: None,
            expected_revision: None,
            timeout: None,
            data: DataEffect::None,
        })
    }

    /// The way back. `None` where a fault was recorded.
    fn rollback(&mut self, rollback: &Rollback, forward: &[Step], target: &TargetSpec) -> Option<RollbackSpec> {
        let Rollback { until, data, recovery, .. } = rollback.clone();
        let way = match &rollback.way {
            WayBack::PreviousRevision => {
                for (step, resource) in forward.iter().filter_map(|step| Some((step, resource_of(step, target)?))) {
                    let Some(why) = rollback::irreversible(step, resource) else { continue };
                    self.reader.fault(Code::InvalidValue, step.place.clone(), not_undone(step, &why));
                }
                Way::PreviousRevision
            }
            WayBack::Steps(steps) => {
                self.one_switch_each(steps, target);
                let steps: Vec<_> = steps.iter().map(|step| self.step(step, target)).collect();
                Way::Steps { steps: steps.into_iter().collect::<Option<_>>()? }
            }
        };
        Some(RollbackSpec { way, until, data, recovery })
    }

    /// A release is switched once in a deployment: one attempt has one fence, and the folder takes one switch under it.
    fn one_switch_each(&mut self, steps: &[Step], target: &TargetSpec) {
        let mut switched = BTreeSet::new();
        for step in steps.iter().filter(|step| matches!(step.work, Work::Release { .. } | Work::Restore)) {
            let Some(resource) = resource_of(step, target) else { continue };
            if !switched.insert(&resource.name) {
                let message = format!(
                    "the release \"{}\" is switched by an earlier step: a deployment switches a release once",
                    resource.name
                );
                self.reader.fault(Code::InvalidValue, step.place.clone(), message);
            }
        }
    }

    fn probe(&mut self, probe: &ProbeText) -> Option<Probe> {
        match probe {
            ProbeText::Http { url, expect_status, expect_body } => {
                let url = self.string(url, field::url);
                let body = expect_body.as_ref().map(|body| self.string(body, field::expected_body));
                let expect_body = match body {
                    Some(body) => Some(body?),
                    None => None,
                };
                Some(Probe::Http { url: url?, expect_status: *expect_status, expect_body })
            }
            ProbeText::Tcp { address } => Some(Probe::Tcp { address: self.string(address, field::address)? }),
            ProbeText::Command { argv } => Some(Probe::Command { argv: self.argv(argv)? }),
        }
    }

    fn argv(&mut self, argv: &[Template]) -> Option<Vec<String>> {
        let program = self.string(&argv[0], field::program);
        let rest: Vec<_> = argv[1..].iter().map(|template| self.string(template, |_| Ok(()))).collect();
        std::iter::once(program).chain(rest).collect()
    }

    /// The step's resource. A step without effect has one only if it names one.
    fn resource(&mut self, step: &Step, target: &TargetSpec) -> Option<Option<ResourceName>> {
        let place = step.resource.as_ref().map_or_else(|| step.place.clone(), |name| name.place.clone());
        if step.resource.is_none() && step.effect == StepEffect::None {
            return Some(None);
        }
        let Some(resource) = resource_of(step, target) else {
            let names: Vec<String> = target.resources.iter().map(|resource| format!("\"{}\"", resource.name)).collect();
            let what = match &step.resource {
                Some(name) => format!("{} has no resource \"{}\"", target.name, name.value),
                None => format!("{} has several resources, so this step must name its own", target.name),
            };
            self.reader.fault(Code::InvalidValue, place, format!("{what}; it has {}", names.join(", ")));
            return None;
        };
        match (&step.work, &resource.adapter) {
            (Work::Release { .. } | Work::System(_), ResourceAdapter::Command { .. }) => {
                let message =
                    format!("the resource \"{}\" is changed by commands: this step needs \"run\"", resource.name);
                self.reader.fault(Code::InvalidValue, place, message);
                None
            }
            (Work::System(asked), ResourceAdapter::System(system)) if asked.adapter() == system.adapter() => {
                Some(Some(resource.name.clone()))
            }
            (Work::Release { .. }, ResourceAdapter::System(_))
            | (Work::System(_), ResourceAdapter::System(_) | ResourceAdapter::Release { .. }) => {
                let asked = match &step.work {
                    Work::System(asked) => asked.adapter(),
                    Work::Command(_) | Work::Release { .. } | Work::Restore => Adapter::Release,
                };
                let message = format!(
                    "the resource \"{}\" has the adapter \"{}\", and this step's \"with\" is for \"{}\"",
                    resource.name,
                    resource.adapter.adapter().name(),
                    asked.name()
                );
                self.reader.fault(Code::InvalidValue, place, message);
                None
            }
            (Work::Restore, _) => match rollback::irreversible(step, resource) {
                None => Some(Some(resource.name.clone())),
                Some(why) => {
                    let message = format!("{why}: this step needs \"run\" or \"with\"");
                    self.reader.fault(Code::InvalidValue, place, message);
                    None
                }
            },
            (Work::Release { .. }, ResourceAdapter::Release { .. }) | (Work::Command(_), _) => {
                Some(Some(resource.name.clone()))
            }
        }
    }

    fn body(&mut self, step: &Step) -> Option<StepBody> {
        match &step.work {
            Work::Command(argv) => Some(StepBody::Command { argv: self.argv(argv)? }),
            Work::Restore => Some(StepBody::Restore),
            Work::System(asked) => asked.resolve(self, step.data.value).map(StepBody::System),
            Work::Release { archive, sha256 } => {
                let archive = self.string(archive, field::archive);
                let sha256 = self.string(sha256, field::sha256);
                Some(StepBody::Release { archive: archive?, sha256: sha256? })
            }
        }
    }

    fn revision(&mut self, template: Option<&Template>) -> Option<Revision> {
        let text = self.string(template?, field::revision)?;
        Some(Revision::new(text).expect("checked by the rule"))
    }

    fn order(&mut self, order: Option<&Order>) -> Option<OrderKey> {
        match order? {
            Order::Key(key) => Some(*key),
            Order::Text(template) => OrderKey::parse(&self.string(template, field::order)?),
        }
    }

    /// `None` where a value is missing (only when no inputs were given: [`DeploymentFile::check`]) or a fault was
    /// recorded.
    fn string(&mut self, template: &Template, rule: fn(&str) -> Result<(), Complaint>) -> Option<String> {
        let text = template.expand(self.values)?;
        let Some(left) = self.left.checked_sub(text.len()) else {
            let message = format!("the deployment has more than {MAX_RESOLVED} bytes of text");
            self.reader.fault(Code::TooLarge, template.place.clone(), message);
            return None;
        };
        self.left = left;
        match rule(&text) {
            Ok(()) => Some(text),
            Err(complaint) => {
                self.reader.complain(template.place.clone(), complaint);
                None
            }
        }
    }
}

//! What a rollback does: the steps of the ways back over each deployment, the newest first, and then the checks of what is beneath.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::{ResourceName, Revision, StepName};
use holdfast_common::rollback::{DataEffect, Way};
use holdfast_common::spec::{DeploymentSpec, RetryClass, StepBody, StepEffect, StepSpec, Timeouts};

use super::Layer;
use crate::state::Deployment;

/// The deployment that goes back over those to what is beneath them, where each resource gets that revision.
pub(super) fn of(
    over: &[Layer<'_>],
    beneath: Option<&Deployment>,
    revisions: &BTreeMap<ResourceName, Option<Revision>>,
) -> DeploymentSpec {
    let (newest, oldest) = (&over[0], &over[over.len() - 1]);
    let mut steps = Steps::default();
    for (at, layer) in over.iter().enumerate() {
        match layer.way().map(|way| &way.way) {
            Some(Way::Steps { steps: own }) => own.iter().for_each(|step| steps.own(layer, step, revisions)),
            Some(Way::PreviousRevision) | None => {
                let deeper = |resource: &&ResourceName| over[at + 1..].iter().any(|it| it.changed.contains(*resource));
                let restored = layer.changed.iter().filter(|resource| !deeper(resource));
                restored.for_each(|resource| steps.restore(resource, revisions));
            }
        }
    }
    steps.switch_once();
    let has_checks = |deployment: &&Deployment| deployment.spec.steps.iter().any(is_check);
    let checked = beneath.filter(has_checks).unwrap_or(oldest.deployment);
    let checks = checked.spec.steps.iter().filter(|step| is_check(step));
    checks.for_each(|check| steps.push(check.clone(), checked.number));
    let last = &newest.deployment.spec;
    DeploymentSpec {
        target: last.target.clone(),
        inputs: BTreeMap::new(),
        lease_ttl: last.lease_ttl,
        steps: steps.all,
        cancel_grace: last.cancel_grace,
        retry: last.retry.clone(),
        policy: last.policy,
        order: None,
        timeouts: Timeouts { queue: None, ..last.timeouts },
        rollback: None,
    }
}

/// Whether the step only looks whether all is well.
pub(super) fn is_check(step: &StepSpec) -> bool {
    step.body.check().is_some()
}

/// The steps of a rollback in the making. Names stay as their files gave them, as far as they are unique.
#[derive(Default)]
struct Steps {
    all: Vec<StepSpec>,
}

impl Steps {
    fn restore(&mut self, resource: &ResourceName, revisions: &BTreeMap<ResourceName, Option<Revision>>) {
        let step = StepSpec {
            name: name(format!("restore-{resource}"), self.all.len()),
            effect: StepEffect::Mutates,
            resource: Some(resource.clone()),
            retry: RetryClass::Idempotent,
            body: StepBody::Restore,
            revision: revisions.get(resource).cloned().flatten(),
            expected_revision: None,
            timeout: None,
            data: DataEffect::None,
        };
        self.push(step, 0);
    }

    fn own(&mut self, layer: &Layer<'_>, step: &StepSpec, revisions: &BTreeMap<ResourceName, Option<Revision>>) {
        let mut step = step.clone();
        if step.body == StepBody::Restore {
            step.revision = step.resource.as_ref().and_then(|resource| revisions.get(resource).cloned().flatten());
        }
        self.push(step, layer.number());
    }

    /// Of several switches of one release only the last is left: a folder is switched once under a fence.
    fn switch_once(&mut self) {
        let switches = |step: &StepSpec| matches!(step.body, StepBody::Release { .. } | StepBody::Restore);
        let mut later = BTreeSet::new();
        let mut kept: Vec<StepSpec> = Vec::new();
        for step in self.all.drain(..).rev() {
            if !switches(&step) || later.insert(step.resource.clone()) {
                kept.push(step);
            }
        }
        kept.reverse();
        self.all = kept;
    }

    fn push(&mut self, mut step: StepSpec, number: u64) {
        if self.all.iter().any(|other| other.name == step.name) {
            step.name = name(format!("{}-{number}", step.name), self.all.len());
        }
        self.all.push(step);
    }
}

/// That name, or where it is too long or taken one by its place.
fn name(wanted: String, place: usize) -> StepName {
    StepName::new(wanted)
        .unwrap_or_else(|_| StepName::new(format!("undo-{place}")).expect("plain letters and a number"))
}

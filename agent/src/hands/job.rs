//! One step of one attempt, and the plain facts about it.

use std::collections::BTreeMap;

use holdfast_agent_core::work::Assignment;
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::id::{AttemptId, OperationId};
use holdfast_common::spec::{ResourceSpec, StepSpec};

use crate::adapters::command::{Context, environment};

/// One step of one attempt, for a thread of its own.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) assignment: Assignment,
    pub(super) step: StepSpec,
}

impl Job {
    pub(super) fn of(assignment: &Assignment, step: &StepSpec) -> Self {
        Self { assignment: assignment.clone(), step: step.clone() }
    }

    /// The attempt whose folder holds the step's records.
    pub(super) fn attempt(&self) -> AttemptId {
        self.assignment.folder()
    }

    pub(super) fn operation(&self) -> OperationId {
        OperationId { deployment: self.assignment.claim.deployment, step: self.step.name.clone() }
    }

    pub(super) fn resource(&self) -> Option<&ResourceSpec> {
        let name = self.step.resource.as_ref()?;
        self.assignment.resources.iter().find(|resource| &resource.name == name)
    }

    /// A step without a resource has nothing that could be read, and nothing that could outlive it.
    pub(super) fn capability(&self) -> Capability {
        let none = Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: true };
        self.resource().map_or(none, |resource| self.step.capability(resource))
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        let context = Context {
            claim: self.assignment.claim,
            target: &self.assignment.target,
            step: &self.step.name,
            expected_revision: self.step.expected_revision.as_ref(),
        };
        let mut environment = environment(&context, |name| std::env::var(name).ok());
        if self.step.body.check().is_some() {
            // Whom the host trusts, where that is not the default place.
            let trust = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter();
            environment.extend(trust.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))));
        }
        environment
    }
}

//! Which step may have touched a resource last.
//!
//! ```text
//! of a mutating step                                   it may have touched its resource
//! waits, was refused, cancelled or superseded before   no
//!   its permit, or has its tombstone
//! was permitted, whatever became of it                 yes
//! was reported to have begun without a permit          yes
//! ```
//!
//! Who came after whom, their fences say: a deployment that was submitted later may have had its turn earlier.

use holdfast_common::fence::Fence;
use holdfast_common::id::{ResourceName, StepName};
use holdfast_common::spec::StepSpec;

use crate::fate;
use crate::state::Deployment;

/// The last step on the resource that may have touched it, and whose it was. `None` where none of these deployments may have.
#[must_use]
pub fn last_touch<'a>(
    past: impl IntoIterator<Item = &'a Deployment>,
    resource: &ResourceName,
) -> Option<(&'a Deployment, &'a StepSpec)> {
    let last = past.into_iter().filter_map(|deployment| Some((touch(deployment, resource)?, deployment)));
    last.max_by_key(|((fence, place, _), _)| (*fence, *place)).map(|((_, _, step), deployment)| (deployment, step))
}

/// Whether that step of it may have touched its resource.
#[must_use]
pub fn may_have_touched(deployment: &Deployment, step: &StepName) -> bool {
    began(deployment).any(|(_, name)| name == step)
}

/// The last one of a deployment: under which fence, at which place of its plan.
fn touch<'a>(deployment: &'a Deployment, resource: &ResourceName) -> Option<(Fence, usize, &'a StepSpec)> {
    let on_it = |(_, step): &(usize, &StepSpec)| {
        step.resource.as_ref() == Some(resource) && fate::mutating(deployment).any(|other| other.name == step.name)
    };
    let steps = || deployment.spec.steps.iter().enumerate().filter(on_it);
    let touches = began(deployment).filter_map(|(fence, name)| {
        let (place, step) = steps().find(|(_, step)| &step.name == name)?;
        Some((fence, place, step))
    });
    touches.max_by_key(|(fence, place, _)| (*fence, *place))
}

/// Every step that may have begun, with the fence that it was under.
fn began(deployment: &Deployment) -> impl Iterator<Item = (Fence, &StepName)> {
    let permitted = deployment.attempts.iter().flat_map(|attempt| {
        let begun = attempt.steps.iter().filter(|run| fate::may_have_begun(run));
        begun.map(|run| (attempt.fence, &run.name))
    });
    permitted.chain(deployment.evidence.iter().filter_map(|evidence| fate::told_mutation(deployment, &evidence.body)))
}

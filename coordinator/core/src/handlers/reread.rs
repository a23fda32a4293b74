//! An attempt reads again what it carries over, before anything else of it.
//!
//! ```text
//! a step is carried over, and                                    its resource
//! its adapter can't read it, or tells a revision that nobody     is not read again
//!   knows to compare with
//! a later step on the same resource is carried too, or may have  is not read again: the later one has the last word
//!   left something there
//! else                                                           is read again
//!
//! the attempt's agent says of it                                 the step       what follows
//! read: applied, with the revision that it left                  as left        the attempt may be permitted to go on
//! read: anything else, or another resource                       differs        no permit; the deployment will be held
//! could not be read this time                                    failed         no permit; another try, nothing was changed
//! nothing yet                                                    due            no permit
//! ```
//!
//! What was said may be said anew, as after a restart of the agent, until something of the attempt was permitted; a difference stays.

use holdfast_common::adapter::Inspect;
use holdfast_common::id::{Revision, StepName};
use holdfast_common::report::{Carry, Reread};
use holdfast_common::spec::StepSpec;

use crate::fate::{self, Fate};
use crate::state::{Attempt, CarryState, Deployment, StepState, TargetState};
use crate::weigh;

/// The carried steps of the next attempt whose resources it reads again.
pub(crate) fn due(state: &TargetState, deployment: &Deployment) -> Vec<StepName> {
    let steps: Vec<&StepSpec> = fate::mutating(deployment).collect();
    let is_due = |at: usize| is_readable(state, deployment, steps[at]) && has_last_word(deployment, &steps, at);
    (0..steps.len()).filter(|at| is_due(*at)).map(|at| steps[at].name.clone()).collect()
}

fn is_readable(state: &TargetState, deployment: &Deployment, step: &StepSpec) -> bool {
    let Fate::Applied(left) = fate::of(deployment, step) else { return false };
    match weigh::capability(state, step).map(|capability| capability.inspect) {
        Some(Inspect::Operation) => true,
        Some(Inspect::Revision) => left.is_some(),
        Some(Inspect::None) | None => false,
    }
}

fn has_last_word(deployment: &Deployment, steps: &[&StepSpec], at: usize) -> bool {
    let same = steps[at + 1..].iter().filter(|later| later.resource == steps[at].resource);
    let mut fates = same.map(|later| fate::of(deployment, later));
    fates.all(|fate| matches!(fate, Fate::Untouched | Fate::NotApplied))
}

/// What the agent of an attempt is asked to read again, and what it should find there. Nothing where it goes on with a
/// running process.
#[must_use]
pub fn carries(deployment: &Deployment, attempt: &Attempt) -> Vec<Carry> {
    let due = attempt.carries().filter(|(_, carry)| attempt.readmits.is_none() && *carry != CarryState::NotRead);
    due.map(|(name, _)| Carry { step: name.clone(), left: left(deployment, name) }).collect()
}

fn left(deployment: &Deployment, name: &StepName) -> Option<Revision> {
    match fate::of(deployment, deployment.step(name)?) {
        Fate::Applied(left) => left,
        Fate::Untouched | Fate::NotApplied | Fate::Partial | Fate::Unknown => None,
    }
}

/// What follows for a carried step from what its agent found. `None`: the step has no resource.
pub(crate) fn weigh(
    state: &TargetState,
    deployment: &Deployment,
    name: &StepName,
    found: &Reread,
) -> Option<CarryState> {
    let resource = deployment.step(name)?.resource.as_ref()?;
    Some(match found {
        Reread::Failed { .. } => CarryState::Failed,
        Reread::Read { reading } => {
            let is_left = reading.is_as_left(left(deployment, name).as_ref());
            let is_right = weigh::is_right_resource(state, resource, reading);
            if is_left && is_right { CarryState::AsLeft } else { CarryState::Differs }
        }
    })
}

/// Whether the agent may say, or say anew, what it found there.
pub(crate) fn may_be_told(attempt: &Attempt, name: &StepName) -> bool {
    let open = match attempt.step(name).map(|run| run.state) {
        Some(StepState::Carried { carry }) => match carry {
            CarryState::Due | CarryState::AsLeft | CarryState::Failed => true,
            CarryState::NotRead | CarryState::Differs => false,
        },
        Some(StepState::Pending | StepState::Permitted | StepState::Started | StepState::Ended(_)) | None => false,
    };
    open && !attempt.ever_permitted()
}

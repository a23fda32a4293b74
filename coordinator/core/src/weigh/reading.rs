//! Whether a reading speaks for its resource, and whether it gives a journal the lie.

use holdfast_common::adapter::Inspect;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, IncarnationId, ResourceName, StepName};
use holdfast_common::outcome::{OperationState, Reading, StepEnd};

use super::{capability, told_ends};
use crate::bugs::{self, Bug};
use crate::state::{Attempt, Deployment, EvidenceBody, StepState, TargetState};

/// Why a reading does not speak for the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// It comes from another one than was read before.
    Other,
    /// The resource was put back to an earlier state, as from a backup: it had shown or confirmed this fence.
    WentBack {
        /// The highest that it had shown.
        from: Fence,
    },
}

impl Odd {
    /// For people.
    #[must_use]
    pub fn words(self, resource: &ResourceName) -> String {
        match self {
            Odd::Other => {
                format!("what was read is another resource than the {resource} that was read before: it proves nothing")
            }
            Odd::WentBack { from } => format!(
                "{resource} went back to an earlier state, as from a backup: it had seen fence {from}, and what it shows now is below. It proves nothing"
            ),
        }
    }
}

/// Why a reading does not speak for the resource, as far as it was read before; `None` where it does.
#[must_use]
pub fn standing(state: &TargetState, resource: &ResourceName, reading: &Reading) -> Option<Odd> {
    let right = state.identities.get(resource).is_none_or(|known| known == &reading.resource_identity);
    if !right && !bugs::on(Bug::OtherResourceCounts) {
        return Some(Odd::Other);
    }
    let floor = state.floors.get(resource).copied().filter(|_| right);
    floor
        .filter(|floor| reading.highest_fence.is_some_and(|highest| highest < *floor))
        .map(|from| Odd::WentBack { from })
}

/// Whether a reading speaks for the resource.
pub(crate) fn is_right_resource(state: &TargetState, resource: &ResourceName, reading: &Reading) -> bool {
    standing(state, resource, reading).is_none()
}

/// A journal that said of a step that it was never started, although its resource shows the step's operation as applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Whose.
    pub agent: AgentName,
    /// Which journal.
    pub incarnation: IncarnationId,
    /// The step.
    pub step: StepName,
}

/// Whether the newest evidence of the current deployment is a reading that contradicts a journal: an operation that nobody was
/// permitted to begin but one attempt, whose journal says that it did not.
#[must_use]
pub fn contradiction(state: &TargetState) -> Option<Contradiction> {
    let deployment = state.current.as_ref()?;
    let EvidenceBody::Inspection { step, reading, resource, .. } = &deployment.evidence.last()?.body else {
        return None;
    };
    let spec = deployment.step(step)?;
    let tells = capability(state, spec).is_some_and(|capability| capability.inspect == Inspect::Operation);
    if !tells || reading.state != OperationState::Applied || !is_right_resource(state, resource, reading) {
        return None;
    }
    let permitted = |attempt: &&Attempt| attempt.step(step).is_some_and(|run| run.permitted_at.is_some());
    let mut permitted = deployment.attempts.iter().filter(permitted);
    let (Some(attempt), None) = (permitted.next(), permitted.next()) else { return None };
    says_never_started(deployment, attempt, step).then(|| Contradiction {
        agent: attempt.agent.clone(),
        incarnation: attempt.incarnation,
        step: step.clone(),
    })
}

fn says_never_started(deployment: &Deployment, attempt: &Attempt, step: &StepName) -> bool {
    let in_time = attempt.step(step).is_some_and(|run| run.state == StepState::Ended(StepEnd::NotStarted));
    in_time || told_ends(deployment, attempt, step, deployment.evidence.iter()).any(|end| end == StepEnd::NotStarted)
}

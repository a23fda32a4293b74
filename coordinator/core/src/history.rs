//! Everything that a target's events lead to: its state, the deployments that ended, and what is held open since when.
//!
//! The store keeps rows of all this for reading. Here it follows from the events alone, by the same `apply` that the driver
//! uses and by nothing that wrote those rows, so that the two can be compared.

use std::collections::BTreeMap;

use holdfast_common::id::{AttemptId, DeploymentId, OperatorName, StepName};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;

use crate::apply::{IllegalEvent, apply, ending};
use crate::event::{Event, Recorded};
use crate::invariants::{self, Step, Violation};
use crate::state::{Attempt, Deployment, Evidence, TargetState};

/// Grows event by event.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// After the last event. `None` before the first.
    pub state: Option<TargetState>,
    /// The last declaration.
    pub declared: Option<Declared>,
    /// Deployments that ended, as they ended, with the evidence that came later.
    pub ended: BTreeMap<DeploymentId, Deployment>,
    /// Who holds the target, and since when.
    pub reserved: Option<(DeploymentId, Wall)>,
    /// The permit that was granted last, while it is open.
    permit: Option<OpenPermit>,
    /// All evidence, in order of arrival.
    pub evidence: Vec<(DeploymentId, Evidence)>,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// What.
    pub spec: TargetSpec,
    /// By whom.
    pub by: OperatorName,
    /// When.
    pub at: Wall,
}

/// A permit that nothing has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPermit {
    /// Whose.
    pub attempt: AttemptId,
    /// For which step.
    pub step: StepName,
    /// When it was granted.
    pub since: Wall,
}

impl History {
    /// One more event. Answers the invariant that it breaks, if it breaks one; it is part of the history all the same.
    ///
    /// # Errors
    /// The event can't follow on what was before. Then nothing has changed.
    pub fn follow(&mut self, recorded: &Recorded) -> Result<Option<Violation>, IllegalEvent> {
        let before = self.state.take();
        let end = ending(before.as_ref(), recorded);
        let after = match apply(before.clone(), recorded) {
            Ok(after) => after,
            Err(illegal) => {
                self.state = before;
                return Err(illegal);
            }
        };
        let broken = invariants::check(&Step { before: before.as_ref(), recorded, after: &after }).err();
        self.note(recorded);
        self.ended.extend(end.map(|deployment| (deployment.id, deployment)));
        self.state = Some(after);
        Ok(broken)
    }

    /// The permit that is open now.
    #[must_use]
    pub fn open_permit(&self) -> Option<&OpenPermit> {
        let permit = self.permit.as_ref()?;
        let attempts = self.state.as_ref()?.current.as_ref()?.attempts.iter();
        let open = attempts.filter(|attempt| attempt.id == permit.attempt).find_map(Attempt::open_permit)?;
        (open.name == permit.step).then_some(permit)
    }

    /// Every deployment, in the order of their numbers.
    #[must_use]
    pub fn deployments(&self) -> Vec<&Deployment> {
        let live = self.state.iter().flat_map(|state| state.current.iter().chain(&state.queue));
        let mut all: Vec<&Deployment> = live.chain(self.ended.values()).collect();
        all.sort_by_key(|deployment| deployment.number);
        all
    }

    fn note(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::TargetDeclared { spec, by } => {
                self.declared = Some(Declared { spec: spec.clone(), by: by.clone(), at: recorded.at });
            }
            Event::Reserved { deployment, .. } => self.reserved = Some((*deployment, recorded.at)),
            Event::DeploymentEnded { deployment, .. } => {
                self.reserved = self.reserved.filter(|(holder, _)| holder != deployment);
            }
            Event::PermitGranted { attempt, step, .. } => {
                self.permit = Some(OpenPermit { attempt: *attempt, step: step.clone(), since: recorded.at });
            }
            Event::LeaseGranted { attempt, readmits: Some(earlier), .. } => {
                if let Some(permit) = self.permit.as_mut().filter(|permit| permit.attempt == *earlier) {
                    permit.attempt = *attempt;
                }
            }
            Event::EvidenceFiled { deployment, evidence } => {
                self.evidence.push((*deployment, evidence.clone()));
                if let Some(ended) = self.ended.get_mut(deployment) {
                    ended.evidence.push(evidence.clone());
                }
            }
            Event::Submitted { .. }
            | Event::Waits { .. }
            | Event::LeaseGranted { readmits: None, .. }
            | Event::LeaseRenewed { .. }
            | Event::AgentAway { .. }
            | Event::OfferAccepted { .. }
            | Event::OfferDeclined { .. }
            | Event::ReportAccepted { .. }
            | Event::AttemptEnded { .. }
            | Event::InquiryOpened { .. }
            | Event::CancelRecorded { .. }
            | Event::CancelAfterEnd { .. }
            | Event::DeadlinePassed { .. }
            | Event::DeploymentDeadlinePassed { .. }
            | Event::DeploymentMoved { .. }
            | Event::PolicyScheduled { .. }
            | Event::RetryScheduled { .. }
            | Event::Decided { .. }
            | Event::RevisionRecorded { .. }
            | Event::HoldPlaced { .. }
            | Event::HoldEnded { .. } => {}
        }
    }
}

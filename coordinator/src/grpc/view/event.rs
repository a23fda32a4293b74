//! Events, as recorded and as people read them.

use holdfast_common::id::TargetName;
use holdfast_coordinator_core::Event;
use holdfast_coordinator_core::event::Recorded;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;

use super::enums::deployment_state;
use super::{sentence, text};
use crate::metrics::facts;

/// One event. `after` is where its deployment stands after it.
#[must_use]
pub fn event(target: &TargetName, recorded: &Recorded, hash: &str, after: Option<DeploymentState>) -> v1::Event {
    v1::Event {
        sequence: recorded.sequence.0,
        at: Some(wall_to_wire(recorded.at)),
        target: target.to_string(),
        deployment: text(recorded.deployment.as_ref()),
        kind: facts::kind(&recorded.event).to_owned(),
        body_json: serde_json::to_string(&recorded.event).expect("plain data serializes"),
        sentence: sentence::event(&recorded.event),
        hash: hash.to_owned(),
        state_after: after.map_or(0, |state| deployment_state(state) as i32),
    }
}

/// Where a deployment stands after one more of its events.
#[must_use]
pub fn state_after(before: Option<DeploymentState>, event: &Event) -> Option<DeploymentState> {
    match event {
        Event::Submitted { .. } => Some(DeploymentState::Queued),
        Event::LeaseGranted { .. } => Some(DeploymentState::Active),
        Event::DeploymentMoved { state, .. } | Event::DeploymentEnded { state, .. } => Some(*state),
        Event::TargetDeclared { .. }
        | Event::Reserved { .. }
        | Event::Waits { .. }
        | Event::LeaseRenewed { .. }
        | Event::AgentAway { .. }
        | Event::OfferAccepted { .. }
        | Event::OfferDeclined { .. }
        | Event::PermitGranted { .. }
        | Event::ReportAccepted { .. }
        | Event::AttemptEnded { .. }
        | Event::EvidenceFiled { .. }
        | Event::InquiryOpened { .. }
        | Event::CancelRecorded { .. }
        | Event::CancelAfterEnd { .. }
        | Event::DeadlinePassed { .. }
        | Event::DeploymentDeadlinePassed { .. }
        | Event::PolicyScheduled { .. }
        | Event::RetryScheduled { .. }
        | Event::Decided { .. }
        | Event::RevisionRecorded { .. }
        | Event::HoldPlaced { .. }
        | Event::HoldEnded { .. } => before,
    }
}

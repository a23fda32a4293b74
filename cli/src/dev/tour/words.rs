//! The API's values as words.

use holdfast_common::time::Wall;
use holdfast_proto::convert::wall_from_wire;
use holdfast_proto::v1;

/// `DEPLOYMENT_STATE_UNCERTAIN` without its prefix: `uncertain`.
fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase().replace('_', " ")
}

pub(super) fn deployment(state: v1::DeploymentState) -> String {
    word(state.as_str_name(), "DEPLOYMENT_STATE_")
}

pub(super) fn attempt(state: v1::AttemptState) -> String {
    word(state.as_str_name(), "ATTEMPT_STATE_")
}

pub(super) fn step(state: v1::StepState) -> String {
    word(state.as_str_name(), "STEP_STATE_")
}

pub(super) fn runner(state: v1::RunnerState) -> String {
    word(state.as_str_name(), "RUNNER_STATE_")
}

pub(super) fn operation(state: v1::OperationState) -> String {
    word(state.as_str_name(), "OPERATION_STATE_")
}

pub(super) fn decision(kind: v1::DecisionKind) -> String {
    word(kind.as_str_name(), "DECISION_KIND_").replace(' ', "-")
}

pub(super) fn filed(reason: v1::FiledReason) -> String {
    word(reason.as_str_name(), "FILED_REASON_")
}

pub(super) fn contact(contact: v1::Contact) -> String {
    word(contact.as_str_name(), "CONTACT_")
}

/// The time of an answer, where it has one.
pub(super) fn wall(at: Option<prost_types::Timestamp>) -> Option<Wall> {
    wall_from_wire("at", at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_the_reference_writes_them() {
        assert_eq!(deployment(v1::DeploymentState::Uncertain), "uncertain");
        assert_eq!(runner(v1::RunnerState::FencedOff), "fenced off");
        assert_eq!(decision(v1::DecisionKind::AcceptSucceeded), "accept-succeeded");
        assert_eq!(filed(v1::FiledReason::SupersededFence), "superseded fence");
    }
}

//! States of the core as the wire has them.

use holdfast_common::outcome::StepEnd;
use holdfast_common::report::{DeclineReason, FiledReason, PermitDenial};
use holdfast_coordinator_core::state::{AttemptState, DeploymentState, StepState};
use holdfast_proto::v1;

use crate::auth::Role;

/// Where a deployment stands.
#[must_use]
pub fn deployment_state(state: DeploymentState) -> v1::DeploymentState {
    match state {
        DeploymentState::Queued => v1::DeploymentState::Queued,
        DeploymentState::Active => v1::DeploymentState::Active,
        DeploymentState::Uncertain => v1::DeploymentState::Uncertain,
        DeploymentState::Held => v1::DeploymentState::Held,
        DeploymentState::Succeeded => v1::DeploymentState::Succeeded,
        DeploymentState::Failed => v1::DeploymentState::Failed,
        DeploymentState::Cancelled => v1::DeploymentState::Cancelled,
    }
}

/// Where a deployment stands, from the wire; `None` for what this version does not know.
#[must_use]
pub fn deployment_state_from_wire(number: i32) -> Option<DeploymentState> {
    match v1::DeploymentState::try_from(number).ok()? {
        v1::DeploymentState::Unspecified => None,
        v1::DeploymentState::Queued => Some(DeploymentState::Queued),
        v1::DeploymentState::Active => Some(DeploymentState::Active),
        v1::DeploymentState::Uncertain => Some(DeploymentState::Uncertain),
        v1::DeploymentState::Held => Some(DeploymentState::Held),
        v1::DeploymentState::Succeeded => Some(DeploymentState::Succeeded),
        v1::DeploymentState::Failed => Some(DeploymentState::Failed),
        v1::DeploymentState::Cancelled => Some(DeploymentState::Cancelled),
    }
}

/// The word for a deployment's state.
#[must_use]
pub fn state_word(state: DeploymentState) -> &'static str {
    match state {
        DeploymentState::Queued => "queued",
        DeploymentState::Active => "active",
        DeploymentState::Uncertain => "uncertain",
        DeploymentState::Held => "held",
        DeploymentState::Succeeded => "succeeded",
        DeploymentState::Failed => "failed",
        DeploymentState::Cancelled => "cancelled",
    }
}

/// Where an attempt stands.
pub(super) fn attempt_state(state: AttemptState) -> v1::AttemptState {
    match state {
        AttemptState::Offered => v1::AttemptState::Offered,
        AttemptState::Running => v1::AttemptState::Running,
        AttemptState::Succeeded => v1::AttemptState::Succeeded,
        AttemptState::Failed => v1::AttemptState::Failed,
        AttemptState::Stopped => v1::AttemptState::Stopped,
        AttemptState::Declined(_) => v1::AttemptState::Declined,
        AttemptState::Lapsed => v1::AttemptState::Lapsed,
        AttemptState::Interrupted => v1::AttemptState::Interrupted,
        AttemptState::Uncertain => v1::AttemptState::Uncertain,
        AttemptState::Resolved => v1::AttemptState::Resolved,
    }
}

/// What became of an attempt, after "the attempt".
pub(super) fn attempt_verb(state: AttemptState) -> &'static str {
    match state {
        AttemptState::Offered => "is offered",
        AttemptState::Running => "is running",
        AttemptState::Succeeded => "has succeeded",
        AttemptState::Failed => "has failed",
        AttemptState::Stopped => "was stopped",
        AttemptState::Declined(_) => "was declined",
        AttemptState::Lapsed => "has lapsed",
        AttemptState::Interrupted => "was interrupted",
        AttemptState::Uncertain => "is uncertain",
        AttemptState::Resolved => "is resolved",
    }
}

/// Where a step stands.
pub(super) fn step_state(state: StepState) -> v1::StepState {
    match state {
        StepState::Pending => v1::StepState::Pending,
        StepState::Permitted => v1::StepState::Permitted,
        StepState::Started => v1::StepState::Started,
        StepState::Ended(StepEnd::Applied) => v1::StepState::Applied,
        StepState::Ended(StepEnd::Failed { .. }) => v1::StepState::Failed,
        StepState::Ended(StepEnd::Stopped { .. }) => v1::StepState::Stopped,
        StepState::Ended(StepEnd::Unknown) => v1::StepState::Unknown,
        StepState::Ended(StepEnd::NotStarted) => v1::StepState::NotStarted,
        StepState::Carried { .. } => v1::StepState::Carried,
    }
}

/// A role.
pub(crate) fn role(role: Role) -> v1::Role {
    match role {
        Role::Viewer => v1::Role::Viewer,
        Role::Deployer => v1::Role::Deployer,
        Role::Approver => v1::Role::Approver,
        Role::Reconciler => v1::Role::Reconciler,
        Role::Operator => v1::Role::Operator,
        Role::Auditor => v1::Role::Auditor,
        Role::Admin => v1::Role::Admin,
    }
}

/// A role of the wire; `None` for a number that is none of this version.
pub(crate) fn role_from_wire(number: i32) -> Option<Role> {
    match v1::Role::try_from(number) {
        Ok(v1::Role::Viewer) => Some(Role::Viewer),
        Ok(v1::Role::Deployer) => Some(Role::Deployer),
        Ok(v1::Role::Approver) => Some(Role::Approver),
        Ok(v1::Role::Reconciler) => Some(Role::Reconciler),
        Ok(v1::Role::Operator) => Some(Role::Operator),
        Ok(v1::Role::Auditor) => Some(Role::Auditor),
        Ok(v1::Role::Admin) => Some(Role::Admin),
        Ok(v1::Role::Unspecified) | Err(_) => None,
    }
}

/// Why an agent declined, in words.
pub(super) fn decline_words(reason: DeclineReason) -> &'static str {
    match reason {
        DeclineReason::Busy => "its host still has work of an earlier deployment of this target, which may be running",
        DeclineReason::Conflict => {
            "its host still has another attempt of this deployment, whose work may be running, or this one under another fence"
        }
        DeclineReason::UnknownTarget => "it does not serve this target, resource or adapter",
        DeclineReason::FenceRegression => "the fence is not above the highest it has seen",
        DeclineReason::HostPolicy => "its host's policy forbids it",
        DeclineReason::Draining => "it is draining",
        DeclineReason::NoRoom => "its host has no room: the disk is nearly full, or no descriptors are left",
    }
}

/// Why a report is evidence only, in words.
pub(super) fn filed_words(reason: FiledReason) -> &'static str {
    match reason {
        FiledReason::SupersededFence => "a newer fence had been allocated",
        FiledReason::LeaseExpired => "its lease had lapsed",
        FiledReason::AttemptTerminal => "its attempt had ended",
        FiledReason::StepOutOfOrder => "its step was not due",
        FiledReason::UnknownAttempt => "its attempt is not known",
        FiledReason::WrongAgent => "the attempt was leased to another agent",
        FiledReason::WrongIncarnation => "it came from another journal of the same agent",
        FiledReason::WrongFence => "its fence is not the attempt's",
        FiledReason::UnknownStep => "its step is not part of the deployment",
        FiledReason::NotPermitted => "its step had no permit on record",
        FiledReason::SequenceConflict => "the same sequence number had come with another content",
    }
}

/// Why a permit was denied, in words.
#[must_use]
pub fn denial_words(denial: PermitDenial) -> &'static str {
    match denial {
        PermitDenial::NotYours => "the claim names no attempt of this agent",
        PermitDenial::NotCurrent => "the attempt is not current",
        PermitDenial::LeaseExpired => "the lease had lapsed",
        PermitDenial::CancelRecorded => "a cancel is recorded",
        PermitDenial::DeadlinePassed => "a deadline has passed",
        PermitDenial::OutOfOrder => "another step comes first, or this one is over",
        PermitDenial::NoSuchMutation => "the deployment has no such mutating step",
        PermitDenial::PlanDiffers => "the plan is not the one on record",
        PermitDenial::PermitOpen => "another permit on this target is open",
        PermitDenial::CarryUnread => "what it carries over was not found as it was left, or not read again yet",
    }
}

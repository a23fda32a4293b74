//! Why a report was filed, a permit denied, an offer declined. Matches without a default arm: a new reason has its
//! text or does not compile.

use crate::explain::Explanation;
use crate::report::{DeclineReason, FiledReason, PermitDenial};

const FILED: &str = "The report is kept as evidence of its own attempt and changed nothing else.";
const SEE: &str = "holdfast evidence D shows it. If the deployment is uncertain, it may tell you what happened.";
const FAULT: &str = "This points at a fault or a forged message. Keep the logs of the coordinator and of the agent, and look at the agent's host.";
const DENIED: &str = "The step was not begun, and without a permit it can't be.";
const DECLINED: &str = "The attempt began nothing, and it does not count as a try.";

/// The words of each, as they are stored and shown.
pub(super) const FILED_WORDS: &[&str] = &[
    "superseded_fence",
    "lease_expired",
    "attempt_terminal",
    "step_out_of_order",
    "unknown_attempt",
    "wrong_agent",
    "wrong_incarnation",
    "wrong_fence",
    "unknown_step",
    "not_permitted",
    "sequence_conflict",
];
pub(super) const DENIED_WORDS: &[&str] = &[
    "not_yours",
    "not_current",
    "cancel_recorded",
    "deadline_passed",
    "out_of_order",
    "no_such_mutation",
    "plan_differs",
    "permit_open",
    "carry_unread",
];
pub(super) const DECLINED_WORDS: &[&str] =
    &["busy", "conflict", "unknown_target", "fence_regression", "host_policy", "draining", "no_room"];
pub(super) const DECISION_WORDS: &[&str] =
    &["retry", "accept_succeeded", "accept_failed", "accept_cancelled", "rollback", "readmit", "abandon", "note"];
pub(super) const POLICY_WORDS: &[&str] = &["manual", "when_proven", "trust_report"];

fn because(what: &'static str, still_true: &'static str, next: &'static str) -> Explanation {
    Explanation { what, still_true, next }
}

pub(super) fn filed(reason: FiledReason) -> Explanation {
    let (what, next) = match reason {
        FiledReason::SupersededFence => (
            "A newer fence was allocated on the target before the report came, so its attempt no longer speaks for it.",
            SEE,
        ),
        FiledReason::LeaseExpired => {
            ("The attempt's lease had run out, so it no longer speaks or acts for the target.", SEE)
        }
        FiledReason::AttemptTerminal => {
            ("The attempt already had its last observation, and that is never rewritten.", SEE)
        }
        FiledReason::StepOutOfOrder => ("The step was not in a state that this report could follow.", SEE),
        FiledReason::UnknownAttempt => (
            "No such attempt is on record. After a restore from a backup the store may have lost it.",
            "Look whether the coordinator was restored. The report is kept under its agent and target.",
        ),
        FiledReason::WrongAgent => ("The attempt is leased to another agent than the one that reported.", FAULT),
        FiledReason::WrongIncarnation => (
            "The attempt is leased to another journal of the same agent: the journal was lost, renewed or copied.",
            "Find out whether the machine was reinstalled or copied. The old journal's word can't be had any more.",
        ),
        FiledReason::WrongFence => ("The report's fence is not the one of its attempt's lease.", FAULT),
        FiledReason::UnknownStep => ("The report names a step that the deployment does not have.", FAULT),
        FiledReason::NotPermitted => ("A mutating step was reported, and no permit for it is on record.", FAULT),
        FiledReason::SequenceConflict => ("The same report number came before with another content.", FAULT),
    };
    because(what, FILED, next)
}

pub(super) fn denied(denial: PermitDenial) -> Explanation {
    let (what, next) = match denial {
        PermitDenial::NotYours => ("The request names no attempt of the agent that asked.", FAULT),
        PermitDenial::NotCurrent => {
            ("Another attempt is the current one of the target.", "Nothing: the current attempt carries on.")
        }
        PermitDenial::LeaseExpired => {
            ("The attempt's lease had run out.", "Nothing: what follows was decided when the lease ran out.")
        }
        PermitDenial::CancelRecorded => {
            ("A cancel was recorded before the step was permitted.", "Nothing: the deployment ends as cancelled.")
        }
        PermitDenial::DeadlinePassed => {
            ("A deadline had passed before the step was permitted.", "Look why it took so long, then submit again.")
        }
        PermitDenial::OutOfOrder => (
            "Another step comes first, or this one is over.",
            "Nothing, if the agent goes on. If it repeats, report it.",
        ),
        PermitDenial::NoSuchMutation => {
            ("The step has no effect and needs no permit, or the deployment does not have it.", FAULT)
        }
        PermitDenial::PlanDiffers => ("The plan that the agent holds is not the plan on record.", FAULT),
        PermitDenial::PermitOpen => (
            "Another permit on this target is open: a change there has no known end yet.",
            "Reconcile the open one: holdfast reconcile list.",
        ),
        PermitDenial::CarryUnread => (
            "The attempt carries over a step, and has not found its resource as that step had left it.",
            "holdfast show D tells what it found there. If somebody else has changed it, the deployment is held.",
        ),
    };
    because(what, DENIED, next)
}

pub(super) fn declined(reason: DeclineReason) -> Explanation {
    let (what, next) = match reason {
        DeclineReason::Busy => {
            ("The agent is at work on another attempt of this target.", "Wait until that one has ended.")
        }
        DeclineReason::Conflict => (
            "The agent's host holds another attempt of the same deployment whose work may still run, or the same attempt under another fence.",
            "holdfast show D names the earlier attempt. If its work still runs on that host, it ends or is stopped first. If not, look whether the coordinator was restored from a backup, or the agent's machine was copied.",
        ),
        DeclineReason::UnknownTarget => (
            "The agent does not serve this target, one of its resources, or its adapter.",
            "Add it to the agent's own configuration on the host, or correct the target's labels.",
        ),
        DeclineReason::FenceRegression => (
            "The offer's fence is not above the highest that the agent has seen for this target.",
            "Look whether the coordinator was restored from a backup. Agents refuse older fences on purpose.",
        ),
        DeclineReason::HostPolicy => (
            "The policy on the agent's host forbids it, whatever the coordinator says.",
            "If it should be allowed, change the policy on the host. It can't be changed from here.",
        ),
        DeclineReason::Draining => (
            "The agent takes no new work while it finishes what it has. Agents of this version never say so.",
            "Wait, or see to the agent on its host.",
        ),
        DeclineReason::NoRoom => (
            "The agent's host has no room: its disk is nearly full, or it has no descriptors left. It could not record how a step ended.",
            "Free room on that host; the agent's /readyz and log say what is missing. It takes offers again by itself.",
        ),
    };
    because(what, DECLINED, next)
}

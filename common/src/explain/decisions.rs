//! What can be decided about a deployment that is uncertain or held. A new decision has its text or does not compile.

use crate::explain::Explanation;
use crate::recovery::{DecisionKind, Policy};

const RECORDED: &str =
    "A decision is kept for ever, with who made it, why, and on what evidence. It rewrites no observation.";

pub(super) fn decision(kind: DecisionKind) -> Explanation {
    let (what, next) = match kind {
        DecisionKind::Retry => (
            "A new attempt begins where knowledge ends. It needs the runner to be out, and the open step to be known as not applied or applied, or to be repeatable.",
            "holdfast reconcile decide D --as retry --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::AcceptSucceeded => (
            "The deployment ends as succeeded. It needs the runner to be out, and every mutating step to be observed or attested as applied.",
            "holdfast reconcile decide D --as accept-succeeded --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::AcceptFailed => (
            "The deployment ends as failed, with the target as it is. It needs the runner to be out and the target's state to be known.",
            "holdfast reconcile decide D --as accept-failed --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::AcceptCancelled => (
            "The deployment ends as cancelled, with the target as it is. It needs what accept-failed needs, and a cancel on record.",
            "holdfast cancel D --reason TEXT first, then holdfast reconcile decide D --as accept-cancelled --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::Rollback => (
            "The change is undone by a deployment of its own, which takes over the reservation without a gap, and this one ends as failed. It needs the runner to be out, what is there to be known as far as the way back asks, and a way back that is compatible now.",
            "holdfast reconcile decide D --as rollback --reason TEXT --confirm TARGET. A target that nobody holds goes back with holdfast rollback TARGET.",
        ),
        DecisionKind::Readmit => (
            "The process that is still at work goes on, under a new attempt and a new fence. It needs the word of the same journal that it still runs, and no fence-off that was allocated.",
            "holdfast reconcile decide D --as readmit --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::Abandon => (
            "The deployment ends as failed and the target's revision is unknown from then on. It needs a person's attestation.",
            "holdfast reconcile attest D first, then holdfast reconcile decide D --as abandon --reason TEXT --confirm TARGET.",
        ),
        DecisionKind::Note => (
            "A remark beside the evidence. It changes nothing and is always allowed.",
            "holdfast reconcile decide D --as note --reason TEXT.",
        ),
    };
    Explanation { what, still_true: RECORDED, next }
}

pub(super) fn policy(policy: Policy) -> Explanation {
    let (what, next) = match policy {
        Policy::Manual => {
            ("A person decides whatever is uncertain or held.", "holdfast reconcile list shows what waits for one.")
        }
        Policy::WhenProven => (
            "The coordinator fences off, inspects and decides by itself where the proof is complete, and waits for a person where it is not. A target has this policy unless its file says otherwise.",
            "holdfast events D tells what the policy did. holdfast reconcile list shows what waits for a person.",
        ),
        Policy::TrustReport => (
            "Beside what when-proven does, the coordinator goes by the report of the same agent's journal where nothing can be read, as long as no fence-off was allocated.",
            "Choose it only for commands that can't be inspected. holdfast events D tells where it was used.",
        ),
    };
    Explanation { what, still_true: "No policy ever takes silence for an outcome.", next }
}

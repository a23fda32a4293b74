//! Why a deployment waits.

use crate::explain::Explanation;

const fn waits(what: &'static str, next: &'static str) -> Explanation {
    const NOTHING_YET: &str = "While it waits it changes nothing. It goes on by itself when the reason is gone.";
    Explanation { what, still_true: NOTHING_YET, next }
}

pub(super) const WAITING: &[(&str, Explanation)] = &[
    (
        "reservation",
        waits(
            "Another deployment holds the target. One target has one holder, whatever state that one is in.",
            "holdfast target show TARGET names the holder and who can act. If it is uncertain or held, reconcile it.",
        ),
    ),
    (
        "turn",
        waits(
            "Nobody holds the target, and another deployment is before it in the queue.",
            "holdfast target show TARGET names the first in the queue and what that one waits for.",
        ),
    ),
    (
        "no_eligible_agent",
        waits(
            "No agent that is connected can take it: labels, adapters, the host's policy or its state stand against it.",
            "holdfast show D gives each agent's own reason. holdfast agents shows who is connected.",
        ),
    ),
    (
        "backoff",
        waits(
            "An attempt was declined, lost or failed for a passing reason, and the next one waits a little longer than the one before.",
            "Wait. holdfast events D tells what went before.",
        ),
    ),
    (
        "unread_revision",
        waits(
            "The revision of a resource is unknown, and nothing is changed on top of what nobody knows.",
            "holdfast target inspect TARGET reads it where the adapter can. Else look yourself: holdfast target attest TARGET --resource R --observed REV --how TEXT --confirm TARGET.",
        ),
    ),
    (
        "assignment",
        waits(
            "It is next, and is about to be offered to an agent.",
            "Wait. This lasts for the blink of an eye where an agent is connected.",
        ),
    ),
];

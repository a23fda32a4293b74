//! The words of states and stages. Where one word is used of a deployment, an attempt and a step, the text says all.

use crate::explain::Explanation;

const fn state(what: &'static str, still_true: &'static str, next: &'static str) -> Explanation {
    Explanation { what, still_true, next }
}

pub(super) const STATES: &[(&str, Explanation)] = &[
    (
        "queued",
        state(
            "The deployment is recorded and waits. No attempt of it was ever permitted to change anything.",
            "The target is as it was before, as far as this deployment goes.",
            "holdfast show D gives the reason it waits and who can act. It starts by itself when the reason is gone.",
        ),
    ),
    (
        "active",
        state(
            "The deployment holds the target: an attempt is at work, or the next one is about to be.",
            "The target is reserved. Nothing else starts there.",
            "holdfast watch D follows it. Ctrl-C stops watching, not the deployment.",
        ),
    ),
    (
        "uncertain",
        state(
            "A change was permitted, then contact was lost, or the agent itself can't tell. The change may be made, half made, not begun, or running right now.",
            "The target stays reserved, so that no second change can meet the first. This state has no timeout.",
            "holdfast reconcile show D tells what this target's adapter can do. What refuses old fences (release, git, postgres, an API or program that says so) can be fenced off, then inspected. What doesn't, like a command, can't be: have it read where that can be done, or look yourself and attest what you saw. Then decide.",
        ),
    ),
    (
        "held",
        state(
            "Execution is known to have ended, and what it left is partial or unknown, or somebody else has changed it since. Holdfast won't repeat or accept it by itself.",
            "The target stays reserved, and nothing of this deployment runs there.",
            "holdfast reconcile show D gives each decision as allowed or why not. Then holdfast reconcile decide D.",
        ),
    ),
    (
        "hold",
        state(
            "An operator has put the target on hold, with a reason and perhaps until a time. It is a person's word about the target, and not the state `held` of a deployment.",
            "What was under way goes on to its end. Nothing new begins: no deployment takes the target, and none gets a further attempt.",
            "holdfast target show T tells who, why and until when. holdfast target unhold T ends it; what is first in the queue then begins.",
        ),
    ),
    (
        "superseded",
        state(
            "The target's queue is `latest`, and a newer deployment was recorded while this one waited. It ended as cancelled.",
            "It was never permitted to change anything, so nothing was changed. The deployment that holds the target is never superseded.",
            "Look at the newer one, which is named. If you need this one, submit it again: it then supersedes what waits.",
        ),
    ),
    (
        "succeeded",
        state(
            "It ended well: every mutating step was observed as applied, or a person accepted it on evidence.",
            "A deployment that succeeded has freed its target. Its record never changes again.",
            "Nothing. holdfast show D tells who observed what, and when.",
        ),
    ),
    (
        "failed",
        state(
            "It ended, it was seen to end, and the wanted effect is not completely there. It is never said for mere silence.",
            "The text beside it says whether a part may be applied. A deployment that failed has freed its target; a failed step or attempt alone has not.",
            "holdfast logs D shows the output. Correct the cause and submit a new deployment, or go back: holdfast rollback TARGET lists the places.",
        ),
    ),
    (
        "cancelled",
        state(
            "It ended after somebody asked for a cancel, and that it ended was observed.",
            "Steps applied before stay applied: a cancel is no rollback. The target is free.",
            "holdfast show D lists which steps had been applied.",
        ),
    ),
    (
        "offered",
        state(
            "The attempt has its lease and fence, and its agent was asked to take it.",
            "It has begun nothing.",
            "Wait: the agent accepts or declines, or the lease runs out.",
        ),
    ),
    (
        "running",
        state(
            "The agent has accepted the attempt and works on it under a live lease.",
            "The target is reserved. How old the last word of the agent is stands beside it.",
            "holdfast watch D follows it.",
        ),
    ),
    (
        "declined",
        state(
            "The agent refused the attempt and said why. It began nothing. This does not count as a try.",
            "The deployment is queued again and is offered later, perhaps to another agent.",
            "holdfast explain REASON tells more about the reason shown.",
        ),
    ),
    (
        "lapsed",
        state(
            "The lease ran out, and the attempt had never been permitted to change anything. So it changed nothing.",
            "A new attempt follows by itself, within the limit of tries.",
            "If it repeats, look at the agent's network and log.",
        ),
    ),
    (
        "interrupted",
        state(
            "The lease ran out between two mutating steps: some had been permitted, and each of those is known to have ended.",
            "What was applied stays recorded as applied and is carried into the next attempt.",
            "A new attempt follows by itself if every step that ended may be built on; else the deployment is held.",
        ),
    ),
    (
        "resolved",
        state(
            "The attempt was uncertain, and a recorded decision settled what follows.",
            "Its own observations are not rewritten. Late reports of it are still filed as evidence.",
            "holdfast evidence D shows on what the decision was based.",
        ),
    ),
    (
        "pending",
        state("The step was not begun.", "It has changed nothing.", "It follows when the steps before it are over."),
    ),
    (
        "permitted",
        state(
            "The coordinator has recorded that this step may begin. Whether it has begun is known only when the agent says so.",
            "From here on the target may have been changed.",
            "Wait for the agent's word. If contact is lost now, the deployment becomes uncertain.",
        ),
    ),
    (
        "started",
        state(
            "The agent reported that the step began.",
            "The target may be changing right now.",
            "Wait for the agent's word on how it ended. holdfast logs D -f shows its output.",
        ),
    ),
    (
        "applied",
        state(
            "The step's whole effect is there: its command ended with 0, or it was read back at the resource.",
            "It is not repeated: a later attempt carries it over.",
            "Nothing.",
        ),
    ),
    (
        "passed",
        state(
            "The health check held: no look failed within its whole window. A check changes nothing, so nothing of it is applied.",
            "It says how it was then, on the host of the last change. A later attempt looks again.",
            "Nothing. holdfast logs D --step NAME shows each change that it saw.",
        ),
    ),
    (
        "not_healthy",
        state(
            "Every change was observed as applied, and a check after them failed or did not hold in its time.",
            "The deployment has failed and its revision is recorded: nothing is applied in part, and nothing was taken back.",
            "holdfast show D tells what the check saw last. Correct the cause and submit a new deployment, or go back: holdfast rollback TARGET lists the places.",
        ),
    ),
    (
        "over_deadline",
        state(
            "A deadline of a step, of a check or of the whole deployment has passed, and no end was seen. A deadline asks for a stop and claims none.",
            "It may still be running, and the target stays reserved. A success that is seen under a live lease is kept, and flagged.",
            "Watch the five stages of the request, whose cause is timeout. It ends when somebody observes an end.",
        ),
    ),
    (
        "stopped",
        state(
            "It was stopped from outside, and it was seen to be over: no process of it is left.",
            "The text beside it says whether a part may be applied.",
            "holdfast show D tells what follows: an end, or a decision that is needed.",
        ),
    ),
    (
        "unknown",
        state(
            "The agent looked and can't tell how it ended. This is an honest answer, not an error.",
            "The permit stays open and the target stays reserved.",
            "Inspect the resource where its adapter can, or look yourself and attest what you saw.",
        ),
    ),
    (
        "not_started",
        state(
            "The step had its permit and was never begun, and now it never can be: the agent left a durable mark in its place.",
            "This step changed nothing in this attempt.",
            "Nothing. A later attempt may begin it under its own permit.",
        ),
    ),
    (
        "carried",
        state(
            "The step was applied in an earlier attempt and is taken over as it is. Where its adapter can, its resource is read again before anything else of the attempt.",
            "It was not run again. If somebody else has changed its resource since, nothing follows on it and the deployment is held.",
            "Nothing, unless it is held. holdfast show D tells what was found there.",
        ),
    ),
    (
        "requested",
        state(
            "Somebody asked for a cancel. This is a wish, not an outcome.",
            "Nothing has stopped because of it yet.",
            "Watch the five stages: requested, recorded, delivered, acted, observed.",
        ),
    ),
    (
        "recorded",
        state(
            "The cancel is durable. No mutating step that was not yet permitted will be.",
            "A step permitted before may still run.",
            "Wait until the agent confirms it. If contact is lost, it is delivered when contact returns.",
        ),
    ),
    (
        "delivered",
        state(
            "The agent has confirmed that it knows of the cancel.",
            "What runs may still be running.",
            "Wait for the signal and for what is observed.",
        ),
    ),
    (
        "acted",
        state(
            "The agent sent the stop signal, or found nothing to signal.",
            "A signal sent is not a process ended.",
            "Wait for the observation. After the grace time the agent kills what is left.",
        ),
    ),
    (
        "observed",
        state(
            "The end was seen, whatever it was: a cancel that came too late ends as a success.",
            "The outcome stands and is never rewritten.",
            "holdfast show D tells the outcome.",
        ),
    ),
    (
        "accepted",
        state(
            "The report came from the current attempt under a live lease and changed its state.",
            "It is recorded for ever.",
            "Nothing.",
        ),
    ),
    (
        "duplicate",
        state(
            "The report had been answered before. Agents send again until they hear an answer.",
            "Nothing was changed by it.",
            "Nothing.",
        ),
    ),
    (
        "filed",
        state(
            "The report came too late or under the wrong claim. It is kept as evidence of its own attempt and changed nothing else.",
            "No lease is revived by it, and no outcome is rewritten.",
            "holdfast evidence D shows it with the reason. It may help you decide.",
        ),
    ),
    (
        "not_applied",
        state(
            "The resource was read and has no effect of the operation.",
            "The reading holds for the moment it was taken, and for good once the old attempt is fenced off.",
            "holdfast reconcile show D tells which decisions this opens.",
        ),
    ),
    (
        "applying",
        state(
            "The resource was read while it was being changed by the operation.",
            "The old attempt is at work or was stopped in the middle.",
            "Fence off where the adapter can, then inspect again.",
        ),
    ),
    (
        "partial",
        state(
            "The resource was read, or seen by a person, with a part of the effect.",
            "It is neither the old revision nor the new one.",
            "Repair by hand or by a new deployment once the decision is made. Unsafe steps are not repeated.",
        ),
    ),
    (
        "fenced_off",
        state(
            "The resource confirmed a higher fence: it refuses every older attempt from now on.",
            "What the old attempt did before stays. It can change nothing more there, even if it still runs.",
            "Inspect: what is read now is final.",
        ),
    ),
    (
        "host_gone",
        state(
            "A person attests that the host is gone for good.",
            "It is kept and shown as that person's word, not as proof.",
            "If the host comes back after all, keep its agent away from the target until you have looked.",
        ),
    ),
    (
        "still_running",
        state(
            "The agent says that the old attempt is still at work.",
            "Nothing can be decided on the target's state while it changes.",
            "Wait, ask for a cancel, or fence off where the adapter can.",
        ),
    ),
];

//! Codes 3001 to 3999: reconciliation.

use crate::explain::Explanation;

const STILL_RESERVED: &str = "The deployment's state is unchanged and the target stays reserved for it.";

pub(super) const NOTHING_TO_RECONCILE: Explanation = Explanation {
    what: "This deployment is neither uncertain nor held, so there is nothing to decide about it; or the target has no resource of that name.",
    still_true: "Its state is unchanged. Evidence that came for it is kept.",
    next: "holdfast show D tells where it stands. holdfast reconcile list shows what does wait for a decision. A resource that was changed by hand is attested at its target: holdfast target attest TARGET.",
};

pub(super) const DECISION_NOT_OPEN: Explanation = Explanation {
    what: "This decision lacks what it needs: the runner is not known to be out, what the step in question left is not known well enough, the step is not safe to repeat, nobody attested, a stop is on record or none is, or the way back is not compatible now.",
    still_true: STILL_RESERVED,
    next: "holdfast reconcile show D says for each decision what is missing, and what the adapter can do about it. What can't be proven a person may attest. There is no unlock.",
};

pub(super) const EVIDENCE_MOVED: Explanation = Explanation {
    what: "New evidence arrived between what you were shown and your decision. A decision counts only for the evidence that it names.",
    still_true: STILL_RESERVED,
    next: "Read holdfast reconcile show D again and decide on what it says now.",
};

pub(super) const NOT_CONFIRMED: Explanation = Explanation {
    what: "What must be confirmed by a person was not. A severe action asks for the target's name, typed, which guards against acting on the wrong target. Signing in asks for the fingerprint of the coordinator's CA.",
    still_true: "Nothing was changed.",
    next: "Give --confirm with the target's exact name, after reading the consequences. At login, compare the fingerprint and give it with --fingerprint, or give --ca FILE.",
};

pub(super) const CANNOT_INSPECT: Explanation = Explanation {
    what: "Nothing can be read now: no step is in question, the step is of a kind that nothing reads back (a command on a resource that declares no inspection, or whose step names no revision), no agent that reaches its resource is connected, or a deployment is changing it at this moment.",
    still_true: "No reading was taken, so nothing new is known. No reading is not a reading of nothing.",
    next: "Bring back an agent that reaches the resource, wait for what is at work, or look yourself and record it with holdfast reconcile attest.",
};

pub(super) const CANNOT_FENCE_OFF: Explanation = Explanation {
    what: "The step in question can't be shut out of its resource: no step may be running, what the step does is compared with no fence (a command, a migration with transaction = false, a resource that keeps none), or no agent that reaches its resource is connected. A resource may refuse old fences from other steps all the same.",
    still_true: "The old attempt may still be able to change the resource. The target stays reserved.",
    next: "Bring back an agent that reaches the resource. Otherwise make sure by other means that the old process is gone, and record that with holdfast reconcile attest.",
};

pub(super) const REASON_MISSING: Explanation = Explanation {
    what: "This action is recorded for ever and needs a reason.",
    still_true: "Nothing was changed.",
    next: "Say why with --reason TEXT. Whoever reads it next year has only that.",
};

pub(super) const OBSERVED_MISSING: Explanation = Explanation {
    what: "The deployment waits because nobody knows which revision a resource has. An attestation that does not say which one you saw would not tell that.",
    still_true: "Nothing was recorded, and the deployment waits as before.",
    next: "Look at the resource, then repeat the command with --observed REVISION.",
};

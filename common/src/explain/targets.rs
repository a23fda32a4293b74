//! Codes 2001 to 2999: targets and deployments.

use crate::explain::Explanation;

pub(super) const TARGET_NOT_FOUND: Explanation = Explanation {
    what: "No target of this name is declared, or your token may not see it. The two are answered alike on purpose.",
    still_true: "Nothing was recorded.",
    next: "holdfast targets lists what you may see. A new target is declared with holdfast target apply FILE.",
};

pub(super) const DEPLOYMENT_NOT_FOUND: Explanation = Explanation {
    what: "No deployment has this id, or your token may not see it. The two are answered alike on purpose.",
    still_true: "Nothing was changed.",
    next: "holdfast list shows the deployments you may see. Ids look like shop@prod#12; quote them, since # begins a comment in some shells.",
};

pub(super) const AMBIGUOUS_ID: Explanation = Explanation {
    what: "The beginning of an id that you gave fits more than one deployment. Commands that change something take no prefixes at all.",
    still_true: "Nothing was changed.",
    next: "Give more of the id, or the form TARGET#NUMBER.",
};

pub(super) const AGENT_NOT_FOUND: Explanation = Explanation {
    what: "No agent of this name is known to the coordinator. An agent is known by the name in its certificate, once it has connected.",
    still_true: "Nothing was changed, and what other agents do goes on.",
    next: "holdfast agents lists them all. If yours is missing, look at its service's log on the host.",
};

pub(super) const REQUEST_ID_REUSED: Explanation = Explanation {
    what: "This request id was used before, for a request with another content. A request id stands for one request for ever, so that repeating it is safe.",
    still_true: "The first request stands as it was recorded. This one recorded nothing.",
    next: "To submit something new, use a new request id or none. To repeat the first request, repeat it unchanged.",
};

pub(super) const REVISION_MISMATCH: Explanation = Explanation {
    what: "The revision on record is another one than the file's expected_revision. The record was compared; nothing was asked of the resource.",
    still_true: "Nothing of the deployment was begun, and the record stays as it is.",
    next: "holdfast target show TARGET has the record, holdfast target inspect TARGET reads what is there. If the file is wrong, correct it. If the resource was changed by hand, undo that, or say what is there: holdfast target attest TARGET --resource R --observed REV --how TEXT --confirm TARGET.",
};

pub(super) const ORDER_PASSED: Explanation = Explanation {
    what: "The deployment's order key is lower than the one of a deployment that has held this target before: it would put an older state over a newer one. The same key again is taken.",
    still_true: "Nothing of it was begun, and the target stays as the newer deployment left it.",
    next: "Submit the newest state. To put an older one in place on purpose, submit a file without `order`, or with a higher key.",
};

pub(super) const NO_ELIGIBLE_AGENT: Explanation = Explanation {
    what: "No agent can take this deployment now. An agent must be connected, have all labels of the target, and serve its resources. A target whose resources lie on one host belongs to that host's agent alone.",
    still_true: "Nothing was begun on the target. A deployment that is queued for this reason starts by itself once an agent can take it.",
    next: "holdfast show D gives each agent's own reason. holdfast agents shows who is connected.",
};

pub(super) const TARGET_UNCERTAIN: Explanation = Explanation {
    what: "An earlier deployment of this target is uncertain: it was permitted to change the target, contact was lost, and nobody knows whether the change was made or still runs.",
    still_true: "The target stays reserved for it. Nothing else starts there, however long it takes, because a second change could meet the first.",
    next: "Read holdfast reconcile show D: it tells what the adapter can do to find out, and which decisions that opens. Waiting deployments follow by themselves afterwards.",
};

pub(super) const TARGET_WAITS_FOR_DECISION: Explanation = Explanation {
    what: "An earlier deployment of this target is held: its execution is known to have ended, but what it left is partial or unknown.",
    still_true: "The target stays reserved for it. Nothing runs there now, and nothing else starts until somebody decides.",
    next: "holdfast reconcile show D gives the checklist, with each decision allowed or why not. Then holdfast reconcile decide D.",
};

pub(super) const TARGET_BUSY: Explanation = Explanation {
    what: "Another deployment holds this target and is at work or between two attempts. You asked not to queue behind it.",
    still_true: "Nothing of yours was recorded, and the other deployment goes on.",
    next: "Submit without --no-queue to wait in line, or watch the other one with holdfast watch D.",
};

pub(super) const REVISION_UNKNOWN: Explanation = Explanation {
    what: "Nobody knows which revision a resource of this target has: an earlier deployment ended without an observation of it, or it was given up.",
    still_true: "No step that depends on the revision is begun. What is recorded as unknown stays so until a person attests it, or it is read while a deployment waits for it.",
    next: "While a deployment waits, holdfast target inspect TARGET reads it where the adapter can. Else look yourself: holdfast target attest TARGET --resource R --observed REV --how TEXT --confirm TARGET.",
};

pub(super) const TARGET_ON_HOLD: Explanation = Explanation {
    what: "An operator has put this target on hold, and you asked not to wait. A hold is a person's word that nothing new may begin; it is not the state `held` of a deployment.",
    still_true: "What was under way goes on to its end, and what waits keeps its place. Nothing of yours was recorded.",
    next: "holdfast target show TARGET tells who, why and until when. holdfast target unhold TARGET ends the hold; or submit without --no-queue to wait.",
};

pub(super) const NOT_ON_HOLD: Explanation = Explanation {
    what: "There is no hold on this target to take away: nobody placed one, or it ended by itself when its time had passed.",
    still_true: "Nothing was changed. If nothing starts there, something else is the reason.",
    next: "holdfast target show TARGET tells who holds the target and what its queue waits for.",
};

pub(super) const TARGET_IN_USE: Explanation = Explanation {
    what: "The declaration of a target can't change while a deployment holds it or waits for it: those were resolved against the old declaration.",
    still_true: "The old declaration is in force, and the deployments go on under it.",
    next: "Wait until they have ended, or cancel what still waits. Then apply the file again.",
};

pub(super) const RESOURCE_TAKEN: Explanation = Explanation {
    what: "A resource in this declaration already belongs to another target. One resource has one target, or two deployments could change it at once.",
    still_true: "Neither target's declaration was changed.",
    next: "Put both resources under one target if they change together, or correct the name or folder.",
};

pub(super) const FENCE_EXHAUSTED: Explanation = Explanation {
    what: "The fence counter of this target has reached its end, or the store's epoch has. No higher fence can be handed out.",
    still_true: "Nothing more is leased on this target. Everything recorded stays valid and readable.",
    next: "This takes a trillion leases, so suspect a fault first: keep a copy of the store and report it. A new store epoch begins a new counter.",
};

pub(super) const ALREADY_ENDED: Explanation = Explanation {
    what: "The deployment had already ended when your request came. An end is never rewritten.",
    still_true: "Your request is kept in its history. The outcome is the one that was recorded before.",
    next: "holdfast show D tells how it ended. To change the target again, submit a new deployment.",
};

pub(super) const QUEUE_FULL: Explanation = Explanation {
    what: "As many deployments wait for this target as may wait. The bound keeps a pipeline gone wild from filling the store.",
    still_true: "Nothing of yours was recorded, and those that wait keep their places.",
    next: "holdfast list shows who waits. Cancel what nobody needs any more, or find out what holds the target.",
};

pub(super) const NOTHING_TO_GO_BACK_TO: Explanation = Explanation {
    what: "No deployment whose changes stand on this target had found that revision when it took it. A rollback goes back over deployments that are on record, to what they had found, or to what the steps bring that their files have of their own for the way back.",
    still_true: "Nothing was recorded and nothing was started.",
    next: "holdfast rollback TARGET lists the places that it can go back to. Any other revision is deployed like a new one: holdfast deploy FILE.",
};

pub(super) const CANNOT_GO_BACK: Explanation = Explanation {
    what: "One of the deployments to be undone says, in its own file, that going back over it is not possible or not compatible now: it declares no way back, its window has passed, the data is outside the range that the release before can live with, or the old revision is not retained any more.",
    still_true: "Nothing was recorded and nothing was started: what runs is left as it is.",
    next: "holdfast rollback TARGET tells the reason for each place. A window or a range of data may be attested away by whoever knows better (--attest TEXT); for everything else deploy a release that repairs it.",
};

pub(super) const PLACE_MOVED: Explanation = Explanation {
    what: "Between the list that you saw and your word, something was deployed or rolled back on the target: to go back to that revision would undo other deployments than the ones that you agreed to.",
    still_true: "Nothing was recorded and nothing was started.",
    next: "holdfast rollback TARGET shows where it can go back to now. If your aim is reached already, there is nothing left to do.",
};

pub(super) const ARCHIVE_MISSING: Explanation = Explanation {
    what: "The file names an archive to upload, and the coordinator has none of that digest. It was never uploaded, or nothing has used it for so long that it was removed.",
    still_true: "Nothing was recorded and nothing was started: an archive is there before a deployment of it is.",
    next: "holdfast deploy uploads it before it submits: run it where the file upload:PATH is, relative to the deployment's file.",
};

pub(super) const ARCHIVE_DIFFERS: Explanation = Explanation {
    what: "The bytes of the archive have another SHA-256 than the file asks for. The digest alone says which archive is meant.",
    still_true: "Nothing was recorded, nothing was started, and what was uploaded of it is gone again.",
    next: "If the archive is the right one, put the digest that the error names into the file. If not, build or fetch the right one.",
};

pub(super) const ARCHIVE_TOO_LARGE: Explanation = Explanation {
    what: "The archive is larger than the coordinator takes, or all archives together have reached their bound and none of them may go: those of deployments that have not ended, and of the last ones of each target, stay.",
    still_true: "Nothing was recorded and nothing was started.",
    next: "Make it smaller, or raise archives.max_bytes or archives.keep_bytes_total in the coordinator's configuration. An archive can also lie on the host or behind an https URL.",
};

//! Codes 4001 to 6999: who may, talking, and our own faults.

use crate::explain::Explanation;

pub(super) const NOT_SIGNED_IN: Explanation = Explanation {
    what: "The request carried no token, or one that the coordinator does not know.",
    still_true: "Nothing was changed, and nothing about the target was told.",
    next: "Set the token in the CLI's configuration or in HOLDFAST_TOKEN. Check that it belongs to this coordinator.",
};

pub(super) const TOKEN_EXPIRED: Explanation = Explanation {
    what: "The token is known, and its time has passed.",
    still_true: "Nothing was changed. Deployments that were submitted with it go on.",
    next: "Ask an administrator for a new token.",
};

pub(super) const NOT_ALLOWED: Explanation = Explanation {
    what: "You are signed in, and none of your grants includes this action on this target. A grant is a role on the targets that fit a pattern.",
    still_true: "Nothing was changed. The refusal is recorded.",
    next: "holdfast whoami shows your grants. Somebody whose grants include the action must do it, or an admin makes you a token with more.",
};

pub(super) const NOT_AN_AGENT: Explanation = Explanation {
    what: "This service is for agents, and the connection showed no agent's certificate. A token is no substitute.",
    still_true: "Nothing was changed.",
    next: "Check the certificate and key in the agent's configuration, and that its authority is the one the coordinator trusts.",
};

pub(super) const TOKEN_EXISTS: Explanation = Explanation {
    what: "A token stands for one operator by name, and a valid one of this name is there already. It is not replaced, because that would lock its holder out without a word.",
    still_true: "The token that is there goes on as it is, and no new one was made.",
    next: "Take another name. Or revoke the old one first with holdfast token revoke NAME, and make it anew.",
};

pub(super) const TOKEN_NOT_FOUND: Explanation = Explanation {
    what: "No token has this name, or it has grants that reach further than yours, so it is not yours to manage. The two are answered alike on purpose.",
    still_true: "Nothing was changed.",
    next: "holdfast token list shows the tokens that you may manage. On the coordinator's host, holdfast-coordinator token list shows all of them.",
};

pub(super) const GRANT_TOO_WIDE: Explanation = Explanation {
    what: "The token would have been given a permission, or targets, that you don't hold yourself. Nobody can give more than they have.",
    still_true: "No token was made.",
    next: "holdfast whoami shows what you hold: narrow the role or the pattern. Or ask somebody with more, or make it on the coordinator's host with holdfast-coordinator token create.",
};

pub(super) const HOST_POLICY: Explanation = Explanation {
    what: "A host refused what it was sent: its own configuration does not allow the target, the adapter, the program, the resource, its folder, its place or the user. The rule is named. A coordinator can't change that file.",
    still_true: "Nothing of it ran there. The refusal is in the host's log and file of refusals, and in the deployment's events. A deployment waits for an agent that may take it.",
    next: "On the host, holdfast-agent refusals shows what was refused and by which rule, and holdfast-agent check-config says what is allowed. Change the target's or deployment's file, or have the host's administrator allow it and start the agent again.",
};

pub(super) const NO_ANSWER: Explanation = Explanation {
    what: "The coordinator did not answer. The request may have been taken or not: no answer is no answer.",
    still_true: "Whatever ran goes on. Nothing stops because the command lost its connection.",
    next: "Repeat the command with the request id that it printed: the same request id is the same deployment, so nothing happens twice.",
};

pub(super) const INVALID_MESSAGE: Explanation = Explanation {
    what: "A message broke the protocol: a field is missing, out of range, or has a value that this version does not know. The field is named. A wrong value on the command line gets this code too, like a pattern where the name of one target is asked for.",
    still_true: "The message changed nothing. It is never completed by a guess.",
    next: "If you typed that value, correct it: a pattern like shop@* is taken by holdfast deploy --target and by the roles of tokens only. Else check that both programs are of versions that fit together; with fitting versions this is a fault in one of them: please report it.",
};

pub(super) const PROTOCOL_VERSION: Explanation = Explanation {
    what: "The two programs have no protocol version in common.",
    still_true: "Nothing was changed. Work that an agent began goes on under its lease and is reported once the versions fit.",
    next: "Upgrade the older one. holdfast version shows what each speaks.",
};

pub(super) const SESSION_REPLACED: Explanation = Explanation {
    what: "Another connection of the same agent took over, and this one was closed. One agent has one session.",
    still_true: "Leases belong to attempts, not to connections: they go on in the newer session.",
    next: "Once is normal after a network fault: it comes back by itself. If it repeats, two processes or two copies of the machine use one identity: stop one of them.",
};

pub(super) const INTERNAL: Explanation = Explanation {
    what: "Holdfast met something in itself that must not be. It stopped this request rather than go on wrongly.",
    still_true: "What was recorded before stays recorded. The request may have been recorded or not.",
    next: "Look with holdfast show before you repeat anything, and keep the coordinator's log for a report.",
};

pub(super) const STORE_FAILED: Explanation = Explanation {
    what: "The coordinator's store, or an agent's journal, refused or failed to write: a fault of the disk, or a damaged file.",
    still_true: "Nothing is told as done that is not on disk. Agents keep their reports until they can be recorded.",
    next: "Look at the log and the disk of the one that says so. After a failed write the coordinator stops on purpose; mend the cause, then start it again.",
};

pub(super) const CONFIG: Explanation = Explanation {
    what: "A configuration file or a HOLDFAST_ variable can't be used. The key is named.",
    still_true: "The program did not start, so it changed nothing.",
    next: "Correct it, then test with check-config before you restart the service.",
};

pub(super) const NOT_SERVING: Explanation = Explanation {
    what: "The coordinator is just starting or stopping and takes no requests.",
    still_true: "What is recorded stays recorded, and agents go on under their leases.",
    next: "Try again in a few seconds. If it lasts, look at the coordinator's log: it may be waiting for its store.",
};

pub(super) const DISK_FULL: Explanation = Explanation {
    what: "The disk that the coordinator's store is on has too little room, in bytes or in files, to promise new work.",
    still_true: "Nothing was recorded. What runs goes on, and its results are stored from a reserve that was put aside for them.",
    next: "Free room on the coordinator's disk: /readyz says how much is missing. It takes new work again by itself, without a restart.",
};

pub(super) const OUT_OF_DESCRIPTORS: Explanation = Explanation {
    what: "The process has nearly as many files and connections open as the system allows it, and takes no new work.",
    still_true: "Nothing was recorded. Sessions and steps that are under way go on.",
    next: "Close idle connections or raise the limit (LimitNOFILE= in a systemd unit, ulimit -n). It takes new work again by itself.",
};

pub(super) const STORE_UNSOUND: Explanation = Explanation {
    what: "A row, a hash or an order in the coordinator's store, or in an exported audit file, is not what the recorded events lead to: somebody or something changed it, a disk is failing, or Holdfast has a fault.",
    still_true: "Nothing was changed by the look. A running coordinator that finds a difference grants no lease and no permit; what runs goes on, and its results are stored.",
    next: "Run holdfast-coordinator verify on the coordinator's host: it names each difference. Keep a copy of the data folder, compare with an earlier export (holdfast audit verify NEW --after OLD), then restore a sound copy.",
};

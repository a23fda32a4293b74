//! Codes 4010 to 4029: how agents come to be, and who they are.

use crate::explain::Explanation;

pub(super) const CLOSED: Explanation = Explanation {
    what: "This coordinator has no key to sign certificates with: its agents get theirs from another authority.",
    still_true: "Nothing was changed, and the join token is still good.",
    next: "Get a certificate with the URI holdfast://agent/NAME from the authority in tls.client_ca, and name its files in the agent's configuration. Or make an authority here: holdfast-coordinator ca create.",
};

pub(super) const TOKEN_UNKNOWN: Explanation = Explanation {
    what: "The coordinator knows no join token like this one. It may be of another coordinator, mistyped, or taken back.",
    still_true: "No agent was enrolled. The refusal is recorded.",
    next: "Anybody with the permission to manage agents (operator, admin) makes a new one: holdfast agent token create.",
};

pub(super) const TOKEN_EXPIRED: Explanation = Explanation {
    what: "The join token is known, and its time has passed. It counts by the coordinator's clock.",
    still_true: "No agent was enrolled.",
    next: "Anybody with the permission to manage agents (operator, admin) makes a new one: holdfast agent token create --ttl 1h.",
};

pub(super) const TOKEN_USED: Explanation = Explanation {
    what: "A join token is good once, and a host with another key has joined with this one.",
    still_true: "The host that joined first is enrolled, and nothing else was changed. The refusal is recorded.",
    next: "See in holdfast agent token list who joined with it. If that was not your host, remove it with holdfast agent remove NAME --confirm NAME --reason TEXT: somebody else had the token. Then make a new one.",
};

pub(super) const NAME_TAKEN: Explanation = Explanation {
    what: "An agent of this name is enrolled, or has spoken. A join token never takes a name from a host that has it.",
    still_true: "The agent that has the name goes on as it is. A join token that was there is still good.",
    next: "If the old host is gone for good, or is to join anew: holdfast agent remove NAME --confirm NAME --reason TEXT, then join again. A join token that was made without a name also lets in another one, by --name.",
};

pub(super) const GUESSING: Explanation = Explanation {
    what: "Many wrong join tokens came from this address, so none is looked at for a while.",
    still_true: "No agent was enrolled. Agents that are enrolled are not affected.",
    next: "Wait ten minutes, and join with the token as it was shown. If it was not you, somebody tries to guess: look at the coordinator's log.",
};

pub(super) const BAD_REQUEST: Explanation = Explanation {
    what: "The request for a certificate could not be read, its signature is wrong, or its key is of a kind that is not taken.",
    still_true: "No certificate was signed.",
    next: "Use holdfast-agent join, which makes a request that fits. Keys are ECDSA P-256, P-384 or Ed25519.",
};

pub(super) const REVOKED: Explanation = Explanation {
    what: "The agent's certificate was revoked, or the agent was removed by an operator.",
    still_true: "What runs on its host was not touched and goes on. Its leases lapse, and what it would report is refused and recorded.",
    next: "If the host is to come back: stop the agent, holdfast agent remove NAME --reason TEXT --confirm NAME (unless it was removed), make a join token with holdfast agent token create, and join again with holdfast-agent join.",
};

pub(super) const COPIED: Explanation = Explanation {
    what: "This agent's certificate is known, and its journal is not where the coordinator last saw it: it is older, another one, on another machine, or in another process while the agent was in contact. Two copies of one agent are, or were, alive.",
    still_true: "This session was refused. The identity gets no new work, and its journal's word proves nothing in recovery. What runs under a live lease goes on.",
    next: "Find out which of the two is the copy before anything is deleted: who is refused may be the agent itself. Stop the copy. Then holdfast agent unlock NAME --reason TEXT --confirm NAME. If its journal was lost for good, add --admit-new-journal. A refused agent asks again within half a minute.",
};

pub(super) const PIN: Explanation = Explanation {
    what: "Whoever answers at this address shows no authority with the pinned fingerprint, or its certificate is not signed by it. It may be another coordinator, or somebody in between.",
    still_true: "Nothing was sent, the join token neither.",
    next: "Compare the pin with what holdfast-coordinator ca show prints on the coordinator's host. The coordinator's certificate file must hold its authority too, behind its own.",
};

pub(super) const NOT_LOCKED: Explanation = Explanation {
    what: "The agent's identity is not locked: no copy of it was seen since it was last unlocked.",
    still_true: "Nothing was changed.",
    next: "holdfast agents shows which are locked, and why. To let a new journal in after a disk was lost, add --admit-new-journal.",
};

pub(super) const RENEWED_TOO_OFTEN: Explanation = Explanation {
    what: "This agent asked for certificates again and again. It has had ten of them, and now gets the next one only after a while: a tenth of a certificate's life, a minute at most.",
    still_true: "No certificate was signed. Those that it has go on, and so does what runs on its host.",
    next: "An agent asks again by itself. If it goes on, look in its log for why it can't keep what it is given: its identity folder must be writable.",
};

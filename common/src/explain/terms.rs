//! Words of files, adapters and reports that are neither states nor reasons.

use crate::explain::Explanation;

const fn term(what: &'static str, still_true: &'static str, next: &'static str) -> Explanation {
    Explanation { what, still_true, next }
}

const DECLARED: &str = "It stands in a file, and the plan that an agent runs is fixed by it.";
const ABILITY: &str = "Nothing ever claims more than an adapter can prove.";
const EXITS: &str = "An exit is what became of a process. What became of the target is said beside it.";

pub(super) const TERMS: &[(&str, Explanation)] = &[
    (
        "attempt",
        term(
            "One try of a deployment by one agent, under a lease and a fence of its own. A deployment has as many as it takes, one after the other.",
            "What one attempt reports never completes another.",
            "holdfast show D lists them.",
        ),
    ),
    (
        "lease",
        term(
            "How long the agent of an attempt may act without being heard. It is renewed with every heartbeat, and its length stands under [lease] ttl in the deployment's file.",
            "When it has run out, the agent begins nothing more. It says nothing about what was begun before.",
            "holdfast show D tells how long ago the agent was heard.",
        ),
    ),
    (
        "permit",
        term(
            "The coordinator's word, on disk before it is sent, that one mutating step of one attempt may begin.",
            "From then on the step may have begun. It is open until the end of the step is known.",
            "An open permit without contact is what makes a deployment uncertain: holdfast explain uncertain.",
        ),
    ),
    (
        "evidence",
        term(
            "What is kept beside the states: late reports, readings of a resource, fence-offs, what people attest. It is numbered, and never changed.",
            "It completes nothing and revives no lease. Decisions are based on it.",
            "holdfast evidence D lists it.",
        ),
    ),
    (
        "silent",
        term(
            "Of an agent: it has no connection, or nothing was heard on it for a while. How long stands beside it.",
            "It says nothing about what the agent does: it may be at work.",
            "Look at the host and its network. What follows if it stays silent is told by holdfast show D.",
        ),
    ),
    (
        "on_hold",
        term(
            "A person lets nothing new begin on the target, and said why: holdfast target hold. What has begun goes on.",
            "Deployments that come wait in line. Nothing ends the hold but its time, where it has one, or a person.",
            "holdfast target show T tells who holds it and why. Ask them before holdfast target unhold T.",
        ),
    ),
    (
        "free",
        term(
            "No deployment holds the target: the next one may begin as soon as it is the first in line and an agent takes it.",
            "Free says nothing about what stands on the target.",
            "holdfast target show T tells its revision and who waits.",
        ),
    ),
    (
        "connected",
        term(
            "The agent has a session with the coordinator now and was heard a moment ago.",
            "To be connected is not to be fit for work: it may be drained, locked or short of room.",
            "holdfast agent show A tells both.",
        ),
    ),
    (
        "locked",
        term(
            "The coordinator gives the agent no work, because its journal is not the one that it had: it may be a copy, or an older state of itself.",
            "What it reports is kept as evidence. Its targets stay as they are.",
            "Find out what happened to the host, then holdfast agent unlock A --reason TEXT.",
        ),
    ),
    (
        "drained",
        term(
            "A person lets the agent take no new work: holdfast agent drain. What it has begun, it ends.",
            "It stays connected, and its reports count.",
            "holdfast agent resume A lets it take work again.",
        ),
    ),
    (
        "fifo",
        term(
            "A target's queue = \"fifo\": deployments take their turn in the order in which they were recorded.",
            "Only one deployment holds a target at a time.",
            "holdfast target show T lists who waits.",
        ),
    ),
    (
        "latest",
        term(
            "A target's queue = \"latest\": when a deployment is recorded, those that wait end as superseded.",
            "The one that holds the target is never touched by it.",
            "holdfast list T shows which were superseded.",
        ),
    ),
    (
        "order",
        term(
            "A key in a deployment's file by which deployments of a target follow each other: a lower key is refused once a higher one has held the target.",
            "A file without it claims no order.",
            "holdfast explain HF-2012 says what to do about a refusal.",
        ),
    ),
    (
        "attest",
        term(
            "A person's word on what they saw at a target, where nothing can read it: holdfast reconcile attest, or holdfast target attest where no deployment holds it.",
            "It is recorded for ever as a person's word, and never as a reading.",
            "Look first; then say what you saw with --observed and --how.",
        ),
    ),
    (
        "late_report",
        term(
            "What an agent said after its fence, its lease or its attempt was over. It is filed as evidence and completes nothing.",
            "The state that was decided stands, whether the report agrees or not.",
            "holdfast evidence D lists it with why it was filed.",
        ),
    ),
    (
        "none_told",
        term(
            "Of a resource's revision: a deployment changed the resource, and its step names no revision. Nothing is unknown, there is only no name for what is there.",
            "Later deployments go on as ever.",
            "Name it where there is a name: with = { revision = ... } in the step.",
        ),
    ),
    (
        "never_read",
        term(
            "Of a resource's revision: no deployment has changed the resource yet, and nobody has read it.",
            "That is no obstacle: the first deployment begins on it.",
            "Deploy. After the first deployment that changes it, holdfast target inspect TARGET looks at it where the adapter can.",
        ),
    ),
    (
        "mutates",
        term(
            "The step changes something that is visible outside. It begins only under a permit.",
            DECLARED,
            "Write effect = \"none\" for a step that only prepares or looks.",
        ),
    ),
    (
        "none",
        term(
            "Of a step: it changes nothing outside, takes no permit, and runs again in every attempt. Of an adapter: it can't do that at all.",
            DECLARED,
            "Nothing.",
        ),
    ),
    ("pure", term("The step has no effect outside and can run any number of times.", DECLARED, "Nothing.")),
    (
        "idempotent",
        term(
            "The step is safe to repeat under the same operation id: doing it twice leaves what doing it once does.",
            DECLARED,
            "Say so only where it is true: retry = \"idempotent\".",
        ),
    ),
    (
        "unsafe",
        term(
            "The step must not be repeated without somebody's decision. It is what a mutating step is unless it says otherwise.",
            DECLARED,
            "Say retry = \"idempotent\" where repeating is safe.",
        ),
    ),
    (
        "transient",
        term(
            "It failed for a reason that passes, like an exit status that the deployment file lists. It is tried again where the step may be repeated, within the limit of tries.",
            "The step ended and was seen to end.",
            "Wait for the next attempt. Its event, retry_scheduled, tells the delay and the tries that are left.",
        ),
    ),
    (
        "permanent",
        term(
            "It failed for a reason that does not pass by itself. It is never tried again.",
            "The step ended and was seen to end.",
            "Correct the cause and deploy again.",
        ),
    ),
    (
        "infrastructure",
        term(
            "It failed for want of something around it: an agent, a disk, memory, a process that could not be started.",
            "The step ended, or was never begun.",
            "See to the host, then deploy again where it is not tried again by itself.",
        ),
    ),
    (
        "host",
        term(
            "The resource belongs to one host: only that host's agent runs steps on it, inspects it and fences it.",
            DECLARED,
            "Nothing.",
        ),
    ),
    ("shared", term("The resource is reached by any agent that the target selects.", DECLARED, "Nothing.")),
    (
        "revision",
        term(
            "The adapter knows revisions: which one is there can be read, or a change on top of another one is refused.",
            ABILITY,
            "holdfast target inspect TARGET.",
        ),
    ),
    (
        "operation",
        term("The adapter can tell what became of one operation by its id.", ABILITY, "holdfast reconcile inspect D."),
    ),
    (
        "fence",
        term(
            "A number that grows with every lease and fence-off of a target. A resource that enforces it refuses whatever comes under an older one.",
            ABILITY,
            "holdfast show D tells the fence of each attempt.",
        ),
    ),
    (
        "command",
        term(
            "The adapter that runs an argv on the host. It can't refuse an old fence, and reads back only what its inspect command tells.",
            ABILITY,
            "Look yourself, and attest what you saw, where nothing can be read.",
        ),
    ),
    (
        "release",
        term(
            "The adapter that switches a release folder by one rename. It refuses old fences and tells what became of each operation.",
            ABILITY,
            "Fence off, inspect, decide.",
        ),
    ),
    (
        "postgres",
        term(
            "The adapter that migrates a PostgreSQL schema. The database refuses old fences and other revisions in the transaction of each migration, and its ledger tells what became of each operation.",
            ABILITY,
            "Fence off, inspect, decide.",
        ),
    ),
    (
        "git",
        term(
            "The adapter that commits to branches of a Git repository. One atomic push moves the branches and a ref that holds the fence, so old fences are refused and each operation can be read.",
            ABILITY,
            "Fence off, inspect, decide.",
        ),
    ),
    (
        "http",
        term(
            "The adapter that asks a deployment API for a change. What the API refuses and tells its target declares, and nothing beyond that is claimed.",
            ABILITY,
            "Where the API tells an operation apart, inspect; else look yourself, and attest what you saw.",
        ),
    ),
    (
        "external",
        term(
            "The adapter that hands each call to a program of the host. What it can prove its target declares, and the program must confirm.",
            ABILITY,
            "An agent's configuration must name the program under [external].",
        ),
    ),
    (
        "check",
        term(
            "The adapter that looks whether what was changed is healthy, over HTTP or TCP. It changes nothing.",
            ABILITY,
            "An agent's policy must list it among its adapters.",
        ),
    ),
    (
        "expand",
        term(
            "The step adds to the data what the release before does not need and can live with.",
            DECLARED,
            "Say data_recovery = \"expand-contract\" in [rollback].",
        ),
    ),
    (
        "contract",
        term(
            "The step takes from the data what no release in the declared range needs any more.",
            DECLARED,
            "Deploy it once nobody goes back beyond the release that expanded.",
        ),
    ),
    (
        "destructive",
        term(
            "The step changes or removes data, so that what was there is lost unless it was kept elsewhere. Starting the previous image does not bring it back.",
            DECLARED,
            "Test a recovery and declare it, or the file is refused: holdfast explain HF-1602.",
        ),
    ),
    (
        "none_needed",
        term(
            "Going back needs nothing done to the data, because no step changes any. It is what a rollback says unless it says otherwise.",
            DECLARED,
            "Nothing.",
        ),
    ),
    (
        "expand_contract",
        term(
            "Going back needs nothing done to the data: what was added stays, and the release before lives with it.",
            DECLARED,
            "It holds only while nothing is destroyed.",
        ),
    ),
    (
        "restore",
        term(
            "Going back restores the data in a way that was tested. The file says what was tested, and when.",
            DECLARED,
            "Test it again when the data has grown.",
        ),
    ),
    (
        "previous_revision",
        term(
            "Going back puts the revision from before in place on each resource, by its adapter's own reverse.",
            ABILITY,
            "Declare [[rollback.step]] for what a command changes.",
        ),
    ),
    ("exited", term("The process ended by itself with an exit status.", EXITS, "holdfast logs D shows its output.")),
    (
        "signaled",
        term("A signal ended the process. That is never a success.", EXITS, "holdfast logs D shows its output."),
    ),
    (
        "out_of_memory",
        term("The kernel ended the process for want of memory.", EXITS, "Give the host or the step more memory."),
    ),
    (
        "not_spawned",
        term(
            "The process could not be started at all, so it changed nothing.",
            EXITS,
            "The detail beside it says why: a missing program, a missing permission.",
        ),
    ),
];

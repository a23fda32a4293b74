//! What the evidence proves: whether the runner is out, and what became of the step in question.
//!
//! ```text
//! evidence about the last attempt                        the runner
//! its resource confirmed a raise above the attempt       fenced off, for good
//! its own journal: a tombstone                           stopped, for good
//! its own journal: ended, in a late report or at hello   stopped, where the effect can't outlive the process
//! a person: stopped                                      as attested, but not against "still running"
//! a person: host gone                                    as attested, until the journal says that it still runs
//! its own report of the end, where the target trusts it  stopped, as trusted
//! its own journal: still running                         still running
//! else                                                   unknown
//!
//! evidence about the last attempt                        the step in question (the newest counts)
//! a reading asked for after the runner was out,          as read
//!   of the resource that was read before
//! a person's reading                                     as attested, until its own journal says otherwise
//! its own journal: a tombstone                           not applied
//! its own report of the end, where the target trusts it  as reported
//! anything else, age included                            nothing
//! ```
//!
//! While a journal is locked, because a copy of its agent was seen, none of its words proves anything, earlier ones neither,
//! and no raise or reading that went through its agent. After a person unlocked it what comes then counts. A reading from before
//! the lock is asked for anew: the runner may have been taken for out on such a word.

use holdfast_common::adapter::{Capability, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, EvidenceId, IncarnationId, OperationId, ResourceName, Revision, StepName};
use holdfast_common::outcome::{OperationState, Reading, StepEnd};
use holdfast_common::recovery::{AttestedRunner, AttestedTarget, Runner};
use holdfast_common::report::{FiledReason, Report, ReportBody};
use holdfast_common::spec::StepSpec;
use holdfast_common::text::{bounded, one_line};

use crate::authority;
use crate::bugs::{self, Bug};
use crate::explain;
use crate::fate::{self, Fate};
use crate::policy;
use crate::state::{Attempt, Deployment, DeploymentState, Evidence, EvidenceBody, StepState, TargetState, Trust};

/// Longest word of a reading on itself that is told with it.
const DETAIL_BYTES: usize = 300;

/// What is known of the runner, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunnerKnown {
    pub(crate) runner: Runner,
    pub(crate) because: String,
    pub(crate) evidence: Vec<EvidenceId>,
    pub(crate) attested: bool,
    pub(crate) trusted: bool,
    for_good: bool,
}

/// What is known of the step in question, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepKnown {
    pub(crate) state: OperationState,
    pub(crate) because: String,
    pub(crate) observed: Option<Revision>,
    pub(crate) active: Option<OperationId>,
    pub(crate) evidence: Vec<EvidenceId>,
    pub(crate) attested: bool,
}

/// The step whose end nobody knows, or that may be there in part: the first one that keeps the deployment from ending.
pub(crate) fn in_question(deployment: &Deployment) -> Option<&StepSpec> {
    let last = deployment.attempts.last()?;
    if let Some(open) = last.open_permit() {
        return deployment.step(&open.name);
    }
    let unsettled = |fate| matches!(fate, Fate::Partial | Fate::Unknown | Fate::NotApplied);
    fate::mutating(deployment).find(|step| unsettled(fate::of(deployment, step)))
}

/// What can be proven of a step on its resource.
pub(crate) fn capability(state: &TargetState, step: &StepSpec) -> Option<Capability> {
    let resource = state.spec.resource(step.resource.as_ref()?)?;
    Some(step.capability(resource))
}

/// What is known of the runner of the last attempt.
pub(crate) fn runner(state: &TargetState, deployment: &Deployment) -> RunnerKnown {
    let start = |runner, because: &str| RunnerKnown {
        runner,
        because: because.to_owned(),
        evidence: Vec::new(),
        attested: false,
        trusted: false,
        for_good: false,
    };
    match deployment.state {
        DeploymentState::Held => start(Runner::Stopped, "how each permitted step ended was reported in time"),
        DeploymentState::Queued if deployment.attempts.is_empty() => start(Runner::Stopped, "nothing of it ever ran"),
        DeploymentState::Uncertain => {
            let Some(attempt) = deployment.attempts.last() else {
                return start(Runner::Unknown, "nothing was heard that proves it out");
            };
            let told = attempt.open_permit().is_some_and(|run| run.state == StepState::Ended(StepEnd::Unknown));
            let unknown = match told {
                true => start(Runner::Unknown, "its own agent was heard, and could not tell how the step ended"),
                false => start(Runner::Unknown, "nothing was heard that proves it out"),
            };
            let weigh = |known, evidence| weigh_runner(state, deployment, attempt, known, evidence);
            let since = deployment.weighed_before(attempt);
            deployment.evidence.iter().filter(|evidence| evidence.sequence > since).fold(unknown, weigh)
        }
        DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Succeeded
        | DeploymentState::Failed
        | DeploymentState::Cancelled => start(Runner::Unknown, "it is not in question"),
    }
}

fn weigh_runner(
    state: &TargetState,
    deployment: &Deployment,
    attempt: &Attempt,
    known: RunnerKnown,
    evidence: &Evidence,
) -> RunnerKnown {
    if known.for_good {
        return known;
    }
    if let Some(why) = doubted(deployment, attempt, evidence) {
        let because = if known.runner == Runner::Unknown { why } else { known.because.clone() };
        return RunnerKnown { because, ..known };
    }
    let Some(step) = in_question(deployment) else { return known };
    let outlives = capability(state, step).is_none_or(|capability| capability.outlives);
    let outlives = outlives && !bugs::on(Bug::OutlivingCountsAsOut);
    let told = |runner, because: String, attested, for_good| RunnerKnown {
        runner,
        because,
        evidence: vec![evidence.id],
        attested,
        trusted: false,
        for_good,
    };
    match &evidence.body {
        EvidenceBody::FencedOff { attempt: about, resource, fence, .. }
            if *about == Some(attempt.id)
                && step.resource.as_ref() == Some(resource)
                && authority::is_refused(attempt, *fence) =>
        {
            told(Runner::FencedOff, format!("{resource} refuses everything below fence {fence}"), false, true)
        }
        EvidenceBody::Attested { by, attempt: about, attestation } if *about == Some(attempt.id) => {
            match attestation.runner {
                // A person may attest what can't be proven, not against the runner's own word.
                AttestedRunner::Stopped if known.runner == Runner::StillRunning => known,
                AttestedRunner::Stopped => told(Runner::Stopped, format!("{by} attests that it ended"), true, false),
                AttestedRunner::HostGone => {
                    told(Runner::HostGone, format!("{by} attests that its host is gone"), true, false)
                }
            }
        }
        EvidenceBody::LateReport { report, .. } if is_own(deployment, attempt, &evidence.body) => {
            match late_end(report, &step.name) {
                Some(StepEnd::NotStarted) => {
                    told(Runner::Stopped, format!("its journal has a tombstone for step {}", step.name), false, true)
                }
                Some(StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. }) if !outlives => {
                    told(Runner::Stopped, format!("its journal says that step {} ended", step.name), false, true)
                }
                Some(StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. })
                    if policy::trusts(state, deployment, attempt) =>
                {
                    let because = format!("its own agent reports that step {} ended", step.name);
                    RunnerKnown { trusted: true, ..told(Runner::Stopped, because, false, false) }
                }
                Some(StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::Unknown) | None => {
                    known
                }
            }
        }
        EvidenceBody::JournalWord { incarnation, attempt: about, runner, .. }
            if deployment.is_of(attempt, *about) && *incarnation == attempt.incarnation =>
        {
            match runner {
                Runner::StillRunning => told(*runner, "its journal says that it still runs".to_owned(), false, false),
                Runner::Stopped if !outlives => {
                    told(*runner, "its journal says that it ended".to_owned(), false, false)
                }
                Runner::Stopped | Runner::FencedOff | Runner::HostGone | Runner::Unknown => known,
            }
        }
        EvidenceBody::FencedOff { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::LateReport { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => known,
    }
}

/// Why a word of the attempt's own journal, or a raise through its agent, counts for nothing; `None` where that is not so.
fn doubted(deployment: &Deployment, attempt: &Attempt, evidence: &Evidence) -> Option<String> {
    let what = match &evidence.body {
        body @ EvidenceBody::LateReport { .. } if is_own(deployment, attempt, body) => "what its journal reported",
        EvidenceBody::JournalWord { incarnation, attempt: about, .. }
            if deployment.is_of(attempt, *about) && *incarnation == attempt.incarnation =>
        {
            "what its journal said"
        }
        EvidenceBody::FencedOff { agent, .. } if agent == &attempt.agent => "the raise through it",
        EvidenceBody::LateReport { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => return None,
    };
    let agent = &attempt.agent;
    match deployment.trust(attempt.incarnation) {
        trust if trust.covers(evidence.sequence) => None,
        Trust::Locked { because, .. } => {
            Some(format!("{what} proves nothing: the identity of {agent} is locked, {because} was seen"))
        }
        Trust::Again { .. } | Trust::Whole => {
            Some(format!("{what} proves nothing: it is from before the identity of {agent} was unlocked"))
        }
    }
}

/// Whether a reading is from before a journal was locked, on whose word the runner may have been taken for out; or came through
/// the agent itself while what it says counted for nothing.
fn is_stale(deployment: &Deployment, attempt: &Attempt, agent: &AgentName, evidence: &Evidence) -> bool {
    let trust = deployment.trust(attempt.incarnation);
    let through_itself = agent == &attempt.agent && !trust.covers(evidence.sequence);
    through_itself || evidence.sequence <= trust.doubted_until()
}

/// A journal that said of a step that it was never started, although its resource shows the step's operation as applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Whose.
    pub agent: AgentName,
    /// Which journal.
    pub incarnation: IncarnationId,
    /// The step.
    pub step: StepName,
}

/// Whether the newest evidence of the current deployment is a reading that contradicts a journal: an operation that nobody was
/// permitted to begin but one attempt, whose journal says that it did not.
#[must_use]
pub fn contradiction(state: &TargetState) -> Option<Contradiction> {
    let deployment = state.current.as_ref()?;
    let EvidenceBody::Inspection { step, reading, resource, .. } = &deployment.evidence.last()?.body else {
        return None;
    };
    let spec = deployment.step(step)?;
    let tells = capability(state, spec).is_some_and(|capability| capability.inspect == Inspect::Operation);
    if !tells || reading.state != OperationState::Applied || !is_right_resource(state, resource, reading) {
        return None;
    }
    let permitted = |attempt: &&Attempt| attempt.step(step).is_some_and(|run| run.permitted_at.is_some());
    let mut permitted = deployment.attempts.iter().filter(permitted);
    let (Some(attempt), None) = (permitted.next(), permitted.next()) else { return None };
    says_never_started(deployment, attempt, step).then(|| Contradiction {
        agent: attempt.agent.clone(),
        incarnation: attempt.incarnation,
        step: step.clone(),
    })
}

fn says_never_started(deployment: &Deployment, attempt: &Attempt, step: &StepName) -> bool {
    let in_time = attempt.step(step).is_some_and(|run| run.state == StepState::Ended(StepEnd::NotStarted));
    in_time || told_ends(deployment, attempt, step).any(|end| end == StepEnd::NotStarted)
}

/// A late report of the attempt's own journal under its own fence, or under that of the attempt whose process it went on with.
fn is_own(deployment: &Deployment, attempt: &Attempt, body: &EvidenceBody) -> bool {
    let EvidenceBody::LateReport { claim, agent, incarnation, filed, .. } = body else { return false };
    let late = matches!(filed, FiledReason::LeaseExpired | FiledReason::SupersededFence);
    late && deployment.is_of(attempt, claim.attempt) && agent == &attempt.agent && *incarnation == attempt.incarnation
}

fn late_end(report: &Report, name: &StepName) -> Option<StepEnd> {
    match &report.body {
        ReportBody::StepEnded { step, end, .. } => (step == name).then_some(*end),
        ReportBody::StepStarted { .. }
        | ReportBody::AttemptEnded { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => None,
    }
}

/// What is known of the step in question.
pub(crate) fn step(state: &TargetState, deployment: &Deployment, step: &StepSpec) -> StepKnown {
    let told = match fate::of(deployment, step) {
        Fate::Applied(_) => OperationState::Applied,
        Fate::NotApplied | Fate::Untouched => OperationState::NotApplied,
        Fate::Partial => OperationState::Partial,
        Fate::Unknown => OperationState::Unknown,
    };
    let because = match told {
        OperationState::Unknown | OperationState::Applying => "nobody has read it since the runner was out",
        OperationState::Applied | OperationState::NotApplied | OperationState::Partial => "as it was reported in time",
    };
    let carrier = deployment.attempts.last().filter(|last| last.disturbed() == Some(&step.name));
    let because = carrier.map_or_else(|| because.to_owned(), |carrier| explain::disturbed(deployment, carrier));
    // What its own agent read there right after the end says which revision that was, and no more.
    let observed = deployment.attempts.last().and_then(|last| last.step(&step.name)?.observed.clone());
    let start = StepKnown { state: told, because, observed, active: None, evidence: Vec::new(), attested: false };
    let Some(attempt) = deployment.attempts.last() else { return start };
    let weigh = |known, evidence| weigh_step(state, deployment, attempt, step, known, evidence);
    deployment.evidence.iter().fold(start, weigh)
}

/// What a trusted report says of the step's effect.
fn trusted_state(end: StepEnd) -> Option<OperationState> {
    match end {
        StepEnd::Applied => Some(OperationState::Applied),
        StepEnd::Failed { maybe_partial: true, .. } | StepEnd::Stopped { maybe_partial: true } => {
            Some(OperationState::Partial)
        }
        StepEnd::Failed { maybe_partial: false, .. } | StepEnd::Stopped { maybe_partial: false } => {
            Some(OperationState::NotApplied)
        }
        StepEnd::NotStarted => Some(OperationState::NotApplied),
        StepEnd::Unknown => None,
    }
}

fn observed(report: &Report) -> Option<Revision> {
    match &report.body {
        ReportBody::StepEnded { observed, .. } => observed.clone(),
        ReportBody::StepStarted { .. }
        | ReportBody::AttemptEnded { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => None,
    }
}

/// Whether the step was read since the last attempt's runner was out.
pub(crate) fn was_read(deployment: &Deployment, step: &StepName) -> bool {
    let Some(last) = deployment.attempts.last() else { return false };
    deployment.evidence.iter().any(|evidence| match &evidence.body {
        EvidenceBody::Inspection { attempt, after_runner_out, agent, step: of, .. } => {
            *attempt == Some(last.id) && *after_runner_out && of == step && !is_stale(deployment, last, agent, evidence)
        }
        EvidenceBody::LateReport { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => false,
    })
}

/// Whether the attempt's own journal has told, too late, how that step ended.
pub(crate) fn told_end(deployment: &Deployment, attempt: &Attempt, step: &StepName) -> bool {
    told_ends(deployment, attempt, step).next().is_some()
}

/// How the attempt's own journal has told, too late, that the step ended.
fn told_ends<'a>(
    deployment: &'a Deployment,
    attempt: &'a Attempt,
    step: &'a StepName,
) -> impl Iterator<Item = StepEnd> + 'a {
    deployment.evidence.iter().filter_map(move |evidence| match &evidence.body {
        body @ EvidenceBody::LateReport { report, .. } => {
            late_end(report, step).filter(|_| is_own(deployment, attempt, body))
        }
        EvidenceBody::Attested { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => None,
    })
}

fn weigh_step(
    state: &TargetState,
    deployment: &Deployment,
    attempt: &Attempt,
    step: &StepSpec,
    known: StepKnown,
    evidence: &Evidence,
) -> StepKnown {
    if doubted(deployment, attempt, evidence).is_some() {
        return known;
    }
    let ids = vec![evidence.id];
    match &evidence.body {
        EvidenceBody::Inspection { attempt: about, after_runner_out, agent, resource, step: of, reading, .. }
            if *about == Some(attempt.id) && of == &step.name =>
        {
            let in_order = *after_runner_out || bugs::on(Bug::ReadingBeforeRunnerOut);
            if !in_order || is_stale(deployment, attempt, agent, evidence) {
                return known;
            }
            match standing(state, resource, reading) {
                // What was read of the right one before still says what it said.
                Some(Odd::Other) if !known.evidence.is_empty() => return known,
                Some(odd @ (Odd::Other | Odd::WentBack { .. })) => return unknown(odd.words(resource), ids),
                None => {}
            }
            let found = reading.state_of(step.revision.as_ref());
            let since = if found == reading.state {
                open_detail(reading)
            } else {
                ": it was applied, and another revision is there now".to_owned()
            };
            StepKnown {
                state: found,
                because: format!("{agent} read {resource} after the runner was out{since}"),
                observed: reading.revision.clone(),
                active: reading.active.clone(),
                evidence: ids,
                attested: false,
            }
        }
        EvidenceBody::Attested { by, attempt: about, attestation } if *about == Some(attempt.id) => StepKnown {
            state: match attestation.target {
                AttestedTarget::Applied => OperationState::Applied,
                AttestedTarget::NotApplied => OperationState::NotApplied,
                AttestedTarget::Partial => OperationState::Partial,
            },
            because: format!("{by} attests it"),
            observed: attestation.observed.clone(),
            active: None,
            evidence: ids,
            attested: true,
        },
        EvidenceBody::LateReport { report, .. }
            if is_own(deployment, attempt, &evidence.body)
                && late_end(report, &step.name) == Some(StepEnd::NotStarted) =>
        {
            StepKnown {
                state: OperationState::NotApplied,
                because: "its journal has a tombstone: it was never started and never can be".to_owned(),
                observed: None,
                active: None,
                evidence: ids,
                attested: false,
            }
        }
        EvidenceBody::LateReport { report, .. }
            if is_own(deployment, attempt, &evidence.body)
                && !known.attested
                && policy::trusts(state, deployment, attempt) =>
        {
            match late_end(report, &step.name).and_then(trusted_state) {
                Some(state) => StepKnown {
                    state,
                    because: "as its own agent reports, which this target trusts".to_owned(),
                    observed: observed(report),
                    active: None,
                    evidence: ids,
                    attested: false,
                },
                None => known,
            }
        }
        EvidenceBody::LateReport { report, .. }
            if is_own(deployment, attempt, &evidence.body)
                && known.attested
                && late_end(report, &step.name) == Some(StepEnd::Applied)
                && known.state != OperationState::Applied =>
        {
            unknown("its journal says that it was applied, a person attested otherwise before".to_owned(), ids)
        }
        EvidenceBody::Inspection { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::LateReport { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => known,
    }
}

/// What the reading itself says of an operation that is not known to be whole or absent.
fn open_detail(reading: &Reading) -> String {
    match reading.state {
        OperationState::Unknown | OperationState::Applying | OperationState::Partial if !reading.detail.is_empty() => {
            format!(": {}", bounded(&one_line(&reading.detail), DETAIL_BYTES))
        }
        OperationState::Unknown
        | OperationState::Applying
        | OperationState::Partial
        | OperationState::Applied
        | OperationState::NotApplied => String::new(),
    }
}

fn unknown(because: String, evidence: Vec<EvidenceId>) -> StepKnown {
    StepKnown { state: OperationState::Unknown, because, observed: None, active: None, evidence, attested: false }
}

/// Why a reading does not speak for the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odd {
    /// It comes from another one than was read before.
    Other,
    /// The resource was put back to an earlier state, as from a backup: it had shown or confirmed this fence.
    WentBack {
        /// The highest that it had shown.
        from: Fence,
    },
}

impl Odd {
    /// For people.
    #[must_use]
    pub fn words(self, resource: &ResourceName) -> String {
        match self {
            Odd::Other => {
                format!("what was read is another resource than the {resource} that was read before: it proves nothing")
            }
            Odd::WentBack { from } => format!(
                "{resource} went back to an earlier state, as from a backup: it had seen fence {from}, and what it shows now is below. It proves nothing"
            ),
        }
    }
}

/// Why a reading does not speak for the resource, as far as it was read before; `None` where it does.
#[must_use]
pub fn standing(state: &TargetState, resource: &ResourceName, reading: &Reading) -> Option<Odd> {
    let right = state.identities.get(resource).is_none_or(|known| known == &reading.resource_identity);
    if !right && !bugs::on(Bug::OtherResourceCounts) {
        return Some(Odd::Other);
    }
    let floor = state.floors.get(resource).copied().filter(|_| right);
    floor
        .filter(|floor| reading.highest_fence.is_some_and(|highest| highest < *floor))
        .map(|from| Odd::WentBack { from })
}

/// Whether a reading speaks for the resource.
pub(crate) fn is_right_resource(state: &TargetState, resource: &ResourceName, reading: &Reading) -> bool {
    standing(state, resource, reading).is_none()
}

/// Whether a person attested something about the last attempt.
pub(crate) fn attested(deployment: &Deployment, target: Option<AttestedTarget>) -> Option<EvidenceId> {
    let last = deployment.attempts.last().map(|attempt| attempt.id);
    let found = deployment.evidence.iter().rev().find(|evidence| match &evidence.body {
        EvidenceBody::Attested { attempt, attestation, .. } => {
            *attempt == last && target.is_none_or(|target| attestation.target == target)
        }
        EvidenceBody::LateReport { .. }
        | EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => false,
    });
    found.map(|evidence| evidence.id)
}

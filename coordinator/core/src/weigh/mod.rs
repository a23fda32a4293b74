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
//! its own journal: still running                         still running, until it tells an end of the step or of itself
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

mod reading;
mod runner;
mod step;

use holdfast_common::adapter::Capability;
use holdfast_common::id::{AgentName, EvidenceId, StepName};
use holdfast_common::outcome::StepEnd;
use holdfast_common::recovery::AttestedTarget;
use holdfast_common::report::{FiledReason, Report, ReportBody};
use holdfast_common::spec::StepSpec;

use crate::fate::{self, Fate};
use crate::state::{Attempt, Deployment, Evidence, EvidenceBody, TargetState, Trust};

pub(crate) use reading::is_right_resource;
pub use reading::{Contradiction, Odd, contradiction, standing};
pub(crate) use runner::{RunnerKnown, runner};
pub(crate) use step::{StepKnown, step};

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
    told_ends(deployment, attempt, step, deployment.evidence.iter()).next().is_some()
}

/// How the attempt's own journal has told in that evidence, too late, that the step ended.
fn told_ends<'a>(
    deployment: &'a Deployment,
    attempt: &'a Attempt,
    step: &'a StepName,
    evidence: impl Iterator<Item = &'a Evidence>,
) -> impl Iterator<Item = StepEnd> {
    evidence.filter_map(move |evidence| match &evidence.body {
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

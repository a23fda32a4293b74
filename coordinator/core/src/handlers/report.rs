//! An agent says what it observed. Each report gets exactly one answer.
//!
//! ```text
//! first that holds                                      answer
//! the attempt is not one of the speaker's               filed unknown_attempt; nothing is kept with others' work
//! the same sequence was answered, same content          duplicate
//! the same sequence was answered, other content         filed sequence_conflict
//! the claim is not current                              filed, with the reason that `authority` gives
//! a step that the deployment does not have              filed unknown_step
//! a mutating step without a permit, unless the agent
//!   refused it before asking for one                    filed not_permitted
//! it can't follow on what was told before               filed step_out_of_order
//!   (what a carried step's resource was found as: `reread`)
//! else                                                  accepted
//! ```

use holdfast_common::claim::Claim;
use holdfast_common::id::{DeploymentId, EvidenceId};
use holdfast_common::outcome::StepEnd;
use holdfast_common::report::{Disposition, FiledReason, Report, ReportBody};
use holdfast_common::spec::StepEffect;
use holdfast_common::time::Serving;

use crate::apply::{is_refusal, may_end};
use crate::authority::{self, NotCurrent};
use crate::bugs::{self, Bug};
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::handlers::{offer, reread};
use crate::input::{Answered, Jitter, Memory, Speaker};
use crate::outcome;
use crate::policy;
use crate::split;
use crate::state::{Attempt, Deployment, Evidence, EvidenceBody, EvidenceSequence, StepState};

/// A report as it came.
pub(crate) struct Heard<'a> {
    pub(crate) speaker: &'a Speaker,
    pub(crate) claim: &'a Claim,
    pub(crate) report: &'a Report,
    pub(crate) memory: &'a Memory,
    pub(crate) evidence: EvidenceId,
}

pub(crate) fn reported(draft: &mut Draft<'_>, heard: &Heard<'_>, jitter: Jitter) -> Disposition {
    let Some(last) = newest_evidence(draft, heard) else { return Disposition::Filed(FiledReason::UnknownAttempt) };
    match heard.memory.answered {
        Some(Answered::Same) if bugs::on(Bug::DuplicateAccepted) => return Disposition::Accepted,
        Some(Answered::Same) => return Disposition::Duplicate,
        Some(Answered::Different) => return file(draft, heard, last, FiledReason::SequenceConflict),
        None => {}
    }
    match believed(draft, heard) {
        Ok(()) => accept(draft, heard, jitter),
        Err(reason) => file(draft, heard, last, reason),
    }
}

/// Where the evidence of the speaker's attempt stands; `None` where the claim names none of the speaker's.
fn newest_evidence(draft: &Draft<'_>, heard: &Heard<'_>) -> Option<EvidenceSequence> {
    let Heard { speaker, claim, memory, .. } = heard;
    if authority::named(draft.state(), speaker, claim).is_some() {
        return draft.current().map(Deployment::newest_evidence);
    }
    let past = memory.attempt.as_ref()?;
    let known = authority::past(draft.state(), speaker, claim, past) != NotCurrent::Unknown;
    known.then_some(past.last_evidence)
}

fn believed(draft: &Draft<'_>, heard: &Heard<'_>) -> Result<(), FiledReason> {
    let Heard { speaker, claim, report, memory, .. } = heard;
    let attempt = match authority::current(draft.state(), draft.now, speaker, claim) {
        Ok(attempt) => attempt,
        Err(NotCurrent::Unknown) => {
            let past = memory.attempt.as_ref().map(|past| authority::past(draft.state(), speaker, claim, past));
            return Err(past.unwrap_or(NotCurrent::Unknown).filed());
        }
        Err(not) => return Err(not.filed()),
    };
    let deployment = draft.current().ok_or(FiledReason::UnknownAttempt)?;
    follows(deployment, attempt, &report.body)
}

fn follows(deployment: &Deployment, attempt: &Attempt, body: &ReportBody) -> Result<(), FiledReason> {
    let follows = match body {
        ReportBody::StepStarted { step } => {
            let step = deployment.step(step).ok_or(FiledReason::UnknownStep)?;
            let mutates = step.effect == StepEffect::Mutates;
            match attempt.step(&step.name).map(|run| run.state) {
                Some(StepState::Pending) if mutates => return Err(FiledReason::NotPermitted),
                Some(StepState::Pending) => is_next(attempt, &step.name),
                Some(StepState::Permitted) => true,
                Some(StepState::Started | StepState::Ended(_) | StepState::Carried { .. }) | None => false,
            }
        }
        ReportBody::StepEnded { step, end, .. } => {
            let step = deployment.step(step).ok_or(FiledReason::UnknownStep)?;
            let mutates = step.effect == StepEffect::Mutates;
            match attempt.step(&step.name).map(|run| run.state) {
                Some(StepState::Pending) if mutates && !is_refusal(*end) => return Err(FiledReason::NotPermitted),
                Some(state @ StepState::Pending) => may_end(state, mutates, *end) && is_next(attempt, &step.name),
                Some(state) => may_end(state, mutates, *end),
                None => false,
            }
        }
        ReportBody::AttemptEnded { end } => outcome::agrees(attempt, *end),
        ReportBody::CancelReceived { held_up } => deployment.cancel.as_ref().is_some_and(|cancel| {
            let is_news = if held_up.is_empty() { &cancel.delivered } else { &cancel.acted };
            is_news.is_none()
        }),
        ReportBody::CancelActed { .. } => deployment.cancel.as_ref().is_some_and(|cancel| cancel.acted.is_none()),
        ReportBody::Reread { step, .. } => {
            deployment.step(step).ok_or(FiledReason::UnknownStep)?;
            reread::may_be_told(attempt, step)
        }
    };
    if follows { Ok(()) } else { Err(FiledReason::StepOutOfOrder) }
}

fn is_next(attempt: &Attempt, name: &holdfast_common::id::StepName) -> bool {
    let done = |state| matches!(state, StepState::Ended(StepEnd::Applied) | StepState::Carried { .. });
    attempt.steps.iter().take_while(|step| &step.name != name).all(|step| done(step.state))
}

fn accept(draft: &mut Draft<'_>, heard: &Heard<'_>, jitter: Jitter) -> Disposition {
    let Heard { claim, report, .. } = heard;
    offer::take(draft, claim);
    let deadline = deadline(draft, &report.body);
    draft.record(Event::ReportAccepted { attempt: claim.attempt, report: (*report).clone(), deadline });
    match &report.body {
        ReportBody::StepEnded { step, end: StepEnd::Unknown, .. } if is_mutating(draft, step) => {
            split::uncertain(draft, explain::end_unknown(step));
        }
        ReportBody::AttemptEnded { end } => outcome::ended(draft, *end, jitter),
        ReportBody::StepStarted { .. }
        | ReportBody::StepEnded { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => {}
    }
    Disposition::Accepted
}

fn is_mutating(draft: &Draft<'_>, step: &holdfast_common::id::StepName) -> bool {
    draft.current().and_then(|d| d.step(step)).is_some_and(|step| step.effect == StepEffect::Mutates)
}

fn deadline(draft: &Draft<'_>, body: &ReportBody) -> Option<Serving> {
    match body {
        ReportBody::StepStarted { step } => {
            let timeout = draft.current()?.step(step)?.stop_after()?;
            Some(draft.now.serving.after(timeout))
        }
        ReportBody::StepEnded { .. }
        | ReportBody::AttemptEnded { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => None,
    }
}

fn file(draft: &mut Draft<'_>, heard: &Heard<'_>, last: EvidenceSequence, reason: FiledReason) -> Disposition {
    let Heard { speaker, claim, report, evidence, .. } = heard;
    let body = EvidenceBody::LateReport {
        claim: **claim,
        agent: speaker.agent.clone(),
        incarnation: speaker.incarnation,
        report: (*report).clone(),
        filed: reason,
    };
    keep(draft, claim.deployment, *evidence, last, body);
    if heard_the_end(draft, claim) {
        policy::now(draft, claim.deployment);
    }
    Disposition::Filed(reason)
}

/// Whether the end that a trusting target waits for has been told.
fn heard_the_end(draft: &Draft<'_>, claim: &Claim) -> bool {
    let Some(deployment) = draft.current().filter(|current| current.id == claim.deployment) else { return false };
    let last = deployment.attempts.last().filter(|last| policy::trusts(draft.state(), deployment, last));
    last.is_some() && matches!(policy::next(draft.state(), deployment, draft.now.wall), Some(policy::Move::Decide(_)))
}

/// Keeps a piece of evidence at the next place of its deployment.
pub(crate) fn keep(
    draft: &mut Draft<'_>,
    deployment: DeploymentId,
    id: EvidenceId,
    last: EvidenceSequence,
    body: EvidenceBody,
) {
    let received_at = draft.now.wall;
    let evidence = Evidence { id, sequence: EvidenceSequence(last.0 + 1), received_at, body };
    draft.record(Event::EvidenceFiled { deployment, evidence });
}

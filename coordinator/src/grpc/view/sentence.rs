//! One sentence each, that claims no more than the recorded facts. Texts from agents and people are made printable.

use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::recovery::{AttestedRunner, AttestedTarget, DecisionKind, Runner};
use holdfast_common::report::{Report, ReportBody, Reread};
use holdfast_common::text::{bounded, one_line};
use holdfast_coordinator_core::Event;
use holdfast_coordinator_core::rollback::WhyNot;
use holdfast_coordinator_core::state::{
    Attempt, AttemptState, CancelCause, Deployment, DeploymentState, Evidence, EvidenceBody, HoldEnd, InquiryKind,
    Kind, ResourceKnowledge, RevisionSource, StepRun, StepState, Waiting,
};

use super::enums::{attempt_verb, decline_words, filed_words, state_word};
use super::{hold, instant};

const MAX_QUOTE_BYTES: usize = 300;

/// Text from outside inside a sentence.
pub(super) fn quote(text: &str) -> String {
    bounded(&one_line(text), MAX_QUOTE_BYTES)
}

/// A detail at the end of a sentence, where there is one.
fn and(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {}", quote(text)) }
}

/// Why a deployment stands where it stands.
#[must_use]
pub fn because(deployment: &Deployment) -> String {
    if let Some(ended) = &deployment.ended {
        return quote(&ended.because);
    }
    match deployment.state {
        DeploymentState::Queued => {
            deployment.waiting.as_ref().map_or_else(|| "it waits".to_owned(), |why| waits(deployment, why))
        }
        DeploymentState::Active => active(deployment),
        DeploymentState::Uncertain => match open_step(deployment) {
            Some((attempt, step)) => format!(
                "step {} {} on {} under fence {}, and {}",
                step.name,
                begun_words(step),
                attempt.agent,
                attempt.fence,
                match step.state {
                    StepState::Ended(StepEnd::Unknown) => "its agent was heard and could not tell how it ended",
                    StepState::Pending
                    | StepState::Permitted
                    | StepState::Started
                    | StepState::Ended(_)
                    | StepState::Carried { .. } => "nothing that was accepted says how it ended",
                }
            ),
            None => "contact was lost while a step may have been changing the target".to_owned(),
        },
        DeploymentState::Held if deployment.attempts.last().is_some_and(|last| last.disturbed().is_some()) => {
            "no attempt is at work any more, and somebody else has changed what an earlier one had applied".to_owned()
        }
        DeploymentState::Held => {
            let why = deployment.held_because.as_deref().map(|because| format!(": {}", quote(because)));
            format!("no attempt is at work any more, and somebody must decide{}", why.unwrap_or_default())
        }
        DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => String::new(),
    }
}

fn active(deployment: &Deployment) -> String {
    let current = deployment.attempts.last().filter(|attempt| attempt.lease.is_some());
    match (current, &deployment.waiting) {
        (Some(attempt), _) => match attempt.state {
            AttemptState::Offered => format!("attempt {} is offered to {}", attempt.number, attempt.agent),
            AttemptState::Running
            | AttemptState::Succeeded
            | AttemptState::Failed
            | AttemptState::Stopped
            | AttemptState::Declined(_)
            | AttemptState::Lapsed
            | AttemptState::Interrupted
            | AttemptState::Uncertain
            | AttemptState::Resolved => {
                let does = attempt_verb(attempt.state);
                let (number, agent, late) = (attempt.number, &attempt.agent, late(deployment, attempt));
                format!("attempt {number} {does} on {agent}{late}{}", away(attempt))
            }
        },
        (None, Some(why)) => waits(deployment, why),
        (None, None) => "another attempt will follow".to_owned(),
    }
}

/// A planned absence, while it lasts: what is told of the attempt was said before it.
fn away(attempt: &Attempt) -> String {
    let away = attempt.lease.as_ref().and_then(|lease| lease.away.as_ref()).filter(|away| !away.is_back);
    let words = away.map(|away| {
        let (since, back_by) = (instant(away.since), instant(away.back_by()));
        format!("; agent away by plan since {since}, back by {back_by}")
    });
    words.unwrap_or_default()
}

/// A deadline that passed is told for as long as no end was seen.
fn late(deployment: &Deployment, attempt: &Attempt) -> String {
    let step = attempt.steps.iter().find(|step| step.over_deadline && step.ended.is_none());
    match (step, deployment.over_deadline) {
        (Some(step), _) => format!("; step {} is over its deadline, still running", step.name),
        (None, true) => "; it is over its deadline, still running".to_owned(),
        (None, false) => String::new(),
    }
}

fn begun_words(step: &StepRun) -> String {
    match (&step.started, step.permitted_at) {
        (Some(started), _) => format!("reported its start at {}", instant(started.received_at)),
        (None, Some(at)) => format!("was permitted at {}", instant(at)),
        (None, None) => "may have begun".to_owned(),
    }
}

/// The step whose permit is open, in the last attempt that has one.
#[must_use]
pub fn open_step(deployment: &Deployment) -> Option<(&Attempt, &StepRun)> {
    deployment.attempts.iter().rev().find_map(|attempt| {
        let open = attempt.open_permit()?;
        Some((attempt, open))
    })
}

/// Why a deployment waits, after who did not take its last attempt, and by which rule: that is what it waits for.
#[must_use]
pub fn waits(deployment: &Deployment, why: &Waiting) -> String {
    let declined = deployment.attempts.last().and_then(|attempt| Some((&attempt.agent, declined(attempt)?)));
    match (why, declined) {
        (Waiting::Backoff { .. } | Waiting::Assignment, Some((agent, because))) => {
            format!("{agent} declined: {because}; {}", waiting(why))
        }
        (why, _) => waiting(why),
    }
}

/// Why an agent did not take an attempt, with the rule that it named; `None` where it did.
#[must_use]
pub fn declined(attempt: &Attempt) -> Option<String> {
    match attempt.state {
        AttemptState::Declined(reason) => Some(format!("{}{}", decline_words(reason), and(&attempt.declined))),
        AttemptState::Offered
        | AttemptState::Running
        | AttemptState::Succeeded
        | AttemptState::Failed
        | AttemptState::Stopped
        | AttemptState::Lapsed
        | AttemptState::Interrupted
        | AttemptState::Uncertain
        | AttemptState::Resolved => None,
    }
}

/// Why a deployment waits, by its kind.
#[must_use]
pub fn waiting(why: &Waiting) -> String {
    match why {
        Waiting::Reservation { holder } => format!("{holder} holds the target"),
        Waiting::Turn { after } => format!("{after} is before it in the queue"),
        Waiting::Hold { by, why, until } => hold::words(by, why, *until),
        Waiting::NoEligibleAgent { agents } if agents.is_empty() => {
            "no agent has the labels that the target asks for".to_owned()
        }
        Waiting::NoEligibleAgent { agents } => {
            let each: Vec<String> = agents.iter().map(|(agent, why)| format!("{agent}: {}", quote(why))).collect();
            format!("no agent can take it ({})", each.join("; "))
        }
        Waiting::Backoff { not_before: Some(at), .. } => {
            format!("the next attempt follows, not before {}", instant(*at))
        }
        Waiting::Backoff { delay, not_before: None } => format!("the next attempt follows after a delay of {delay}"),
        Waiting::UnreadRevision { resource } => {
            format!(
                "the revision of {resource} is unknown: holdfast target inspect reads it where it can be read, and with \
                 holdfast target attest a person says what they see there"
            )
        }
        Waiting::Assignment => "it is about to be offered".to_owned(),
    }
}

/// What an event says.
#[must_use]
pub fn event(event: &Event) -> String {
    match event {
        Event::TargetDeclared { spec, by } => format!("{by} declared {}", spec.name),
        Event::Submitted { number, by, spec, kind: Kind::Deploy, .. } => {
            format!("{by} submitted {}#{number}", spec.target)
        }
        Event::Submitted { number, by, spec, kind: Kind::Rollback(of), .. } => {
            let undone = super::deployment::undone(&spec.target, &of.undoes).join(", ");
            format!("{by} submitted {}#{number}, which goes back over {undone}", spec.target)
        }
        Event::Reserved { .. } => "the target is held for this deployment".to_owned(),
        Event::Waits { why, .. } => format!("waits: {}", waiting(why)),
        Event::LeaseGranted { number, agent, fence, ttl, readmits: Some(_), .. } => {
            format!("attempt {number} of {agent} goes on with the running process under fence {fence} for {ttl}")
        }
        Event::LeaseGranted { number, agent, fence, ttl, carried, .. } => {
            let carried = match carried.as_slice() {
                [] => String::new(),
                steps => {
                    let names: Vec<&str> = steps.iter().map(|step| step.as_str()).collect();
                    format!("; carried over: {}", names.join(", "))
                }
            };
            format!("attempt {number} is leased to {agent} under fence {fence} for {ttl}{carried}")
        }
        Event::LeaseRenewed { .. } => "the agent is at it: the lease was renewed".to_owned(),
        Event::AgentAway { away, .. } => {
            format!(
                "the agent goes by plan and will be back by {}: the lease lasts {} longer",
                instant(away.back_by()),
                away.added
            )
        }
        Event::OfferAccepted { .. } => "the agent took the offer".to_owned(),
        Event::OfferDeclined { reason, detail, .. } => {
            format!("the agent declined: {}{}", decline_words(*reason), and(detail))
        }
        Event::PermitGranted { step, .. } => format!("step {step} is permitted: from now on it may have begun"),
        Event::ReportAccepted { report, .. } => format!("accepted: {}", reported(report)),
        Event::AttemptEnded { state, because, .. } => {
            format!("the attempt {}{}", attempt_verb(*state), and(because))
        }
        Event::EvidenceFiled { evidence, .. } => {
            format!("filed as evidence {}: {}", evidence.sequence.0, evidence_words(evidence))
        }
        Event::InquiryOpened { inquiry, by, reason, .. } => match inquiry.kind {
            InquiryKind::Inspect => format!("{by} asks {} to inspect {}", inquiry.agent, inquiry.resource),
            InquiryKind::FenceOff { fence } => {
                let what = format!("{by} asks {} to raise the fence of {} to {fence}", inquiry.agent, inquiry.resource);
                format!("{what}{}", and(reason))
            }
        },
        Event::CancelRecorded { cause, reason, .. } => match cause {
            CancelCause::Operator { by } => format!("{by} asks for a stop{}", and(reason)),
            CancelCause::Timeout { step } => format!("step {step} is over its deadline: a stop is asked for"),
            CancelCause::QueueTimeout => "its time in the queue is over: it is not to begin".to_owned(),
            CancelCause::DeploymentTimeout => "it is over its own deadline: a stop is asked for".to_owned(),
        },
        Event::CancelAfterEnd { by, ended_as, .. } => {
            format!("{by} asked for a stop after it had ended as {}", state_word(*ended_as))
        }
        Event::DeadlinePassed { step, .. } => format!("step {step} is over its deadline and was not seen to end"),
        Event::DeploymentDeadlinePassed { .. } => {
            "the deployment is over its own deadline and was not seen to end".to_owned()
        }
        Event::DeploymentMoved { state, because, .. } => format!("now {}{}", state_word(*state), and(because)),
        Event::PolicyScheduled { .. } => "the policy looks again at another time than it was to".to_owned(),
        Event::RetryScheduled { number, step, class, delay, used, left, .. } => {
            let of = step.as_ref().map(|step| format!(" at step {step}")).unwrap_or_default();
            let max = used + left;
            format!(
                "attempt {number} did not end well{of} ({}): try {} of {max} follows in {delay}",
                class_word(*class),
                used + 1
            )
        }
        Event::Decided { record, .. } => {
            let ground = match (record.attested, record.trusted) {
                (true, _) => ", on an attestation",
                (false, true) => ", on its agent's own report",
                (false, false) => "",
            };
            format!("{} decided {}{ground}{}", record.by, decision_word(record.kind), and(&record.reason))
        }
        Event::DeploymentEnded { state, ended, .. } => format!("{}{}", state_word(*state), and(&ended.because)),
        Event::RevisionRecorded { resource, knowledge } => match knowledge {
            ResourceKnowledge::Never => format!("nothing is known of the revision of {resource}"),
            ResourceKnowledge::Revision { revision: Some(revision), source, .. } => {
                format!("{resource} is at {revision}{}", attested(source.as_ref()))
            }
            ResourceKnowledge::Revision { revision: None, .. } => {
                format!("{resource} was changed and tells no revision")
            }
            ResourceKnowledge::Unknown { .. } => format!("the revision of {resource} is unknown"),
        },
        Event::HoldPlaced { hold } => hold::sentence(hold),
        Event::HoldEnded { how: HoldEnd::Operator { name } } => format!("{name} has taken the hold of the target away"),
        Event::HoldEnded { how: HoldEnd::Time } => "the time of the target's hold has passed".to_owned(),
    }
}

/// A person's word is told as one.
fn attested(source: Option<&RevisionSource>) -> String {
    match source {
        Some(RevisionSource::Attested { by, how }) => format!(", which {by} attests{}", and(how)),
        Some(RevisionSource::Deployment { .. } | RevisionSource::Read { .. }) | None => String::new(),
    }
}

/// What an agent reported.
#[must_use]
pub fn reported(report: &Report) -> String {
    match &report.body {
        ReportBody::StepStarted { step } => format!("step {step} has started"),
        ReportBody::StepEnded { step, end, exit, observed, detail } => {
            let exit = exit.map(|exit| format!(" ({})", exit_words(exit))).unwrap_or_default();
            let observed =
                observed.as_ref().map(|revision| format!(", revision read back: {revision}")).unwrap_or_default();
            format!("step {step} {}{exit}{observed}{}", end_words(*end), and(detail))
        }
        ReportBody::AttemptEnded { end } => match end {
            AttemptEnd::Succeeded => "the attempt is over: every step was applied".to_owned(),
            AttemptEnd::Failed => "the attempt is over: a step failed".to_owned(),
            AttemptEnd::Stopped => "the attempt is over: it was asked to stop".to_owned(),
        },
        ReportBody::CancelReceived { held_up } if held_up.is_empty() => {
            "the agent knows that a stop is asked for".to_owned()
        }
        ReportBody::CancelReceived { held_up } => format!("the agent could not act on the stop yet{}", and(held_up)),
        ReportBody::CancelActed { detail } => format!("the agent acted on the stop{}", and(detail)),
        ReportBody::Reread { step, found } => match found {
            Reread::Read { reading } => format!("what step {step} had left was read again: {}", reading_words(reading)),
            Reread::Failed { detail } => {
                format!("what step {step} had left could not be read again this time{}", and(detail))
            }
        },
    }
}

fn end_words(end: StepEnd) -> String {
    let partial = |maybe| if maybe { ", may be applied in part" } else { "" };
    match end {
        StepEnd::Applied => "was applied".to_owned(),
        StepEnd::Failed { maybe_partial, class } => {
            format!("failed ({}){}", class_word(class), partial(maybe_partial))
        }
        StepEnd::Stopped { maybe_partial } => format!("was stopped{}", partial(maybe_partial)),
        StepEnd::Unknown => "ended in a way that nobody can tell".to_owned(),
        StepEnd::NotStarted => "was never started and now never can be".to_owned(),
    }
}

fn class_word(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "transient",
        FailureClass::Permanent => "permanent",
        FailureClass::Infrastructure => "infrastructure",
    }
}

fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Exited(code) => format!("exit {code}"),
        Exit::Signaled { signal, by_us: true } => format!("signal {signal}, sent by the agent"),
        Exit::Signaled { signal, by_us: false } => format!("signal {signal}, not sent by the agent"),
        Exit::OutOfMemory => "out of memory".to_owned(),
        Exit::NotSpawned => "could not be started".to_owned(),
        Exit::Unknown => "nobody saw how it exited".to_owned(),
    }
}

/// What a piece of evidence says.
#[must_use]
pub fn evidence_words(evidence: &Evidence) -> String {
    match &evidence.body {
        EvidenceBody::LateReport { agent, claim, report, filed, .. } => {
            format!("late, from {agent} under fence {}: {} ({})", claim.fence, reported(report), filed_words(*filed))
        }
        EvidenceBody::Inspection { agent, resource, step, reading, after_runner_out, .. } => {
            let when = if *after_runner_out { "" } else { " (asked before the runner was out)" };
            format!("{agent} read {resource} for step {step}: {}{when}", reading_words(reading))
        }
        EvidenceBody::FencedOff { agent, resource, fence, .. } => {
            format!("{resource} confirmed through {agent} that it refuses everything below fence {fence}")
        }
        EvidenceBody::InquiryFailed { agent, detail, .. } => format!("{agent} could not answer{}", and(detail)),
        EvidenceBody::JournalWord { agent, runner, detail, .. } => {
            format!("the journal of {agent} says of the runner: {}{}", runner_word(*runner), and(detail))
        }
        EvidenceBody::Attested { by, attestation, .. } => {
            let runner = match attestation.runner {
                AttestedRunner::Stopped => "the runner has stopped",
                AttestedRunner::HostGone => "the host is gone for good",
            };
            let target = match attestation.target {
                AttestedTarget::Applied => "the change is applied",
                AttestedTarget::NotApplied => "nothing of it is applied",
                AttestedTarget::Partial => "a part of it is applied",
            };
            let observed = attestation.observed.as_ref().map(|seen| format!(", revision {seen}")).unwrap_or_default();
            format!("{by} attests that {runner} and {target}{observed}{}", and(&attestation.how))
        }
        EvidenceBody::IdentityLocked { agent, because, .. } => {
            format!("the identity of {agent} was locked: {because} was seen; the word of its journal proves nothing")
        }
        EvidenceBody::IdentityUnlocked { agent, by, .. } => {
            format!("{by} unlocked the identity of {agent}: the word of its journal counts from here on")
        }
        EvidenceBody::Note { by, text } => format!("{by} remarks{}", and(text)),
    }
}

/// What was read.
#[must_use]
pub fn reading_words(reading: &Reading) -> String {
    let state = operation_word(reading.state);
    let revision = reading.revision.as_ref().map(|revision| format!(", revision {revision}")).unwrap_or_default();
    let active = reading.active.as_ref().map(|active| format!(", being changed by {active}")).unwrap_or_default();
    format!("{state}{revision}{active}{}", and(&reading.detail))
}

/// The word for what an operation was read to be.
#[must_use]
pub fn operation_word(state: OperationState) -> &'static str {
    match state {
        OperationState::NotApplied => "not applied",
        OperationState::Applying => "being applied",
        OperationState::Applied => "applied",
        OperationState::Partial => "applied in part",
        OperationState::Unknown => "unknown",
    }
}

/// The word for what is known of a runner.
#[must_use]
pub fn runner_word(runner: Runner) -> &'static str {
    match runner {
        Runner::Stopped => "stopped",
        Runner::FencedOff => "fenced off",
        Runner::HostGone => "host gone",
        Runner::StillRunning => "still running",
        Runner::Unknown => "unknown",
    }
}

/// The word for a decision.
#[must_use]
pub fn decision_word(kind: DecisionKind) -> &'static str {
    match kind {
        DecisionKind::Retry => "retry",
        DecisionKind::AcceptSucceeded => "accept-succeeded",
        DecisionKind::AcceptFailed => "accept-failed",
        DecisionKind::AcceptCancelled => "accept-cancelled",
        DecisionKind::Rollback => "rollback",
        DecisionKind::Readmit => "readmit",
        DecisionKind::Abandon => "abandon",
        DecisionKind::Note => "note",
    }
}

/// Why a target can't go back, in one sentence.
#[must_use]
pub fn no_way_back(why: &WhyNot) -> String {
    match why {
        WhyNot::WindowOver { until, .. } => format!("{why}: {}", super::instant(*until)),
        WhyNot::NothingChanged { .. }
        | WhyNot::IsRollback { .. }
        | WhyNot::NoWay { .. }
        | WhyNot::NoCheck { .. }
        | WhyNot::Destroyed { .. }
        | WhyNot::NoReverse { .. }
        | WhyNot::NothingBefore { .. }
        | WhyNot::NotRetained { .. }
        | WhyNot::DataOutside { .. } => why.to_string(),
    }
}

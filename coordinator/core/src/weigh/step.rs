//! What became of the step in question: the lower table of [`super`].

use holdfast_common::id::{EvidenceId, OperationId, Revision};
use holdfast_common::outcome::{OperationState, Reading, StepEnd};
use holdfast_common::recovery::AttestedTarget;
use holdfast_common::report::{Report, ReportBody};
use holdfast_common::spec::StepSpec;
use holdfast_common::text::{bounded, one_line};

use super::reading::{Odd, standing};
use super::{doubted, is_own, is_stale, late_end};
use crate::bugs::{self, Bug};
use crate::explain;
use crate::fate::{self, Fate};
use crate::policy;
use crate::state::{Attempt, Deployment, Evidence, EvidenceBody, TargetState};

/// Longest word of a reading on itself that is told with it.
const DETAIL_BYTES: usize = 300;

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

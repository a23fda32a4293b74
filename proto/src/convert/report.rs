//! Claims, reports, dispositions and readings.

use holdfast_common::claim::Claim;
use holdfast_common::id::{OperationId, Revision};
use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::report::{Disposition, FiledReason, Report, ReportBody, ReportSequence, Reread};

use super::{Invalid, WireEnum, fence_from_wire, parsed, parsed_or_none, required, wall_from_wire, wall_to_wire};
use crate::v1;

/// A whole claim, or the field that is missing.
pub fn claim_from_wire(claim: Option<v1::Claim>) -> Result<Claim, Invalid> {
    claim_of_wire(&required("claim", claim)?)
}

/// A claim that is there, and is wanted again as it came.
pub fn claim_of_wire(claim: &v1::Claim) -> Result<Claim, Invalid> {
    Ok(Claim {
        deployment: parsed("claim.deployment", &claim.deployment)?,
        attempt: parsed("claim.attempt", &claim.attempt)?,
        fence: fence_from_wire("claim.fence", claim.fence)?,
    })
}

/// A claim.
#[must_use]
pub fn claim_to_wire(claim: Claim) -> v1::Claim {
    v1::Claim {
        deployment: claim.deployment.to_string(),
        attempt: claim.attempt.to_string(),
        fence: claim.fence.as_u64(),
    }
}

fn step_end_from_wire(end: Option<v1::StepEnd>) -> Result<StepEnd, Invalid> {
    let end = required("end", end)?;
    let kind = v1::StepEndKind::try_from(end.kind).unwrap_or(v1::StepEndKind::Unspecified);
    let maybe_partial = end.maybe_partial;
    match kind {
        v1::StepEndKind::Unspecified => Err(Invalid::Enum { field: "end.kind", kind: "StepEndKind", number: end.kind }),
        v1::StepEndKind::Applied => Ok(StepEnd::Applied),
        v1::StepEndKind::Failed => {
            Ok(StepEnd::Failed { maybe_partial, class: FailureClass::from_wire("end.class", end.class)? })
        }
        v1::StepEndKind::Stopped => Ok(StepEnd::Stopped { maybe_partial }),
        v1::StepEndKind::Unknown => Ok(StepEnd::Unknown),
        v1::StepEndKind::NotStarted => Ok(StepEnd::NotStarted),
    }
}

fn step_end_to_wire(end: StepEnd) -> v1::StepEnd {
    let wire = |kind: v1::StepEndKind, maybe_partial| v1::StepEnd {
        kind: kind as i32,
        maybe_partial,
        class: v1::FailureClass::Unspecified as i32,
    };
    match end {
        StepEnd::Applied => wire(v1::StepEndKind::Applied, false),
        StepEnd::Failed { maybe_partial, class } => {
            v1::StepEnd { class: class.to_number(), ..wire(v1::StepEndKind::Failed, maybe_partial) }
        }
        StepEnd::Stopped { maybe_partial } => wire(v1::StepEndKind::Stopped, maybe_partial),
        StepEnd::Unknown => wire(v1::StepEndKind::Unknown, false),
        StepEnd::NotStarted => wire(v1::StepEndKind::NotStarted, false),
    }
}

fn exit_from_wire(exit: v1::Exit) -> Result<Exit, Invalid> {
    let kind = v1::ExitKind::try_from(exit.kind).unwrap_or(v1::ExitKind::Unspecified);
    match kind {
        v1::ExitKind::Unspecified => Err(Invalid::Enum { field: "exit.kind", kind: "ExitKind", number: exit.kind }),
        v1::ExitKind::Exited => Ok(Exit::Exited(exit.code)),
        v1::ExitKind::Signaled => Ok(Exit::Signaled { signal: exit.signal, by_us: exit.by_us }),
        v1::ExitKind::OutOfMemory => Ok(Exit::OutOfMemory),
        v1::ExitKind::NotSpawned => Ok(Exit::NotSpawned),
        v1::ExitKind::Unknown => Ok(Exit::Unknown),
    }
}

/// How a process ended.
#[must_use]
pub(super) fn exit_to_wire(exit: Exit) -> v1::Exit {
    let wire = |kind: v1::ExitKind| v1::Exit { kind: kind as i32, ..v1::Exit::default() };
    match exit {
        Exit::Exited(code) => v1::Exit { code, ..wire(v1::ExitKind::Exited) },
        Exit::Signaled { signal, by_us } => v1::Exit { signal, by_us, ..wire(v1::ExitKind::Signaled) },
        Exit::OutOfMemory => wire(v1::ExitKind::OutOfMemory),
        Exit::NotSpawned => wire(v1::ExitKind::NotSpawned),
        Exit::Unknown => wire(v1::ExitKind::Unknown),
    }
}

impl From<Exit> for v1::Exit {
    fn from(exit: Exit) -> v1::Exit {
        exit_to_wire(exit)
    }
}

/// A report and its claim.
pub fn report_from_wire(report: v1::Report) -> Result<(Claim, Report), Invalid> {
    let claim = claim_from_wire(report.claim)?;
    if report.sequence == 0 {
        return Err(Invalid::Missing { field: "sequence" });
    }
    let body = match required("body", report.body)? {
        v1::report::Body::StepStarted(started) => ReportBody::StepStarted { step: parsed("step", &started.step)? },
        v1::report::Body::StepEnded(ended) => ReportBody::StepEnded {
            step: parsed("step", &ended.step)?,
            end: step_end_from_wire(ended.end)?,
            exit: ended.exit.map(exit_from_wire).transpose()?,
            observed: parsed_or_none("observed_revision", &ended.observed_revision)?,
            detail: ended.detail,
        },
        v1::report::Body::AttemptEnded(ended) => {
            ReportBody::AttemptEnded { end: AttemptEnd::from_wire("end", ended.end)? }
        }
        v1::report::Body::CancelReceived(received) => ReportBody::CancelReceived { held_up: received.held_up },
        v1::report::Body::CancelActed(acted) => ReportBody::CancelActed { detail: acted.detail },
        v1::report::Body::Reread(reread) => ReportBody::Reread {
            step: parsed("step", &reread.step)?,
            found: match required("found", reread.found)? {
                v1::reread::Found::Read(reading) => Reread::Read { reading: reading_from_wire(reading)? },
                v1::reread::Found::Failed(failed) => Reread::Failed { detail: failed.detail },
            },
        },
    };
    let said_at = wall_from_wire("said_at", report.said_at)?;
    Ok((claim, Report { sequence: ReportSequence(report.sequence), said_at, body }))
}

/// A report under a claim.
#[must_use]
pub fn report_to_wire(claim: Claim, report: &Report) -> v1::Report {
    let body = match &report.body {
        ReportBody::StepStarted { step } => v1::report::Body::StepStarted(v1::StepStarted { step: step.to_string() }),
        ReportBody::StepEnded { step, end, exit, observed, detail } => v1::report::Body::StepEnded(v1::StepEnded {
            step: step.to_string(),
            end: Some(step_end_to_wire(*end)),
            exit: exit.map(exit_to_wire),
            observed_revision: observed.as_ref().map(Revision::to_string).unwrap_or_default(),
            detail: detail.clone(),
        }),
        ReportBody::AttemptEnded { end } => v1::report::Body::AttemptEnded(v1::AttemptEnded { end: end.to_number() }),
        ReportBody::CancelReceived { held_up } => {
            v1::report::Body::CancelReceived(v1::CancelReceived { held_up: held_up.clone() })
        }
        ReportBody::CancelActed { detail } => v1::report::Body::CancelActed(v1::CancelActed { detail: detail.clone() }),
        ReportBody::Reread { step, found } => v1::report::Body::Reread(v1::Reread {
            step: step.to_string(),
            found: Some(match found {
                Reread::Read { reading } => v1::reread::Found::Read(reading_to_wire(reading)),
                Reread::Failed { detail } => v1::reread::Found::Failed(v1::RereadFailed { detail: detail.clone() }),
            }),
        }),
    };
    v1::Report {
        claim: Some(claim_to_wire(claim)),
        sequence: report.sequence.0,
        said_at: Some(wall_to_wire(report.said_at)),
        body: Some(body),
    }
}

/// The answer to a report, and which report.
pub fn disposition_from_wire(answer: v1::Disposition) -> Result<(ReportSequence, Disposition), Invalid> {
    let kind = v1::DispositionKind::try_from(answer.kind).unwrap_or(v1::DispositionKind::Unspecified);
    let disposition = match kind {
        v1::DispositionKind::Unspecified => {
            return Err(Invalid::Enum { field: "kind", kind: "DispositionKind", number: answer.kind });
        }
        v1::DispositionKind::Accepted => Disposition::Accepted,
        v1::DispositionKind::Duplicate => Disposition::Duplicate,
        v1::DispositionKind::Filed => Disposition::Filed(FiledReason::from_wire("reason", answer.reason)?),
    };
    Ok((ReportSequence(answer.sequence), disposition))
}

/// The answer to a report.
#[must_use]
pub fn disposition_to_wire(sequence: ReportSequence, disposition: Disposition) -> v1::Disposition {
    let (kind, reason) = match disposition {
        Disposition::Accepted => (v1::DispositionKind::Accepted, 0),
        Disposition::Duplicate => (v1::DispositionKind::Duplicate, 0),
        Disposition::Filed(reason) => (v1::DispositionKind::Filed, reason.to_number()),
    };
    v1::Disposition { sequence: sequence.0, kind: kind as i32, reason }
}

/// An operation id; empty is none.
pub fn operation_from_wire(field: &'static str, text: &str) -> Result<Option<OperationId>, Invalid> {
    if text.is_empty() {
        return Ok(None);
    }
    let (deployment, step) =
        text.split_once('/').ok_or(Invalid::Range { field, problem: "not `<deployment id>/<step>`" })?;
    Ok(Some(OperationId { deployment: parsed(field, deployment)?, step: parsed(field, step)? }))
}

/// A look at a resource.
pub fn reading_from_wire(reading: v1::Reading) -> Result<Reading, Invalid> {
    Ok(Reading {
        resource_identity: reading.resource_identity,
        state: OperationState::from_wire("reading.state", reading.state)?,
        revision: parsed_or_none("reading.revision", &reading.revision)?,
        active: operation_from_wire("reading.active_operation", &reading.active_operation)?,
        highest_fence: holdfast_common::fence::Fence::from_u64(reading.highest_fence),
        retained: reading.retained.iter().map(|text| parsed("reading.retained", text)).collect::<Result<_, _>>()?,
        detail: reading.detail,
    })
}

/// A look at a resource.
#[must_use]
pub fn reading_to_wire(reading: &Reading) -> v1::Reading {
    v1::Reading {
        resource_identity: reading.resource_identity.clone(),
        state: reading.state.to_number(),
        revision: reading.revision.as_ref().map(Revision::to_string).unwrap_or_default(),
        active_operation: reading.active.as_ref().map(OperationId::to_string).unwrap_or_default(),
        highest_fence: reading.highest_fence.map(|fence| fence.as_u64()).unwrap_or_default(),
        retained: reading.retained.iter().map(Revision::to_string).collect(),
        detail: reading.detail.clone(),
    }
}

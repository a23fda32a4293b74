//! The one decision function. Each input has its handler; this file only says which.

use holdfast_common::report::{Disposition, FiledReason, PermitDenial};

use crate::decision::{Answer, Decision};
use crate::draft::Draft;
use crate::event::Event;
use crate::handlers;
use crate::input::{Input, Now};
use crate::refusal::Refusal;
use crate::state::TargetState;

/// What follows from an input. Changes nothing by itself: the events are to be written in one transaction, and the
/// answer is to be given after its commit.
///
/// # Errors
/// What an operator asked for is not done, and why. An agent's words are never refused, they are answered;
/// [`Refusal::Broken`] alone can meet any input, and means that nothing of it may be written.
pub fn decide(state: Option<&TargetState>, now: Now, input: &Input) -> Result<Decision, Refusal> {
    match state {
        Some(state) => decide_on(Draft::on(state, now), input),
        None => undeclared(input),
    }
}

fn undeclared(input: &Input) -> Result<Decision, Refusal> {
    let only = |answer| Ok(Decision { events: Vec::new(), answer });
    match input {
        Input::Declare { spec, by } => {
            let event = Event::TargetDeclared { spec: spec.clone(), by: by.clone() };
            Ok(Decision { events: vec![event], answer: Answer::Done })
        }
        Input::OfferAnswered { .. } | Input::Heard { .. } | Input::Detached { .. } => only(Answer::Superseded),
        Input::PermitRequested { .. } => only(Answer::Denied(PermitDenial::NotYours)),
        Input::Reported { .. } => only(Answer::Answered(Disposition::Filed(FiledReason::UnknownAttempt))),
        Input::JournalSpoke { .. }
        | Input::InquiryAnswered { .. }
        | Input::IdentityLocked { .. }
        | Input::IdentityUnlocked { .. } => only(Answer::Done),
        Input::Submit { .. }
        | Input::Rollback { .. }
        | Input::Assign { .. }
        | Input::Tick { .. }
        | Input::Cancel { .. }
        | Input::Inspect { .. }
        | Input::FenceOff { .. }
        | Input::Recover { .. }
        | Input::Attest { .. }
        | Input::AttestRevision { .. }
        | Input::Decide { .. }
        | Input::Hold { .. }
        | Input::Unhold { .. } => Err(Refusal::NotDeclared),
    }
}

fn decide_on(mut draft: Draft<'_>, input: &Input) -> Result<Decision, Refusal> {
    let answer = answer(&mut draft, input)?;
    draft.answer(answer)
}

fn answer(draft: &mut Draft<'_>, input: &Input) -> Result<Answer, Refusal> {
    match input {
        Input::Declare { spec, by } => handlers::declare::declare(draft, spec, by),
        Input::Submit { deployment, request, spec, by, no_queue } => {
            handlers::submit::submit(draft, *deployment, *request, spec, by, *no_queue)
        }
        Input::Rollback { deployment, request, to, shown, by, reason, attested, past, retained } => {
            let (id, request, attested) = (*deployment, *request, attested.as_deref());
            let asked = handlers::back::Asked { id, request, to, shown, by, reason, attested, past, retained };
            handlers::back::back(draft, &asked)
        }
        Input::Assign { candidates, attempt } => handlers::assign::assign(draft, candidates, *attempt),
        Input::OfferAnswered { speaker, claim, declined, jitter } => {
            Ok(handlers::offer::answered(draft, speaker, claim, declined.clone(), *jitter))
        }
        Input::Heard { speaker, claim, via } => Ok(handlers::heard::heard(draft, speaker, claim, *via)),
        Input::Detached { speaker, claim, away, bound } => {
            Ok(handlers::away::away(draft, speaker, claim, *away, *bound))
        }
        Input::PermitRequested { speaker, claim, step, plan } => {
            Ok(handlers::permit::requested(draft, speaker, claim, step, plan))
        }
        Input::Reported { speaker, claim, report, memory, evidence, jitter } => {
            let heard = handlers::report::Heard { speaker, claim, report, memory, evidence: *evidence };
            Ok(Answer::Answered(handlers::report::reported(draft, &heard, *jitter)))
        }
        Input::JournalSpoke { speaker, claim, runner, detail, evidence } => {
            Ok(handlers::journal::spoke(draft, speaker, claim, *runner, detail, *evidence))
        }
        Input::IdentityLocked { agent, incarnation, because, evidence } => {
            Ok(handlers::identity::locked(draft, agent, *incarnation, because, *evidence))
        }
        Input::IdentityUnlocked { agent, incarnation, by, evidence } => {
            Ok(handlers::identity::unlocked(draft, agent, *incarnation, by, *evidence))
        }
        Input::Tick { jitter } => Ok(handlers::tick::tick(draft, *jitter)),
        Input::Cancel { deployment, by, reason, past } => {
            handlers::cancel::cancel(draft, *deployment, by, reason, past.as_ref())
        }
        Input::Inspect { deployment, by, id, reachable } => {
            handlers::inquire::inspect(draft, *deployment, by, *id, reachable)
        }
        Input::FenceOff { deployment, by, id, reachable, reason } => {
            handlers::inquire::fence_off(draft, *deployment, by, *id, reachable, reason)
        }
        Input::Recover { inquiry, evidence, attempt, reachable } => {
            let (inquiry, evidence, attempt) = (*inquiry, *evidence, *attempt);
            Ok(handlers::recover::recover(draft, &handlers::recover::Drawn { inquiry, evidence, attempt, reachable }))
        }
        Input::InquiryAnswered { speaker, inquiry, finding, evidence } => {
            Ok(handlers::finding::found(draft, speaker, *inquiry, finding, *evidence))
        }
        Input::Attest { deployment, by, attestation, evidence } => {
            handlers::attest::attest(draft, *deployment, by, attestation, *evidence)
        }
        Input::AttestRevision { by, resource, revision, how } => {
            handlers::attest::revision(draft, by, resource, revision, how)
        }
        Input::Decide { deployment, by, kind, reason, shown, evidence, attempt, back } => {
            let (kind, shown, evidence, attempt, back) = (*kind, *shown, *evidence, *attempt, back.as_ref());
            let asked = handlers::settle::Asked { by, kind, reason, shown, evidence, attempt, back };
            handlers::settle::settle(draft, *deployment, &asked)
        }
        Input::Hold { by, reason, until } => Ok(handlers::hold::place(draft, by, reason, *until)),
        Input::Unhold { by } => handlers::hold::take_away(draft, by),
    }
}

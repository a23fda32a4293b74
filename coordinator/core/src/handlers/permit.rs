//! An agent asks to begin a mutating step.
//!
//! All checks run each time, also when the permit is on record already: only an attempt that is still current hears of
//! it again. In this order: whose attempt, current, lease, plan, cancel, deadline, the step, an open permit, what it carries over,
//! the order.
//! A deadline that denies is recorded with the denial, as the request to stop that it is: whoever hears of it can act on it.

use holdfast_common::claim::Claim;
use holdfast_common::id::StepName;
use holdfast_common::outcome::StepEnd;
use holdfast_common::report::PermitDenial;
use holdfast_common::spec::{PlanDigest, StepEffect, StepSpec};

use crate::authority;
use crate::bugs::{self, Bug};
use crate::decision::Answer;
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::handlers::{deadline, offer};
use crate::input::{Now, Speaker};
use crate::state::{Attempt, CancelCause, Deployment, StepState};

pub(crate) fn requested(
    draft: &mut Draft<'_>,
    speaker: &Speaker,
    claim: &Claim,
    step: &StepName,
    plan: &PlanDigest,
) -> Answer {
    let checked = check(draft, speaker, claim, step, plan);
    match checked {
        Err(PermitDenial::DeadlinePassed) if !skips(draft, claim, step) => {
            deadline::pass(draft);
            Answer::Denied(PermitDenial::DeadlinePassed)
        }
        Err(denial) if !skips(draft, claim, step) => Answer::Denied(denial),
        Ok(Record::Same) => Answer::Permitted,
        Ok(Record::New) | Err(_) => {
            offer::take(draft, claim);
            let timeout = draft.current().and_then(|deployment| deployment.step(step)).and_then(StepSpec::stop_after);
            let deadline = timeout.map(|timeout| draft.now.serving.after(timeout));
            draft.record(Event::PermitGranted { attempt: claim.attempt, step: step.clone(), deadline });
            Answer::Permitted
        }
    }
}

enum Record {
    /// To be written.
    New,
    /// On record already, not started.
    Same,
}

fn check(
    draft: &Draft<'_>,
    speaker: &Speaker,
    claim: &Claim,
    step: &StepName,
    plan: &PlanDigest,
) -> Result<Record, PermitDenial> {
    let attempt = authority::current(draft.state(), draft.now, speaker, claim).map_err(|not| not.denied())?;
    let deployment = draft.current().ok_or(PermitDenial::NotYours)?;
    if &deployment.plan != plan {
        return Err(PermitDenial::PlanDiffers);
    }
    not_stopped(deployment, attempt, draft.now)?;
    if deployment.step(step).is_none_or(|step| step.effect != StepEffect::Mutates) {
        return Err(PermitDenial::NoSuchMutation);
    }
    let mut open = deployment.attempts.iter().filter_map(|other| Some((other.id, &other.open_permit()?.name)));
    if open.any(|other| other != (attempt.id, step)) && !bugs::on(Bug::SecondPermit) {
        return Err(PermitDenial::PermitOpen);
    }
    if attempt.carries().any(|(_, carry)| !carry.may_follow()) && !bugs::on(Bug::CarryUnread) {
        return Err(PermitDenial::CarryUnread);
    }
    in_order(attempt, step)
}

fn not_stopped(deployment: &Deployment, attempt: &Attempt, now: Now) -> Result<(), PermitDenial> {
    let passed = |at| now.serving >= at;
    let late = deployment.deadline.is_some_and(passed)
        || attempt.steps.iter().any(|step| due::runs(step.state) && step.deadline.is_some_and(passed));
    match deployment.cancel.as_ref().map(|cancel| &cancel.cause) {
        Some(CancelCause::Operator { .. }) => Err(PermitDenial::CancelRecorded),
        Some(CancelCause::Timeout { .. } | CancelCause::QueueTimeout | CancelCause::DeploymentTimeout) => {
            Err(PermitDenial::DeadlinePassed)
        }
        None if late => Err(PermitDenial::DeadlinePassed),
        None => Ok(()),
    }
}

/// Each step before it is applied, and it has not begun.
fn in_order(attempt: &Attempt, name: &StepName) -> Result<Record, PermitDenial> {
    let done = |state| match state {
        StepState::Ended(StepEnd::Applied) | StepState::Carried { .. } => true,
        StepState::Permitted | StepState::Started => bugs::on(Bug::SecondPermit),
        StepState::Pending
        | StepState::Ended(StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::Unknown | StepEnd::NotStarted) => {
            false
        }
    };
    let before = attempt.steps.iter().take_while(|step| &step.name != name);
    if !before.into_iter().all(|step| done(step.state)) {
        return Err(PermitDenial::OutOfOrder);
    }
    match attempt.step(name).map(|step| step.state) {
        Some(StepState::Pending) => Ok(Record::New),
        Some(StepState::Permitted) => Ok(Record::Same),
        Some(StepState::Started | StepState::Ended(_) | StepState::Carried { .. }) | None => {
            Err(PermitDenial::OutOfOrder)
        }
    }
}

/// The fault of granting without checks, as far as there is a step to grant.
fn skips(draft: &Draft<'_>, claim: &Claim, step: &StepName) -> bool {
    let live = draft.current().and_then(Deployment::live).filter(|live| live.id == claim.attempt);
    let pending = live.and_then(|live| live.step(step)).is_some_and(|step| step.state == StepState::Pending);
    let mutates = draft.current().and_then(|d| d.step(step)).is_some_and(|step| step.effect == StepEffect::Mutates);
    bugs::on(Bug::SkipPermitCheck) && pending && mutates
}

//! What became of a step over all attempts of its deployment, and of the resources that its steps change.
//!
//! An attempt's own record is never rewritten: where a decision settled what nobody observed, the decision is read here.

use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, ResourceName, Revision, StepName};
use holdfast_common::outcome::{FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::ReportBody;
use holdfast_common::spec::{RetryClass, StepEffect, StepSpec};
use holdfast_common::time::Wall;

use crate::bugs::{self, Bug};
use crate::state::{
    Attempt, CancelCause, CarryState, DecisionRecord, Deployment, Evidence, EvidenceBody, ResourceKnowledge,
    RevisionSource, StepRun, StepState, TargetState,
};

/// What became of a mutating step, as far as it was observed or decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It never began.
    Untouched,
    /// Its whole effect is there, with this revision where one was told.
    Applied(Option<Revision>),
    /// It began, and none of its effect is there.
    NotApplied,
    /// A part of its effect may be there.
    Partial,
    /// Nobody knows.
    Unknown,
}

impl Fate {
    /// As its resource was read, with that revision where it is applied.
    pub(crate) fn told(state: OperationState, revision: Option<Revision>) -> Self {
        match state {
            OperationState::Applied => Fate::Applied(revision),
            OperationState::NotApplied => Fate::NotApplied,
            OperationState::Partial => Fate::Partial,
            OperationState::Applying | OperationState::Unknown => Fate::Unknown,
        }
    }
}

/// What became of a step.
pub(crate) fn of(deployment: &Deployment, step: &StepSpec) -> Fate {
    deployment.attempts.iter().fold(Fate::Untouched, |before, attempt| match attempt.step(&step.name) {
        Some(run) => after(deployment, attempt, step, run, before),
        None => before,
    })
}

fn after(deployment: &Deployment, attempt: &Attempt, step: &StepSpec, run: &StepRun, before: Fate) -> Fate {
    if let Some(record) = settled(deployment, attempt, &step.name) {
        // Its process went on: the attempt after it tells.
        if record.kind == DecisionKind::Readmit {
            return before;
        }
        return Fate::told(record.target, record.observed.clone().or(step.revision.clone()));
    }
    match run.state {
        // Somebody else was there: what is there now is not what the step left.
        StepState::Carried { carry: CarryState::Differs } => Fate::Unknown,
        StepState::Pending | StepState::Carried { .. } | StepState::Ended(StepEnd::NotStarted) => before,
        StepState::Permitted | StepState::Started | StepState::Ended(StepEnd::Unknown) => Fate::Unknown,
        StepState::Ended(StepEnd::Applied) => Fate::Applied(run.observed.clone().or(step.revision.clone())),
        StepState::Ended(StepEnd::Failed { maybe_partial, .. } | StepEnd::Stopped { maybe_partial }) => {
            match (maybe_partial, before) {
                (true, _) => Fate::Partial,
                (false, before @ (Fate::Partial | Fate::Unknown)) => before,
                (false, Fate::Untouched | Fate::NotApplied | Fate::Applied(_)) => Fate::NotApplied,
            }
        }
    }
}

fn settled<'a>(deployment: &'a Deployment, attempt: &Attempt, step: &StepName) -> Option<&'a DecisionRecord> {
    let about = |record: &&DecisionRecord| record.attempt == Some(attempt.id) && record.step.as_ref() == Some(step);
    deployment.decisions.iter().rev().filter(|record| record.kind != DecisionKind::Note).find(about)
}

/// The decision by which a step counts as applied, where no agent has found it so since.
pub(crate) fn applied_by_decision<'a>(deployment: &'a Deployment, step: &StepSpec) -> Option<&'a DecisionRecord> {
    let latest = deployment.attempts.iter().fold(None, |before, attempt| {
        let run = attempt.step(&step.name);
        match (settled(deployment, attempt, &step.name), run.map(|run| run.state)) {
            (Some(record), Some(_)) if record.kind != DecisionKind::Readmit => Some(record),
            (_, Some(StepState::Ended(StepEnd::Applied) | StepState::Carried { carry: CarryState::AsLeft })) => None,
            _ => before,
        }
    });
    latest.filter(|record| record.target == OperationState::Applied)
}

/// The mutating steps of a deployment, in order.
pub(crate) fn mutating(deployment: &Deployment) -> impl Iterator<Item = &StepSpec> {
    deployment.spec.steps.iter().filter(|step| step.effect == StepEffect::Mutates)
}

/// Whether every change of it is applied.
pub(crate) fn is_whole(deployment: &Deployment) -> bool {
    mutating(deployment).all(|step| matches!(of(deployment, step), Fate::Applied(_)))
}

/// What was observed of the checks, once every change of the deployment is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// Nothing was changed, or a change is missing: no check says anything.
    Unasked,
    /// Every step after the changes ended well.
    Held,
    /// This step ended against it, or its time was over: another try would see the same.
    Against(StepName),
    /// This step did not come to an end of its own, or it stands before the changes: it says nothing of them.
    Unseen(StepName),
}

/// What the last attempt saw of the health after the changes.
pub(crate) fn health(deployment: &Deployment) -> Health {
    let whole = is_whole(deployment);
    let Some(last) = deployment.attempts.last().filter(|_| whole && mutating(deployment).next().is_some()) else {
        return Health::Unasked;
    };
    let changes = deployment.spec.steps.iter().rposition(|step| step.effect == StepEffect::Mutates);
    let found = last.steps.iter().enumerate().find_map(|(at, run)| {
        let name = run.name.clone();
        let is_after = Some(at) > changes;
        match run.state {
            StepState::Ended(StepEnd::Applied) | StepState::Carried { .. } => None,
            StepState::Ended(StepEnd::Failed { class: FailureClass::Permanent, .. }) if is_after => {
                Some(Health::Against(name))
            }
            // A check looked for as long as it may. What else failed in a way that is listed is worth another try, while there is one.
            StepState::Ended(StepEnd::Failed { class: FailureClass::Transient, .. })
                if is_after && (is_check(deployment, &name) || deployment.tries_left() == 0) =>
            {
                Some(Health::Against(name))
            }
            StepState::Ended(StepEnd::Stopped { .. }) if was_too_slow(deployment, &name) => Some(Health::Against(name)),
            StepState::Pending
            | StepState::Permitted
            | StepState::Started
            | StepState::Ended(
                StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::Unknown | StepEnd::NotStarted,
            ) => Some(Health::Unseen(name)),
        }
    });
    found.unwrap_or(Health::Held)
}

fn is_check(deployment: &Deployment, name: &StepName) -> bool {
    deployment.step(name).is_some_and(|step| step.body.check().is_some())
}

/// Whether that check was stopped because its own time was over.
fn was_too_slow(deployment: &Deployment, name: &StepName) -> bool {
    let check = is_check(deployment, name);
    let cause = deployment.cancel.as_ref().map(|cancel| &cancel.cause);
    check && matches!(cause, Some(CancelCause::Timeout { step }) if step == name)
}

/// The agent on whose host the checks belong: the one that applied the last change. `None` where a change is still to be
/// made, which then decides it, or nothing is checked; or where a decision settled that change, because whoever made it was
/// found out of reach: then whoever reaches the resource may look.
pub(crate) fn checked_on(deployment: &Deployment) -> Option<&AgentName> {
    let checks = deployment.spec.steps.iter().any(|step| step.body.check().is_some());
    let last = mutating(deployment).last().filter(|_| checks)?;
    if !is_whole(deployment) {
        return None;
    }
    let made = |attempt: &&Attempt| match attempt.step(&last.name).map(|run| run.state) {
        Some(StepState::Permitted | StepState::Started | StepState::Ended(_)) => true,
        Some(StepState::Pending | StepState::Carried { .. }) | None => false,
    };
    let maker = deployment.attempts.iter().rev().find(made)?;
    settled(deployment, maker, &last.name).is_none().then_some(&maker.agent)
}

/// The mutating steps that are applied: a new attempt carries them.
pub(crate) fn applied(deployment: &Deployment) -> Vec<StepName> {
    if bugs::on(Bug::VerifyCarried) {
        let ended = |name: &StepName| {
            let mut runs = deployment.attempts.iter().filter_map(|attempt| attempt.step(name));
            runs.any(|run| run.state == StepState::Ended(StepEnd::Applied))
        };
        let names = deployment.spec.steps.iter().map(|step| step.name.clone());
        return names.filter(ended).collect();
    }
    let applied = mutating(deployment).filter(|step| matches!(of(deployment, step), Fate::Applied(_)));
    applied.map(|step| step.name.clone()).collect()
}

/// Whether a mutating step that may not be repeated may be applied in part.
pub(crate) fn unsafe_in_part(deployment: &Deployment) -> bool {
    mutating(deployment).any(|step| step.retry == RetryClass::Unsafe && of(deployment, step) == Fate::Partial)
}

/// Why no attempt may follow by itself on the last one, where that is so: a step that began and may not be repeated,
/// or a failure that another try would only repeat.
pub(crate) fn bars_another_try(deployment: &Deployment) -> Option<String> {
    let last = deployment.attempts.last()?;
    last.steps.iter().find_map(|run| {
        let step = deployment.step(&run.name)?;
        match run.state {
            StepState::Ended(StepEnd::Failed { class: FailureClass::Permanent, .. }) => {
                Some(format!("step {} failed in a way that another try would only repeat", run.name))
            }
            StepState::Ended(StepEnd::Failed { .. } | StepEnd::Stopped { .. }) => (step.effect == StepEffect::Mutates
                && step.retry == RetryClass::Unsafe)
                .then(|| format!("step {} began, and it is not safe to repeat", run.name)),
            StepState::Pending
            | StepState::Permitted
            | StepState::Started
            | StepState::Ended(StepEnd::Applied | StepEnd::Unknown | StepEnd::NotStarted)
            | StepState::Carried { .. } => None,
        }
    })
}

/// Whether nothing was ever changed: over all attempts, no permit is on record, or each has its tombstone. A report of
/// a mutation without a permit, although only filed, forbids saying so.
pub(crate) fn never_mutated(deployment: &Deployment) -> bool {
    let mut runs = deployment.attempts.iter().flat_map(|attempt| &attempt.steps);
    let closed = |run: &StepRun| !may_have_begun(run) || bugs::on(Bug::TombstoneIgnored);
    let told = |evidence: &Evidence| told_mutation(deployment, &evidence.body).is_some();
    runs.all(closed) && !deployment.evidence.iter().any(told)
}

/// Whether a permit for it is on record, and no tombstone.
pub(crate) fn may_have_begun(run: &StepRun) -> bool {
    run.permitted_at.is_some() && run.state != StepState::Ended(StepEnd::NotStarted)
}

/// The mutating step that a report which was only filed tells to have begun, and under which fence.
pub(crate) fn told_mutation<'a>(deployment: &Deployment, body: &'a EvidenceBody) -> Option<(Fence, &'a StepName)> {
    let mutates = |name: &StepName| deployment.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
    match body {
        EvidenceBody::LateReport { claim, report, .. } => match &report.body {
            ReportBody::StepStarted { step } => mutates(step).then_some((claim.fence, step)),
            ReportBody::StepEnded { step, end, .. } => {
                (mutates(step) && *end != StepEnd::NotStarted).then_some((claim.fence, step))
            }
            ReportBody::AttemptEnded { .. }
            | ReportBody::CancelReceived { .. }
            | ReportBody::CancelActed { .. }
            | ReportBody::Reread { .. } => None,
        },
        EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => None,
    }
}

/// What an ended deployment leaves known of the resources it may have changed.
pub(crate) fn aftermath(
    state: &TargetState,
    deployment: &Deployment,
    at: Wall,
) -> Vec<(ResourceName, ResourceKnowledge)> {
    let unknown = ResourceKnowledge::Unknown { since: deployment.id };
    let names = state.spec.resources.iter().map(|resource| &resource.name);
    let fate = |step: &StepSpec| of(deployment, step);
    let left = names.filter_map(|name| Some((name.clone(), left(deployment, name, at, fate)?)));
    left.map(|(name, known)| (name, known.unwrap_or_else(|| unknown.clone()))).collect()
}

/// Whether it has changed the resource in part, or nobody knows.
pub(crate) fn leaves_unknown(deployment: &Deployment, resource: &ResourceName) -> bool {
    would_leave_unknown(deployment, resource, |step| of(deployment, step))
}

/// The same, if that became of its steps.
pub(crate) fn would_leave_unknown(
    deployment: &Deployment,
    resource: &ResourceName,
    fate: impl Fn(&StepSpec) -> Fate,
) -> bool {
    matches!(left(deployment, resource, deployment.submitted_at, fate), Some(None))
}

/// `None`: nothing of it changed. `Some(None)`: changed in part, or nobody knows.
fn left(
    deployment: &Deployment,
    resource: &ResourceName,
    at: Wall,
    fate: impl Fn(&StepSpec) -> Fate,
) -> Option<Option<ResourceKnowledge>> {
    let fates: Vec<Fate> =
        mutating(deployment).filter(|step| step.resource.as_ref() == Some(resource)).map(fate).collect();
    let changed = fates.iter().any(|fate| *fate != Fate::Untouched);
    let given_up = deployment.decisions.iter().any(|record| record.kind == DecisionKind::Abandon) && changed;
    if given_up || fates.iter().any(|fate| matches!(fate, Fate::Partial | Fate::Unknown)) {
        return Some(None);
    }
    let newest = fates.iter().rev().find(|fate| **fate != Fate::Untouched);
    if disturbed(deployment, resource) && !matches!(newest, Some(Fate::Applied(Some(_)))) {
        return Some(None);
    }
    let whole = fates.iter().all(|fate| matches!(fate, Fate::Applied(_)));
    let last = fates.into_iter().rev().find_map(|fate| match fate {
        Fate::Applied(revision) => Some(revision),
        Fate::Untouched | Fate::NotApplied | Fate::Partial | Fate::Unknown => None,
    })?;
    let known = last.is_some() || whole;
    let source = Some(source(deployment));
    Some(known.then_some(ResourceKnowledge::Revision { revision: last, at, source }))
}

/// Whether an attempt found that somebody else had changed the resource, and no step was permitted on it since.
fn disturbed(deployment: &Deployment, resource: &ResourceName) -> bool {
    let on_it =
        |run: &&StepRun| deployment.step(&run.name).is_some_and(|step| step.resource.as_ref() == Some(resource));
    deployment.attempts.iter().fold(false, |before, attempt| {
        let runs = || attempt.steps.iter().filter(on_it);
        let differs = runs().any(|run| run.state == StepState::Carried { carry: CarryState::Differs });
        differs || (before && !runs().any(|run| run.permitted_at.is_some()))
    })
}

fn source(deployment: &Deployment) -> RevisionSource {
    let agent = deployment.attempts.last().map(|attempt| attempt.agent.clone());
    let last = deployment.attempts.last().map(|attempt| attempt.id);
    let settles = |record: &DecisionRecord| record.kind != DecisionKind::Note && record.attempt == last;
    RevisionSource::Deployment { number: deployment.number, agent, decided: deployment.decisions.iter().any(settles) }
}

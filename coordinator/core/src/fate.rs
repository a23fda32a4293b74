//! What became of a step over all attempts of its deployment, and of the resources that its steps change.
//!
//! An attempt's own record is never rewritten: where a decision settled what nobody observed, the decision is read here.

use holdfast_common::id::{ResourceName, Revision, StepName};
use holdfast_common::outcome::{FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::ReportBody;
use holdfast_common::spec::{RetryClass, StepEffect, StepSpec};
use holdfast_common::time::Wall;

use crate::bugs::{self, Bug};
use crate::state::{
    Attempt, DecisionRecord, Deployment, EvidenceBody, ResourceKnowledge, RevisionSource, StepRun, StepState,
    TargetState,
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
        return match record.target {
            OperationState::Applied => Fate::Applied(record.observed.clone().or(step.revision.clone())),
            OperationState::NotApplied => Fate::NotApplied,
            OperationState::Partial => Fate::Partial,
            OperationState::Applying | OperationState::Unknown => Fate::Unknown,
        };
    }
    match run.state {
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

/// The mutating steps of a deployment, in order.
pub(crate) fn mutating(deployment: &Deployment) -> impl Iterator<Item = &StepSpec> {
    deployment.spec.steps.iter().filter(|step| step.effect == StepEffect::Mutates)
}

/// The mutating steps that are applied: a new attempt carries them.
pub(crate) fn applied(deployment: &Deployment) -> Vec<StepName> {
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
    let runs = || deployment.attempts.iter().flat_map(|attempt| &attempt.steps);
    let closed = |run: &StepRun| {
        run.permitted_at.is_none()
            || run.state == StepState::Ended(StepEnd::NotStarted)
            || bugs::on(Bug::TombstoneIgnored)
    };
    runs().all(closed) && !deployment.evidence.iter().any(|evidence| tells_mutation(deployment, &evidence.body))
}

fn tells_mutation(deployment: &Deployment, body: &EvidenceBody) -> bool {
    let mutates = |name| deployment.step(name).is_some_and(|step| step.effect == StepEffect::Mutates);
    match body {
        EvidenceBody::LateReport { report, .. } => match &report.body {
            ReportBody::StepStarted { step } => mutates(step),
            ReportBody::StepEnded { step, end, .. } => mutates(step) && *end != StepEnd::NotStarted,
            ReportBody::AttemptEnded { .. } | ReportBody::CancelReceived | ReportBody::CancelActed { .. } => false,
        },
        EvidenceBody::Inspection { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::InquiryFailed { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::Note { .. } => false,
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
    let left = names.filter_map(|name| Some((name.clone(), left(deployment, name, at)?)));
    left.map(|(name, known)| (name, known.unwrap_or_else(|| unknown.clone()))).collect()
}

/// `None`: nothing of it changed. `Some(None)`: changed in part, or nobody knows.
fn left(deployment: &Deployment, resource: &ResourceName, at: Wall) -> Option<Option<ResourceKnowledge>> {
    let fates: Vec<Fate> = mutating(deployment)
        .filter(|step| step.resource.as_ref() == Some(resource))
        .map(|step| of(deployment, step))
        .collect();
    let changed = fates.iter().any(|fate| *fate != Fate::Untouched);
    let given_up = deployment.decisions.iter().any(|record| record.kind == DecisionKind::Abandon) && changed;
    if given_up || fates.iter().any(|fate| matches!(fate, Fate::Partial | Fate::Unknown)) {
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

fn source(deployment: &Deployment) -> RevisionSource {
    let agent = deployment.attempts.last().map(|attempt| attempt.agent.clone());
    let last = deployment.attempts.last().map(|attempt| attempt.id);
    let settles = |record: &DecisionRecord| record.kind != DecisionKind::Note && record.attempt == last;
    RevisionSource::Deployment { number: deployment.number, agent, decided: deployment.decisions.iter().any(settles) }
}

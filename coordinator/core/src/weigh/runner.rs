//! Whether the runner is out: the upper table of [`super`].

use holdfast_common::id::{EvidenceId, StepName};
use holdfast_common::outcome::StepEnd;
use holdfast_common::recovery::{AttestedRunner, Runner};

use super::{capability, doubted, in_question, is_own, late_end, told_ends};
use crate::authority;
use crate::bugs::{self, Bug};
use crate::policy;
use crate::state::{Attempt, Deployment, DeploymentState, Evidence, EvidenceBody, StepState, TargetState};

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

/// Why an end of the process is no end of what it may have begun.
const MAY_OUTLIVE: &str = "what it started may outlive it";

/// Whether the attempt's own journal had told before that evidence how the step ended.
fn told_before(deployment: &Deployment, attempt: &Attempt, step: &StepName, evidence: &Evidence) -> bool {
    let before = deployment.evidence.iter().take_while(|other| other.sequence < evidence.sequence);
    told_ends(deployment, attempt, step, before).next().is_some()
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
    // It does not run any more, which alone does not prove it out: a person may attest that. What proves it out already goes on
    // doing so.
    let no_longer = |known: RunnerKnown, because| {
        if known.runner.is_out() { known } else { told(Runner::Unknown, because, false, false) }
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
                Some(StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. }) => {
                    let because = format!("its journal says that step {} ended, and {MAY_OUTLIVE}", step.name);
                    no_longer(known, because)
                }
                Some(StepEnd::Unknown) => {
                    let because = format!("its journal can't tell how step {} ended", step.name);
                    no_longer(known, because)
                }
                None => known,
            }
        }
        EvidenceBody::JournalWord { incarnation, attempt: about, runner, .. }
            if deployment.is_of(attempt, *about) && *incarnation == attempt.incarnation =>
        {
            match runner {
                // What runs on, if anything, is no more the step that is in question.
                Runner::StillRunning if told_before(deployment, attempt, &step.name, evidence) => known,
                Runner::StillRunning => told(*runner, "its journal says that it still runs".to_owned(), false, false),
                Runner::Stopped if !outlives => {
                    told(*runner, "its journal says that it ended".to_owned(), false, false)
                }
                Runner::Stopped => no_longer(known, format!("its journal says that it ended, and {MAY_OUTLIVE}")),
                Runner::Unknown if known.runner == Runner::StillRunning => {
                    no_longer(known, "its journal says no more that it still runs".to_owned())
                }
                Runner::FencedOff | Runner::HostGone | Runner::Unknown => known,
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

//! The checklist of reconciliation: runner, target, relation, and each decision allowed or why not.
//!
//! ```text
//! decision           needs (else: why not)
//! retry              runner out; the step in question not applied, applied or idempotent; no cancel; no permanent failure
//! accept_succeeded   runner out; every mutating step applied; each check after them observed or attested
//! accept_failed      runner out; the step in question applied, not applied or partial
//! accept_cancelled   the same, and a cancel recorded
//! abandon            a person's attestation
//! note               nothing
//! readmit            the same journal says that it still runs; nothing was allocated above its fence; no end was told
//! rollback           runner out; it changed something; the way back over it is compatible now
//!
//! a rollback that rests on something unresolved is accepted as failed or cancelled on a person's attestation only
//! ```

use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::id::{EvidenceId, OperationId, ResourceName, Revision, StepName};
use holdfast_common::outcome::{FailureClass, OperationState, StepEnd};
use holdfast_common::recovery::{AttestedTarget, DecisionKind, Runner};
use holdfast_common::spec::{Reach, RetryClass, StepEffect, StepSpec};
use holdfast_common::time::Wall;

use crate::authority;
use crate::bugs::{self, Bug};
use crate::by_hand::{self, ByHand};
use crate::fate::{self, Fate};
use crate::rollback;
use crate::state::{Deployment, DeploymentState, EvidenceSequence, StepState, TargetState};
use crate::weigh::{self, RunnerKnown, StepKnown};

/// Every decision, in the order in which they are shown.
pub const KINDS: [DecisionKind; 8] = [
    DecisionKind::Retry,
    DecisionKind::AcceptSucceeded,
    DecisionKind::AcceptFailed,
    DecisionKind::AcceptCancelled,
    DecisionKind::Rollback,
    DecisionKind::Readmit,
    DecisionKind::Abandon,
    DecisionKind::Note,
];

/// What is known, what follows, and who can act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checklist {
    /// 1: whoever might still be changing the target.
    pub runner: Runner,
    /// By what it is known, or why it is not.
    pub runner_because: String,
    /// The evidence for it.
    pub runner_evidence: Vec<EvidenceId>,
    /// Whether it rests on a person's attestation.
    pub runner_attested: bool,
    /// Whether it rests on the report of the attempt's own agent, which the target trusts.
    pub trusted: bool,
    /// 2: the steps in question, each as far as it is known. Empty where no step is.
    pub steps: Vec<OpenStep>,
    /// 3: what the two mean together, in one sentence.
    pub relation: String,
    /// The newest evidence that was weighed: a decision names it.
    pub shown: EvidenceSequence,
    /// Each decision, allowed or why not.
    pub decisions: Vec<OpenDecision>,
    /// Who can bring it on, in words for people.
    pub who_can_act: Vec<String>,
}

/// One step in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenStep {
    /// The step.
    pub step: StepName,
    /// The resource it changes.
    pub resource: Option<ResourceName>,
    /// What it is known to be there.
    pub state: OperationState,
    /// By what it is known, or why it is not.
    pub because: String,
    /// The revision that was observed.
    pub observed: Option<Revision>,
    /// The operation that was seen at work.
    pub active: Option<OperationId>,
    /// The evidence for it.
    pub evidence: Vec<EvidenceId>,
    /// Whether it rests on a person's attestation.
    pub attested: bool,
    /// What may be half done there and how a person looks, where that is not known and no reading can tell it.
    pub by_hand: Option<ByHand>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDecision {
    /// Which.
    pub kind: DecisionKind,
    /// `None`: it is allowed. Else what is missing.
    pub why_not: Option<String>,
    /// What follows from it.
    pub leads_to: String,
}

impl Checklist {
    /// Why a decision is not allowed, where that is so.
    #[must_use]
    pub fn why_not(&self, kind: DecisionKind) -> Option<&str> {
        self.decisions.iter().find(|decision| decision.kind == kind)?.why_not.as_deref()
    }
}

/// The checklist of a deployment of the target. Changes nothing, whoever asks. `now` is for the window within which going
/// back is compatible.
#[must_use]
pub fn open_decisions(state: &TargetState, deployment: &Deployment, now: Wall) -> Checklist {
    let runner = weigh::runner(state, deployment);
    let question = weigh::in_question(deployment).map(|step| (step.clone(), weigh::step(state, deployment, step)));
    let known = question.as_ref().map(|(_, known)| known);
    let facts = Facts { state, deployment, runner: &runner, known, now };
    let decisions =
        KINDS.map(|kind| OpenDecision { kind, why_not: why_not(&facts, kind), leads_to: leads_to(&facts, kind) });
    let relation = relation(&facts);
    let who_can_act = bring_on(state, deployment, &runner);
    let steps = question.into_iter().map(|(step, known)| OpenStep {
        by_hand: by_hand(state, &step, known.state),
        step: step.name,
        resource: step.resource,
        state: known.state,
        because: known.because,
        observed: known.observed,
        active: known.active,
        evidence: known.evidence,
        attested: known.attested,
    });
    let steps = steps.collect();
    Checklist {
        steps,
        relation,
        shown: deployment.newest_evidence(),
        decisions: decisions.into(),
        who_can_act,
        runner: runner.runner,
        runner_because: runner.because,
        runner_evidence: runner.evidence,
        runner_attested: runner.attested,
        trusted: runner.trusted,
    }
}

fn by_hand(state: &TargetState, step: &StepSpec, known: OperationState) -> Option<ByHand> {
    let is_open = match known {
        OperationState::Unknown | OperationState::Applying | OperationState::Partial => true,
        OperationState::Applied | OperationState::NotApplied => false,
    };
    let resource = state.spec.resource(step.resource.as_ref()?)?;
    by_hand::of(step, resource).filter(|_| is_open)
}

struct Facts<'a> {
    state: &'a TargetState,
    deployment: &'a Deployment,
    runner: &'a RunnerKnown,
    known: Option<&'a StepKnown>,
    now: Wall,
}

fn why_not(facts: &Facts<'_>, kind: DecisionKind) -> Option<String> {
    let unsettled = matches!(facts.deployment.state, DeploymentState::Uncertain | DeploymentState::Held);
    let refused = match kind {
        DecisionKind::Note => return None,
        DecisionKind::Abandon
        | DecisionKind::Retry
        | DecisionKind::AcceptSucceeded
        | DecisionKind::AcceptFailed
        | DecisionKind::AcceptCancelled
        | DecisionKind::Rollback
        | DecisionKind::Readmit
            if !unsettled =>
        {
            return Some("it is neither uncertain nor held".to_owned());
        }
        DecisionKind::Retry => retry(facts),
        DecisionKind::AcceptSucceeded => accept_succeeded(facts),
        DecisionKind::AcceptFailed => accept(facts),
        DecisionKind::AcceptCancelled => accept(facts).and_then(|()| {
            facts.deployment.cancel.is_some().then_some(()).ok_or_else(|| "no stop was asked for".to_owned())
        }),
        DecisionKind::Rollback => roll_back(facts),
        DecisionKind::Readmit => readmit(facts),
        DecisionKind::Abandon => weigh::attested(facts.deployment, None)
            .map(|_| ())
            .ok_or_else(|| "nobody has attested what they know of the runner and the target".to_owned()),
    };
    refused.err()
}

fn out(facts: &Facts<'_>) -> Result<(), String> {
    let RunnerKnown { runner, because, .. } = facts.runner;
    let is_out = runner.is_out() || bugs::on(Bug::DecideOverRunner);
    is_out.then_some(()).ok_or_else(|| format!("the runner may still be changing the target: {because}"))
}

fn retry(facts: &Facts<'_>) -> Result<(), String> {
    out(facts)?;
    if facts.deployment.cancel.is_some() && !bugs::on(Bug::RetryOverCancel) {
        return Err("a stop was asked for".to_owned());
    }
    if failed_for_good(facts.deployment) {
        return Err("it failed in a way that another try would only repeat: submit it anew".to_owned());
    }
    let Some((step, known)) = weigh::in_question(facts.deployment).zip(facts.known) else { return Ok(()) };
    match known.state {
        OperationState::NotApplied | OperationState::Applied => Ok(()),
        OperationState::Partial | OperationState::Unknown | OperationState::Applying => match step.retry {
            RetryClass::Idempotent | RetryClass::Pure => Ok(()),
            RetryClass::Unsafe if bugs::on(Bug::RepeatUnsafe) => Ok(()),
            RetryClass::Unsafe => {
                Err(format!("step {} is not safe to repeat and is {}", step.name, words(known.state)))
            }
        },
    }
}

fn roll_back(facts: &Facts<'_>) -> Result<(), String> {
    out(facts)?;
    let fate = |step: &StepSpec| fate_if_decided(facts, step);
    rollback::why_not(facts.state, facts.deployment, fate, facts.now).map_err(|why| why.to_string())
}

/// What a step counts for once the deployment is decided on what is known now.
fn fate_if_decided(facts: &Facts<'_>, step: &StepSpec) -> Fate {
    let question = weigh::in_question(facts.deployment).map(|step| &step.name);
    match facts.known.filter(|_| question == Some(&step.name)) {
        Some(known) => Fate::told(known.state, known.observed.clone().or(step.revision.clone())),
        None => fate::of(facts.deployment, step),
    }
}

fn readmit(facts: &Facts<'_>) -> Result<(), String> {
    let no = |why: &str| Err(why.to_owned());
    let last = facts.deployment.attempts.last();
    let Some((attempt, open)) = last.and_then(|last| Some((last, last.open_permit()?))) else {
        return no("no step of it may be running");
    };
    if weigh::told_end(facts.deployment, attempt, &open.name) {
        return no("its own journal says that the step ended");
    }
    if !authority::is_highest(facts.state, attempt) && !bugs::on(Bug::ReadmitBelowFence) {
        return no("a fence above its own was allocated since");
    }
    match facts.runner.runner {
        Runner::StillRunning => Ok(()),
        Runner::Stopped | Runner::FencedOff | Runner::HostGone => no(&facts.runner.because),
        Runner::Unknown if open.state == StepState::Ended(StepEnd::Unknown) => {
            no("its own agent was heard, and could not say that it still runs")
        }
        Runner::Unknown => no("its own agent has not come back to say that it still runs"),
    }
}

fn failed_for_good(deployment: &Deployment) -> bool {
    let permanent = |state| matches!(state, StepState::Ended(StepEnd::Failed { class: FailureClass::Permanent, .. }));
    deployment.attempts.last().is_some_and(|attempt| attempt.steps.iter().any(|step| permanent(step.state)))
}

fn accept_succeeded(facts: &Facts<'_>) -> Result<(), String> {
    out(facts)?;
    let question = weigh::in_question(facts.deployment).map(|step| &step.name);
    for step in fate::mutating(facts.deployment) {
        let applied = match facts.known {
            Some(known) if question == Some(&step.name) => known.state == OperationState::Applied,
            Some(_) | None => matches!(fate::of(facts.deployment, step), Fate::Applied(_)),
        };
        if !applied {
            return Err(format!("step {} is not known to be applied", step.name));
        }
    }
    let attested = weigh::attested(facts.deployment, Some(AttestedTarget::Applied)).is_some();
    match unverified(facts.deployment) {
        Some(step) if !attested => {
            Err(format!("step {step} after the change was not observed, and nobody has attested it"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The first check after the last mutating step that the last attempt did not report as passed.
fn unverified(deployment: &Deployment) -> Option<&StepName> {
    let last = deployment.attempts.last()?;
    let checks = deployment.spec.steps.iter().rev().take_while(|step| step.effect == StepEffect::None);
    let passed = |name| last.step(name).is_some_and(|run| run.state == StepState::Ended(StepEnd::Applied));
    checks.filter(|step| !passed(&step.name)).last().map(|step| &step.name)
}

fn accept(facts: &Facts<'_>) -> Result<(), String> {
    out(facts)?;
    if rollback::rests_on_unresolved(facts.deployment) && weigh::attested(facts.deployment, None).is_none() {
        return Err("what it was to undo is partial or unknown, and nobody has attested what is there".to_owned());
    }
    match facts.known.map(|known| (known.state, &known.because)) {
        Some((OperationState::Unknown | OperationState::Applying, because)) => {
            Err(format!("what the step left is not known: {because}"))
        }
        Some((OperationState::Applied | OperationState::NotApplied | OperationState::Partial, _)) | None => Ok(()),
    }
}

fn leads_to(facts: &Facts<'_>, kind: DecisionKind) -> String {
    match kind {
        DecisionKind::Retry => "a new attempt where knowledge ends".to_owned(),
        DecisionKind::AcceptSucceeded => match unverified(facts.deployment) {
            Some(step) => format!("succeeded, although step {step} after the change was never seen to end well"),
            None => "succeeded".to_owned(),
        },
        DecisionKind::AcceptFailed => format!("failed{}", left_unknown(facts)),
        DecisionKind::AcceptCancelled => format!("cancelled{}", left_unknown(facts)),
        DecisionKind::Rollback => "failed, and a rollback that holds the reservation".to_owned(),
        DecisionKind::Readmit => "a new attempt that goes on with the running process".to_owned(),
        DecisionKind::Abandon => format!("failed{UNKNOWN_AFTERWARDS}"),
        DecisionKind::Note => "no change: it is kept as evidence".to_owned(),
    }
}

const UNKNOWN_AFTERWARDS: &str =
    "; the revision is unknown then, and whatever comes next waits for a reading or an attestation of it";

/// What an end leaves unknown: a resource that was changed in part, by the step in question or by those before it.
fn left_unknown(facts: &Facts<'_>) -> &'static str {
    let resources = facts.state.spec.resources.iter().map(|resource| &resource.name);
    let fate = |step: &StepSpec| fate_if_decided(facts, step);
    let mut unknown = resources.filter(|name| fate::would_leave_unknown(facts.deployment, name, fate));
    if unknown.next().is_some() { UNKNOWN_AFTERWARDS } else { "" }
}

fn words(state: OperationState) -> &'static str {
    match state {
        OperationState::NotApplied => "not applied",
        OperationState::Applying => "being applied",
        OperationState::Applied => "applied",
        OperationState::Partial => "applied in part, as far as anybody knows",
        OperationState::Unknown => "not known to be applied or not",
    }
}

fn relation(facts: &Facts<'_>) -> String {
    let step = weigh::in_question(facts.deployment).map(|step| step.name.clone());
    match (facts.runner.runner.is_out(), step, facts.known) {
        (false, Some(step), _) => format!("step {step} may be running now: what is read of it may still change"),
        (false, None, _) => "nothing is in question".to_owned(),
        (true, Some(step), Some(known)) => format!("nobody is changing it, and step {step} is {}", words(known.state)),
        (true, _, _) => "nobody is changing it, and no step is in question".to_owned(),
    }
}

/// Who can bring a deployment of the target on, in words for people.
#[must_use]
pub fn who_can_act(state: &TargetState, deployment: &Deployment) -> Vec<String> {
    bring_on(state, deployment, &weigh::runner(state, deployment))
}

fn bring_on(state: &TargetState, deployment: &Deployment, runner: &RunnerKnown) -> Vec<String> {
    let mut who = vec!["a person who may decide".to_owned()];
    let reach = weigh::in_question(deployment)
        .and_then(|step| step.resource.as_ref())
        .and_then(|resource| state.spec.resource(resource));
    match (reach.map(|resource| (resource.reach, &resource.name)), &state.home) {
        (Some((Reach::Host, resource)), Some(home)) => who.push(format!("{home}, which alone reaches {resource}")),
        (Some((Reach::Host | Reach::Shared, resource)), _) => who.push(format!("an agent that reaches {resource}")),
        (None, _) => {}
    }
    if deployment.policy_at.is_some() && may_be_proven(state, deployment) {
        who.insert(0, "the target's policy by itself, as far as it can prove what happened".to_owned());
    }
    if !runner.runner.is_out() {
        who.push("the attempt's own agent, once it is in contact and tells how it ended".to_owned());
        who.push("a person who may attest that the runner is out".to_owned());
    }
    who
}

/// Whether anything can prove without a person what became of the step in question: its agent, as long as that has not said that
/// it can't tell, a fence, or a reading.
fn may_be_proven(state: &TargetState, deployment: &Deployment) -> bool {
    let Some(step) = weigh::in_question(deployment) else { return true };
    let said_unknown = deployment
        .attempts
        .last()
        .and_then(|last| last.step(&step.name))
        .is_some_and(|run| run.state == StepState::Ended(StepEnd::Unknown));
    let by_itself = |able: Capability| able.inspect != Inspect::None || able.enforce == Enforce::Fence;
    !said_unknown || weigh::capability(state, step).is_some_and(by_itself)
}

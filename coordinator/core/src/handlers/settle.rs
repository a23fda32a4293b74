//! A person decides, on the evidence that they were shown.

use holdfast_common::id::{AttemptId, DeploymentId, DeploymentLabel, EvidenceId, OperatorName};
use holdfast_common::outcome::OperationState;
use holdfast_common::recovery::DecisionKind;

use crate::authority;
use crate::bugs::{self, Bug};
use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::handlers::back;
use crate::handlers::report::keep;
use crate::input::Back;
use crate::open_decisions::{Checklist, open_decisions};
use crate::policy;
use crate::refusal::Refusal;
use crate::reservation::{self, End};
use crate::rollback;
use crate::state::{
    AttemptState, DecisionRecord, Deployment, DeploymentState, EvidenceBody, EvidenceSequence, RollbackOf, Waiting,
};

/// What is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) by: &'a OperatorName,
    pub(crate) kind: DecisionKind,
    pub(crate) reason: &'a str,
    pub(crate) shown: EvidenceSequence,
    pub(crate) evidence: EvidenceId,
    pub(crate) attempt: AttemptId,
    pub(crate) back: Option<&'a Back>,
}

pub(crate) fn settle(draft: &mut Draft<'_>, id: DeploymentId, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    let deployment = draft.state().deployment(id).ok_or(Refusal::DeploymentNotFound(id))?;
    let (state, newest) = (deployment.state, deployment.newest_evidence());
    if asked.kind == DecisionKind::Note {
        let body = EvidenceBody::Note { by: asked.by.clone(), text: asked.reason.to_owned() };
        keep(draft, id, asked.evidence, newest, body);
        return Ok(Answer::Decided(state));
    }
    if !matches!(state, DeploymentState::Uncertain | DeploymentState::Held) {
        return Err(Refusal::NothingToReconcile { state });
    }
    if asked.shown != newest && !bugs::on(Bug::EvidenceMovedIgnored) {
        return Err(Refusal::EvidenceMoved { shown: asked.shown, newest });
    }
    let checklist = open_decisions(draft.state(), deployment, draft.now.wall);
    if let Some(why_not) = checklist.why_not(asked.kind) {
        return Err(Refusal::DecisionNotOpen { kind: asked.kind, why_not: why_not.to_owned() });
    }
    let record = record(draft, deployment, asked, &checklist);
    let ground = match (record.attested, record.evidence.is_empty()) {
        (true, _) => "decided on a person's attestation",
        (false, false) => "decided on evidence",
        (false, true) => "decided on what was reported in time",
    };
    draft.record(Event::Decided { deployment: id, record });
    resolve(draft, asked);
    follow(draft, id, asked, ground)?;
    let now = draft.state().deployment(id).map(|deployment| deployment.state);
    Ok(Answer::Decided(now.unwrap_or_else(|| end_state(asked.kind))))
}

fn record(draft: &Draft<'_>, deployment: &Deployment, asked: &Asked<'_>, checklist: &Checklist) -> DecisionRecord {
    let step = checklist.steps.first();
    let proof = step.map(|step| step.evidence.clone()).unwrap_or_default();
    let mut evidence = checklist.runner_evidence.clone();
    evidence.extend(proof.into_iter().filter(|id| !checklist.runner_evidence.contains(id)));
    DecisionRecord {
        by: asked.by.clone(),
        at: draft.now.wall,
        kind: asked.kind,
        reason: asked.reason.to_owned(),
        attempt: deployment.attempts.last().map(|attempt| attempt.id),
        step: step.map(|step| step.step.clone()),
        runner: checklist.runner,
        target: step.map_or(OperationState::Applied, |step| step.state),
        observed: step.and_then(|step| step.observed.clone()),
        shown: asked.shown,
        evidence,
        attested: checklist.runner_attested
            || step.is_some_and(|step| step.attested)
            || asked.kind == DecisionKind::Abandon,
        trusted: checklist.trusted,
    }
}

/// The uncertain attempt is settled; its open permit is closed by the decision.
fn resolve(draft: &mut Draft<'_>, asked: &Asked<'_>) {
    let last = draft.current().and_then(|deployment| deployment.attempts.last());
    if let Some(attempt) = last.filter(|attempt| attempt.state == AttemptState::Uncertain) {
        let because = format!("{} decided: {}", asked.by, explain::decision(asked.kind));
        draft.record(Event::AttemptEnded { attempt: attempt.id, state: AttemptState::Resolved, because });
    }
}

/// `ground`: what it was decided on, in words.
fn follow(draft: &mut Draft<'_>, id: DeploymentId, asked: &Asked<'_>, ground: &str) -> Result<(), Refusal> {
    let by = asked.by;
    if asked.kind == DecisionKind::Readmit {
        return readmit(draft, id, asked);
    }
    if asked.kind == DecisionKind::Rollback {
        return roll_back(draft, id, asked);
    }
    if asked.kind == DecisionKind::Retry {
        let because = format!("{by} decided on a new attempt");
        draft.record(policy::moved(draft, id, DeploymentState::Active, because));
        let why = reservation::unless_on_hold(draft.state(), Waiting::Assignment);
        draft.record(Event::Waits { deployment: id, why, not_before: None });
        return Ok(());
    }
    let state = end_state(asked.kind);
    let because = match asked.kind {
        DecisionKind::Abandon => format!("{by} gave up without knowing what is there"),
        DecisionKind::AcceptSucceeded
        | DecisionKind::AcceptFailed
        | DecisionKind::AcceptCancelled
        | DecisionKind::Retry
        | DecisionKind::Rollback
        | DecisionKind::Readmit
        | DecisionKind::Note => format!("{by} {ground}"),
    };
    reservation::end(draft, id, End::decided(state, because));
    Ok(())
}

/// The original ends, and its rollback takes the reservation, in one transaction with the decision.
fn roll_back(draft: &mut Draft<'_>, id: DeploymentId, asked: &Asked<'_>) -> Result<(), Refusal> {
    let Some(back) = asked.back else { return Err(Refusal::Broken { because: "nobody looked up what to go back to" }) };
    let Some(undone) = draft.state().deployment(id) else { return Ok(()) };
    let way = rollback::over(draft.state(), undone, &back.past, &back.retained, draft.now.wall);
    let way = way.map_err(Refusal::CannotGoBack)?;
    let label = DeploymentLabel { target: draft.state().spec.name.clone(), number: draft.state().next_number };
    let because = format!("{} decided to go back over it: {label}", asked.by);
    reservation::close(draft, id, End::decided(DeploymentState::Failed, because));
    let base = rollback::base(draft.state(), &way.spec);
    let (undoes, reason) = (way.undoes.clone(), asked.reason.to_owned());
    let of = RollbackOf { undoes, base, reason, attested: None };
    back::submit(draft, back.deployment, back.request, asked.by, of, way);
    reservation::hand_over(draft, back.deployment);
    Ok(())
}

/// The open permit moves to a new attempt of the same journal under a new fence, in one transaction with the decision.
fn readmit(draft: &mut Draft<'_>, id: DeploymentId, asked: &Asked<'_>) -> Result<(), Refusal> {
    let now = draft.now;
    let fence = authority::next_fence(draft.state(), now.epoch).ok_or(Refusal::FenceExhausted)?;
    let because = format!("{} decided that the running process goes on under a new fence", asked.by);
    draft.record(policy::moved(draft, id, DeploymentState::Active, because));
    let Some((deployment, last)) = draft.current().and_then(|current| Some((current, current.attempts.last()?))) else {
        return Ok(());
    };
    let event = Event::LeaseGranted {
        deployment: id,
        attempt: asked.attempt,
        number: u32::try_from(deployment.attempts.len() + 1).unwrap_or(u32::MAX),
        agent: last.agent.clone(),
        incarnation: last.incarnation,
        fence,
        ttl: deployment.spec.lease_ttl,
        run: now.run,
        serving: now.serving,
        carried: Vec::new(),
        reread: Vec::new(),
        readmits: Some(last.id),
    };
    draft.record(event);
    Ok(())
}

fn end_state(kind: DecisionKind) -> DeploymentState {
    match kind {
        DecisionKind::AcceptSucceeded => DeploymentState::Succeeded,
        DecisionKind::AcceptCancelled => DeploymentState::Cancelled,
        DecisionKind::AcceptFailed
        | DecisionKind::Abandon
        | DecisionKind::Retry
        | DecisionKind::Rollback
        | DecisionKind::Readmit
        | DecisionKind::Note => DeploymentState::Failed,
    }
}

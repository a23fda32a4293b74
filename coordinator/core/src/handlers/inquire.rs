//! A look at a resource, or a raise of its fence, is asked for. Recorded before it is sent; the same question twice is
//! one question while nobody has answered it.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::id::{AgentName, DeploymentId, EvidenceId, OperatorName, ResourceName, StepName};
use holdfast_common::spec::{Reach, StepSpec};

use crate::authority;
use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::policy;
use crate::refusal::Refusal;
use crate::state::{Deployment, DeploymentState, Inquiry, InquiryKind, TargetState, Waiting};
use crate::weigh;

pub(crate) fn inspect(
    draft: &mut Draft<'_>,
    id: DeploymentId,
    by: &OperatorName,
    inquiry: EvidenceId,
    reachable: &[AgentName],
) -> Result<Answer, Refusal> {
    let deployment = draft.state().deployment(id).ok_or(Refusal::DeploymentNotFound(id))?;
    let cannot = |why: &str| Refusal::CannotInspect { why: why.to_owned() };
    let (step, resource) = subject(draft.state(), deployment)?.ok_or_else(|| cannot("no step is in question"))?;
    let readable = weigh::capability(draft.state(), step).map(|capability| capability.inspect);
    if matches!(readable, None | Some(Inspect::None)) {
        return Err(cannot(&format!("nothing reads step {} at {resource} back", step.name)));
    }
    let agent = reach(draft.state(), deployment, resource, reachable)
        .ok_or_else(|| cannot("nobody who reaches it is connected"))?;
    let runner_out = weigh::runner(draft.state(), deployment).runner.is_out();
    let asked = ask(deployment, inquiry, agent, resource, &step.name, InquiryKind::Inspect, runner_out);
    if let Some(same) = deployment.inquiries.iter().find(|other| is_same(other, &asked)) {
        return Ok(Answer::InquiryOpened(same.id));
    }
    open(draft, id, asked, by, "");
    Ok(Answer::InquiryOpened(inquiry))
}

pub(crate) fn fence_off(
    draft: &mut Draft<'_>,
    id: DeploymentId,
    by: &OperatorName,
    inquiry: EvidenceId,
    reachable: &[AgentName],
    reason: &str,
) -> Result<Answer, Refusal> {
    let deployment = draft.state().deployment(id).ok_or(Refusal::DeploymentNotFound(id))?;
    let cannot = |why: &str| Refusal::CannotFenceOff { why: why.to_owned() };
    if deployment.state != DeploymentState::Uncertain {
        return Err(cannot("no step of it may be running"));
    }
    let step = weigh::in_question(deployment).ok_or_else(|| cannot("no step is in question"))?;
    let resource = step.resource.as_ref().ok_or_else(|| cannot("the step names no resource"))?;
    let enforces = weigh::capability(draft.state(), step).map(|capability| capability.enforce);
    if enforces != Some(Enforce::Fence) {
        let step = &step.name;
        return Err(cannot(&format!(
            "what step {step} does at {resource} is compared with no fence: a higher one would not stop it"
        )));
    }
    let agent = reach(draft.state(), deployment, resource, reachable)
        .ok_or_else(|| cannot("nobody who reaches it is connected"))?;
    let fence = authority::next_fence(draft.state(), draft.now.epoch).ok_or(Refusal::FenceExhausted)?;
    let asked = ask(deployment, inquiry, agent, resource, &step.name, InquiryKind::FenceOff { fence }, true);
    if let Some(same) = deployment.inquiries.iter().find(|other| is_same(other, &asked)) {
        return Ok(Answer::InquiryOpened(same.id));
    }
    open(draft, id, asked, by, reason);
    Ok(Answer::InquiryOpened(inquiry))
}

/// A person who asks wants it settled: the policy, where there is one, need not wait any longer.
fn open(draft: &mut Draft<'_>, id: DeploymentId, inquiry: Inquiry, by: &OperatorName, reason: &str) {
    let reason = reason.to_owned();
    draft.record(Event::InquiryOpened { deployment: id, inquiry, by: by.clone(), reason });
    policy::now(draft, id);
}

fn ask(
    deployment: &Deployment,
    id: EvidenceId,
    agent: AgentName,
    resource: &ResourceName,
    step: &StepName,
    kind: InquiryKind,
    after_runner_out: bool,
) -> Inquiry {
    Inquiry {
        id,
        attempt: deployment.attempts.last().map(|attempt| attempt.id),
        agent,
        resource: resource.clone(),
        step: step.clone(),
        kind,
        after_runner_out,
        after: deployment.newest_evidence(),
    }
}

/// A raise is the same to whatever fence; a look is the same only if nothing new is known of the runner.
fn is_same(open: &Inquiry, asked: &Inquiry) -> bool {
    let kind = match (open.kind, asked.kind) {
        (InquiryKind::Inspect, InquiryKind::Inspect) => open.after_runner_out == asked.after_runner_out,
        (InquiryKind::FenceOff { .. }, InquiryKind::FenceOff { .. }) => true,
        (InquiryKind::Inspect, InquiryKind::FenceOff { .. }) | (InquiryKind::FenceOff { .. }, InquiryKind::Inspect) => {
            false
        }
    };
    kind && open.attempt == asked.attempt && open.agent == asked.agent && open.step == asked.step
}

/// The resource that an inquiry about the deployment is about: whoever gives [`crate::Input::Inspect`] or
/// [`crate::Input::FenceOff`] finds out who reaches it. `None` where there is nothing to ask.
#[must_use]
pub fn resource_in_question(state: &TargetState, id: DeploymentId) -> Option<ResourceName> {
    let (_step, resource) = subject(state, state.deployment(id)?).ok().flatten()?;
    Some(resource.clone())
}

/// The step to look at: the one in question, or the first on the unread resource that a waiting deployment needs.
fn subject<'a>(
    state: &'a TargetState,
    deployment: &'a Deployment,
) -> Result<Option<(&'a StepSpec, &'a ResourceName)>, Refusal> {
    match (deployment.state, &deployment.waiting) {
        (DeploymentState::Uncertain | DeploymentState::Held, _) => {
            Ok(weigh::in_question(deployment).and_then(|step| Some((step, step.resource.as_ref()?))))
        }
        (DeploymentState::Queued, Some(Waiting::UnreadRevision { resource })) => {
            let on = |step: &&StepSpec| step.resource.as_ref() == Some(resource);
            let readable = |step: &&StepSpec| {
                weigh::capability(state, step).is_some_and(|capability| capability.inspect != Inspect::None)
            };
            let steps = || deployment.spec.steps.iter().filter(on);
            Ok(steps().find(readable).or_else(|| steps().next()).map(|step| (step, resource)))
        }
        (state, _) => Err(Refusal::NothingToReconcile { state }),
    }
}

/// The first by name of those who reach the resource: a host-bound one only its own host. The agent that the question is about
/// comes last: it may be frozen and look connected.
fn reach(
    state: &TargetState,
    deployment: &Deployment,
    resource: &ResourceName,
    reachable: &[AgentName],
) -> Option<AgentName> {
    let host_bound = state.spec.resource(resource).is_some_and(|resource| resource.reach == Reach::Host);
    let home = |agent: &&AgentName| !host_bound || state.home.as_ref().is_none_or(|home| home == *agent);
    let in_question = |agent: &AgentName| deployment.attempts.last().is_some_and(|attempt| &attempt.agent == agent);
    reachable.iter().filter(home).min_by_key(|agent| (in_question(agent), *agent)).cloned()
}

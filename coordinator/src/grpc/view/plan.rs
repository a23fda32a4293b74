//! A plan.

use holdfast_common::code::Code;
use holdfast_common::id::DeploymentLabel;
use holdfast_common::report::DeclineReason;
use holdfast_common::spec::{DeploymentSpec, OrderKey};
use holdfast_coordinator_core::plan::{Entry, PinHolds, Plan, PlannedResource, PlannedStep};
use holdfast_coordinator_core::state::{AttemptState, Deployment};
use holdfast_coordinator_core::{Refusal, TargetState};
use holdfast_proto::convert::{WireEnum, duration_to_wire};
use holdfast_proto::v1;

use super::deployment::{label, summary};
use super::sentence::{self, waiting};
use super::{hold, target, text};

/// The plan of a file for the target. `refused` gives a refusal's sentence and code.
#[must_use]
pub fn plan(
    state: &TargetState,
    spec: &DeploymentSpec,
    plan: &Plan,
    refused: impl Fn(&Refusal) -> (String, Code),
) -> v1::Plan {
    let name = &state.spec.name;
    let shown = v1::Plan {
        target: name.to_string(),
        plan_digest: plan.digest.0.clone(),
        inputs: spec.inputs.clone().into_iter().collect(),
        order: spec.order.map(OrderKey::number),
        lease_ttl: Some(duration_to_wire(spec.lease_ttl)),
        max_attempts: spec.retry.max_attempts,
        policy: target::policy(state),
        holder: state.current.as_ref().map(|holder| summary(name, holder)),
        hold: state.hold.as_ref().map(hold::hold),
        agents: plan.agents.iter().map(agent).collect(),
        steps: plan.steps.iter().map(step).collect(),
        resources: plan.resources.iter().map(|one| resource(state, one)).collect(),
        not_undone: plan.not_undone.clone(),
        ..v1::Plan::default()
    };
    let called = |number| DeploymentLabel { target: name.clone(), number }.to_string();
    match &plan.entry {
        Entry::Begins { number } => v1::Plan { entry: v1::PlanEntry::Begins as i32, label: called(*number), ..shown },
        Entry::Waits { number, why, before, supersedes } => v1::Plan {
            entry: v1::PlanEntry::Waits as i32,
            label: called(*number),
            entry_because: waiting(why),
            before: named(state, before),
            supersedes: named(state, supersedes),
            ..shown
        },
        Entry::Refused(refusal) => {
            let (sentence, code) = refused(refusal);
            v1::Plan {
                entry: v1::PlanEntry::Refused as i32,
                entry_because: sentence,
                refused_code: code.to_string(),
                ..shown
            }
        }
    }
}

fn named(state: &TargetState, labels: &[DeploymentLabel]) -> Vec<v1::DeploymentSummary> {
    let name = &state.spec.name;
    state.queue.iter().filter(|one| labels.contains(&label(name, one))).map(|one| summary(name, one)).collect()
}

fn agent(agent: &holdfast_coordinator_core::plan::PlannedAgent) -> v1::PlannedAgent {
    let why_not = agent.why_not.clone().unwrap_or_default();
    v1::PlannedAgent { agent: agent.agent.to_string(), why_not, declined: String::new() }
}

/// What the agent answered last to an attempt of these deployments, the newest first, where its host's policy declined it.
#[must_use]
pub fn declined(latest: &[Deployment], agent: &str) -> Option<String> {
    let attempts =
        |deployment: &Deployment| deployment.attempts.iter().rfind(|one| one.agent.as_str() == agent).cloned();
    let (deployment, attempt) = latest.iter().find_map(|deployment| Some((deployment, attempts(deployment)?)))?;
    let by_policy = matches!(attempt.state, AttemptState::Declined(DeclineReason::HostPolicy));
    let target = &deployment.spec.target;
    by_policy.then(|| format!("{}: {}", label(target, deployment), sentence::declined(&attempt).unwrap_or_default()))
}

fn step(step: &PlannedStep) -> v1::PlannedStep {
    let pin = step.pin.as_ref();
    v1::PlannedStep {
        name: step.name.to_string(),
        effect: step.effect.to_number(),
        adapter: step.adapter.name().to_owned(),
        resource: text(step.resource.as_ref()),
        retry: step.retry.to_number(),
        timeout: step.timeout.map(duration_to_wire),
        wanted_revision: text(step.wanted.as_ref()),
        expected_revision: text(pin.map(|(revision, _)| revision)),
        pin: pin.map_or(v1::PinHolds::Unspecified, |(_, holds)| pin_holds(holds)) as i32,
        if_contact_is_lost: step.if_contact_is_lost.clone(),
    }
}

fn pin_holds(holds: &PinHolds) -> v1::PinHolds {
    match holds {
        PinHolds::Yes => v1::PinHolds::Yes,
        PinHolds::No { .. } => v1::PinHolds::No,
        PinHolds::NotRecorded => v1::PinHolds::NotRecorded,
        PinHolds::AfterEarlierStep => v1::PinHolds::AfterEarlierStep,
    }
}

fn resource(state: &TargetState, resource: &PlannedResource) -> v1::PlannedResource {
    let (knowledge, revision, recorded_at, source) = target::knowledge(&state.spec.name, &resource.now);
    v1::PlannedResource {
        resource: resource.name.to_string(),
        knowledge: knowledge as i32,
        revision,
        recorded_at,
        source,
        wanted_revision: text(resource.wanted.as_ref()),
    }
}

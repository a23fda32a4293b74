//! A target: who holds it, since when, why, and who waits.

use holdfast_common::id::{ResourceName, TargetName};
use holdfast_common::report::DeclineReason;
use holdfast_common::spec::{QueueKind, ResourceAdapter, ResourceSpec};
use holdfast_coordinator_core::state::{
    Attempt, AttemptState, Deployment, DeploymentState, ResourceKnowledge, RevisionSource, Waiting,
};
use holdfast_coordinator_core::{TargetState, open_decisions};
use holdfast_proto::convert::{resource_to_wire, wall_to_wire};
use holdfast_proto::v1;

use super::deployment::{label, summary};
use super::sentence::{because, quote};
use super::{fence_number, fence_text, hold, text};

/// The target as it stands.
#[must_use]
pub fn target(state: &TargetState) -> v1::Target {
    let name = &state.spec.name;
    let holder = state.current.as_ref();
    v1::Target {
        name: name.to_string(),
        agents: state.spec.agents.clone().into_iter().collect(),
        policy: policy(state),
        resources: state.spec.resources.iter().map(|resource| resource_status(state, resource)).collect(),
        fence: fence_number(state.fence),
        fence_text: fence_text(state.fence),
        holder: holder.map(|holder| summary(name, holder)),
        held_since: holder.and_then(|holder| holder.reserved_at).map(wall_to_wire),
        held_because: holder.map(because).unwrap_or_default(),
        waiting: state.queue.iter().map(|waiting| summary(name, waiting)).collect(),
        who_can_act: holder.or(state.queue.front()).map(|first| who_can_act(state, first)).unwrap_or_default(),
        hold: state.hold.as_ref().map(hold::hold),
        queue: queue(state.spec.queue).to_owned(),
    }
}

fn queue(kind: QueueKind) -> &'static str {
    match kind {
        QueueKind::Fifo => "fifo",
        QueueKind::Latest => "latest",
    }
}

pub(super) fn policy(state: &TargetState) -> String {
    let json = serde_json::to_value(state.spec.policy).expect("plain data serializes");
    json.as_str().unwrap_or_default().to_owned()
}

fn resource_status(state: &TargetState, resource: &ResourceSpec) -> v1::ResourceStatus {
    let home = match resource.reach {
        holdfast_common::spec::Reach::Host => text(state.home.as_ref()),
        holdfast_common::spec::Reach::Shared => String::new(),
    };
    let (knowledge, revision, recorded_at, source) = knowledge(&state.spec.name, &state.known(&resource.name));
    v1::ResourceStatus {
        resource: Some(resource_to_wire(resource)),
        knowledge: knowledge as i32,
        revision,
        recorded_at,
        home,
        source,
    }
}

/// What is known of a resource, its revision, when it was recorded, and from whose word.
pub(super) fn knowledge(
    target: &TargetName,
    known: &ResourceKnowledge,
) -> (v1::RevisionKnowledge, String, Option<prost_types::Timestamp>, String) {
    match known {
        ResourceKnowledge::Never => (v1::RevisionKnowledge::Never, String::new(), None, String::new()),
        ResourceKnowledge::Revision { revision, at, source } => {
            let source = source.as_ref().map(|source| source_words(target, source)).unwrap_or_default();
            (v1::RevisionKnowledge::Recorded, text(revision.as_ref()), Some(wall_to_wire(*at)), source)
        }
        ResourceKnowledge::Unknown { .. } => (v1::RevisionKnowledge::Unknown, String::new(), None, String::new()),
    }
}

fn source_words(target: &TargetName, source: &RevisionSource) -> String {
    match source {
        RevisionSource::Deployment { number, decided: true, .. } => format!("as decided of {target}#{number}"),
        RevisionSource::Deployment { number, agent: Some(agent), decided: false } => {
            format!("as {target}#{number} left it on {agent}")
        }
        RevisionSource::Deployment { number, agent: None, decided: false } => format!("as {target}#{number} left it"),
        RevisionSource::Read { agent } => format!("read by {agent}"),
        RevisionSource::Attested { by, how } if how.is_empty() => format!("attested by {by}"),
        RevisionSource::Attested { by, how } => format!("attested by {by}: {}", quote(how)),
    }
}

/// Who can tell an unknown revision. What no adapter can read, a person may attest.
fn unread(state: &TargetState, resource: &ResourceName) -> String {
    let target = &state.spec.name;
    match state.spec.resource(resource).map(|resource| &resource.adapter) {
        Some(ResourceAdapter::Command { inspect: None, .. }) => format!(
            "a person who may attest and has looked at {resource}, which nothing can read: holdfast target attest {target} \
             --resource {resource} --observed REV --how TEXT --confirm {target}"
        ),
        Some(
            ResourceAdapter::Command { inspect: Some(_), .. }
            | ResourceAdapter::Release { .. }
            | ResourceAdapter::System(_),
        )
        | None => {
            format!("an operator who may inspect: holdfast target inspect {target}")
        }
    }
}

/// Whose host forbids what it is offered again and again: nobody but that host's administrator changes that.
fn forbidden(deployment: &Deployment) -> String {
    let last = deployment.attempts.last();
    let by_policy = |attempt: &&Attempt| matches!(attempt.state, AttemptState::Declined(DeclineReason::HostPolicy));
    last.filter(by_policy).map_or_else(String::new, |attempt| {
        format!(
            "whoever administers the host of {}, whose policy forbids it (there: holdfast-agent refusals)",
            attempt.agent
        )
    })
}

/// Who can move a deployment on, in one sentence; empty where nobody needs to.
#[must_use]
pub fn who_can_act(state: &TargetState, deployment: &Deployment) -> String {
    let label = label(&state.spec.name, deployment);
    match deployment.state {
        DeploymentState::Uncertain | DeploymentState::Held => {
            let who = open_decisions::who_can_act(state, deployment).join("; ");
            format!("{who} (holdfast reconcile show {label})")
        }
        DeploymentState::Queued | DeploymentState::Active => match &deployment.waiting {
            Some(Waiting::NoEligibleAgent { .. }) => {
                "whoever runs the agents: start one, or connect it, with the labels and adapters that the target asks for"
                    .to_owned()
            }
            Some(Waiting::UnreadRevision { resource }) => unread(state, resource),
            Some(Waiting::Hold { by, .. }) => {
                format!("{by}, or an operator who may: holdfast target unhold {}", state.spec.name)
            }
            Some(Waiting::Backoff { .. } | Waiting::Assignment) => forbidden(deployment),
            Some(Waiting::Reservation { .. } | Waiting::Turn { .. }) | None => String::new(),
        },
        DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => String::new(),
    }
}

//! Having a target read.
//!
//! ```text
//! the first deployment of the target       the look
//! uncertain or held                        an inquiry of it, kept as its evidence
//! waits for an unread revision             the same: the answer lets it go on
//! is at work                               refused: its own agent tells how that ends
//! waits for anything else, or there is none  agents are asked, the answer is shown, nothing is kept
//! ```
//!
//! What an operation is at its resource is told of the last step that may have touched it, never of one that only waited.

use std::time::Duration;

use holdfast_common::adapter::{Inspect, Reverse};
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, EvidenceId, OperationId, ResourceName, StepName};
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::problem::Problem;
use holdfast_common::spec::{ResourceSpec, StepEffect, StepSpec};
use holdfast_coordinator_core::input::Finding;
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::{Deployment, DeploymentState, Evidence, EvidenceBody, Waiting};
use holdfast_coordinator_core::touched::{last_touch, may_have_touched};
use holdfast_coordinator_core::{TargetState, standing};
use holdfast_proto::convert::{reading_to_wire, resource_to_wire, step_to_wire};
use holdfast_proto::v1;
use tonic::Status;
use uuid::Uuid;

use super::{Call, find, inquire};
use crate::auth::Permission;
use crate::driver::Asked;
use crate::grpc::refused::Subject as About;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentFilter;

/// Deployments of a target at rest that are searched for the last step that changed a resource.
const SEARCHED: u32 = 100;

pub(super) async fn inspect(call: Call<'_, v1::InspectTargetRequest>) -> Result<v1::InspectTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = inquire::wait(asked.wait)?;
    let state = find::target(shared, &by, &asked.target, Permission::Inspect).await?;
    let first = state.current.as_ref().or(state.queue.front());
    let deployment = match first.map(|first| (first, look_at(first))) {
        Some((first, Look::Evidence)) => first,
        Some((first, Look::NotNow)) => return Err(status::of(&at_work(&state, first))),
        Some((_, Look::AtRest)) | None => return at_rest(shared, &state, wait).await,
    };
    let about = About::Deployment(view::deployment::label(&state.spec.name, deployment));
    let asked = Asked::Inspect { deployment: deployment.id, by: by.name.clone() };
    let inquiry = inquire::open(shared, &by, &about, asked).await?;
    let reading = match inquire::answer_to(shared, deployment.id, inquiry, wait).await? {
        Some(evidence) => kept(&state, deployment, &evidence),
        None => v1::ResourceReading { detail: "no answer came in time".to_owned(), ..v1::ResourceReading::default() },
    };
    Ok(v1::InspectTargetResponse { readings: vec![reading] })
}

/// What a look at the target is, with that deployment first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It waits for an answer, or its end is not known: the look is its evidence.
    Evidence,
    /// It changes the target, and tells itself how that ends.
    NotNow,
    /// It has changed nothing.
    AtRest,
}

fn look_at(first: &Deployment) -> Look {
    match (first.state, &first.waiting) {
        (DeploymentState::Uncertain | DeploymentState::Held, _)
        | (DeploymentState::Queued, Some(Waiting::UnreadRevision { .. })) => Look::Evidence,
        (DeploymentState::Active, _) => Look::NotNow,
        (
            DeploymentState::Queued | DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled,
            _,
        ) => Look::AtRest,
    }
}

fn at_work(state: &TargetState, first: &Deployment) -> Problem {
    let (target, label) = (&state.spec.name, view::deployment::label(&state.spec.name, first));
    Problem::new(Code::CannotInspect, format!("{label} is at work on {target}, which is not read meanwhile"))
        .known(view::sentence::because(first))
        .so("nothing was asked: a look in the middle of a change tells neither what was there nor what will be, and how it ends \
             is told by its own agent")
        .next(format!("holdfast watch {label}; after it: holdfast target inspect {target}"))
        .with("target", target.as_str())
        .with("deployment", label.to_string())
}

fn kept(state: &TargetState, deployment: &Deployment, evidence: &Evidence) -> v1::ResourceReading {
    match &evidence.body {
        EvidenceBody::Inspection { agent, resource, step, reading, .. } => {
            let label = view::deployment::label(&state.spec.name, deployment).to_string();
            let whose = match may_have_touched(deployment, step) {
                true => Whose::Touched { label, step: step.clone() },
                false => Whose::Nobodys { why: format!("read for {label}, which has not touched it") },
            };
            told(state, resource, agent, reading, whose)
        }
        EvidenceBody::InquiryFailed { agent, detail, .. } => {
            v1::ResourceReading { agent: agent.to_string(), detail: detail.clone(), ..v1::ResourceReading::default() }
        }
        EvidenceBody::LateReport { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::IdentityLocked { .. }
        | EvidenceBody::IdentityUnlocked { .. }
        | EvidenceBody::Note { .. } => v1::ResourceReading::default(),
    }
}

/// Of what a reading's state speaks.
enum Whose {
    /// Of this step.
    Touched { label: String, step: StepName },
    /// Of none that may have touched the resource.
    Nobodys { why: String },
}

fn told(
    state: &TargetState,
    resource: &ResourceName,
    agent: &AgentName,
    reading: &Reading,
    whose: Whose,
) -> v1::ResourceReading {
    // A step that never ran has no effect to be found, whatever the resource says of it.
    let shown = match &whose {
        Whose::Touched { .. } => reading.clone(),
        Whose::Nobodys { .. } => Reading { state: OperationState::Unknown, ..reading.clone() },
    };
    let (deployment, step, none) = match whose {
        Whose::Touched { label, step } => (label, step.to_string(), None),
        Whose::Nobodys { why } => (String::new(), String::new(), Some(why)),
    };
    let odd = standing(state, resource, reading).map(|odd| odd.words(resource));
    v1::ResourceReading {
        resource: resource.to_string(),
        agent: agent.to_string(),
        reading: Some(reading_to_wire(&shown)),
        detail: odd.into_iter().chain(none).collect::<Vec<_>>().join("; "),
        deployment,
        step,
    }
}

async fn at_rest(shared: &Shared, state: &TargetState, wait: Duration) -> Result<v1::InspectTargetResponse, Status> {
    let mut readings = Vec::new();
    for resource in &state.spec.resources {
        readings.push(match look(shared, state, resource, wait).await? {
            Ok(Seen { agent, finding: Finding::Read(reading) | Finding::Raised { reading }, whose }) => {
                told(state, &resource.name, &agent, &reading, whose)
            }
            Ok(Seen { agent, finding: Finding::Failed { detail }, .. }) => {
                v1::ResourceReading { agent: agent.to_string(), ..unread(&resource.name, &detail) }
            }
            Err(why) => unread(&resource.name, why),
        });
    }
    if readings.iter().all(|reading| reading.agent.is_empty()) {
        return Err(status::of(&nobody(state, &readings)));
    }
    Ok(v1::InspectTargetResponse { readings })
}

/// What a look asks for.
struct Subject {
    operation: OperationId,
    step: StepSpec,
    whose: Whose,
}

/// The last step that may have touched the resource. Where none may have, any step on it has a look made: for the revision.
async fn subject(shared: &Shared, state: &TargetState, resource: &ResourceSpec) -> Result<Option<Subject>, Status> {
    let filter =
        DeploymentFilter { target: Some(state.spec.name.clone()), limit: SEARCHED, ..DeploymentFilter::default() };
    let rows = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let rows = rows.map_err(|error| refused::by_store(&error))?;
    let past: Vec<&Deployment> = rows.iter().map(|row| &row.record).collect();
    let subject = |deployment: &Deployment, step: &StepSpec, whose| Subject {
        operation: OperationId { deployment: deployment.id, step: step.name.clone() },
        step: step.clone(),
        whose,
    };
    if let Some((deployment, step)) = last_touch(past.iter().copied(), &resource.name) {
        let label = view::deployment::label(&state.spec.name, deployment).to_string();
        return Ok(Some(subject(deployment, step, whose(resource, label, step))));
    }
    let changes =
        |step: &&StepSpec| step.effect == StepEffect::Mutates && step.resource.as_ref() == Some(&resource.name);
    let any = past.iter().find_map(|deployment| Some((*deployment, deployment.spec.steps.iter().rfind(changes)?)));
    Ok(any.map(|(deployment, step)| subject(deployment, step, Whose::Nobodys { why: untouched(past.len()) })))
}

/// Of a step that nothing reads back the resource tells nothing, whatever it says of its operation.
fn whose(resource: &ResourceSpec, label: String, step: &StepSpec) -> Whose {
    match step.capability(resource).inspect {
        Inspect::None => {
            Whose::Nobodys { why: format!("step {} of {label} touched it last, and nothing reads it back", step.name) }
        }
        Inspect::Revision | Inspect::Operation => Whose::Touched { label, step: step.name.clone() },
    }
}

fn untouched(searched: usize) -> String {
    let is_all = u32::try_from(searched).is_ok_and(|searched| searched < SEARCHED);
    if is_all {
        return "no deployment has touched it yet".to_owned();
    }
    format!("none of the last {searched} deployments has touched it")
}

/// What resources say that they retain, of those that can take an old revision back. One that can't be asked now is left out.
pub(super) async fn retained(shared: &Shared, state: &TargetState, wait: Duration) -> Result<Retained, Status> {
    let mut retained = Retained::new();
    let takes_back = |resource: &&ResourceSpec| resource.adapter.reverse() == Reverse::RetainedRevision;
    for resource in state.spec.resources.iter().filter(takes_back) {
        if let Ok(Seen { finding: Finding::Read(reading), .. }) = look(shared, state, resource, wait).await? {
            retained.insert(resource.name.clone(), reading.retained.into_iter().collect());
        }
    }
    Ok(retained)
}

/// What came of a look.
struct Seen {
    agent: AgentName,
    finding: Finding,
    whose: Whose,
}

/// Asks an agent that reaches the resource, or says why nobody answered.
async fn look(
    shared: &Shared,
    state: &TargetState,
    resource: &ResourceSpec,
    wait: Duration,
) -> Result<Result<Seen, &'static str>, Status> {
    const NOBODY: &str = "nobody who reaches it is connected";
    let Some(Subject { operation, step, whose }) = subject(shared, state, resource).await? else {
        return Ok(Err("nothing was ever deployed to it"));
    };
    let reachable = shared.directory.reachable(&state.spec, &resource.name, state.home.as_ref());
    let Some(agent) = reachable.first() else { return Ok(Err(NOBODY)) };
    let id = EvidenceId(Uuid::new_v4());
    let inquiry = v1::Inquiry {
        id: id.to_string(),
        target: state.spec.name.to_string(),
        resource: Some(resource_to_wire(resource)),
        operation: operation.to_string(),
        step: Some(step_to_wire(&step)),
        question: Some(v1::inquiry::Question::Inspect(v1::Inspect {})),
    };
    let Some(answer) = shared.directory.look(agent, id, inquiry) else { return Ok(Err(NOBODY)) };
    Ok(match tokio::time::timeout(wait, answer).await {
        Ok(Ok(finding)) => Ok(Seen { agent: agent.clone(), finding, whose }),
        Ok(Err(_)) => Err("the agent's session ended before it answered"),
        Err(_) => Err("no answer came in time"),
    })
}

fn unread(resource: &ResourceName, why: &str) -> v1::ResourceReading {
    v1::ResourceReading { resource: resource.to_string(), detail: why.to_owned(), ..v1::ResourceReading::default() }
}

fn nobody(state: &TargetState, readings: &[v1::ResourceReading]) -> Problem {
    let target = state.spec.name.as_str();
    let mut problem = Problem::new(Code::CannotInspect, format!("nothing of {target} could be read"));
    for reading in readings {
        problem = problem.known(format!("{}: {}", reading.resource, reading.detail));
    }
    problem.so("nothing was changed").next("holdfast agents").with("target", target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_at_work_is_not_looked_at() {
        let looks = |state, waiting: Option<Waiting>| {
            let mut state_of = view::tests::uncertain();
            let first = state_of.current.as_mut().expect("there");
            (first.state, first.waiting) = (state, waiting);
            (look_at(first), at_work(&state_of, state_of.current.as_ref().expect("there")))
        };
        let unread = Waiting::UnreadRevision { resource: ResourceName::new("site").expect("a name") };
        for (state, waiting, look) in [
            (DeploymentState::Uncertain, None, Look::Evidence),
            (DeploymentState::Held, None, Look::Evidence),
            (DeploymentState::Queued, Some(unread), Look::Evidence),
            (DeploymentState::Queued, Some(Waiting::Assignment), Look::AtRest),
            (DeploymentState::Active, None, Look::NotNow),
        ] {
            assert_eq!(looks(state, waiting).0, look, "{state:?}");
        }
        let told = looks(DeploymentState::Active, None).1;
        assert_eq!(told.code, Code::CannotInspect);
        assert!(told.title.contains("shop@prod#12 is at work") && told.next[0].contains("holdfast watch"), "{told}");
    }
}

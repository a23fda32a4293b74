//! Agents, with what they hold.

use std::collections::BTreeMap;

use holdfast_common::id::AgentName;
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, page};
use crate::auth::{Operator, Permission};
use crate::grpc::shared::Shared;
use crate::grpc::{refused, view};
use crate::sessions::AgentStatus;
use crate::store::rows::DeploymentFilter;

/// Deployments under way that are looked through.
const MOST_HELD: u32 = 10_000;

pub(super) async fn list(call: Call<'_, v1::ListAgentsRequest>) -> Result<v1::ListAgentsResponse, Status> {
    let Call { shared, by, asked } = call;
    let after: Option<AgentName> = page::token(&asked.page_token)?;
    let mut holds = holds(shared, &by).await?;
    let mut agents = shared.directory.list();
    if let Some(targets) = targets(shared, &by).await? {
        let serves = |agent: &AgentStatus| targets.iter().any(|target| agent.profile.matches(target));
        agents.retain(|agent| serves(agent) || holds.contains_key(&agent.name));
    }
    let (agents, next_page_token) =
        page::cut(agents, after.as_ref().map(AgentName::as_str), page::size(asked.page_size), |status| {
            status.name.as_str()
        });
    let agents = agents.into_iter().map(|status| {
        let held = holds.remove(&status.name).unwrap_or_default();
        view::agent::agent(status, held)
    });
    Ok(v1::ListAgentsResponse { agents: agents.collect(), next_page_token })
}

/// One of them, as in the list.
pub(super) async fn one(shared: &Shared, by: &Operator, name: &AgentName) -> Result<Option<v1::Agent>, Status> {
    let held = holds(shared, by).await?.remove(name).unwrap_or_default();
    let status = shared.directory.list().into_iter().find(|status| &status.name == name);
    Ok(status.map(|status| view::agent::agent(status, held)))
}

/// The targets that the caller may view, whose agents are therefore shown; `None` where that is all of them.
async fn targets(shared: &Shared, by: &Operator) -> Result<Option<Vec<TargetSpec>>, Status> {
    if by.scope.may_everywhere(Permission::View) {
        return Ok(None);
    }
    let rows = shared.reader.run(|reader| reader.targets()).await.map_err(|error| refused::by_store(&error))?;
    let specs = rows.into_iter().map(|row| row.spec);
    Ok(Some(specs.filter(|spec| by.scope.may(Permission::View, &spec.name)).collect()))
}

/// For each agent, the deployments whose last attempt it was given and that have not ended, as far as the caller may
/// view them.
async fn holds(shared: &Shared, by: &Operator) -> Result<BTreeMap<AgentName, Vec<String>>, Status> {
    let filter = DeploymentFilter {
        among: find::seen(shared, by).await?,
        states: vec![
            DeploymentState::Active,
            DeploymentState::Uncertain,
            DeploymentState::Held,
            DeploymentState::Queued,
        ],
        limit: MOST_HELD,
        ..DeploymentFilter::default()
    };
    let read = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let mut holds: BTreeMap<AgentName, Vec<String>> = BTreeMap::new();
    for row in read.map_err(|error| refused::by_store(&error))? {
        if let Some(attempt) = row.record.attempts.last().filter(|_| row.record.reserved_at.is_some()) {
            let label = view::deployment::label(&row.target, &row.record).to_string();
            holds.entry(attempt.agent.clone()).or_default().push(label);
        }
    }
    Ok(holds)
}

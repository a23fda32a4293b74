//! Agents, with what they hold.

use std::collections::BTreeMap;

use holdfast_common::id::AgentName;
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, page};
use crate::auth::guard::not_allowed;
use crate::auth::{Operator, Permission};
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::sessions::AgentStatus;
use crate::store::AgentRow;
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
    let mut rows = rows(shared).await?;
    let agents = agents.into_iter().map(|status| {
        let held = holds.remove(&status.name).unwrap_or_default();
        let row = rows.remove(&status.name);
        view::agent::agent(status, row.as_ref(), held)
    });
    Ok(v1::ListAgentsResponse { agents: agents.collect(), next_page_token })
}

/// One agent, if it was ever heard of, as in the list.
pub(super) async fn find(shared: &Shared, by: &Operator, agent: &AgentName) -> Result<Option<v1::Agent>, Status> {
    let held = holds(shared, by).await?.remove(agent).unwrap_or_default();
    let status = shared.directory.list().into_iter().find(|status| status.name == *agent);
    let row = rows(shared).await?.remove(agent);
    Ok(status.map(|status| view::agent::agent(status, row.as_ref(), held)))
}

async fn rows(shared: &Shared) -> Result<BTreeMap<AgentName, AgentRow>, Status> {
    let rows = shared.reader.run(|reader| reader.agents()).await.map_err(|error| refused::by_store(&error))?;
    Ok(rows.into_iter().map(|row| (row.name.clone(), row)).collect())
}

/// Whether the caller manages agents: an agent may serve any target, so that is asked of all of them.
pub(super) fn may_manage(shared: &Shared, by: &Operator, what: &str) -> Result<(), Status> {
    if by.scope.may_everywhere(Permission::Agents) {
        return Ok(());
    }
    let problem =
        not_allowed(by, Permission::Agents, None).known("an agent may serve any target: it takes a grant for *");
    shared.driver.refused(by.name.to_string(), what.to_owned(), problem.title.clone());
    Err(status::of(&problem))
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

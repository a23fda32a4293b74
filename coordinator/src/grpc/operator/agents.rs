//! Agents, with what they hold.

use std::collections::BTreeMap;

use holdfast_common::id::AgentName;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, page};
use crate::grpc::shared::Shared;
use crate::grpc::{refused, view};
use crate::store::rows::DeploymentFilter;

/// Deployments under way that are looked through.
const MOST_HELD: u32 = 10_000;

pub(super) async fn list(call: Call<'_, v1::ListAgentsRequest>) -> Result<v1::ListAgentsResponse, Status> {
    let Call { shared, asked, .. } = call;
    let after: Option<AgentName> = page::token(&asked.page_token)?;
    let (agents, next_page_token) = page::cut(
        shared.directory.list(),
        after.as_ref().map(AgentName::as_str),
        page::size(asked.page_size),
        |status| status.name.as_str(),
    );
    let mut holds = holds(shared).await?;
    let agents = agents.into_iter().map(|status| {
        let held = holds.remove(&status.name).unwrap_or_default();
        view::agent::agent(status, held)
    });
    Ok(v1::ListAgentsResponse { agents: agents.collect(), next_page_token })
}

/// For each agent, the deployments whose last attempt it was given and that have not ended.
async fn holds(shared: &Shared) -> Result<BTreeMap<AgentName, Vec<String>>, Status> {
    let filter = DeploymentFilter {
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

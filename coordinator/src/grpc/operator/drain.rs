//! Draining an agent, and resuming it. Agents serve many targets, so it takes a permission that counts on all of them.

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::problem::Problem;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, agents, find};
use crate::auth::Operator;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};
use crate::sessions::Drained;
use crate::store::DrainRow;

pub(super) async fn drain(call: Call<'_, v1::DrainAgentRequest>) -> Result<v1::DrainAgentResponse, Status> {
    let Call { shared, by, asked } = call;
    let agent = managed(shared, &by, &asked.agent, "drain")?;
    let reason = find::reason(&asked.reason)?;
    let row = DrainRow { agent: agent.clone(), by: by.name.clone(), reason: reason.clone(), since: shared.now() };
    let since = shared.driver.drain(row).await.map_err(|error| refused::about_agents(&error))?;
    tracing::info!(by = %by.name, %agent, reason, "an agent is drained");
    shared.directory.drain(&agent, Some(Drained { by: by.name.clone(), reason, since }));
    shared.driver.agents_changed();
    Ok(v1::DrainAgentResponse { agent: agents::find(shared, &by, &agent).await? })
}

pub(super) async fn resume(call: Call<'_, v1::ResumeAgentRequest>) -> Result<v1::ResumeAgentResponse, Status> {
    let Call { shared, by, asked } = call;
    let agent = managed(shared, &by, &asked.agent, "resume")?;
    let was_drained = shared.driver.resume(agent.clone(), by.name.clone()).await;
    if was_drained.map_err(|error| refused::about_agents(&error))? {
        tracing::info!(by = %by.name, %agent, "an agent gets new work again");
        shared.directory.drain(&agent, None);
        shared.driver.agents_changed();
    }
    Ok(v1::ResumeAgentResponse { agent: agents::find(shared, &by, &agent).await? })
}

/// The agent of that name, where the caller may manage agents and there is such a one.
fn managed(shared: &Shared, by: &Operator, name: &str, what: &str) -> Result<AgentName, Status> {
    agents::may_manage(shared, by, &format!("{what} {name}"))?;
    let known = AgentName::new(name).ok().filter(|agent| shared.directory.last_heard(agent).is_some());
    known.ok_or_else(|| {
        let problem = Problem::new(Code::AgentNotFound, format!("no such agent: {name}"));
        status::of(&problem.so("nothing was changed").next("holdfast agents"))
    })
}

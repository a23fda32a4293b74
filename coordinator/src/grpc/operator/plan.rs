//! What a file would do. Nothing is recorded, and no agent is asked.

use std::collections::BTreeMap;

use holdfast_common::file::DeploymentFile;
use holdfast_common::id::{AgentName, TargetName};
use holdfast_coordinator_core::plan;
use holdfast_coordinator_core::state::Deployment;
use holdfast_proto::convert::parsed_or_none;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, submit};
use crate::auth::Permission;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentFilter;

/// Deployments of the target in which an agent's last answer is looked for.
const LATEST: u32 = 20;

pub(super) async fn plan(call: Call<'_, v1::PlanRequest>) -> Result<v1::PlanResponse, Status> {
    let Call { shared, by, asked } = call;
    let instead: Option<TargetName> = parsed_or_none("target", &asked.target).map_err(|why| status::invalid(&why))?;
    let inputs: BTreeMap<String, String> = asked.inputs.into_iter().collect();
    let (bytes, text) = (asked.file.len(), asked.file);
    let parsed = shared.files.read(bytes, move || DeploymentFile::parse(&text)).await?;
    let file = parsed.map_err(|errors| status::bad_file(&errors, "FILE"))?;
    let target = instead.as_ref().or(file.target()).cloned().ok_or_else(|| status::of(&submit::no_target()))?;
    let state = find::target(shared, &by, target.as_str(), Permission::View).await?;
    let declared = state.spec.clone();
    let resolved = shared.files.read(bytes, move || file.resolve(&inputs, instead.as_ref(), &declared)).await?;
    let spec = resolved.map_err(|errors| status::bad_file(&errors, "FILE"))?;
    let needs = spec.steps.iter().map(|step| step.body.adapter()).collect();
    let candidates = shared.directory.candidates(&state.spec, &needs);
    let plan = plan::plan(&state, &spec, &candidates, shared.now());
    let refused = |refusal: &_| (refused::title(target.as_str(), refusal), refusal.code());
    let mut shown = view::plan::plan(&state, &spec, &plan, refused);
    let latest = latest(shared, &state.spec.name).await?;
    for agent in &mut shown.agents {
        agent.declined = view::plan::declined(&latest, &agent.agent).unwrap_or_default();
    }
    if let (Some(holder), Some(current)) = (&mut shown.holder, &state.current) {
        shared.tell(holder, current);
    }
    stands_still(shared, &mut shown);
    Ok(v1::PlanResponse { plan: Some(shown) })
}

/// What keeps it from running now, whoever holds the target: the coordinator itself, or the room of an agent's host.
fn stands_still(shared: &Shared, shown: &mut v1::Plan) {
    let why = shared.standstill();
    for agent in shown.agents.iter_mut().filter(|agent| agent.why_not.is_empty()) {
        let no_room = AgentName::new(&agent.agent).ok().and_then(|name| shared.directory.no_room(&name));
        agent.why_not = why.clone().or(no_room.map(|no_room| no_room.why)).unwrap_or_default();
    }
    let Some(why) = why else { return };
    match shown.entry() {
        v1::PlanEntry::Begins => {
            shown.set_entry(v1::PlanEntry::Waits);
            shown.entry_because = why;
        }
        v1::PlanEntry::Waits => shown.entry_because = format!("{}; {why}", shown.entry_because),
        v1::PlanEntry::Refused | v1::PlanEntry::Unspecified => {}
    }
}

/// The latest deployments of the target, the newest first.
async fn latest(shared: &Shared, target: &TargetName) -> Result<Vec<Deployment>, Status> {
    let filter = DeploymentFilter { target: Some(target.clone()), limit: LATEST, ..DeploymentFilter::default() };
    let rows = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let rows = rows.map_err(|error| refused::by_store(&error))?;
    Ok(rows.into_iter().map(|row| row.record).collect())
}

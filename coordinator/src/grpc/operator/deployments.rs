//! Deployments: one, and lists.

use holdfast_common::id::TargetName;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::convert::{Invalid, parsed_or_none};
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, page};
use crate::auth::Permission;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentFilter;

pub(super) async fn get(call: Call<'_, v1::GetDeploymentRequest>) -> Result<v1::GetDeploymentResponse, Status> {
    let row = find::deployment(call.shared, &call.by, &call.asked.deployment, Permission::View).await?;
    Ok(v1::GetDeploymentResponse { deployment: Some(find::shown(call.shared, row).await) })
}

pub(super) async fn list(call: Call<'_, v1::ListDeploymentsRequest>) -> Result<v1::ListDeploymentsResponse, Status> {
    let Call { shared, by, asked } = call;
    let target: Option<TargetName> = parsed_or_none("target", &asked.target).map_err(|why| status::invalid(&why))?;
    let states = asked.states.iter().map(|number| state(*number)).collect::<Result<_, _>>()?;
    let size = page::size(asked.page_size);
    // One more than the page tells whether there is another page.
    let before = page::token(&asked.page_token)?;
    let filter = DeploymentFilter { target, among: find::seen(shared, &by).await?, states, before, limit: size + 1 };
    let read = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let mut rows = read.map_err(|error| refused::by_store(&error))?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|row| row.place.to_string());
    Ok(v1::ListDeploymentsResponse {
        deployments: rows.iter().map(|row| shared.summary(&row.target, &row.record)).collect(),
        next_page_token: next.unwrap_or_default(),
    })
}

fn state(number: i32) -> Result<DeploymentState, Status> {
    view::enums::deployment_state_from_wire(number)
        .ok_or_else(|| status::invalid(&Invalid::Enum { field: "states", kind: "DeploymentState", number }))
}

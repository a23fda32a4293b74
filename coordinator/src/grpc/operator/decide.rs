//! Deciding on evidence.

use std::time::Duration;

use holdfast_common::recovery::DecisionKind;
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::EvidenceSequence;
use holdfast_proto::convert::WireEnum;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, inspect_target, reconciliation};
use crate::auth::{Operator, Permission};
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};
use crate::store::rows::DeploymentRow;

/// How long a decision to go back waits for what a resource retains.
const LOOK: Duration = Duration::from_secs(5);

pub(super) async fn decide(call: Call<'_, v1::DecideRequest>) -> Result<v1::DecideResponse, Status> {
    let Call { shared, by, asked } = call;
    let kind = DecisionKind::from_wire("kind", asked.kind).map_err(|why| status::invalid(&why))?;
    let reason = find::reason(&asked.reason)?;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::Decide).await?;
    reconciliation::not_ended(&row)?;
    match kind {
        DecisionKind::Note => {}
        DecisionKind::Retry
        | DecisionKind::AcceptSucceeded
        | DecisionKind::AcceptFailed
        | DecisionKind::AcceptCancelled
        | DecisionKind::Rollback
        | DecisionKind::Readmit
        | DecisionKind::Abandon => find::confirmed(&row.target, &asked.confirm)?,
    }
    let goes_back = kind == DecisionKind::Rollback;
    let retained = if goes_back { retained(shared, &by, &row).await? } else { Retained::new() };
    let id = row.record.id;
    let shown = EvidenceSequence(asked.evidence_sequence);
    let decide = Asked::Decide { deployment: id, by: by.name.clone(), kind, reason, shown, retained };
    let told = match shared.driver.ask(row.target.clone(), decide).await {
        Ok(told) => told,
        Err(error) => return Err(refused::by_driver(shared, &by, &Subject::of(&row), error).await),
    };
    let rollback = match told.deployment.filter(|_| goes_back) {
        Some(rollback) => Some(find::shown_by_id(shared, rollback).await?),
        None => None,
    };
    Ok(v1::DecideResponse { deployment: Some(find::shown_by_id(shared, id).await?), rollback })
}

/// What resources say that they retain now. A rollback has a permission of its own.
async fn retained(shared: &Shared, by: &Operator, row: &DeploymentRow) -> Result<Retained, Status> {
    let state = find::target(shared, by, row.target.as_str(), Permission::Rollback).await?;
    inspect_target::retained(shared, &state, LOOK).await
}

//! Deciding on evidence.

use holdfast_common::recovery::DecisionKind;
use holdfast_coordinator_core::state::EvidenceSequence;
use holdfast_proto::convert::WireEnum;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, reconciliation};
use crate::auth::Permission;
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::{refused, status};

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
    let id = row.record.id;
    let shown = EvidenceSequence(asked.evidence_sequence);
    let decide = Asked::Decide { deployment: id, by: by.name.clone(), kind, reason, shown };
    if let Err(error) = shared.driver.ask(row.target.clone(), decide).await {
        return Err(refused::by_driver(shared, &by, &Subject::of(&row), error).await);
    }
    Ok(v1::DecideResponse { deployment: Some(find::shown_by_id(shared, id).await?) })
}

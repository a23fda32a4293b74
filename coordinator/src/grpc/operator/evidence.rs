//! A deployment's evidence.

use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find};
use crate::auth::Permission;
use crate::grpc::{refused, view};

pub(super) async fn list(call: Call<'_, v1::ListEvidenceRequest>) -> Result<v1::ListEvidenceResponse, Status> {
    let row = find::deployment(call.shared, &call.by, &call.asked.deployment, Permission::View).await?;
    let read = call.shared.reader.run(move |reader| reader.evidence(row.record.id)).await;
    let evidence = read.map_err(|error| refused::by_store(&error))?;
    Ok(v1::ListEvidenceResponse { evidence: evidence.iter().map(view::evidence::evidence).collect() })
}

//! Having the open step's resource read, or its fence raised.

use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, EvidenceId, TargetName};
use holdfast_coordinator_core::Answer;
use holdfast_coordinator_core::state::Evidence;
use holdfast_proto::convert::duration_from_wire;
use holdfast_proto::v1;
use tonic::Status;

use super::find::Naming;
use super::{Call, find};
use crate::driver::Asked;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};

/// Longest wait for an answer: below the deadline of a call.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

pub(super) async fn inspect(
    call: Call<'_, v1::InspectDeploymentRequest>,
) -> Result<v1::InspectDeploymentResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = wait(asked.wait)?;
    let row = find::deployment(shared, &asked.deployment, Naming::Whole).await?;
    let id = row.record.id;
    let inquiry = open(shared, &row.target, Asked::Inspect { deployment: id, by: by.name }).await?;
    let answer = answer_to(shared, id, inquiry, wait).await?;
    Ok(v1::InspectDeploymentResponse {
        inquiry: inquiry.to_string(),
        answer: answer.as_ref().map(view::evidence::evidence),
    })
}

pub(super) async fn fence_off(
    call: Call<'_, v1::FenceOffDeploymentRequest>,
) -> Result<v1::FenceOffDeploymentResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = wait(asked.wait)?;
    let reason = find::reason(&asked.reason)?;
    let row = find::deployment(shared, &asked.deployment, Naming::Whole).await?;
    find::confirmed(&row.target, &asked.confirm)?;
    let id = row.record.id;
    let inquiry = open(shared, &row.target, Asked::FenceOff { deployment: id, by: by.name, reason }).await?;
    let answer = answer_to(shared, id, inquiry, wait).await?;
    Ok(v1::FenceOffDeploymentResponse {
        inquiry: inquiry.to_string(),
        answer: answer.as_ref().map(view::evidence::evidence),
    })
}

/// How long to wait, bounded.
pub(super) fn wait(asked: Option<prost_types::Duration>) -> Result<Duration, Status> {
    let span = asked.map(|span| duration_from_wire("wait", span)).transpose().map_err(|why| status::invalid(&why))?;
    Ok(span.map(Duration::from).unwrap_or_default().min(LONGEST_WAIT))
}

/// Puts the question on record. It is sent after that.
pub(super) async fn open(shared: &Shared, target: &TargetName, asked: Asked) -> Result<EvidenceId, Status> {
    match shared.driver.ask(target.clone(), asked).await.map(|told| told.answer) {
        Ok(Answer::InquiryOpened(inquiry)) => Ok(inquiry),
        Ok(other) => {
            tracing::error!(answer = ?other, "an inquiry was answered with something else");
            Err(status::plain(Code::Internal, Code::Internal.title()))
        }
        Err(error) => Err(refused::by_driver(shared, target, error).await),
    }
}

/// The first evidence that answers the inquiry, if it comes in time.
pub(super) async fn answer_to(
    shared: &Shared,
    deployment: DeploymentId,
    inquiry: EvidenceId,
    wait: Duration,
) -> Result<Option<Evidence>, Status> {
    let mut committed = shared.driver.committed();
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        committed.borrow_and_update();
        let read = shared.reader.run(move |reader| reader.evidence(deployment)).await;
        let evidence = read.map_err(|error| refused::by_store(&error))?;
        let found = evidence.into_iter().find(|evidence| view::evidence::answers(evidence) == Some(inquiry));
        if found.is_some() {
            return Ok(found);
        }
        match tokio::time::timeout_at(deadline, committed.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Ok(None),
        }
    }
}

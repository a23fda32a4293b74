//! Asking for a stop. The answer says what is on record, never that anything stopped.

use holdfast_common::code::Code;
use holdfast_coordinator_core::Answer;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find};
use crate::auth::Permission;
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::{refused, status};

pub(super) async fn cancel(
    call: Call<'_, v1::CancelDeploymentRequest>,
) -> Result<v1::CancelDeploymentResponse, Status> {
    let Call { shared, by, asked } = call;
    let reason = find::reason(&asked.reason)?;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::Cancel).await?;
    let id = row.record.id;
    let cancel = Asked::Cancel { deployment: id, by: by.name.clone(), reason };
    let told = match shared.driver.ask(row.target.clone(), cancel).await {
        Ok(told) => told,
        Err(error) => return Err(refused::by_driver(shared, &by, &Subject::of(&row), error).await),
    };
    let answer = answer(&told.answer)?;
    Ok(v1::CancelDeploymentResponse { answer: answer as i32, deployment: Some(find::shown_by_id(shared, id).await?) })
}

fn answer(answer: &Answer) -> Result<v1::CancelAnswer, Status> {
    match answer {
        Answer::CancelRecorded => Ok(v1::CancelAnswer::Recorded),
        Answer::CancelledAtOnce => Ok(v1::CancelAnswer::Cancelled),
        Answer::CancelTooLate(_) => Ok(v1::CancelAnswer::TooLate),
        Answer::Done
        | Answer::Submitted { .. }
        | Answer::Renewed { .. }
        | Answer::Superseded
        | Answer::Permitted
        | Answer::Denied(_)
        | Answer::Answered(_)
        | Answer::InquiryOpened(_)
        | Answer::Decided(_) => {
            tracing::error!(?answer, "a cancel was answered with something else");
            Err(status::plain(Code::Internal, Code::Internal.title()))
        }
    }
}

//! Having a target read.
//!
//! An inquiry belongs to a deployment: the one that holds the target, or the first that waits. Without one there is
//! nothing on whose record an answer could be kept, and the request is refused.

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_coordinator_core::state::{Evidence, EvidenceBody};
use holdfast_proto::convert::reading_to_wire;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, inquire};
use crate::driver::Asked;
use crate::grpc::status;

pub(super) async fn inspect(call: Call<'_, v1::InspectTargetRequest>) -> Result<v1::InspectTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = inquire::wait(asked.wait)?;
    let state = find::target(shared, &asked.target).await?;
    let target = &state.spec.name;
    let Some(deployment) = state.current.as_ref().or(state.queue.front()) else {
        return Err(status::of(&nothing_to_ask_for(target.as_str())));
    };
    let inquiry = inquire::open(shared, target, Asked::Inspect { deployment: deployment.id, by: by.name }).await?;
    let reading = match inquire::answer_to(shared, deployment.id, inquiry, wait).await? {
        Some(evidence) => reading(&evidence),
        None => v1::ResourceReading { detail: "no answer came in time".to_owned(), ..v1::ResourceReading::default() },
    };
    Ok(v1::InspectTargetResponse { readings: vec![reading] })
}

fn reading(evidence: &Evidence) -> v1::ResourceReading {
    match &evidence.body {
        EvidenceBody::Inspection { agent, resource, reading, .. } => v1::ResourceReading {
            resource: resource.to_string(),
            agent: agent.to_string(),
            reading: Some(reading_to_wire(reading)),
            detail: String::new(),
        },
        EvidenceBody::InquiryFailed { agent, detail, .. } => {
            v1::ResourceReading { agent: agent.to_string(), detail: detail.clone(), ..v1::ResourceReading::default() }
        }
        EvidenceBody::LateReport { .. }
        | EvidenceBody::FencedOff { .. }
        | EvidenceBody::JournalWord { .. }
        | EvidenceBody::Attested { .. }
        | EvidenceBody::Note { .. } => v1::ResourceReading::default(),
    }
}

fn nothing_to_ask_for(target: &str) -> Problem {
    Problem::new(Code::CannotInspect, format!("{target} has no deployment that a reading could be filed under"))
        .known("no deployment holds the target and none waits")
        .so("nothing was asked")
        .next(format!("holdfast target show {target}"))
        .with("target", target)
}

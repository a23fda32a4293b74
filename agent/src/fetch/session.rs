//! From the coordinator, which has what was uploaded with a deployment.

use holdfast_common::claim::Claim;
use holdfast_common::id::StepName;
use holdfast_net::channel::{self, Addresses, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::MAX_MESSAGE_BYTES;
use holdfast_proto::convert::claim_to_wire;
use holdfast_proto::v1::FetchArchiveRequest;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use tonic::{Code, Status};

use super::Trouble;
use super::part::Part;

/// Goes on where the part ends. `Ok` only with the last byte.
pub(super) async fn fetch(
    addresses: &Addresses,
    tls: &ClientTls,
    claim: Claim,
    step: &StepName,
    part: &mut Part,
) -> Result<(), Trouble> {
    let channel = channel::connect_any(addresses, tls, &Limits::default())
        .await
        .map_err(|error| Trouble::Passing(error.to_string()))?;
    let mut client = AgentServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let offset = part.length();
    let request = FetchArchiveRequest { claim: Some(claim_to_wire(claim)), step: step.to_string(), offset };
    let mut pieces = client.fetch_archive(request).await.map_err(|status| trouble(&status))?.into_inner();
    while let Some(piece) = pieces.message().await.map_err(|status| trouble(&status))? {
        part.expect(piece.size)?;
        if piece.offset != part.length() {
            // More than the whole was here: what is here is not it.
            part.restart()?;
            return Err(Trouble::Passing("the coordinator goes on somewhere else".to_owned()));
        }
        part.push(&piece.data)?;
        if part.length() >= piece.size {
            return Ok(());
        }
    }
    Err(Trouble::Passing("the coordinator ended in the middle".to_owned()))
}

fn trouble(status: &Status) -> Trouble {
    let told = status.message().to_owned();
    match status.code() {
        Code::NotFound
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::InvalidArgument
        | Code::Unimplemented => Trouble::Final(told),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => Trouble::Passing(told),
    }
}

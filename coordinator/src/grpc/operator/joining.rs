//! Join tokens, and the end of agents and certificates.

use holdfast_proto::v1;
use tonic::Status;

use super::{Call, agents};

pub(super) async fn create_token(
    call: Call<'_, v1::CreateJoinTokenRequest>,
) -> Result<v1::CreateJoinTokenResponse, Status> {
    agents::may_manage(call.shared, &call.by, "create a join token")?;
    Err(Status::unimplemented("this version makes no join tokens"))
}

pub(super) async fn list_tokens(
    call: Call<'_, v1::ListJoinTokensRequest>,
) -> Result<v1::ListJoinTokensResponse, Status> {
    agents::may_manage(call.shared, &call.by, "list join tokens")?;
    Err(Status::unimplemented("this version makes no join tokens"))
}

pub(super) async fn revoke_token(
    call: Call<'_, v1::RevokeJoinTokenRequest>,
) -> Result<v1::RevokeJoinTokenResponse, Status> {
    agents::may_manage(call.shared, &call.by, "revoke a join token")?;
    Err(Status::unimplemented("this version makes no join tokens"))
}

pub(super) async fn remove_agent(call: Call<'_, v1::RemoveAgentRequest>) -> Result<v1::RemoveAgentResponse, Status> {
    agents::may_manage(call.shared, &call.by, "remove an agent")?;
    Err(Status::unimplemented("this version removes no agents"))
}

pub(super) async fn revoke_certificate(
    call: Call<'_, v1::RevokeCertificateRequest>,
) -> Result<v1::RevokeCertificateResponse, Status> {
    agents::may_manage(call.shared, &call.by, "revoke a certificate")?;
    Err(Status::unimplemented("this version revokes no certificates"))
}

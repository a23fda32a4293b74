//! Who the caller is, and whom they talk to.

use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, tokens};

pub(super) async fn who_am_i(call: Call<'_, v1::WhoAmIRequest>) -> Result<v1::WhoAmIResponse, Status> {
    let identity = call.shared.identity;
    Ok(v1::WhoAmIResponse {
        operator: call.by.name.to_string(),
        expires_at: Some(wall_to_wire(call.by.expires_at)),
        coordinator_version: env!("CARGO_PKG_VERSION").to_owned(),
        position: Some(v1::who_am_i_response::Position {
            store: identity.store.to_string(),
            epoch: identity.epoch.0,
            commit: *call.shared.driver.committed().borrow(),
        }),
        grants: tokens::grants(&call.by.scope),
    })
}

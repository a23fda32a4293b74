//! Targets: declared, read, put on hold.

use std::time::Duration;

use holdfast_common::time::Millis;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1;

use super::{Client, DEADLINE, pages, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

impl Client {
    /// Declares a target.
    pub async fn apply_target(&self, file: String) -> Result<v1::ApplyTargetResponse, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: "holdfast targets".to_owned() };
        let request = timely(v1::ApplyTargetRequest { file }, DEADLINE);
        sent(&call, DEADLINE, async move { api.apply_target(request).await }).await
    }

    /// One target.
    pub async fn target(&self, name: &str) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::GetTargetRequest { target: name.to_owned() }, DEADLINE);
        read(async move { api.get_target(request).await }).await?.target.ok_or(Failure::incomplete("target"))
    }

    /// All targets.
    pub async fn targets(&self) -> Result<v1::ListTargetsResponse, Failure> {
        pages::whole(usize::MAX, async |page| {
            let mut api = self.api.clone();
            let request = v1::ListTargetsRequest { page_size: page.size, page_token: page.token };
            read(async move { api.list_targets(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// Has the target read.
    pub async fn inspect_target(&self, name: &str, wait: Millis) -> Result<v1::InspectTargetResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        let request = v1::InspectTargetRequest { target: name.to_owned(), wait: Some(duration_to_wire(wait)) };
        sent(&Call::Reads, deadline, async move { api.inspect_target(timely(request, deadline)).await }).await
    }

    /// Puts a target on hold. The same again is the same hold.
    pub async fn hold_target(&self, request: v1::HoldTargetRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = look_at(&request.target);
        sent(&call, DEADLINE, async move { api.hold_target(timely(request, DEADLINE)).await })
            .await?
            .target
            .ok_or(Failure::incomplete("target"))
    }

    /// Takes a target's hold away.
    pub async fn unhold_target(&self, request: v1::UnholdTargetRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = look_at(&request.target);
        sent(&call, DEADLINE, async move { api.unhold_target(timely(request, DEADLINE)).await })
            .await?
            .target
            .ok_or(Failure::incomplete("target"))
    }

    /// Puts on record which revision a person saw at a resource.
    pub async fn attest_revision(&self, request: v1::AttestRevisionRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = look_at(&request.target);
        sent(&call, DEADLINE, async move { api.attest_revision(timely(request, DEADLINE)).await })
            .await?
            .target
            .ok_or(Failure::incomplete("target"))
    }

    /// Where a target can go back to.
    pub async fn rollback_candidates(
        &self,
        target: &str,
        wait: Millis,
    ) -> Result<v1::ListRollbackCandidatesResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        let request =
            v1::ListRollbackCandidatesRequest { target: target.to_owned(), wait: Some(duration_to_wire(wait)) };
        let answer = async move { api.list_rollback_candidates(timely(request, deadline)).await };
        sent(&Call::Reads, deadline, answer).await
    }
}

fn look_at(target: &str) -> Call {
    Call::Changes { look: format!("holdfast target show {target}") }
}

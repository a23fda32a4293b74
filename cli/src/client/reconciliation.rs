//! A deployment that nobody knows the end of: looked at, fenced off, attested, decided.

use std::time::Duration;

use holdfast_common::time::Millis;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1;

use super::deployments::look_at;
use super::{Client, DEADLINE, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

impl Client {
    /// The checklist.
    pub async fn reconciliation(&self, deployment: &str) -> Result<v1::Reconciliation, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::GetReconciliationRequest { deployment: deployment.to_owned() }, DEADLINE);
        let answer = read(async move { api.get_reconciliation(request).await }).await?;
        answer.reconciliation.ok_or(Failure::incomplete("reconciliation"))
    }

    /// Has the open step's resource read.
    pub async fn inspect(&self, deployment: &str, wait: Millis) -> Result<v1::InspectDeploymentResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        let request =
            v1::InspectDeploymentRequest { deployment: deployment.to_owned(), wait: Some(duration_to_wire(wait)) };
        sent(
            &look_at_evidence(deployment),
            deadline,
            async move { api.inspect_deployment(timely(request, deadline)).await },
        )
        .await
    }

    /// Raises the fence of the open step's resource.
    pub async fn fence_off(
        &self,
        request: v1::FenceOffDeploymentRequest,
        wait: Millis,
    ) -> Result<v1::FenceOffDeploymentResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        let look = look_at_evidence(&request.deployment);
        let request = v1::FenceOffDeploymentRequest { wait: Some(duration_to_wire(wait)), ..request };
        sent(&look, deadline, async move { api.fence_off_deployment(timely(request, deadline)).await }).await
    }

    /// Puts a person's reading on record.
    pub async fn attest(&self, request: v1::AttestRequest) -> Result<v1::Evidence, Failure> {
        let mut api = self.api.clone();
        let look = look_at_evidence(&request.deployment);
        sent(&look, DEADLINE, async move { api.attest(timely(request, DEADLINE)).await })
            .await?
            .evidence
            .ok_or(Failure::incomplete("evidence"))
    }

    /// Decides.
    pub async fn decide(&self, request: v1::DecideRequest) -> Result<v1::DecideResponse, Failure> {
        let mut api = self.api.clone();
        let look = look_at(&request.deployment);
        sent(&look, DEADLINE, async move { api.decide(timely(request, DEADLINE)).await }).await
    }
}

fn look_at_evidence(deployment: &str) -> Call {
    Call::Changes { look: format!("holdfast evidence {deployment}") }
}

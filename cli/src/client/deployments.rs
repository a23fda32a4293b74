//! Deployments: what became of them, what they printed, and a request to stop.

use holdfast_proto::v1;
use tonic::Streaming;

use super::{Client, DEADLINE, pages, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

impl Client {
    /// One deployment.
    pub async fn deployment(&self, name: &str) -> Result<v1::Deployment, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::GetDeploymentRequest { deployment: name.to_owned() }, DEADLINE);
        let answer = read(async move { api.get_deployment(request).await }).await?;
        answer.deployment.ok_or(Failure::incomplete("deployment"))
    }

    /// Deployments, newest first, at most `limit`. The token says whether there are more.
    pub async fn deployments(
        &self,
        target: &str,
        states: &[v1::DeploymentState],
        limit: usize,
    ) -> Result<v1::ListDeploymentsResponse, Failure> {
        let states: Vec<i32> = states.iter().map(|state| *state as i32).collect();
        pages::whole(limit, async |page| {
            let mut api = self.api.clone();
            let request = v1::ListDeploymentsRequest {
                target: target.to_owned(),
                states: states.clone(),
                page_size: page.size,
                page_token: page.token,
            };
            read(async move { api.list_deployments(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// Events from a sequence number on.
    pub async fn events(
        &self,
        deployment: &str,
        from_sequence: u64,
        follow: bool,
    ) -> Result<Streaming<v1::WatchEventsResponse>, Failure> {
        let mut api = self.api.clone();
        let request = v1::WatchEventsRequest { deployment: deployment.to_owned(), from_sequence, follow };
        read(async move { api.watch_events(request).await }).await
    }

    /// What steps printed.
    pub async fn logs(&self, request: v1::ReadLogsRequest) -> Result<Streaming<v1::ReadLogsResponse>, Failure> {
        let mut api = self.api.clone();
        read(async move { api.read_logs(request).await }).await
    }

    /// All evidence.
    pub async fn evidence(&self, deployment: &str) -> Result<v1::ListEvidenceResponse, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::ListEvidenceRequest { deployment: deployment.to_owned() }, DEADLINE);
        read(async move { api.list_evidence(request).await }).await
    }

    /// Puts a request to stop on record.
    pub async fn cancel(&self, deployment: &str, reason: &str) -> Result<v1::CancelDeploymentResponse, Failure> {
        let mut api = self.api.clone();
        let request = v1::CancelDeploymentRequest { deployment: deployment.to_owned(), reason: reason.to_owned() };
        sent(&look_at(deployment), DEADLINE, async move { api.cancel(timely(request, DEADLINE)).await }).await
    }
}

pub(super) fn look_at(deployment: &str) -> Call {
    Call::Changes { look: format!("holdfast show {deployment}") }
}

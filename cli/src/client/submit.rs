//! What begins a deployment, under a request id.

use std::time::Duration;

use holdfast_common::id::RequestId;
use holdfast_common::time::Millis;
use holdfast_net::backoff::Backoff;
use holdfast_proto::v1;

use super::{Client, DEADLINE, RETRY_FIRST, RETRY_MAX, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

/// Tries of a submission, all under one request id.
const SUBMIT_TRIES: u32 = 3;

impl Client {
    /// What a file would do.
    pub async fn plan(&self, request: v1::PlanRequest) -> Result<v1::Plan, Failure> {
        let mut api = self.api.clone();
        let request = timely(request, DEADLINE);
        read(async move { api.plan(request).await }).await?.plan.ok_or(Failure::incomplete("plan"))
    }

    /// Submits, and again under the same request id while nobody answers.
    pub async fn submit(
        &self,
        request: RequestId,
        submission: v1::SubmitRequest,
    ) -> Result<v1::SubmitResponse, Failure> {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX, rand::random());
        let mut tries = 1;
        loop {
            let mut api = self.api.clone();
            let asked = timely(submission.clone(), DEADLINE);
            let answer = sent(&Call::Submits { request }, DEADLINE, async move { api.submit(asked).await }).await;
            match answer {
                Err(failure) if failure.is_no_answer() && tries < SUBMIT_TRIES => {
                    tries += 1;
                    tokio::time::sleep(backoff.next()).await;
                }
                other => return other,
            }
        }
    }

    /// Goes back. Sent once: the request id finds it again.
    pub async fn rollback(
        &self,
        request: RequestId,
        asked: v1::RollbackRequest,
        wait: Millis,
    ) -> Result<v1::RollbackResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        sent(&Call::Submits { request }, deadline, async move { api.rollback(timely(asked, deadline)).await }).await
    }
}

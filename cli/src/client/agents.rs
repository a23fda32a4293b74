//! Agents: who they are, what they may have, and that they are no more.

use holdfast_proto::v1;

use super::{Client, DEADLINE, pages, read, sent, timely};
use crate::failure::Failure;
use crate::refusal::Call;

impl Client {
    /// All agents.
    pub async fn agents(&self) -> Result<v1::ListAgentsResponse, Failure> {
        pages::whole(usize::MAX, async |page| {
            let mut api = self.api.clone();
            let request = v1::ListAgentsRequest { page_size: page.size, page_token: page.token };
            read(async move { api.list_agents(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// Lets an agent have nothing new. The same again is the same.
    pub async fn drain_agent(&self, request: v1::DrainAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_agents(), DEADLINE, async move { api.drain_agent(timely(request, DEADLINE)).await })
            .await?
            .agent
            .ok_or(Failure::incomplete("agent"))
    }

    /// Lets an agent have new work again.
    pub async fn resume_agent(&self, request: v1::ResumeAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_agents(), DEADLINE, async move { api.resume_agent(timely(request, DEADLINE)).await })
            .await?
            .agent
            .ok_or(Failure::incomplete("agent"))
    }

    /// Says which copy is the agent.
    pub async fn unlock_agent(&self, request: v1::UnlockAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        let request = timely(request, DEADLINE);
        sent(&look_at_agents(), DEADLINE, async move { api.unlock_agent(request).await })
            .await?
            .agent
            .ok_or(Failure::incomplete("agent"))
    }

    /// Revokes a certificate.
    pub async fn revoke_certificate(
        &self,
        request: v1::RevokeCertificateRequest,
    ) -> Result<v1::RevokeCertificateResponse, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_agents(), DEADLINE, async move { api.revoke_certificate(timely(request, DEADLINE)).await }).await
    }

    /// Removes an agent.
    pub async fn remove_agent(&self, request: v1::RemoveAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        sent(&look_at_agents(), DEADLINE, async move { api.remove_agent(timely(request, DEADLINE)).await })
            .await?
            .agent
            .ok_or(Failure::incomplete("agent"))
    }
}

fn look_at_agents() -> Call {
    Call::Changes { look: "holdfast agents".to_owned() }
}

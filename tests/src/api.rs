//! The operator's API, called directly.

use std::time::Duration;

use holdfast_net::bearer::Bearer;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use holdfast_proto::v1::{Agent, ApplyTargetRequest};
use holdfast_proto::v1::{
    AttestRequest, AttestedRunner, AttestedTarget, CancelAnswer, CancelDeploymentRequest, Contact, DecideRequest,
    DecisionKind, Deployment, DeploymentState, Event, Evidence, FenceOffDeploymentRequest, GetDeploymentRequest,
    GetReconciliationRequest, GetTargetRequest, InspectDeploymentRequest, ListAgentsRequest, ListEvidenceRequest,
    ListRollbackCandidatesRequest, PlanRequest, ReadLogsRequest, Reconciliation, RollbackCandidate, RollbackRequest,
    SubmitRequest, Target, WatchEventsRequest,
};
use tonic::Status;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;
use uuid::Uuid;

use crate::wait;

/// The generated client with a token in each request.
pub type Client = OperatorServiceClient<InterceptedService<Channel, Bearer>>;

/// An operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// For calls that have no shorter form here.
    pub client: Client,
}

impl Operator {
    /// Connects when the first call needs it.
    #[must_use]
    pub fn new(address: &str, tls: &ClientTls, token: &str) -> Self {
        Self::over(address, tls, token, &Limits::default())
    }

    /// The same over a connection with other bounds.
    #[must_use]
    pub fn over(address: &str, tls: &ClientTls, token: &str, limits: &Limits) -> Self {
        let channel = channel::connect_lazy(address, tls, limits).expect("a test's address is sound");
        let bearer = Bearer::new(token).expect("a test's token is sound");
        Self { client: OperatorServiceClient::with_interceptor(channel, bearer) }
    }

    /// Declares a target.
    pub async fn apply_target(&self, file: &str) -> Target {
        let request = ApplyTargetRequest { file: file.to_owned() };
        let answer = self.client.clone().apply_target(request).await.expect("the target is declared");
        answer.into_inner().target.expect("the answer shows the target")
    }

    /// Declares a target, or says why not.
    pub async fn try_apply_target(&self, file: &str) -> Result<Target, Status> {
        let request = ApplyTargetRequest { file: file.to_owned() };
        let answer = self.client.clone().apply_target(request).await?;
        Ok(answer.into_inner().target.expect("the answer shows the target"))
    }

    /// The target.
    pub async fn target(&self, target: &str) -> Target {
        let request = GetTargetRequest { target: target.to_owned() };
        let answer = self.client.clone().get_target(request).await.expect("the target is there");
        answer.into_inner().target.expect("the answer shows the target")
    }

    /// What the file would do now.
    pub async fn plan(&self, file: &str) -> holdfast_proto::v1::Plan {
        let request = PlanRequest { file: file.to_owned(), ..PlanRequest::default() };
        let answer = self.client.clone().plan(request).await.expect("the file can be planned");
        answer.into_inner().plan.expect("the answer shows the plan")
    }

    /// Submits under a new request id.
    pub async fn submit(&self, file: &str) -> Deployment {
        self.try_submit(file, Uuid::now_v7()).await.expect("the deployment is recorded").0
    }

    /// Submits under this request id. The flag says whether it existed before.
    pub async fn try_submit(&self, file: &str, request_id: Uuid) -> Result<(Deployment, bool), Status> {
        let request =
            SubmitRequest { request_id: request_id.to_string(), file: file.to_owned(), ..SubmitRequest::default() };
        let answer = self.client.clone().submit(request).await?.into_inner();
        Ok((answer.deployment.expect("the answer shows the deployment"), answer.existed))
    }

    /// The deployment.
    pub async fn deployment(&self, deployment: &str) -> Deployment {
        self.try_deployment(deployment).await.expect("the deployment is there")
    }

    /// The deployment, if the coordinator answers.
    pub async fn try_deployment(&self, deployment: &str) -> Result<Deployment, Status> {
        let request = GetDeploymentRequest { deployment: deployment.to_owned() };
        let answer = self.client.clone().get_deployment(request).await?;
        Ok(answer.into_inner().deployment.expect("the answer shows the deployment"))
    }

    /// Waits until the deployment is in that state. Calls that are not answered meanwhile are made again.
    pub async fn until_state(&self, deployment: &str, state: DeploymentState) -> Deployment {
        let what = format!("{deployment} to be {}", state.as_str_name());
        self.until(deployment, &what, |deployment| state_of(deployment) == state).await
    }

    /// Waits until the deployment is terminal.
    pub async fn until_ended(&self, deployment: &str) -> Deployment {
        let what = format!("{deployment} to end");
        self.until(deployment, &what, |deployment| is_terminal(state_of(deployment))).await
    }

    /// Waits until the deployment is as described.
    pub async fn until(&self, deployment: &str, what: &str, is_so: impl Fn(&Deployment) -> bool) -> Deployment {
        wait::until(what, wait::SOON, async || match self.try_deployment(deployment).await {
            Ok(found) if is_so(&found) => Ok(found),
            Ok(found) => {
                let summary = found.summary.clone().unwrap_or_default();
                Err(format!(
                    "{} because {} (waits: {})",
                    state_of(&found).as_str_name(),
                    summary.because,
                    found.waiting
                ))
            }
            Err(status) => Err(status.to_string()),
        })
        .await
    }

    /// Every event of the deployment until now.
    pub async fn events(&self, deployment: &str) -> Vec<Event> {
        let request = WatchEventsRequest { deployment: deployment.to_owned(), from_sequence: 0, follow: false };
        let mut stream = self.client.clone().watch_events(request).await.expect("events are there").into_inner();
        let mut events = Vec::new();
        while let Some(response) = stream.message().await.expect("events come whole") {
            events.push(response.event.expect("the answer holds an event"));
        }
        events
    }

    /// All evidence of the deployment.
    pub async fn evidence(&self, deployment: &str) -> Vec<Evidence> {
        let request = ListEvidenceRequest { deployment: deployment.to_owned() };
        self.client.clone().list_evidence(request).await.expect("evidence is there").into_inner().evidence
    }

    /// Waits until a piece of evidence is as described.
    pub async fn until_evidence(&self, deployment: &str, what: &str, is_so: impl Fn(&Evidence) -> bool) -> Evidence {
        wait::until(what, wait::SOON, async || {
            let evidence = self.evidence(deployment).await;
            let kinds: Vec<String> = evidence.iter().map(|one| format!("{}: {}", one.kind, one.sentence)).collect();
            evidence.into_iter().find(&is_so).ok_or_else(|| format!("{kinds:#?}"))
        })
        .await
    }

    /// What was kept of a step's output, both streams as they came.
    pub async fn logs(&self, deployment: &str) -> String {
        let request = ReadLogsRequest { deployment: deployment.to_owned(), ..ReadLogsRequest::default() };
        let mut stream = self.client.clone().read_logs(request).await.expect("logs are there").into_inner();
        let mut text = Vec::new();
        while let Some(chunk) = stream.message().await.expect("logs come whole") {
            text.extend(chunk.data);
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Asks for a stop.
    pub async fn cancel(&self, deployment: &str) -> CancelAnswer {
        let request = CancelDeploymentRequest { deployment: deployment.to_owned(), reason: "a test asks".to_owned() };
        self.client.clone().cancel(request).await.expect("the request is recorded").into_inner().answer()
    }

    /// The checklist.
    pub async fn checklist(&self, deployment: &str) -> Reconciliation {
        let request = GetReconciliationRequest { deployment: deployment.to_owned() };
        let answer = self.client.clone().get_reconciliation(request).await.expect("the checklist is there");
        answer.into_inner().reconciliation.expect("the answer holds the checklist")
    }

    /// Asks for a look at the open step's resource and waits for the answer.
    pub async fn inspect(&self, deployment: &str) -> Result<Evidence, Status> {
        let request = InspectDeploymentRequest { deployment: deployment.to_owned(), wait: some_seconds() };
        let answer = self.client.clone().inspect_deployment(request).await?.into_inner();
        Ok(answer.answer.expect("the agent answered in time"))
    }

    /// Raises the open step's resource and waits for the answer.
    pub async fn fence_off(&self, deployment: &str, target: &str) -> Result<Evidence, Status> {
        let request = FenceOffDeploymentRequest {
            deployment: deployment.to_owned(),
            confirm: target.to_owned(),
            reason: "a test asks".to_owned(),
            wait: some_seconds(),
        };
        let answer = self.client.clone().fence_off_deployment(request).await?.into_inner();
        Ok(answer.answer.expect("the agent answered in time"))
    }

    /// Attests. Tell the ledger about it too: [`crate::ledger::Ledger::attested`].
    pub async fn attest(
        &self,
        deployment: &str,
        target: &str,
        runner: AttestedRunner,
        state: AttestedTarget,
    ) -> Result<Evidence, Status> {
        let request = AttestRequest {
            deployment: deployment.to_owned(),
            runner: runner.into(),
            target_state: state.into(),
            observed_revision: String::new(),
            how: "a test looked".to_owned(),
            attachment: Vec::new(),
            confirm: target.to_owned(),
        };
        let answer = self.client.clone().attest(request).await?.into_inner();
        Ok(answer.evidence.expect("the answer shows the evidence"))
    }

    /// Decides on the evidence that is there now.
    pub async fn decide(&self, deployment: &str, target: &str, kind: DecisionKind) -> Result<Deployment, Status> {
        let request = DecideRequest {
            deployment: deployment.to_owned(),
            kind: kind.into(),
            reason: "a test decides".to_owned(),
            evidence_sequence: self.checklist(deployment).await.evidence_sequence,
            confirm: target.to_owned(),
        };
        let answer = self.client.clone().decide(request).await?.into_inner();
        Ok(answer.deployment.expect("the answer shows the deployment"))
    }

    /// Where the target can go back to.
    pub async fn rollback_candidates(&self, target: &str) -> Vec<RollbackCandidate> {
        let request = ListRollbackCandidatesRequest { target: target.to_owned(), wait: some_seconds() };
        let answer = self.client.clone().list_rollback_candidates(request).await.expect("the candidates are there");
        answer.into_inner().candidates
    }

    /// Goes back under this request id; `attested` is empty where nobody attests that it is compatible.
    pub async fn rollback(
        &self,
        target: &str,
        to: &str,
        request_id: Uuid,
        attested: &str,
    ) -> Result<Deployment, Status> {
        let candidates = self.rollback_candidates(target).await;
        let has = |candidate: &&RollbackCandidate| candidate.revisions.iter().any(|had| had.revision == to);
        let undoes = candidates.iter().find(has).map(|candidate| candidate.numbers.clone()).unwrap_or_default();
        let request = RollbackRequest {
            request_id: request_id.to_string(),
            target: target.to_owned(),
            to: to.to_owned(),
            reason: "a test goes back".to_owned(),
            attested: attested.to_owned(),
            confirm: target.to_owned(),
            wait: some_seconds(),
            undoes,
        };
        let answer = self.client.clone().rollback(request).await?.into_inner();
        Ok(answer.deployment.expect("the answer shows the deployment"))
    }

    /// The agents, if the coordinator answers.
    pub async fn try_agents(&self) -> Result<Vec<Agent>, Status> {
        Ok(self.client.clone().list_agents(ListAgentsRequest::default()).await?.into_inner().agents)
    }

    /// Waits until the agent is connected, or is not.
    pub async fn until_contact(&self, agent: &str, contact: Contact) {
        let what = format!("{agent} to be {}", contact.as_str_name());
        wait::until(&what, wait::SOON, async || match self.try_agents().await {
            Ok(agents) if agents.iter().any(|found| found.name == agent && found.contact() == contact) => Ok(()),
            Ok(agents) => Err(format!("{:?}", agents.iter().map(|a| (&a.name, a.contact())).collect::<Vec<_>>())),
            Err(status) => Err(status.to_string()),
        })
        .await;
    }
}

/// Where the deployment stands.
#[must_use]
pub fn state_of(deployment: &Deployment) -> DeploymentState {
    deployment.summary.as_ref().map_or(DeploymentState::Unspecified, holdfast_proto::v1::DeploymentSummary::state)
}

/// Its label, like `shop@prod#12`.
#[must_use]
pub fn label_of(deployment: &Deployment) -> String {
    deployment.summary.as_ref().map(|summary| summary.label.clone()).unwrap_or_default()
}

/// Its id.
#[must_use]
pub fn id_of(deployment: &Deployment) -> String {
    deployment.summary.as_ref().map(|summary| summary.id.clone()).unwrap_or_default()
}

/// Whether nothing can change it any more.
#[must_use]
pub fn is_terminal(state: DeploymentState) -> bool {
    match state {
        DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled => true,
        DeploymentState::Unspecified
        | DeploymentState::Queued
        | DeploymentState::Active
        | DeploymentState::Uncertain
        | DeploymentState::Held => false,
    }
}

/// The stable code of a refusal, like `HF-2031`; empty where it has none.
#[must_use]
pub fn code_of(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

fn some_seconds() -> Option<prost_types::Duration> {
    prost_types::Duration::try_from(Duration::from_secs(10)).ok()
}

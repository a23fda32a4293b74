//! The public API as the tour uses it: with a token, as anybody could.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::time::Millis;
use holdfast_net::bearer::{self, Bearer};
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::{self, ClientTls};
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use holdfast_proto::{MAX_MESSAGE_BYTES, v1};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::output::exit;

/// Longest time that a call may take which answers at once.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a question to a resource may take.
const INQUIRY: Millis = Millis::from_secs(15);

/// How to reach a coordinator.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Like `https://127.0.0.1:7443`.
    pub(super) address: String,
    pub(super) ca: PathBuf,
    pub(super) token: String,
}

/// Why there is no way to call.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Channel(#[from] channel::Error),
    #[error(transparent)]
    Token(#[from] bearer::Error),
}

/// A call that was refused, or not answered.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {}", .status.message())]
pub(super) struct Refused {
    call: &'static str,
    status: Box<Status>,
}

impl Refused {
    /// The stable code, where there is one.
    pub(super) fn code(&self) -> Option<Code> {
        exit::code_of(&self.status)
    }

    pub(super) fn message(&self) -> &str {
        self.status.message()
    }
}

fn refused(call: &'static str) -> impl FnOnce(Status) -> Refused {
    move |status| Refused { call, status: Box::new(status) }
}

/// One operator's client.
#[derive(Clone, Debug)]
pub(super) struct Api {
    client: OperatorServiceClient<InterceptedService<Channel, Bearer>>,
}

impl Api {
    /// Connects with the first call.
    pub(super) fn new(access: &Access) -> Result<Self, Error> {
        let tls = ClientTls::from_files(&access.ca, None, None)?;
        let channel = channel::connect_lazy(&access.address, &tls, &Limits::default())?;
        let client = OperatorServiceClient::with_interceptor(channel, Bearer::new(&access.token)?)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { client })
    }

    fn client(&self) -> OperatorServiceClient<InterceptedService<Channel, Bearer>> {
        self.client.clone()
    }

    pub(super) async fn agents(&self) -> Result<Vec<v1::Agent>, Refused> {
        let request = v1::ListAgentsRequest { page_size: 0, page_token: String::new() };
        let answer = self.client().list_agents(timely(request)).await.map_err(refused("list agents"))?;
        Ok(answer.into_inner().agents)
    }

    pub(super) async fn apply_target(&self, file: &str) -> Result<v1::Target, Refused> {
        let request = v1::ApplyTargetRequest { file: file.to_owned() };
        let answer = self.client().apply_target(timely(request)).await.map_err(refused("apply the target"))?;
        answer.into_inner().target.ok_or_else(|| nothing("apply the target"))
    }

    pub(super) async fn target(&self, name: &str) -> Result<v1::Target, Refused> {
        let request = v1::GetTargetRequest { target: name.to_owned() };
        let answer = self.client().get_target(timely(request)).await.map_err(refused("get the target"))?;
        answer.into_inner().target.ok_or_else(|| nothing("get the target"))
    }

    pub(super) async fn submit(&self, file: &str, inputs: &[(&str, &str)]) -> Result<v1::Deployment, Refused> {
        let request = v1::SubmitRequest {
            request_id: uuid::Uuid::new_v4().to_string(),
            file: file.to_owned(),
            inputs: inputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            target: String::new(),
            no_queue: false,
        };
        let answer = self.client().submit(timely(request)).await.map_err(refused("submit"))?;
        answer.into_inner().deployment.ok_or_else(|| nothing("submit"))
    }

    pub(super) async fn deployment(&self, label: &str) -> Result<v1::Deployment, Refused> {
        let request = v1::GetDeploymentRequest { deployment: label.to_owned() };
        let answer = self.client().get_deployment(timely(request)).await.map_err(refused("get the deployment"))?;
        answer.into_inner().deployment.ok_or_else(|| nothing("get the deployment"))
    }

    /// Events of a deployment from a sequence number on; without `follow` up to the last one.
    pub(super) async fn events(&self, label: &str, from: u64, follow: bool) -> Result<Events, Refused> {
        let request = v1::WatchEventsRequest { deployment: label.to_owned(), from_sequence: from, follow };
        let answer = self.client().watch_events(request).await.map_err(refused("watch events"))?;
        Ok(Events { stream: answer.into_inner() })
    }

    /// What a step printed, in order of arrival.
    pub(super) async fn log(&self, label: &str, step: &str, attempt: u32) -> Result<String, Refused> {
        let request =
            v1::ReadLogsRequest { deployment: label.to_owned(), step: step.to_owned(), attempt, ..Default::default() };
        let answer = self.client().read_logs(timely(request)).await.map_err(refused("read logs"))?;
        let (mut stream, mut bytes) = (answer.into_inner(), Vec::new());
        while let Some(piece) = stream.message().await.map_err(refused("read logs"))? {
            bytes.extend_from_slice(&piece.data);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) async fn evidence(&self, label: &str) -> Result<Vec<v1::Evidence>, Refused> {
        let request = v1::ListEvidenceRequest { deployment: label.to_owned() };
        let answer = self.client().list_evidence(timely(request)).await.map_err(refused("list evidence"))?;
        Ok(answer.into_inner().evidence)
    }

    pub(super) async fn reconciliation(&self, label: &str) -> Result<v1::Reconciliation, Refused> {
        let request = v1::GetReconciliationRequest { deployment: label.to_owned() };
        let answer = self.client().get_reconciliation(timely(request)).await;
        let answer = answer.map_err(refused("get the checklist"))?;
        answer.into_inner().reconciliation.ok_or_else(|| nothing("get the checklist"))
    }

    /// `None` where no answer came in time.
    pub(super) async fn fence_off(
        &self,
        label: &str,
        target: &str,
        reason: &str,
    ) -> Result<Option<v1::Evidence>, Refused> {
        let request = v1::FenceOffDeploymentRequest {
            deployment: label.to_owned(),
            confirm: target.to_owned(),
            reason: reason.to_owned(),
            wait: Some(duration_to_wire(INQUIRY)),
        };
        let answer = self.client().fence_off_deployment(patient(request)).await.map_err(refused("fence off"))?;
        Ok(answer.into_inner().answer)
    }

    /// `None` where no answer came in time.
    pub(super) async fn inspect(&self, label: &str) -> Result<Option<v1::Evidence>, Refused> {
        let wait = Some(duration_to_wire(INQUIRY));
        let request = v1::InspectDeploymentRequest { deployment: label.to_owned(), wait };
        let answer = self.client().inspect_deployment(patient(request)).await.map_err(refused("inspect"))?;
        Ok(answer.into_inner().answer)
    }

    pub(super) async fn decide(
        &self,
        label: &str,
        target: &str,
        kind: v1::DecisionKind,
        shown: u64,
        reason: &str,
    ) -> Result<v1::Deployment, Refused> {
        let request = v1::DecideRequest {
            deployment: label.to_owned(),
            kind: kind as i32,
            reason: reason.to_owned(),
            evidence_sequence: shown,
            confirm: target.to_owned(),
        };
        let answer = self.client().decide(timely(request)).await.map_err(refused("decide"))?;
        answer.into_inner().deployment.ok_or_else(|| nothing("decide"))
    }

    pub(super) async fn rollback_candidates(&self, target: &str) -> Result<Vec<v1::RollbackCandidate>, Refused> {
        let wait = Some(duration_to_wire(INQUIRY));
        let request = v1::ListRollbackCandidatesRequest { target: target.to_owned(), wait };
        let answer = self.client().list_rollback_candidates(patient(request)).await;
        Ok(answer.map_err(refused("list where to go back to"))?.into_inner().candidates)
    }

    /// Undoes the deployments of those numbers.
    pub(super) async fn rollback(
        &self,
        target: &str,
        to: &str,
        undoes: &[u64],
        reason: &str,
    ) -> Result<v1::Deployment, Refused> {
        let request = v1::RollbackRequest {
            request_id: uuid::Uuid::new_v4().to_string(),
            target: target.to_owned(),
            to: to.to_owned(),
            reason: reason.to_owned(),
            attested: String::new(),
            confirm: target.to_owned(),
            wait: Some(duration_to_wire(INQUIRY)),
            undoes: undoes.to_vec(),
        };
        let answer = self.client().rollback(patient(request)).await.map_err(refused("roll back"))?;
        answer.into_inner().deployment.ok_or_else(|| nothing("roll back"))
    }
}

/// A stream of events.
#[derive(Debug)]
pub(super) struct Events {
    stream: Streaming<v1::WatchEventsResponse>,
}

impl Events {
    /// The next one; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<v1::Event>, Refused> {
        let next = self.stream.message().await.map_err(refused("watch events"))?;
        Ok(next.and_then(|response| response.event))
    }
}

fn timely<T>(message: T) -> Request<T> {
    within(message, DEADLINE)
}

fn patient<T>(message: T) -> Request<T> {
    within(message, DEADLINE + Duration::from(INQUIRY))
}

fn within<T>(message: T, limit: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(limit);
    request
}

fn nothing(call: &'static str) -> Refused {
    Refused { call, status: Box::new(Status::internal("the answer was empty")) }
}

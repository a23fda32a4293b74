//! `OperatorService`: one small file for each group of methods.
//!
//! The guard has let the caller in; the handlers here translate, ask the driver or read what is committed, and show the
//! result by [`crate::grpc::view`]. Nothing is decided here.

mod agents;
mod archives;
mod attest;
mod audit;
mod cancel;
mod decide;
mod deployments;
mod drain;
mod evidence;
mod find;
mod hold;
mod inquire;
mod inspect_target;
mod joining;
mod lapse;
mod logs;
mod page;
mod plan;
mod reconciliation;
mod rollback;
mod submit;
mod targets;
mod tokens;
mod unlock;
mod watch;
mod whoami;

use holdfast_proto::v1;
use holdfast_proto::v1::operator_service_server::OperatorService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::shared::Shared;
use crate::auth::{Operator, caller};
pub(super) use joining::stand;

/// The service.
#[derive(Clone)]
pub struct Operators {
    shared: Shared,
}

impl Operators {
    /// Over what every handler works with.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        Self { shared }
    }
}

/// One request: what to work with, who asks, and what.
struct Call<'a, T> {
    shared: &'a Shared,
    by: Operator,
    asked: T,
}

impl Operators {
    fn call<T>(&self, request: Request<T>) -> Result<Call<'_, T>, Status> {
        Ok(Call { shared: &self.shared, by: caller(&request)?, asked: request.into_inner() })
    }
}

/// What is sent while the client reads.
type Sender<T> = mpsc::Sender<Result<T, Status>>;

macro_rules! answered_by {
    ($($method:ident: $request:ident => $response:ident by $handler:path;)*) => {
        #[tonic::async_trait]
        impl OperatorService for Operators {
            type WatchEventsStream = lapse::Told<v1::WatchEventsResponse>;
            type ReadLogsStream = lapse::Told<v1::ReadLogsResponse>;
            type ExportAuditStream = lapse::Told<v1::ExportAuditResponse>;
            type UploadArchiveStream = ReceiverStream<Result<v1::UploadArchiveResponse, Status>>;

            $(async fn $method(&self, request: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                $handler(self.call(request)?).await.map(Response::new)
            })*

            async fn watch_events(
                &self,
                request: Request<v1::WatchEventsRequest>,
            ) -> Result<Response<Self::WatchEventsStream>, Status> {
                watch::events(self.call(request)?).await.map(Response::new)
            }

            async fn read_logs(
                &self,
                request: Request<v1::ReadLogsRequest>,
            ) -> Result<Response<Self::ReadLogsStream>, Status> {
                logs::read(self.call(request)?).await.map(Response::new)
            }

            async fn export_audit(
                &self,
                request: Request<v1::ExportAuditRequest>,
            ) -> Result<Response<Self::ExportAuditStream>, Status> {
                audit::export(self.call(request)?).await.map(Response::new)
            }

            async fn upload_archive(
                &self,
                request: Request<tonic::Streaming<v1::UploadArchiveRequest>>,
            ) -> Result<Response<Self::UploadArchiveStream>, Status> {
                Ok(Response::new(archives::upload(&self.shared, request.into_inner())))
            }
        }
    };
}

answered_by! {
    who_am_i: WhoAmIRequest => WhoAmIResponse by whoami::who_am_i;
    apply_target: ApplyTargetRequest => ApplyTargetResponse by targets::apply;
    get_target: GetTargetRequest => GetTargetResponse by targets::get;
    list_targets: ListTargetsRequest => ListTargetsResponse by targets::list;
    inspect_target: InspectTargetRequest => InspectTargetResponse by inspect_target::inspect;
    submit: SubmitRequest => SubmitResponse by submit::submit;
    get_deployment: GetDeploymentRequest => GetDeploymentResponse by deployments::get;
    list_deployments: ListDeploymentsRequest => ListDeploymentsResponse by deployments::list;
    list_evidence: ListEvidenceRequest => ListEvidenceResponse by evidence::list;
    cancel: CancelDeploymentRequest => CancelDeploymentResponse by cancel::cancel;
    get_reconciliation: GetReconciliationRequest => GetReconciliationResponse by reconciliation::get;
    inspect_deployment: InspectDeploymentRequest => InspectDeploymentResponse by inquire::inspect;
    fence_off_deployment: FenceOffDeploymentRequest => FenceOffDeploymentResponse by inquire::fence_off;
    attest: AttestRequest => AttestResponse by attest::attest;
    attest_revision: AttestRevisionRequest => AttestRevisionResponse by attest::revision;
    decide: DecideRequest => DecideResponse by decide::decide;
    list_agents: ListAgentsRequest => ListAgentsResponse by agents::list;
    create_token: CreateTokenRequest => CreateTokenResponse by tokens::create;
    list_tokens: ListTokensRequest => ListTokensResponse by tokens::list;
    revoke_token: RevokeTokenRequest => RevokeTokenResponse by tokens::revoke;
    hold_target: HoldTargetRequest => HoldTargetResponse by hold::place;
    unhold_target: UnholdTargetRequest => UnholdTargetResponse by hold::take_away;
    plan: PlanRequest => PlanResponse by plan::plan;
    list_rollback_candidates: ListRollbackCandidatesRequest => ListRollbackCandidatesResponse by rollback::candidates;
    rollback: RollbackRequest => RollbackResponse by rollback::rollback;
    list_audit: ListAuditRequest => ListAuditResponse by audit::list;
    create_join_token: CreateJoinTokenRequest => CreateJoinTokenResponse by joining::create_token;
    list_join_tokens: ListJoinTokensRequest => ListJoinTokensResponse by joining::list_tokens;
    revoke_join_token: RevokeJoinTokenRequest => RevokeJoinTokenResponse by joining::revoke_token;
    remove_agent: RemoveAgentRequest => RemoveAgentResponse by joining::remove_agent;
    revoke_certificate: RevokeCertificateRequest => RevokeCertificateResponse by joining::revoke_certificate;
    unlock_agent: UnlockAgentRequest => UnlockAgentResponse by unlock::unlock;
    drain_agent: DrainAgentRequest => DrainAgentResponse by drain::drain;
    resume_agent: ResumeAgentRequest => ResumeAgentResponse by drain::resume;
}

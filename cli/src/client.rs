//! The operator's side of the API: one method for each call, each with a deadline.
//!
//! A call is sent once. What changes something is never sent again by itself, except a submission, under its request id.

use std::future::Future;
use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::id::RequestId;
use holdfast_common::problem::Problem;
use holdfast_common::time::Millis;
use holdfast_net::backoff::Backoff;
use holdfast_net::bearer::Bearer;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use holdfast_proto::{MAX_MESSAGE_BYTES, v1};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use crate::failure::Failure;
use crate::refusal::{self, Call};
use crate::settings::{Settings, Token};
use crate::upload::Upload;

/// How long a call may take that has nothing to wait for.
const DEADLINE: Duration = Duration::from_secs(15);
/// Tries of a submission, all under one request id.
const SUBMIT_TRIES: u32 = 3;
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Tries of an upload, before the first byte that is new.
const UPLOAD_TRIES: u32 = 20;
/// Bytes of one part of an upload.
const UPLOAD_PIECE: u64 = 1024 * 1024;
/// How long the answer to one part may take. With the last one the whole is read again and synced.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(120);
/// Longest time between two pieces of an export.
const EXPORT_PATIENCE: Duration = Duration::from_secs(60);
/// Items of one page.
const PAGE: u32 = 200;
/// Pages that are read at most: a server that never ends a list is not followed for ever.
const MAX_PAGES: usize = 500;

type Api = OperatorServiceClient<InterceptedService<Channel, Bearer>>;

/// One operator at one coordinator. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
}

impl Client {
    /// Connects now. A coordinator that can't be reached is an error here, before anything is sent.
    pub async fn connect(settings: &Settings) -> Result<Self, Failure> {
        let tls = ClientTls::from_files(&settings.ca, None, settings.server_name.as_deref());
        Self::with(&settings.address, tls.map_err(|error| unsound(&error))?, &settings.token).await
    }

    /// At a coordinator whose certificate `tls` verifies.
    pub async fn with(address: &str, tls: ClientTls, token: &Token) -> Result<Self, Failure> {
        let bearer = Bearer::new(token.reveal()).map_err(|error| unsound(&error))?;
        let channel = channel::connect(address, &tls, &Limits::default())
            .await
            .map_err(|error| refusal::unreachable(&error, address))?;
        let api = OperatorServiceClient::with_interceptor(channel, bearer)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self { api })
    }

    /// Who the token's owner is.
    pub async fn who_am_i(&self) -> Result<v1::WhoAmIResponse, Failure> {
        let mut api = self.api.clone();
        read(async move { api.who_am_i(timely(v1::WhoAmIRequest {}, DEADLINE)).await }).await
    }

    /// Declares a target.
    pub async fn apply_target(&self, file: String) -> Result<v1::ApplyTargetResponse, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: "holdfast targets".to_owned() };
        let request = timely(v1::ApplyTargetRequest { file }, DEADLINE);
        let answer = once(DEADLINE, async move { api.apply_target(request).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))
    }

    /// One target.
    pub async fn target(&self, name: &str) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::GetTargetRequest { target: name.to_owned() }, DEADLINE);
        read(async move { api.get_target(request).await }).await?.target.ok_or(Failure::incomplete("target"))
    }

    /// All targets.
    pub async fn targets(&self) -> Result<v1::ListTargetsResponse, Failure> {
        let mut whole = v1::ListTargetsResponse::default();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let request = v1::ListTargetsRequest { page_size: PAGE, page_token: whole.next_page_token };
            let page = read(async move { api.list_targets(timely(request, DEADLINE)).await }).await?;
            whole.targets.extend(page.targets);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() {
                break;
            }
        }
        Ok(whole)
    }

    /// Has the target read.
    pub async fn inspect_target(&self, name: &str, wait: Millis) -> Result<v1::InspectTargetResponse, Failure> {
        let mut api = self.api.clone();
        let deadline = DEADLINE + Duration::from(wait);
        let request = v1::InspectTargetRequest { target: name.to_owned(), wait: Some(duration_to_wire(wait)) };
        let answer = once(deadline, async move { api.inspect_target(timely(request, deadline)).await }).await;
        answer.map_err(|status| refusal::of(&status, &Call::Reads))
    }

    /// Puts a target on hold. The same again is the same hold.
    pub async fn hold_target(&self, request: v1::HoldTargetRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: format!("holdfast target show {}", request.target) };
        let answer = once(DEADLINE, async move { api.hold_target(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))?.target.ok_or(Failure::incomplete("target"))
    }

    /// Takes a target's hold away.
    pub async fn unhold_target(&self, request: v1::UnholdTargetRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: format!("holdfast target show {}", request.target) };
        let answer = once(DEADLINE, async move { api.unhold_target(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))?.target.ok_or(Failure::incomplete("target"))
    }

    /// Puts on record which revision a person saw at a resource.
    pub async fn attest_revision(&self, request: v1::AttestRevisionRequest) -> Result<v1::Target, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: format!("holdfast target show {}", request.target) };
        let answer = once(DEADLINE, async move { api.attest_revision(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))?.target.ok_or(Failure::incomplete("target"))
    }

    /// Lets an agent have nothing new. The same again is the same.
    pub async fn drain_agent(&self, request: v1::DrainAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: "holdfast agents".to_owned() };
        let answer = once(DEADLINE, async move { api.drain_agent(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))?.agent.ok_or(Failure::incomplete("agent"))
    }

    /// Lets an agent have new work again.
    pub async fn resume_agent(&self, request: v1::ResumeAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        let call = Call::Changes { look: "holdfast agents".to_owned() };
        let answer = once(DEADLINE, async move { api.resume_agent(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &call))?.agent.ok_or(Failure::incomplete("agent"))
    }

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
            let answer = once(DEADLINE, async move { api.submit(asked).await }).await;
            let failure = match answer {
                Ok(answer) => return Ok(answer),
                Err(status) => refusal::of(&status, &Call::Submits { request }),
            };
            if !failure.is_no_answer() || tries == SUBMIT_TRIES {
                return Err(failure);
            }
            tries += 1;
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Puts a file where agents can fetch it, and goes on after cuts. `told` hears how much is there. True if all of it was
    /// there before.
    pub async fn upload(&self, upload: &mut Upload, mut told: impl FnMut(u64)) -> Result<bool, Failure> {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX, rand::random());
        let (mut tries, mut furthest) = (1, 0);
        loop {
            let before = furthest;
            match self.upload_once(upload, &mut furthest, &mut told).await {
                Err(failure) if failure.is_no_answer() && tries < UPLOAD_TRIES => {
                    if furthest > before {
                        tries = 0;
                        backoff.reset();
                    }
                    tries += 1;
                    tokio::time::sleep(backoff.next()).await;
                }
                other => return other,
            }
        }
    }

    async fn upload_once(
        &self,
        upload: &mut Upload,
        furthest: &mut u64,
        told: &mut impl FnMut(u64),
    ) -> Result<bool, Failure> {
        let refused = |status: Status| refusal::of(&status, &Call::Reads);
        let unreadable = |error: std::io::Error| {
            Failure::Unexpected(anyhow::Error::new(error).context("could not read the file to upload"))
        };
        let (requests, outgoing) = mpsc::channel(1);
        let mut api = self.api.clone();
        let call = api.upload_archive(ReceiverStream::new(outgoing));
        let mut answers = once(DEADLINE, call).await.map_err(refused)?;
        let mut offset = 0;
        let mut was_there = true;
        let mut data = Vec::new();
        loop {
            let request = v1::UploadArchiveRequest { sha256: upload.sha256.clone(), size: upload.size, offset, data };
            // Where the coordinator has ended the stream, its answer tells why.
            let _ended = requests.send(request).await;
            let answer = match tokio::time::timeout(UPLOAD_DEADLINE, answers.message()).await {
                Ok(answer) => answer.map_err(refused)?,
                Err(_) => return Err(refused(Status::deadline_exceeded("no answer to a part of the upload"))),
            };
            let answer = answer.ok_or_else(|| refused(Status::unavailable("the upload ended in the middle")))?;
            if answer.stored {
                return Ok(was_there);
            }
            was_there = false;
            offset = answer.next_offset;
            *furthest = (*furthest).max(offset);
            told(offset);
            data = upload.read(offset, UPLOAD_PIECE).map_err(unreadable)?;
            if data.is_empty() && upload.size > 0 {
                return Err(unreadable(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

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
        let mut whole = v1::ListDeploymentsResponse::default();
        let states: Vec<i32> = states.iter().map(|state| *state as i32).collect();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let left = limit.saturating_sub(whole.deployments.len());
            let request = v1::ListDeploymentsRequest {
                target: target.to_owned(),
                states: states.clone(),
                page_size: u32::try_from(left).unwrap_or(PAGE).min(PAGE),
                page_token: whole.next_page_token,
            };
            let page = read(async move { api.list_deployments(timely(request, DEADLINE)).await }).await?;
            whole.deployments.extend(page.deployments);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() || whole.deployments.len() >= limit {
                break;
            }
        }
        Ok(whole)
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
        let answer = once(DEADLINE, async move { api.cancel(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at(deployment)))
    }

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
        let answer = once(deadline, async move { api.inspect_deployment(timely(request, deadline)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_evidence(deployment)))
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
        let answer = once(deadline, async move { api.fence_off_deployment(timely(request, deadline)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look))
    }

    /// Puts a person's reading on record.
    pub async fn attest(&self, request: v1::AttestRequest) -> Result<v1::Evidence, Failure> {
        let mut api = self.api.clone();
        let look = look_at_evidence(&request.deployment);
        let answer = once(DEADLINE, async move { api.attest(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look))?.evidence.ok_or(Failure::incomplete("evidence"))
    }

    /// Decides.
    pub async fn decide(&self, request: v1::DecideRequest) -> Result<v1::DecideResponse, Failure> {
        let mut api = self.api.clone();
        let look = look_at(&request.deployment);
        let answer = once(DEADLINE, async move { api.decide(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look))
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
        let answer = once(deadline, async move { api.list_rollback_candidates(timely(request, deadline)).await });
        answer.await.map_err(|status| refusal::of(&status, &Call::Reads))
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
        let answer = once(deadline, async move { api.rollback(timely(asked, deadline)).await }).await;
        answer.map_err(|status| refusal::of(&status, &Call::Submits { request }))
    }

    /// What people did and were refused, the latest first, at most about `limit`. The token says whether there is more.
    pub async fn audit(&self, target: &str, limit: usize) -> Result<v1::ListAuditResponse, Failure> {
        let mut whole = v1::ListAuditResponse::default();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let left = limit.saturating_sub(whole.entries.len()).max(1);
            let request = v1::ListAuditRequest {
                target: target.to_owned(),
                page_size: u32::try_from(left).unwrap_or(PAGE).min(PAGE),
                page_token: whole.next_page_token,
            };
            let page = read(async move { api.list_audit(timely(request, DEADLINE)).await }).await?;
            whole.entries.extend(page.entries);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() || whole.entries.len() >= limit {
                break;
            }
        }
        Ok(whole)
    }

    /// The record, as lines.
    pub async fn export_audit(&self, target: String) -> Result<AuditLines, Failure> {
        let mut api = self.api.clone();
        let request = v1::ExportAuditRequest { target };
        read(async move { api.export_audit(request).await }).await.map(AuditLines)
    }

    /// Makes a token.
    pub async fn create_token(&self, request: v1::CreateTokenRequest) -> Result<v1::CreateTokenResponse, Failure> {
        let mut api = self.api.clone();
        let answer = once(DEADLINE, async move { api.create_token(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_tokens()))
    }

    /// All tokens that the caller manages.
    pub async fn tokens(&self) -> Result<v1::ListTokensResponse, Failure> {
        let mut whole = v1::ListTokensResponse::default();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let request = v1::ListTokensRequest { page_size: PAGE, page_token: whole.next_page_token };
            let page = read(async move { api.list_tokens(timely(request, DEADLINE)).await }).await?;
            whole.tokens.extend(page.tokens);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() {
                break;
            }
        }
        Ok(whole)
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, name: &str) -> Result<v1::Token, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::RevokeTokenRequest { name: name.to_owned() }, DEADLINE);
        let answer = once(DEADLINE, async move { api.revoke_token(request).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_tokens()))?.token.ok_or(Failure::incomplete("token"))
    }

    /// Makes a join token.
    pub async fn create_join_token(
        &self,
        request: v1::CreateJoinTokenRequest,
    ) -> Result<v1::CreateJoinTokenResponse, Failure> {
        let mut api = self.api.clone();
        let answer = once(DEADLINE, async move { api.create_join_token(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_join_tokens()))
    }

    /// All join tokens.
    pub async fn join_tokens(&self) -> Result<v1::ListJoinTokensResponse, Failure> {
        let mut whole = v1::ListJoinTokensResponse::default();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let request = v1::ListJoinTokensRequest { page_size: PAGE, page_token: whole.next_page_token };
            let page = read(async move { api.list_join_tokens(timely(request, DEADLINE)).await }).await?;
            whole.tokens.extend(page.tokens);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() {
                break;
            }
        }
        Ok(whole)
    }

    /// Takes a join token back.
    pub async fn revoke_join_token(&self, id: &str) -> Result<v1::JoinToken, Failure> {
        let mut api = self.api.clone();
        let request = timely(v1::RevokeJoinTokenRequest { id: id.to_owned() }, DEADLINE);
        let answer = once(DEADLINE, async move { api.revoke_join_token(request).await }).await;
        let answer = answer.map_err(|status| refusal::of(&status, &look_at_join_tokens()))?;
        answer.token.ok_or(Failure::incomplete("token"))
    }

    /// Removes an agent.
    pub async fn remove_agent(&self, request: v1::RemoveAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        let answer = once(DEADLINE, async move { api.remove_agent(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_agents()))?.agent.ok_or(Failure::incomplete("agent"))
    }

    /// Revokes a certificate.
    pub async fn revoke_certificate(
        &self,
        request: v1::RevokeCertificateRequest,
    ) -> Result<v1::RevokeCertificateResponse, Failure> {
        let mut api = self.api.clone();
        let answer = once(DEADLINE, async move { api.revoke_certificate(timely(request, DEADLINE)).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_agents()))
    }

    /// Says which copy is the agent.
    pub async fn unlock_agent(&self, request: v1::UnlockAgentRequest) -> Result<v1::Agent, Failure> {
        let mut api = self.api.clone();
        let request = timely(request, DEADLINE);
        let answer = once(DEADLINE, async move { api.unlock_agent(request).await }).await;
        answer.map_err(|status| refusal::of(&status, &look_at_agents()))?.agent.ok_or(Failure::incomplete("agent"))
    }

    /// All agents.
    pub async fn agents(&self) -> Result<v1::ListAgentsResponse, Failure> {
        let mut whole = v1::ListAgentsResponse::default();
        for _ in 0..MAX_PAGES {
            let mut api = self.api.clone();
            let request = v1::ListAgentsRequest { page_size: PAGE, page_token: whole.next_page_token };
            let page = read(async move { api.list_agents(timely(request, DEADLINE)).await }).await?;
            whole.agents.extend(page.agents);
            whole.next_page_token = page.next_page_token;
            if whole.next_page_token.is_empty() {
                break;
            }
        }
        Ok(whole)
    }
}

/// Lines of an export, as they come.
pub struct AuditLines(Streaming<v1::ExportAuditResponse>);

impl AuditLines {
    /// The next ones. `None` at the end of the whole.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, Failure> {
        let piece = match tokio::time::timeout(EXPORT_PATIENCE, self.0.message()).await {
            Ok(piece) => piece,
            Err(_) => Err(Status::deadline_exceeded("the export has stopped coming")),
        };
        piece.map(|piece| piece.map(|piece| piece.lines)).map_err(|status| refusal::of(&status, &Call::Reads))
    }
}

fn look_at(deployment: &str) -> Call {
    Call::Changes { look: format!("holdfast show {deployment}") }
}

fn look_at_evidence(deployment: &str) -> Call {
    Call::Changes { look: format!("holdfast evidence {deployment}") }
}

fn unsound(error: &dyn std::error::Error) -> Failure {
    Problem::new(Code::Config, error.to_string()).so("nothing was sent").into()
}

fn look_at_join_tokens() -> Call {
    Call::Changes { look: "holdfast agent token list".to_owned() }
}

fn look_at_agents() -> Call {
    Call::Changes { look: "holdfast agents".to_owned() }
}

fn look_at_tokens() -> Call {
    Call::Changes { look: "holdfast token list".to_owned() }
}

fn timely<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

async fn read<A>(call: impl Future<Output = Result<Response<A>, Status>>) -> Result<A, Failure> {
    once(DEADLINE, call).await.map_err(|status| refusal::of(&status, &Call::Reads))
}

/// Of a stream the deadline bounds the first answer only.
async fn once<A>(deadline: Duration, call: impl Future<Output = Result<Response<A>, Status>>) -> Result<A, Status> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {}s", deadline.as_secs()))),
    }
}

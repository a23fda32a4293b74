//! The operator's side of the API: one method for each call, each with a deadline.
//!
//! A call is sent once. What changes something is never sent again by itself, except a submission, under its request id.

mod agents;
mod audit;
mod deployments;
mod pages;
mod reconciliation;
mod submit;
mod targets;
mod tokens;
mod upload;

use std::future::Future;
use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_net::bearer::Bearer;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use holdfast_proto::{MAX_MESSAGE_BYTES, v1};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::failure::Failure;
use crate::refusal::{self, Call};
use crate::settings::{Settings, Token};

pub use audit::AuditLines;

/// How long a call may take that has nothing to wait for.
const DEADLINE: Duration = Duration::from_secs(15);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);

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
}

fn timely<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

async fn read<A>(call: impl Future<Output = Result<Response<A>, Status>>) -> Result<A, Failure> {
    sent(&Call::Reads, DEADLINE, call).await
}

/// Sends it once. Where it is refused or nobody answers, what it would have done says what to do next.
async fn sent<A>(
    what: &Call,
    deadline: Duration,
    call: impl Future<Output = Result<Response<A>, Status>>,
) -> Result<A, Failure> {
    once(deadline, call).await.map_err(|status| refusal::of(&status, what))
}

/// Of a stream the deadline bounds the first answer only.
async fn once<A>(deadline: Duration, call: impl Future<Output = Result<Response<A>, Status>>) -> Result<A, Status> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {}s", deadline.as_secs()))),
    }
}

fn unsound(error: &dyn std::error::Error) -> Failure {
    Problem::new(Code::Config, error.to_string()).so("nothing was sent").into()
}

//! `AgentService`: sessions, and the outputs of steps.
//!
//! An agent is who its certificate says. Each id in a message is joined with that identity before anything follows
//! from it: here by the [`Speaker`](holdfast_coordinator_core::input::Speaker) that the core checks every claim
//! against, and by the attempt's agent where outputs are stored.

mod fetch;
mod held;
mod hello;
mod identity;
mod message;
mod own;
mod pace;
mod session;
mod strangers;
mod upload;

use std::sync::Arc;

use holdfast_proto::v1;
use holdfast_proto::v1::agent_service_server::AgentService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::shared::Shared;
use crate::auth::{CertifiedAgent, ShownCertificate, caller};
use crate::sessions::{Answers, Outgoing};

pub use pace::{Bounds as PaceBounds, Measures};

/// The service.
#[derive(Clone)]
pub struct Agents {
    shared: Shared,
    paces: Arc<pace::Paces>,
}

impl Agents {
    /// Over what every handler works with. What is seen of how agents speak goes into `measures`.
    #[must_use]
    pub fn new(shared: Shared, measures: Measures) -> Self {
        let paces = pace::Paces::new(shared.limits.pace, measures);
        Self { shared, paces }
    }
}

#[tonic::async_trait]
impl AgentService for Agents {
    type ConnectStream = Answers;
    type FetchArchiveStream = ReceiverStream<Result<v1::FetchArchiveResponse, Status>>;
    type UploadLogStream = ReceiverStream<Result<v1::UploadLogResponse, Status>>;

    async fn connect(
        &self,
        request: Request<Streaming<v1::ConnectRequest>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let CertifiedAgent(name) = caller(&request)?;
        let certificate: ShownCertificate = caller(&request)?;
        let (outgoing, answers) = Outgoing::new();
        let connection = session::Connection {
            shared: self.shared.clone(),
            meter: self.paces.of(&name, pace::Stream::Words),
            agent: name,
            certificate,
            incoming: request.into_inner(),
            outgoing,
        };
        // The answer's headers leave at once: a client may wait for them before it says its Hello.
        tokio::spawn(connection.run());
        Ok(Response::new(answers))
    }

    async fn upload_log(
        &self,
        request: Request<Streaming<v1::UploadLogRequest>>,
    ) -> Result<Response<Self::UploadLogStream>, Status> {
        let CertifiedAgent(name) = caller(&request)?;
        let certificate: ShownCertificate = caller(&request)?;
        let (answers, stream) = mpsc::channel(4);
        let meter = self.paces.of(&name, pace::Stream::Outputs);
        let upload = upload::Upload::new(self.shared.clone(), name, certificate, meter);
        tokio::spawn(upload.run(request.into_inner(), answers));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn fetch_archive(
        &self,
        request: Request<v1::FetchArchiveRequest>,
    ) -> Result<Response<Self::FetchArchiveStream>, Status> {
        let CertifiedAgent(name) = caller(&request)?;
        let certificate: ShownCertificate = caller(&request)?;
        fetch::fetch(&self.shared, name, certificate, request.into_inner()).await.map(Response::new)
    }
}

//! What a host asks of the coordinator.

use std::time::Duration;

use holdfast_net::bearer::Bearer;
use holdfast_net::channel::{self, Addresses, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::enroll_service_client::EnrollServiceClient;
use holdfast_proto::v1::{EnrollRequest, EnrollResponse, RenewRequest, RenewResponse};
use rcgen::{CertificateParams, KeyPair};
use tonic::{Request, Status};

/// Longest wait for an answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Dial(#[from] channel::Error),
    #[error("the join token can't be sent: {0}")]
    Token(#[from] holdfast_net::bearer::Error),
    #[error("{}", .0.message())]
    Status(Box<Status>),
    #[error("could not make a request for a certificate: {0}")]
    Request(#[from] rcgen::Error),
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Error::Status(Box::new(status))
    }
}

/// Nothing but the public key counts of it.
pub(super) fn request(key: &KeyPair) -> Result<Vec<u8>, Error> {
    Ok(CertificateParams::default().serialize_request(key)?.der().to_vec())
}

pub(super) async fn enroll(
    address: &str,
    tls: &ClientTls,
    token: &str,
    asked: EnrollRequest,
) -> Result<EnrollResponse, Error> {
    let channel = channel::connect(address, tls, &Limits::default()).await?;
    let mut client = EnrollServiceClient::with_interceptor(channel, Bearer::new(token)?);
    Ok(client.enroll(timely(asked)).await?.into_inner())
}

pub(super) async fn renew(addresses: &Addresses, tls: &ClientTls, request: Vec<u8>) -> Result<RenewResponse, Error> {
    let channel = channel::connect_any(addresses, tls, &Limits::default()).await?;
    Ok(EnrollServiceClient::new(channel).renew(timely(RenewRequest { request })).await?.into_inner())
}

fn timely<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(DEADLINE);
    request
}

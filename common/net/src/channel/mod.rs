//! Dialling the coordinator: one gRPC channel over our own TLS.
//!
//! A channel dials again by itself when its connection is gone; it never repeats a call. Delays between a caller's own
//! tries are [`crate::backoff`]'s business. Every dial looks names up anew and tries in turn all that there is to try: see
//! [`Addresses`].

mod addresses;
mod dial;

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::Channel;
use tower::service_fn;

use crate::tls::{self, ClientTls};
pub use addresses::Addresses;
pub use dial::DialError;
use dial::Plan;

/// What bounds a channel.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time to look names up, connect and finish the TLS handshake, over all that is tried in turn.
    pub connect_timeout: Duration,
    /// An HTTP/2 ping goes out after this long without a frame from the peer, also while no call is open.
    pub keepalive_interval: Duration,
    /// The connection is given up when a ping is not answered for this long.
    pub keepalive_timeout: Duration,
    /// Largest response headers or trailers, in bytes. Error details travel in them.
    pub header_bytes: u32,
    /// What the peer may send on one stream before it is read, in bytes.
    pub stream_window: u32,
    /// What the peer may send on all streams before it is read, in bytes. HTTP/2 has no less than 65,535.
    pub connection_window: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(5),
            keepalive_timeout: Duration::from_secs(5),
            header_bytes: 64 * 1024,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
        }
    }
}

/// Why there is no channel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address can't be dialled.
    #[error("{text:?} is not a coordinator's address: {reason}; write it like \"https://host:port\" or \"host:port\"")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No address, or more than can be tried.
    #[error("a coordinator has between 1 and {} addresses, and {found} were given", Addresses::MOST)]
    Count {
        /// How many.
        found: usize,
    },
    /// The host is no name that a certificate could be valid for.
    #[error(transparent)]
    Name(#[from] tls::Error),
    /// The first connection failed.
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// Connects now: an unreachable coordinator is an error here. One address, or several separated by commas.
///
/// In TLS 1.3 a client is done before the server has checked the client's certificate, so a refused certificate shows in
/// the first call.
pub async fn connect(endpoint: &str, tls: &ClientTls, limits: &Limits) -> Result<Channel, Error> {
    connect_any(&endpoint.parse()?, tls, limits).await
}

/// [`connect`] to the first of the addresses that answers.
pub async fn connect_any(addresses: &Addresses, tls: &ClientTls, limits: &Limits) -> Result<Channel, Error> {
    let plan = Plan::new(addresses, tls, limits)?;
    // A first connection of our own keeps the error typed; the channel then gets it and dials later ones itself.
    let mut first = Some(plan.dial().await?);
    let later = plan.clone();
    let connector = service_fn(move |_: Uri| {
        let (first, later) = (first.take(), later.clone());
        async move {
            match first {
                Some(stream) => Ok(TokioIo::new(stream)),
                None => later.dial().await.map(TokioIo::new),
            }
        }
    });
    let connected = plan.endpoint().connect_with_connector(connector).await;
    Ok(connected.map_err(|source| DialError::Http { address: addresses.to_string(), source })?)
}

/// The certificates that whoever answers there presents, their own one first. Nothing is verified and nothing is sent:
/// it is for a person to compare before anything is trusted.
pub async fn presented(endpoint: &str, limits: &Limits) -> Result<Vec<CertificateDer<'static>>, Error> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let plan = Plan::new(&endpoint.parse()?, &ClientTls::looking(Arc::clone(&seen))?, limits)?;
    drop(plan.dial().await?);
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *seen))
}

/// The host of an address like `https://deploy.example:7443`; of the first, where there are several.
pub fn host(endpoint: &str) -> Result<String, Error> {
    endpoint.parse().map(|addresses: Addresses| addresses.first().host.clone())
}

/// Connects when the first call needs it: an unreachable coordinator is that call's `UNAVAILABLE`.
pub fn connect_lazy(endpoint: &str, tls: &ClientTls, limits: &Limits) -> Result<Channel, Error> {
    let plan = Plan::new(&endpoint.parse()?, tls, limits)?;
    let endpoint = plan.endpoint();
    let connector = service_fn(move |_: Uri| {
        let plan = plan.clone();
        async move { plan.dial().await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

/// [`connect_lazy`] over any byte stream, to one address: `dial` gets host and port.
pub fn connect_lazy_over<D, F, S>(endpoint: &str, tls: &ClientTls, limits: &Limits, dial: D) -> Result<Channel, Error>
where
    D: Fn(String, u16) -> F + Clone + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let plan = Plan::new(&endpoint.parse()?, tls, limits)?;
    let endpoint = plan.endpoint();
    let connector = service_fn(move |_: Uri| {
        let (plan, dial) = (plan.clone(), dial.clone());
        async move { plan.dial_over(dial).await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

//! Dialling the coordinator: one gRPC channel over our own TLS.
//!
//! A channel dials again by itself when its connection is gone; it never repeats a call. Delays between a caller's own
//! tries are [`crate::backoff`]'s business.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::tls::{self, ClientTls};

/// What bounds a channel.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time to resolve, connect and finish the TLS handshake.
    pub connect_timeout: Duration,
    /// An HTTP/2 ping goes out after this long without a frame from the peer, also while no call is open.
    pub keepalive_interval: Duration,
    /// The connection is given up when a ping is not answered for this long.
    pub keepalive_timeout: Duration,
    /// Largest response headers or trailers, in bytes. Error details travel in them.
    pub header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            keepalive_interval: Duration::from_secs(5),
            keepalive_timeout: Duration::from_secs(5),
            header_bytes: 64 * 1024,
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
    /// The host is no name that a certificate could be valid for.
    #[error(transparent)]
    Name(#[from] tls::Error),
    /// The first connection failed.
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// Why a connection failed. The cause is part of the text because gRPC statuses keep nothing but the text.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No TCP connection.
    #[error("could not connect to {address}: {source}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Connected, but the TLS handshake failed.
    #[error("could not agree on TLS with {address}: {source}")]
    Handshake {
        /// Host and port.
        address: String,
        /// What rustls said.
        source: io::Error,
    },
    /// Took too long.
    #[error("could not connect to {address} within {limit:?}")]
    TooSlow {
        /// Host and port.
        address: String,
        /// [`Limits::connect_timeout`].
        limit: Duration,
    },
    /// The TLS connection is there, but HTTP/2 did not start on it.
    #[error("could not start HTTP/2 with {address}: {source}")]
    Http {
        /// Host and port.
        address: String,
        /// What tonic said.
        source: tonic::transport::Error,
    },
}

/// Connects now: an unreachable coordinator is an error here.
///
/// In TLS 1.3 a client is done before the server has checked the client's certificate, so a refused certificate shows in
/// the first call.
pub async fn connect(endpoint: &str, tls: &ClientTls, limits: &Limits) -> Result<Channel, Error> {
    let address = Address::parse(endpoint)?;
    let plan = Plan::new(address, tls, limits)?;
    // A first connection of our own keeps the error typed; the channel then gets it and dials later ones itself.
    let mut first = Some(plan.clone().dial(tcp).await?);
    let later = plan.clone();
    let connector = service_fn(move |_: Uri| {
        let (first, later) = (first.take(), later.clone());
        async move {
            match first {
                Some(stream) => Ok(TokioIo::new(stream)),
                None => later.dial(tcp).await.map(TokioIo::new),
            }
        }
    });
    let connected = plan.endpoint().connect_with_connector(connector).await;
    Ok(connected.map_err(|source| DialError::Http { address: plan.address.text(), source })?)
}

/// The certificates that whoever answers there presents, their own one first. Nothing is verified and nothing is sent:
/// it is for a person to compare before anything is trusted.
pub async fn presented(endpoint: &str, limits: &Limits) -> Result<Vec<CertificateDer<'static>>, Error> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let plan = Plan::new(Address::parse(endpoint)?, &ClientTls::looking(Arc::clone(&seen))?, limits)?;
    drop(plan.dial(tcp).await?);
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *seen))
}

/// The host of an address like `https://deploy.example:7443`.
pub fn host(endpoint: &str) -> Result<String, Error> {
    Address::parse(endpoint).map(|address| address.host)
}

/// Connects when the first call needs it: an unreachable coordinator is that call's `UNAVAILABLE`.
pub fn connect_lazy(endpoint: &str, tls: &ClientTls, limits: &Limits) -> Result<Channel, Error> {
    connect_lazy_over(endpoint, tls, limits, tcp)
}

/// [`connect_lazy`] over any byte stream: `dial` gets host and port.
pub fn connect_lazy_over<D, F, S>(endpoint: &str, tls: &ClientTls, limits: &Limits, dial: D) -> Result<Channel, Error>
where
    D: Fn(String, u16) -> F + Clone + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let plan = Plan::new(Address::parse(endpoint)?, tls, limits)?;
    let endpoint = plan.endpoint();
    let connector = service_fn(move |_: Uri| {
        let (plan, dial) = (plan.clone(), dial.clone());
        async move { plan.dial(dial).await.map(TokioIo::new) }
    });
    Ok(endpoint.connect_with_connector_lazy(connector))
}

async fn tcp(host: String, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
}

impl Address {
    fn parse(text: &str) -> Result<Self, Error> {
        let bad = |reason| Error::Address { text: text.to_owned(), reason };
        let rest = match text.split_once("://") {
            Some(("https", rest)) => rest.strip_suffix('/').unwrap_or(rest),
            Some(("http", _)) => return Err(bad("Holdfast speaks TLS only")),
            Some(_) => return Err(bad("the scheme is not https")),
            None => text,
        };
        let authority: http::uri::Authority = rest.parse().map_err(|_| bad("it is not a host and a port"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it has a user name"));
        }
        let port = authority.port_u16().filter(|port| *port != 0).ok_or_else(|| bad("it has no valid port"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        Ok(Self { host: host.to_owned(), port })
    }

    fn text(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// All that one more connection needs.
#[derive(Clone, Debug)]
struct Plan {
    address: Address,
    name: ServerName<'static>,
    tls: ClientTls,
    limits: Limits,
}

impl Plan {
    fn new(address: Address, tls: &ClientTls, limits: &Limits) -> Result<Self, Error> {
        Ok(Self { name: tls.name_for(&address.host)?, address, tls: tls.clone(), limits: *limits })
    }

    /// The scheme is `http` because TLS is the connector's: tonic is built without its own and refuses `https`.
    fn endpoint(&self) -> Endpoint {
        Endpoint::from_shared(format!("http://{}", self.address.text()))
            .expect("host and port were parsed as an authority")
            .connect_timeout(self.limits.connect_timeout)
            .http2_keep_alive_interval(self.limits.keepalive_interval)
            .keep_alive_timeout(self.limits.keepalive_timeout)
            .keep_alive_while_idle(true)
            .http2_max_header_list_size(self.limits.header_bytes)
            .initial_stream_window_size(256 * 1024)
            .initial_connection_window_size(1024 * 1024)
    }

    async fn dial<D, F, S>(self, dial: D) -> Result<TlsStream<S>, DialError>
    where
        D: FnOnce(String, u16) -> F,
        F: Future<Output = io::Result<S>>,
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Self { address, name, tls, limits } = self;
        let (text, limit) = (address.text(), limits.connect_timeout);
        let late = DialError::TooSlow { address: text.clone(), limit };
        let connect = async {
            let stream = dial(address.host, address.port)
                .await
                .map_err(|source| DialError::Connect { address: text.clone(), source })?;
            tls.connect(name, stream).await.map_err(|source| DialError::Handshake { address: text, source })
        };
        tokio::time::timeout(limit, connect).await.map_err(|_| late)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_the_scheme() {
        for (text, host, port) in [
            ("https://deploy.example:7443", "deploy.example", 7443),
            ("https://deploy.example:7443/", "deploy.example", 7443),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:7443", "::1", 7443),
        ] {
            assert_eq!(Address::parse(text).expect(text), Address { host: host.to_owned(), port });
        }
    }

    #[test]
    fn addresses_that_can_not_be_dialled_say_why() {
        for (text, reason) in [
            ("http://host:1", "TLS only"),
            ("ftp://host:1", "scheme"),
            ("host", "port"),
            ("host:0", "port"),
            ("host:70000", "port"),
            ("https://host:1/path", "host and a port"),
            ("https://user@host:1", "user name"),
            (":1", "host"),
            ("", "host and a port"),
        ] {
            let error = Address::parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}

//! One more connection: every address in turn, and all that its name stands for.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;
use tonic::transport::Endpoint;

use super::addresses::Address;
use super::{Addresses, Error, Limits};
use crate::socket;
use crate::tls::ClientTls;

/// Shortest wait for one try, while there is time: a slow line needs some round trips.
const LEAST: Duration = Duration::from_secs(1);
/// What a name stands for is tried up to this many.
const MOST_OF_A_NAME: usize = 8;

/// Why a connection failed. The cause is part of the text because gRPC statuses keep nothing but the text.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name stands for nothing.
    #[error("could not look up {address}: {source}")]
    LookUp {
        /// Host and port.
        address: String,
        /// What the system said.
        source: io::Error,
    },
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
    #[error("could not connect to {address} within {limit:.1?}")]
    TooSlow {
        /// Host and port.
        address: String,
        /// Its share of [`Limits::connect_timeout`].
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
    /// None of several could be reached.
    #[error("{}", joined(.0))]
    Each(Vec<DialError>),
}

impl DialError {
    /// Whether somebody answered, and no agreement on TLS was reached: mostly, a certificate of another authority.
    #[must_use]
    pub fn is_of_tls(&self) -> bool {
        match self {
            Self::Handshake { .. } => true,
            Self::Each(all) => all.iter().any(Self::is_of_tls),
            Self::LookUp { .. } | Self::Connect { .. } | Self::TooSlow { .. } | Self::Http { .. } => false,
        }
    }

    /// Whether whoever answered showed a certificate that is good, and for another name than was dialled.
    #[must_use]
    pub fn is_of_name(&self) -> bool {
        match self {
            Self::Handshake { source, .. } => is_misnamed(source),
            Self::Each(all) => all.iter().any(Self::is_of_name),
            Self::LookUp { .. } | Self::Connect { .. } | Self::TooSlow { .. } | Self::Http { .. } => false,
        }
    }

    /// What to do about that, one of the two; nothing where it is not so.
    #[must_use]
    pub fn other_names(&self, dialled: &str) -> Vec<String> {
        if !self.is_of_name() {
            return Vec::new();
        }
        let host = super::host(dialled).unwrap_or_else(|_| "NAME".to_owned());
        vec![
            "if that is the coordinator under another of its names: --server-name NAME, one that its certificate has"
                .to_owned(),
            format!("or, on the coordinator's host, sign one for this: holdfast-coordinator ca server --host {host}"),
        ]
    }
}

fn is_misnamed(error: &io::Error) -> bool {
    use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
    let found = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(found, Some(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })))
}

fn joined(all: &[DialError]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// All that one more connection needs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    hosts: Vec<Host>,
    tls: ClientTls,
    limits: Limits,
}

/// An address, and what a certificate there must be valid for.
#[derive(Clone, Debug)]
struct Host {
    address: Address,
    name: ServerName<'static>,
}

impl Plan {
    pub(super) fn new(addresses: &Addresses, tls: &ClientTls, limits: &Limits) -> Result<Self, Error> {
        let host = |address: &Address| Ok(Host { name: tls.name_for(&address.host)?, address: address.clone() });
        let hosts = addresses.iter().map(host).collect::<Result<_, Error>>()?;
        Ok(Self { hosts, tls: tls.clone(), limits: *limits })
    }

    /// The scheme is `http` because TLS is the connector's: tonic is built without its own and refuses `https`.
    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::from_shared(format!("http://{}", self.first().address.text()))
            .expect("host and port were parsed as an authority")
            .connect_timeout(self.limits.connect_timeout)
            .http2_keep_alive_interval(self.limits.keepalive_interval)
            .keep_alive_timeout(self.limits.keepalive_timeout)
            .keep_alive_while_idle(true)
            .http2_max_header_list_size(self.limits.header_bytes)
            .initial_stream_window_size(self.limits.stream_window)
            .initial_connection_window_size(self.limits.connection_window)
    }

    fn first(&self) -> &Host {
        self.hosts.first().expect("there is at least one")
    }

    /// The first that is reached and whose certificate is right.
    pub(super) async fn dial(&self) -> Result<TlsStream<TcpStream>, DialError> {
        let mut failed = Vec::new();
        let end = Instant::now() + self.limits.connect_timeout;
        for (index, host) in self.hosts.iter().enumerate() {
            let share = share(end, self.hosts.len() - index);
            match self.dial_host(host, share, &mut failed).await {
                Some(stream) => return Ok(stream),
                None => tracing::debug!(address = host.address.text(), "no coordinator was reached there"),
            }
        }
        let last = failed.pop().expect("a dial that gave nothing has failed");
        Err(if failed.is_empty() { last } else { DialError::Each(failed.into_iter().chain([last]).collect()) })
    }

    async fn dial_host(
        &self,
        host: &Host,
        limit: Duration,
        failed: &mut Vec<DialError>,
    ) -> Option<TlsStream<TcpStream>> {
        let end = Instant::now() + limit;
        let places = match look_up(&host.address, limit).await {
            Ok(places) => places,
            Err(error) => {
                failed.push(error);
                return None;
            }
        };
        for (index, place) in places.iter().enumerate() {
            let text = match places.len() {
                1 => host.address.text(),
                _ => format!("{} ({})", host.address.text(), place.ip()),
            };
            let share = share(end, places.len() - index);
            match self.try_one(text, share, host.name.clone(), tcp(*place)).await {
                Ok(stream) => return Some(stream),
                Err(error) => failed.push(error),
            }
        }
        None
    }

    /// Over another kind of stream, to the first address.
    pub(super) async fn dial_over<F, S>(&self, dial: impl FnOnce(String, u16) -> F) -> Result<TlsStream<S>, DialError>
    where
        F: Future<Output = io::Result<S>>,
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Host { address, name } = self.first().clone();
        let (text, limit) = (address.text(), self.limits.connect_timeout);
        self.try_one(text, limit, name, dial(address.host, address.port)).await
    }

    async fn try_one<S>(
        &self,
        address: String,
        limit: Duration,
        name: ServerName<'static>,
        stream: impl Future<Output = io::Result<S>>,
    ) -> Result<TlsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let late = DialError::TooSlow { address: address.clone(), limit };
        let connect = async {
            let stream = stream.await.map_err(|source| DialError::Connect { address: address.clone(), source })?;
            self.tls.connect(name, stream).await.map_err(|source| DialError::Handshake { address, source })
        };
        timeout(limit, connect).await.map_err(|_| late)?
    }
}

/// What is left of the time, in equal parts but none too short.
fn share(end: Instant, parts: usize) -> Duration {
    let left = end.saturating_duration_since(Instant::now());
    let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
    (left / parts).max(LEAST).min(left)
}

/// What the name stands for now. Never empty.
async fn look_up(address: &Address, limit: Duration) -> Result<Vec<SocketAddr>, DialError> {
    let text = address.text();
    let found = match timeout(limit, lookup_host((address.host.as_str(), address.port))).await {
        Ok(found) => found.map(|all| all.take(MOST_OF_A_NAME).collect::<Vec<_>>()),
        Err(_) => return Err(DialError::TooSlow { address: text, limit }),
    };
    let nothing = || io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    match found.and_then(|all| if all.is_empty() { Err(nothing()) } else { Ok(all) }) {
        Ok(all) => Ok(all),
        Err(source) => Err(DialError::LookUp { address: text, source }),
    }
}

async fn tcp(place: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(place).await?;
    socket::prepare(&stream)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_try_has_its_share_and_none_too_little() {
        let end = Instant::now() + Duration::from_secs(10);
        assert_eq!(share(end, 2), Duration::from_secs(5));
        assert_eq!(share(end, 40), LEAST);
        tokio::time::advance(Duration::from_millis(9_500)).await;
        assert_eq!(share(end, 1), Duration::from_millis(500));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(share(end, 1), Duration::ZERO);
    }

    #[test]
    fn a_limit_is_told_as_people_read_it() {
        let late = DialError::TooSlow { address: "a:1".to_owned(), limit: Duration::from_nanos(9_999_737_862) };
        assert_eq!(late.to_string(), "could not connect to a:1 within 10.0s");
    }
}

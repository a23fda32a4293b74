use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::pem::{self, Pair};
use super::{ALPN, Error};
use crate::peer::{Peer, PeerStream};

/// The coordinator's side of TLS. A client certificate is optional, but one that is presented must be signed by the
/// client CA. Cheap to clone.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

/// Why a connection did not get through its handshake.
#[derive(Debug, thiserror::Error)]
pub enum Handshake {
    /// The peer took too long.
    #[error("no complete handshake within {0:?}")]
    TooSlow(Duration),
    /// The peer went away, spoke another protocol, or presented a certificate that is not trusted.
    #[error("{0}")]
    Refused(#[source] io::Error),
}

impl ServerTls {
    /// Longest time from accept to a complete handshake.
    pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

    /// From PEM files: the server's certificate chain and key, and the CA that signs clients' certificates.
    pub fn from_files(certificate: &Path, key: &Path, client_ca: &Path) -> Result<Self, Error> {
        let pair = Pair::read(certificate, key)?;
        let authorities = Arc::new(pem::authorities(client_ca)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(authorities, super::provider())
            .allow_unauthenticated()
            .build()
            .map_err(|source| Error::Verifier { file: client_ca.to_owned(), source })?;
        let builder = ServerConfig::builder_with_provider(super::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(Error::Protocol)?
            .with_client_cert_verifier(verifier);
        let mut config = pair.give(|chain, key| builder.with_single_cert(chain, key))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config) })
    }

    /// The server's handshake over any byte stream, within [`Self::HANDSHAKE_LIMIT`].
    pub async fn accept<S>(&self, stream: S, address: SocketAddr) -> Result<PeerStream<S>, Handshake>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream);
        let stream = tokio::time::timeout(Self::HANDSHAKE_LIMIT, handshake)
            .await
            .map_err(|_| Handshake::TooSlow(Self::HANDSHAKE_LIMIT))?
            .map_err(Handshake::Refused)?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let peer = Peer::new(certificate.map(|der| der.as_ref()), address);
        Ok(PeerStream::new(stream, peer))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

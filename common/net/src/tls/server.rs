use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::few::Few;
use super::kept::{self, Kept, Looked};
use super::pem::{self, Pair};
use super::{ALPN, Error};
use crate::peer::{Peer, PeerStream};

/// The coordinator's side of TLS. A client certificate is optional, but one that is presented must be signed by a
/// client CA. Cheap to clone; all clones go on to new certificates together.
#[derive(Clone)]
pub struct ServerTls {
    kept: Arc<Kept<Set>>,
}

/// What one set of files came to.
struct Set {
    config: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    file: PathBuf,
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
        Self::trusting(certificate, key, &[client_ca.to_owned()])
    }

    /// The same with several files of client CAs, all of which are trusted.
    pub fn trusting(certificate: &Path, key: &Path, client_cas: &[PathBuf]) -> Result<Self, Error> {
        let files: Vec<&Path> = [certificate, key].into_iter().chain(client_cas.iter().map(PathBuf::as_path)).collect();
        let (certificate, key, cas) = (certificate.to_owned(), key.to_owned(), client_cas.to_owned());
        let first = AtomicBool::new(true);
        let kept = Kept::of(&files, move || {
            // At a start the clock may be wrong; a set that takes the place of one that works must be good now.
            let is_first = first.swap(false, Ordering::Relaxed);
            read(&certificate, &key, &cas, is_first)
        });
        Ok(Self { kept: kept? })
    }

    /// An error if the own certificate's life has not begun or is over, by this machine's clock.
    pub fn must_be_good_now(&self) -> Result<(), Error> {
        let set = self.kept.current();
        pem::must_be_good_now(&set.chain, &set.file)
    }

    /// What is presented, the own certificate first.
    #[must_use]
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.kept.current().chain.clone()
    }

    /// Looks at the files, and goes on to a new set where there is a sound one. Blocks on the disk.
    pub fn look(&self) -> Looked {
        self.kept.look()
    }

    /// Why the newest files do not count; `None` where they do.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.kept.trouble()
    }

    /// Looks again and again, until told to stop.
    pub async fn follow(self, stop: CancellationToken) {
        kept::follow(self.kept, stop).await;
    }

    /// The server's handshake over any byte stream, within [`Self::HANDSHAKE_LIMIT`].
    pub async fn accept<S>(&self, stream: S, address: SocketAddr) -> Result<PeerStream<S>, Handshake>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = TlsAcceptor::from(Arc::clone(&self.kept.current().config)).accept(stream);
        let stream = tokio::time::timeout(Self::HANDSHAKE_LIMIT, handshake)
            .await
            .map_err(|_| Handshake::TooSlow(Self::HANDSHAKE_LIMIT))?
            .map_err(Handshake::Refused)?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let peer = Peer::new(certificate.map(|der| der.as_ref()), address);
        Ok(PeerStream::new(stream, peer))
    }
}

fn read(certificate: &Path, key: &Path, client_cas: &[PathBuf], whatever_the_time: bool) -> Result<Set, Error> {
    let pair = Pair::read(certificate, key)?;
    if !whatever_the_time {
        pair.must_be_good_now()?;
    }
    let authorities = Arc::new(pem::authorities_of(client_cas)?);
    let file = client_cas.first().cloned().unwrap_or_default();
    let verifier = WebPkiClientVerifier::builder_with_provider(authorities, super::provider())
        .allow_unauthenticated()
        .build()
        .map_err(|source| Error::Verifier { file, source })?;
    let builder = ServerConfig::builder_with_provider(super::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(Error::Protocol)?
        .with_client_cert_verifier(Arc::new(Few(verifier as Arc<dyn ClientCertVerifier>)));
    let chain = pair.chain.clone();
    let mut config = pair.give(|chain, key| builder.with_single_cert(chain, key))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Set { config: Arc::new(config), chain, file: certificate.to_owned() })
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

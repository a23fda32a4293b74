use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::few::Few;
use super::kept::{self, Kept, Looked};
use super::looking::Looking;
use super::pem::{self, Pair};
use super::{ALPN, Error};
use crate::peer::Validity;

/// The agent's and the operator's side of TLS. Cheap to clone.
///
/// All clones go on to new certificates together.
#[derive(Clone)]
pub struct ClientTls {
    kept: Arc<Kept<Set>>,
    server_name: Option<ServerName<'static>>,
}

/// What one set of files came to.
#[derive(Clone)]
struct Set {
    config: Arc<ClientConfig>,
    own: Option<Validity>,
    good: Option<(Vec<CertificateDer<'static>>, PathBuf)>,
}

impl ClientTls {
    /// From PEM files: the CA that signs the server's certificate and, for an agent, the own certificate chain and key.
    /// `server_name` is what the server's certificate must be valid for; without it that is the host that is dialled.
    pub fn from_files(ca: &Path, identity: Option<(&Path, &Path)>, server_name: Option<&str>) -> Result<Self, Error> {
        let files: Vec<&Path> = std::iter::once(ca).chain(identity.into_iter().flat_map(|(a, b)| [a, b])).collect();
        let (ca, pair) = (ca.to_owned(), identity.map(|(certificate, key)| (certificate.to_owned(), key.to_owned())));
        let first = AtomicBool::new(true);
        let kept = Kept::of(&files, move || {
            // At a start the clock may be wrong; a set that takes the place of one that works must be good now.
            read(&ca, pair.as_ref(), first.swap(false, Ordering::Relaxed))
        })?;
        Ok(Self { kept, server_name: server_name.map(parse_name).transpose()? })
    }

    /// An error if the own certificate's life has not begun or is over, by this machine's clock.
    pub fn must_be_good_now(&self) -> Result<(), Error> {
        self.kept.current().good.as_ref().map_or(Ok(()), |(chain, file)| pem::must_be_good_now(chain, file))
    }

    /// How long the own certificate is good; `None` where there is none.
    #[must_use]
    pub fn validity(&self) -> Option<Validity> {
        self.kept.current().own
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

    /// Trusts just this authority, which a person has pinned.
    pub fn from_authority(ca: CertificateDer<'static>, server_name: Option<&str>) -> Result<Self, Error> {
        let mut authorities = RootCertStore::empty();
        let file = Path::new("the pinned CA").to_owned();
        authorities.add(ca).map_err(|source| Error::Authority { file: file.clone(), source })?;
        let config = ClientConfig::builder_with_provider(super::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(Error::Protocol)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(authorities, &file)?)
            .with_no_client_auth();
        Self::finished(config, server_name)
    }

    /// Trusts whoever answers, and keeps what they present. For looking only: see [`crate::channel::presented`].
    pub(crate) fn looking(seen: Arc<Mutex<Vec<CertificateDer<'static>>>>) -> Result<Self, Error> {
        let provider = super::provider();
        let verifier = Arc::new(Looking::new(&provider, seen));
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(Error::Protocol)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Self::finished(config, None)
    }

    fn finished(config: ClientConfig, server_name: Option<&str>) -> Result<Self, Error> {
        let set = Set { config: spoken(config), own: None, good: None };
        Ok(Self { kept: Kept::fixed(set), server_name: server_name.map(parse_name).transpose()? })
    }

    /// What the certificate of a server dialled as `host` must be valid for.
    pub(crate) fn name_for(&self, host: &str) -> Result<ServerName<'static>, Error> {
        self.server_name.clone().map_or_else(|| parse_name(host), Ok)
    }

    /// The client's handshake over any byte stream. The caller bounds its time.
    pub async fn connect<S>(&self, name: ServerName<'static>, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        TlsConnector::from(Arc::clone(&self.kept.current().config)).connect(name, stream).await
    }
}

/// What rustls does by itself, on chains that are short enough. Not one of its checks is left out.
fn verifier(authorities: RootCertStore, file: &Path) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), super::provider())
        .build()
        .map_err(|source| Error::Verifier { file: file.to_owned(), source })?;
    Ok(Arc::new(Few(webpki as Arc<dyn ServerCertVerifier>)))
}

fn read(ca: &Path, pair: Option<&(PathBuf, PathBuf)>, whatever_the_time: bool) -> Result<Set, Error> {
    let builder = ClientConfig::builder_with_provider(super::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(Error::Protocol)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(pem::authorities(ca)?, ca)?);
    let Some((certificate, key)) = pair else {
        return Ok(Set { config: spoken(builder.with_no_client_auth()), own: None, good: None });
    };
    let pair = Pair::read(certificate, key)?;
    if !whatever_the_time {
        pair.must_be_good_now()?;
    }
    let own = pair.validity();
    let good = Some((pair.chain.clone(), certificate.clone()));
    let config = pair.give(|chain, key| builder.with_client_auth_cert(chain, key))?;
    Ok(Set { config: spoken(config), own, good })
}

fn spoken(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

fn parse_name(text: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(text.to_owned()).map_err(|_| Error::ServerName { text: text.to_owned() })
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

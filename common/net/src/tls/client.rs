use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::looking::Looking;
use super::pem::{self, Pair};
use super::{ALPN, Error};

/// The agent's and the operator's side of TLS. Cheap to clone.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// From PEM files: the CA that signs the server's certificate and, for an agent, the own certificate chain and key.
    /// `server_name` is what the server's certificate must be valid for; without it that is the host that is dialled.
    pub fn from_files(ca: &Path, identity: Option<(&Path, &Path)>, server_name: Option<&str>) -> Result<Self, Error> {
        let authorities = pem::authorities(ca)?;
        let builder = ClientConfig::builder_with_provider(super::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(Error::Protocol)?
            .with_root_certificates(authorities);
        let config = match identity {
            Some((certificate, key)) => {
                Pair::read(certificate, key)?.give(|chain, key| builder.with_client_auth_cert(chain, key))?
            }
            None => builder.with_no_client_auth(),
        };
        Self::finished(config, server_name)
    }

    /// Trusts just this authority, which a person has pinned.
    pub fn from_authority(ca: CertificateDer<'static>, server_name: Option<&str>) -> Result<Self, Error> {
        let mut authorities = rustls::RootCertStore::empty();
        let file = Path::new("the pinned CA").to_owned();
        authorities.add(ca).map_err(|source| Error::Authority { file, source })?;
        let config = ClientConfig::builder_with_provider(super::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(Error::Protocol)?
            .with_root_certificates(authorities)
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

    fn finished(mut config: ClientConfig, server_name: Option<&str>) -> Result<Self, Error> {
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), server_name: server_name.map(parse_name).transpose()? })
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
        TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await
    }
}

fn parse_name(text: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(text.to_owned()).map_err(|_| Error::ServerName { text: text.to_owned() })
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

//! From a URL to a stream.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Error;

/// Whom this host trusts. Read when it is first needed: plain HTTP needs none.
#[derive(Debug, Default)]
pub struct Trust(std::sync::OnceLock<Option<Arc<ClientConfig>>>);

impl Trust {
    fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        self.0.get_or_init(config).clone().ok_or(Error::NoAuthorities)
    }
}

fn config() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if taken == 0 {
        return None;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13]).ok()?;
    Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// What HTTP is spoken over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) async fn connect(
    uri: &http::Uri,
    authority: &http::uri::Authority,
    trust: &Trust,
) -> Result<Box<dyn Stream>, Error> {
    let (tls, default) = match uri.scheme_str() {
        Some("http") => (false, 80),
        Some("https") => (true, 443),
        Some(_) | None => return Err(Error::Url(uri.to_string())),
    };
    // An IPv6 address stands in brackets in a URL and without them everywhere else.
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let stream = dial(host, authority.port_u16().unwrap_or(default)).await?;
    if !tls {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::Url(uri.to_string()))?;
    let connector = TlsConnector::from(trust.config()?);
    Ok(Box::new(connector.connect(name, stream).await.map_err(Error::Tls)?))
}

/// Connects to the first address of a host that accepts.
pub async fn dial(host: &str, port: u16) -> Result<TcpStream, Error> {
    let resolve = |source| Error::Resolve { host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await.map_err(resolve)?.collect();
    let mut refused = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Only a matter of speed.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => refused = error,
        }
    }
    Err(Error::Connect(refused))
}

//! A small HTTP client: one GET on one connection, and what comes back, bounded.
//!
//! It follows no redirect, reads no proxy from the environment, sends no cookie and no credential, and speaks TLS 1.3 to
//! the authorities that this host trusts. Everything it reads has a bound in size, and its caller gives one in time.

mod connect;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

pub use connect::{Trust, dial};

/// Largest head of an answer, in bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// Why there is no answer, or not the whole of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no URL that this client asks.
    #[error("not a URL that can be asked: {0}")]
    Url(String),
    /// The name does not resolve.
    #[error("could not resolve {host}")]
    Resolve {
        /// The host.
        host: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Nobody accepts there.
    #[error("could not connect")]
    Connect(#[source] std::io::Error),
    /// No authority of this host could be read.
    #[error("this host has no certificate authorities that could be read")]
    NoAuthorities,
    /// The certificate or the handshake was refused.
    #[error("could not agree on TLS")]
    Tls(#[source] std::io::Error),
    /// What came is no HTTP, or broke off.
    #[error("the answer broke off")]
    Http(#[source] hyper::Error),
}

/// An answer whose head has come.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The length that its head promises.
    pub promised: Option<u64>,
    body: Incoming,
}

/// Asks for a URL. Returns when the head of the answer is there. Takes as long as it takes: the caller bounds it.
pub async fn get(url: &str, trust: &Trust) -> Result<Answer, Error> {
    let uri: http::Uri = url.parse().map_err(|_| Error::Url(url.to_owned()))?;
    let authority = uri.authority().cloned().ok_or_else(|| Error::Url(url.to_owned()))?;
    let stream = connect::connect(&uri, &authority, trust).await?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD_BYTES).handshake(TokioIo::new(stream)).await.map_err(Error::Http)?;
    // Ends with the answer's body, or with the sender; a failure is told to whoever reads.
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = http::Request::get(path)
        .header(http::header::HOST, authority.as_str())
        .header(http::header::USER_AGENT, concat!("holdfast-agent/", env!("CARGO_PKG_VERSION")))
        .header(http::header::ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(|_| Error::Url(url.to_owned()))?;
    let answer = sender.send_request(request).await.map_err(Error::Http)?;
    let promised =
        answer.headers().get(http::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    Ok(Answer { status: answer.status().as_u16(), promised, body: answer.into_body() })
}

impl Answer {
    /// The next piece of the body; `None` at its end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        while let Some(frame) = self.body.frame().await {
            // What is no data are trailers.
            if let Ok(data) = frame.map_err(Error::Http)?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The beginning of the body, at most that many bytes.
    pub async fn beginning(mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        let mut read = Vec::new();
        while read.len() < bytes {
            let Some(piece) = self.piece().await? else { break };
            read.extend_from_slice(&piece[..piece.len().min(bytes - read.len())]);
        }
        Ok(read)
    }
}

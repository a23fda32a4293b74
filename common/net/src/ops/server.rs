use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::answer::{Form, TEXT};
use super::{Address, Answer, Asked, Health, Page, Settings};
use crate::serve::{self, Newest};

/// Connections under way at the same time. The newest takes the place of the oldest.
const CONNECTIONS: usize = 64;
/// Longest time from accept to the end of the request's headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(5);
/// Longest life of a connection.
const ALL_WITHIN: Duration = Duration::from_secs(10);
/// Largest request, and the buffer for it, in bytes.
const REQUEST_BYTES: usize = 16 * 1024;
/// Headers in one request.
const HEADERS: usize = 64;
/// Answers that may look at files at the same time.
const LOOKING: usize = 4;
/// Longest time for such an answer: what takes longer is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address can't be taken.
    #[error("could not listen on {address} for health and metrics: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address could not be told.
    #[error("could not write the address to {}: {source}", file.display())]
    Announce {
        /// Where to.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Takes the address. `None` if it is off, or if none was configured and somebody else has the default port: a second
/// agent on a host must not fail for that.
pub async fn listen(settings: &Settings, default_port: u16) -> Result<Option<TcpListener>, Error> {
    let (address, chosen) = match settings.address {
        Some(Address::Off) => return Ok(None),
        Some(Address::At(address)) => (address, true),
        None => (SocketAddr::from((Ipv4Addr::LOCALHOST, default_port)), false),
    };
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(source) if chosen => return Err(Error::Listen { address, source }),
        Err(error) => {
            tracing::warn!(%address, %error, "no health and metrics: set [ops] address");
            return Ok(None);
        }
    };
    let address = listener.local_addr().map_err(|source| Error::Listen { address, source })?;
    tracing::info!(%address, "health and metrics");
    if let Some(file) = &settings.address_file {
        serve::announce(file, address).map_err(|source| Error::Announce { file: file.clone(), source })?;
    }
    Ok(Some(listener))
}

/// What is served.
#[derive(Clone)]
pub struct Pages {
    health: Health,
    metrics: Arc<dyn Fn(Form) -> String + Send + Sync>,
    looking: Arc<Semaphore>,
}

impl Pages {
    /// `metrics` makes the text; it may look at files.
    #[must_use]
    pub fn new(health: Health, metrics: impl Fn(Form) -> String + Send + Sync + 'static) -> Self {
        Self { health, metrics: Arc::new(metrics), looking: Arc::new(Semaphore::new(LOOKING)) }
    }

    async fn answer(self, asked: Asked) -> Answer {
        if asked.page == Page::Live {
            return asked.answer(&self.health, |form| (self.metrics)(form));
        }
        let Ok(place) = Arc::clone(&self.looking).try_acquire_owned() else {
            return unready("too many look at the same time\n");
        };
        let look = tokio::task::spawn_blocking(move || {
            let answer = asked.answer(&self.health, |form| (self.metrics)(form));
            drop(place);
            answer
        });
        match tokio::time::timeout(ANSWER_WITHIN, look).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_panic)) => unready("not ready\na part could not be asked\n"),
            Err(_) => unready("not ready\na part did not answer in time\n"),
        }
    }
}

fn unready(text: &str) -> Answer {
    Answer { status: 503, content_type: TEXT, body: text.to_owned() }
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server(AbortHandle);

impl Server {
    /// Starts. Needs a tokio runtime.
    #[must_use]
    pub fn start(listener: TcpListener, pages: Pages) -> Self {
        Self(tokio::spawn(accept(listener, pages)).abort_handle())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept(listener: TcpListener, pages: Pages) {
    let mut connections = Newest::new(CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.start(connection(stream, pages.clone())),
            Err(error) => serve::survive(&error).await,
        }
    }
}

async fn connection(stream: TcpStream, pages: Pages) {
    let service = service_fn(move |request| respond(request, pages.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(ALL_WITHIN, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a request for health or metrics broke off"),
        Err(_) => tracing::debug!("a request for health or metrics took too long"),
    }
}

async fn respond(request: Request<Incoming>, pages: Pages) -> Result<Response<Full<Bytes>>, Infallible> {
    let Some(page) = Page::at(request.uri().path()) else {
        return Ok(plain(StatusCode::NOT_FOUND, "there are /livez, /readyz and /metrics\n"));
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
        refused.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return Ok(refused);
    }
    let verbose = request.uri().query().unwrap_or_default().split('&').any(|word| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        name == "verbose"
    });
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let asked = Asked { page, verbose, accept: accept.to_owned() };
    let answer = pages.answer(asked).await;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    Ok(response(status, answer.content_type, answer.body))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    response(status, TEXT, text.to_owned())
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

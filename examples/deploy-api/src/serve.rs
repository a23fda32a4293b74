//! Requests and routes.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::access::{Tokens, Verdict, Wish};
use crate::answer::{self, Answer};
use crate::request::{Raise, Submission};
use crate::store::{Shared, Store};
use crate::work;

const MAX_BODY: usize = 64 * 1024;

struct Api {
    store: Arc<Shared>,
    tokens: Tokens,
}

/// What went wrong on our side.
type Trouble = rusqlite::Error;

/// Takes up what was under way, then serves.
pub(crate) async fn forever(listen: SocketAddr, store: Store, tokens: Tokens) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let living = store.living().map_err(std::io::Error::other)?;
    let api = Arc::new(Api { store: Arc::new(Shared::new(store)), tokens });
    for run in living {
        work::begin(&api.store, run);
    }
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let api = Arc::clone(&api);
        tokio::spawn(async move {
            let service = service_fn(|request| api.answer(request));
            // A client that went away is told nothing.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl Api {
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        Ok(self.route(request).await.unwrap_or_else(|trouble| {
            answer::refused(StatusCode::INTERNAL_SERVER_ERROR, "trouble", &json!({ "detail": trouble.to_string() }))
        }))
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Trouble> {
        let path = request.uri().path().to_owned();
        match (request.method(), path.as_str(), path.strip_prefix("/deployments/")) {
            (&Method::POST, "/deployments", _) => self.submit(request).await,
            (&Method::GET, _, Some(operation)) => self.deployment(&request, operation),
            (&Method::GET, "/", _) => self.resource(&request),
            (&Method::POST, "/fence", _) => self.raise(request).await,
            (_, "/deployments" | "/" | "/fence", _) | (_, _, Some(_)) => {
                Ok(answer::refused(StatusCode::METHOD_NOT_ALLOWED, "method", &json!({})))
            }
            (_, _, None) => Ok(answer::refused(StatusCode::NOT_FOUND, "no_such_path", &json!({}))),
        }
    }

    async fn submit(&self, request: Request<Incoming>) -> Result<Answer, Trouble> {
        if let Some(refused) = self.refused(&request, Wish::Submit) {
            return Ok(refused);
        }
        let (head, body) = request.into_parts();
        let submission = match content(body).await.and_then(|text| Submission::read(&head.headers, &text)) {
            Ok(submission) => submission,
            Err(why) => {
                return Ok(answer::refused(StatusCode::BAD_REQUEST, "not_understood", &json!({ "detail": why })));
            }
        };
        let (submitted, run) = self.store.with(|store| store.submit(&submission))?;
        if let Some(run) = run {
            work::begin(&self.store, run);
        }
        Ok(answer::submitted(&submitted))
    }

    fn deployment(&self, request: &Request<Incoming>, operation: &str) -> Result<Answer, Trouble> {
        if let Some(refused) = self.refused(request, Wish::Read) {
            return Ok(refused);
        }
        let key = unescaped(operation);
        Ok(match self.store.with(|store| store.deployment(&key))? {
            Some(deployment) => answer::json(StatusCode::OK, &answer::shown(&deployment)),
            None => answer::refused(StatusCode::NOT_FOUND, "never_accepted", &json!({})),
        })
    }

    fn resource(&self, request: &Request<Incoming>) -> Result<Answer, Trouble> {
        if let Some(refused) = self.refused(request, Wish::Read) {
            return Ok(refused);
        }
        let resource = self.store.with(|store| store.resource())?;
        let value = serde_json::to_value(resource).expect("plain data serializes");
        Ok(answer::json(StatusCode::OK, &value))
    }

    async fn raise(&self, request: Request<Incoming>) -> Result<Answer, Trouble> {
        if let Some(refused) = self.refused(&request, Wish::RaiseFence) {
            return Ok(refused);
        }
        let raise = match content(request.into_body()).await.and_then(|text| Raise::read(&text)) {
            Ok(raise) => raise,
            Err(why) => {
                return Ok(answer::refused(StatusCode::BAD_REQUEST, "not_understood", &json!({ "detail": why })));
            }
        };
        let highest = self.store.with(|store| store.raise(raise.fence))?;
        Ok(answer::json(StatusCode::OK, &json!({ "highest_fence": highest })))
    }

    fn refused(&self, request: &Request<Incoming>, wish: Wish) -> Option<Answer> {
        match self.tokens.judge(request.headers(), wish) {
            Verdict::Allowed => None,
            Verdict::NotWithThis => Some(answer::refused(StatusCode::FORBIDDEN, "not_with_this_token", &json!({}))),
            Verdict::NoToken => Some(answer::refused(StatusCode::UNAUTHORIZED, "no_token", &json!({}))),
        }
    }
}

async fn content(body: Incoming) -> Result<Vec<u8>, String> {
    let whole = Limited::new(body, MAX_BODY).collect().await.map_err(|error| error.to_string())?;
    Ok(whole.to_bytes().to_vec())
}

/// `%2F` and its like, as far as they are written rightly; anything else stands for itself and is no known key.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let two = after.get(..2).and_then(|two| str::from_utf8(two).ok());
        match two.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

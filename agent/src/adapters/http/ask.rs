//! One request and its answer. A connection of its own for each: what is known of one says nothing of another.

use std::time::Duration;

use holdfast_common::system::Http;
use holdfast_common::text::{bounded, one_line};
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Method, redirect};
use serde_json::Value;

use super::access::Access;
use crate::internal::with_causes;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A read, its answer included.
const READ_WITHIN: Duration = Duration::from_secs(15);
/// A submission to an API that tells of the work by a status.
const SEND_WITHIN: Duration = Duration::from_secs(60);
/// A submission to one that does not: it may do all of its work before it answers.
const WORK_WITHIN: Duration = Duration::from_secs(600);
const MAX_BODY: usize = 1024 * 1024;
/// What is told of a body in an error.
const MAX_SAID: usize = 200;

/// Asks one API, with what was given to show there.
pub(super) struct Ask {
    runtime: tokio::runtime::Runtime,
    client: Client,
    access: Access,
    send_within: Duration,
}

/// An answer, whole.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Status and begin of the body, for people. No secret is in it.
    pub(super) said: String,
    body: Vec<u8>,
}

/// There is no answer, or not all of it.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// Whether the request may have reached somebody.
    pub(super) sent: bool,
    pub(super) why: String,
}

impl Answer {
    pub(super) fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("the API's answer is no JSON: {error}"))
    }

    pub(super) fn is_success(&self) -> bool {
        (200..=299).contains(&self.status)
    }
}

impl Ask {
    pub(super) fn new(http: &Http, access: Access) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let client = client(&http.url, &access)?;
        let send_within = if http.status.is_some() { SEND_WITHIN } else { WORK_WITHIN };
        Ok(Self { runtime, client, access, send_within })
    }

    /// Whether every request has that header.
    pub(super) fn shows(&self, name: &HeaderName) -> bool {
        self.access.headers.contains_key(name)
    }

    pub(super) fn get(&self, url: &str) -> Result<Answer, Lost> {
        let request = self.client.get(url).timeout(READ_WITHIN);
        self.runtime.block_on(self.answer(request))
    }

    pub(super) fn send(&self, method: Method, url: &str, headers: HeaderMap, body: String) -> Result<Answer, Lost> {
        let request = self.client.request(method, url).headers(headers).body(body).timeout(self.send_within);
        self.runtime.block_on(self.answer(request))
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Answer, Lost> {
        let lost = |error| self.lost(error);
        let mut answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(lost)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY {
                return Err(Lost { sent: true, why: format!("the API's answer has more than {MAX_BODY} bytes") });
            }
        }
        let said = self.access.hide(&String::from_utf8_lossy(&body));
        let said = format!("the API answered {status}: {}", one_line(&bounded(said.trim(), MAX_SAID)));
        Ok(Answer { status, said, body })
    }

    /// What the system said, without the layers between, and without what could hold a secret.
    fn lost(&self, error: reqwest::Error) -> Lost {
        let (what, sent) = match (error.is_connect(), error.is_timeout()) {
            (true, _) => ("could not connect to the API", false),
            (false, true) => ("the API did not answer in time", true),
            (false, false) => ("the API's answer was lost", true),
        };
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Lost { sent, why: format!("{what}: {}", self.access.hide(&cause.to_string())) }
    }
}

/// Plain HTTP needs no authorities, so a host without any can ask too.
fn client(url: &str, access: &Access) -> Result<Client, String> {
    let mut headers = access.headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .pool_max_idle_per_host(0)
        .default_headers(headers)
        .user_agent(concat!("holdfast-agent/", env!("CARGO_PKG_VERSION")));
    if let Some(identity) = &access.identity {
        builder = builder.identity(identity.clone());
    }
    let builder = match &access.authorities {
        Some(authorities) => builder.tls_certs_only(authorities.clone()),
        None if !url.starts_with("https://") => builder.tls_certs_only(Vec::<Certificate>::new()),
        None => builder,
    };
    builder.build().map_err(|error| access.hide(&with_causes(&error)))
}

//! An answer with the wanted status, and the wanted text where one is wanted, is healthy.
//!
//! One GET on a connection of its own: no redirect is followed, no proxy is read from the environment, no cookie and no credential
//! is sent. Certificates are checked against the authorities that this host trusts.

use std::time::Duration;

use reqwest::{Certificate, Client, redirect};

use crate::internal::with_causes;

/// How much of an answer is searched for the wanted text.
const SEARCHED_BYTES: usize = 64 * 1024;
/// A look has a bound of its own; this one tells a dead host from a slow answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// What an answer must be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) status: u16,
    pub(super) body: Option<&'a str>,
}

/// The client for that URL. Plain HTTP needs no authorities, so a host without any can look too.
pub(super) fn client(url: &str) -> Result<Client, String> {
    let builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("holdfast-agent/", env!("CARGO_PKG_VERSION")));
    let builder = if url.starts_with("https://") { builder } else { builder.tls_certs_only(Vec::<Certificate>::new()) };
    builder.build().map_err(|error| with_causes(&error))
}

/// Asks once. A redirect is an answer like any other.
pub(super) async fn look(client: &Client, url: &str, wanted: Wanted<'_>) -> Result<(), String> {
    let mut answer = client.get(url).send().await.map_err(told)?;
    let status = answer.status().as_u16();
    if status != wanted.status {
        return Err(format!("status {status}"));
    }
    let Some(text) = wanted.body else { return Ok(()) };
    let mut body = Vec::new();
    while body.len() < SEARCHED_BYTES {
        let Some(piece) = answer.chunk().await.map_err(told)? else { break };
        body.extend_from_slice(&piece[..piece.len().min(SEARCHED_BYTES - body.len())]);
    }
    let found = body.windows(text.len()).any(|window| window == text.as_bytes());
    if found { Ok(()) } else { Err(format!("status {status}, and {text:?} is not in its first {} bytes", body.len())) }
}

/// What went wrong and what the system said of it, without the layers between and without the URL, which stands before it.
fn told(error: reqwest::Error) -> String {
    let what = match (error.is_connect(), error.is_request()) {
        (true, _) => "could not connect",
        (false, true) => "no HTTP answer",
        (false, false) => "the answer broke off",
    };
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("{what}: {cause}")
}

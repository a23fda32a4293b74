//! From an https URL.
//!
//! Certificates are checked against the host's own authorities, or against those of `fetch.ca` alone. No proxy, no cookies, no
//! credentials, no decompression. Redirects stay on https and within the allowed hosts.

use std::time::Duration;

use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Certificate, Client, StatusCode, Url, redirect};

use super::Trouble;
use super::part::Part;
use crate::config::Fetch;
use crate::internal::with_causes;

const MAX_REDIRECTS: usize = 5;
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longest silence in the middle of a body.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Goes on where the part ends. `Ok` only with the end of the body.
pub(super) async fn fetch(config: &Fetch, url: &str, part: &mut Part) -> Result<(), Trouble> {
    let url = Url::parse(url).map_err(|error| Trouble::Final(error.to_string()))?;
    allowed(config, &url).map_err(Trouble::Final)?;
    let client = client(config)?;
    let mut request = client.get(url);
    if part.length() > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.length()));
    }
    let mut response = request.send().await.map_err(trouble)?;
    match response.status() {
        StatusCode::OK => part.restart()?,
        StatusCode::PARTIAL_CONTENT if goes_on(&response, part.length()) => {}
        // The part has more than the whole, or the server goes on elsewhere.
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            part.restart()?;
            return Err(Trouble::Passing("the server can't go on where it was cut".to_owned()));
        }
        status => return Err(refused(status)),
    }
    if let Some(rest) = response.content_length() {
        part.expect(part.length().saturating_add(rest))?;
    }
    while let Some(bytes) = response.chunk().await.map_err(trouble)? {
        part.push(&bytes)?;
    }
    Ok(())
}

fn client(config: &Fetch) -> Result<Client, Trouble> {
    let rules = config.clone();
    let policy = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        match allowed(&rules, attempt.url()) {
            Ok(()) => attempt.follow(),
            Err(why) => attempt.error(why),
        }
    });
    let mut builder = Client::builder()
        .https_only(true)
        .no_proxy()
        .redirect(policy)
        .connect_timeout(CONNECT_WITHIN)
        .read_timeout(READ_WITHIN)
        .user_agent(concat!("holdfast-agent/", env!("CARGO_PKG_VERSION")));
    if let Some(path) = &config.ca {
        let pem = std::fs::read(path)?;
        let ca = Certificate::from_pem_bundle(&pem).map_err(|error| Trouble::Final(with_causes(&error)))?;
        builder = builder.tls_certs_only(ca);
    }
    builder.build().map_err(|error| Trouble::Final(with_causes(&error)))
}

/// Whether an archive may come from there, redirects included.
fn allowed(config: &Fetch, url: &Url) -> Result<(), String> {
    if url.scheme() != "https" {
        return Err(format!("{} is not https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL with a name or password is not allowed".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    if config.allows_host(host) { Ok(()) } else { Err(format!("this host's fetch.hosts does not allow {host}")) }
}

fn goes_on(response: &reqwest::Response, offset: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {offset}-")))
}

fn refused(status: StatusCode) -> Trouble {
    let told = format!("the server answered {status}");
    let is_passing = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::TOO_EARLY);
    if is_passing { Trouble::Passing(told) } else { Trouble::Final(told) }
}

/// Without the URL: everybody who reads the report has the deployment's file.
fn trouble(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let told = with_causes(&error);
    if error.is_redirect() || error.is_builder() { Trouble::Final(told) } else { Trouble::Passing(told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_https_of_allowed_hosts_is_fetched() {
        let all = Fetch::default();
        let some = Fetch { hosts: vec!["files.example.org".to_owned(), "cdn.*".to_owned()], ..Fetch::default() };
        let is = |config: &Fetch, url: &str| allowed(config, &Url::parse(url).expect("a URL")).is_ok();
        assert!(
            is(&all, "https://x.org/a") && is(&some, "https://files.example.org/a") && is(&some, "https://cdn.x/a")
        );
        for url in ["http://x.org/a", "https://a@x.org/a", "https://:b@x.org/a", "ftp://x.org/a"] {
            assert!(!is(&all, url), "{url}");
        }
        assert!(!is(&some, "https://169.254.169.254/a"));
    }
}

//! What proves to the API who asks, and how it may be sent.
//!
//! | in the credential set | is |
//! | --- | --- |
//! | variable `HTTP_BEARER`, or a file `bearer` | sent as `Authorization: Bearer` |
//! | variables `HTTP_HEADER_NAME` and `HTTP_HEADER_VALUE` | sent as that header |
//! | a file `client.pem` | certificate and key of this client |
//! | a file `ca.pem` | the only authorities that the API's certificate may come from |
//! | variable `HTTP_PLAIN=allowed` | lets the secrets go over `http://` to another machine |
//!
//! Which API may be asked the host's policy has decided before (`resource.at`).

use std::fs;

use holdfast_common::system::Http;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Identity, Url};

use crate::adapters::system::Credentials;

/// Shown to the API with every request.
pub(super) struct Access {
    pub(super) headers: HeaderMap,
    pub(super) identity: Option<Identity>,
    pub(super) authorities: Option<Vec<Certificate>>,
    secrets: Vec<String>,
}

impl Access {
    /// Why it can't be used. Names variables and files, never a value.
    pub(super) fn read(http: &Http, credentials: &Credentials) -> Result<Self, String> {
        let mut access = Self { headers: HeaderMap::new(), identity: None, authorities: None, secrets: Vec::new() };
        if let Some(bearer) = bearer(credentials)? {
            access.show(AUTHORIZATION, "the bearer token", &format!("Bearer {bearer}"))?;
            access.secrets.push(bearer);
        }
        if let Some((name, value)) = header(credentials)? {
            access.show(name, "HTTP_HEADER_VALUE", &value)?;
            access.secrets.push(value);
        }
        access.identity = file(credentials, "client.pem", Identity::from_pem)?;
        access.authorities = file(credentials, "ca.pem", Certificate::from_pem_bundle)?;
        if access.authorities.as_ref().is_some_and(Vec::is_empty) {
            return Err("the credential file ca.pem holds no certificate".to_owned());
        }
        if !access.headers.is_empty() && credentials.variable("HTTP_PLAIN") != Some("allowed") && goes_in_plain(http) {
            return Err(format!(
                "{} would carry a secret over the network as it is: use https, or say HTTP_PLAIN=allowed in the credential set",
                http.url
            ));
        }
        Ok(access)
    }

    fn show(&mut self, name: HeaderName, what: &str, value: &str) -> Result<(), String> {
        let mut value =
            HeaderValue::from_str(value).map_err(|_| format!("{what} has a character that no header can have"))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// A text of the API without what was shown to it.
    pub(super) fn hide(&self, text: &str) -> String {
        let secrets = self.secrets.iter().filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

fn bearer(credentials: &Credentials) -> Result<Option<String>, String> {
    if let Some(bearer) = credentials.variable("HTTP_BEARER") {
        return Ok(Some(bearer.to_owned()));
    }
    let Some(path) = credentials.file("bearer") else { return Ok(None) };
    let text =
        fs::read_to_string(path).map_err(|error| format!("the credential file bearer can't be read: {error}"))?;
    Ok(Some(text.trim().to_owned()))
}

fn header(credentials: &Credentials) -> Result<Option<(HeaderName, String)>, String> {
    match (credentials.variable("HTTP_HEADER_NAME"), credentials.variable("HTTP_HEADER_VALUE")) {
        (None, None) => Ok(None),
        (Some(name), Some(value)) => match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => Ok(Some((name, value.to_owned()))),
            Err(_) => Err("HTTP_HEADER_NAME is no name of a header".to_owned()),
        },
        (Some(_), None) | (None, Some(_)) => {
            Err("HTTP_HEADER_NAME and HTTP_HEADER_VALUE belong together, one is missing".to_owned())
        }
    }
}

fn file<T>(
    credentials: &Credentials,
    name: &str,
    read: impl FnOnce(&[u8]) -> reqwest::Result<T>,
) -> Result<Option<T>, String> {
    let Some(path) = credentials.file(name) else { return Ok(None) };
    let text = fs::read(path).map_err(|error| format!("the credential file {name} can't be read: {error}"))?;
    // The parser's own words could tell a part of the file.
    read(&text).map(Some).map_err(|_| format!("the credential file {name} does not hold what its name says, as PEM"))
}

/// Whether somebody between here and there could read along.
fn goes_in_plain(http: &Http) -> bool {
    let Ok(url) = Url::parse(&http.url) else { return true };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme() != "https" && !is_here
}

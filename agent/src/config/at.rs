//! `at` of `[[resource]]`: where the repository, the API or the database of a resource may be.
//!
//! | written | is | below it lies |
//! | --- | --- | --- |
//! | `/srv/git` | a folder | every folder in it |
//! | `https://HOST:PORT/PATH`, `http://`, `ssh://USER@` | a place on a server | each place with the same scheme, user, host and port whose path begins with the same parts |
//! | `postgres://HOST:PORT/DATABASE` | a database | nothing else |
//! | `postgres://HOST:PORT` | a server | its databases |
//! | `postgres:///DATABASE` | a database of whichever server the credentials name, as of a local socket | nothing else |
//!
//! Compared part by part, never as text. Two programs can read an odd text in two ways, so there is one plain way to write each
//! part, which all of them read alike; anything else is no place at all: no `%`, no `..`, no empty part, no user but of ssh.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use holdfast_common::adapter::Adapter;
use serde::Deserialize;

/// Where something is, in parts that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Place {
    text: String,
    is: Is,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Is {
    Folder(PathBuf),
    Url {
        scheme: Scheme,
        user: Option<String>,
        server: Server,
        path: Vec<String>,
    },
    /// What is `None` the host's credentials say.
    Database {
        server: Option<Server>,
        name: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Ssh,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    host: String,
    port: u16,
}

/// A text that names no place that could be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {why}")]
pub struct NotAPlace {
    text: String,
    why: Odd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Odd {
    #[error("is neither an absolute path nor begins with https://, http://, ssh:// or postgres://")]
    Scheme,
    #[error("has no host that is written plainly: a name, or an address; IPv6 in brackets")]
    Host,
    #[error("has a port that is none of 1 to 65535")]
    Port,
    #[error("names a user: only ssh:// may, plainly and without a password; the rest is for credentials")]
    User,
    #[error(
        "has a path that is not written plainly: parts of letters, digits and -._~+@=,: with no \"..\" and none empty"
    )]
    Path,
    #[error("is a folder that is not written plainly: no \".\", no \"..\", no part empty, and no \"/\" at the end")]
    Folder,
    #[error("names neither a server nor a database")]
    Nothing,
}

impl Place {
    /// A folder, as it is after every link.
    #[must_use]
    pub fn folder(path: PathBuf) -> Self {
        Self { text: path.display().to_string(), is: Is::Folder(path) }
    }

    /// A database, as far as a target names it: the server as `host:port`.
    pub fn database(server: Option<&str>, name: Option<&str>) -> Result<Self, NotAPlace> {
        let text = format!("postgres://{}/{}", server.unwrap_or_default(), name.unwrap_or_default());
        let server = server.map(|server| address(server, POSTGRES)).transpose();
        let name = name.map(part).transpose();
        match (server, name) {
            (Ok(server), Ok(name)) => Ok(Self { text, is: Is::Database { server, name } }),
            (Err(why), _) | (Ok(_), Err(why)) => Err(NotAPlace { text, why }),
        }
    }

    /// Whether it is that one, or lies below it.
    #[must_use]
    pub fn is_below(&self, of: &Place) -> bool {
        match (&self.is, &of.is) {
            (Is::Folder(path), Is::Folder(folder)) => lies_below(path, folder),
            (Is::Url { scheme, user, server, path }, Is::Url { scheme: s, user: u, server: at, path: start }) => {
                (scheme, user, server) == (s, u, at) && path.starts_with(start)
            }
            (Is::Database { server, name }, Is::Database { server: at, name: of }) => {
                (server.is_none() || server == at) && (name.is_none() || of.is_none() || name == of)
            }
            (Is::Folder(_) | Is::Url { .. } | Is::Database { .. }, _) => false,
        }
    }

    /// Whether it says all of where it is. A database may leave its server or its name to the host's credentials.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match &self.is {
            Is::Folder(_) | Is::Url { .. } => true,
            Is::Database { server, name } => server.is_some() && name.is_some(),
        }
    }

    /// Whether that adapter reaches such places at all.
    #[must_use]
    pub fn is_for(&self, adapter: Adapter) -> bool {
        match &self.is {
            Is::Folder(_) | Is::Url { scheme: Scheme::Ssh, .. } => adapter == Adapter::Git,
            Is::Url { scheme: Scheme::Http | Scheme::Https, .. } => matches!(adapter, Adapter::Git | Adapter::Http),
            Is::Database { .. } => adapter == Adapter::Postgres,
        }
    }

    /// The folder, where it is one.
    #[must_use]
    pub fn as_folder(&self) -> Option<&Path> {
        match &self.is {
            Is::Folder(path) => Some(path),
            Is::Url { .. } | Is::Database { .. } => None,
        }
    }

    /// The same, a folder changed.
    #[must_use]
    pub fn with_folder(&self, change: impl FnOnce(&Path) -> PathBuf) -> Self {
        match &self.is {
            Is::Folder(path) => Self { text: self.text.clone(), is: Is::Folder(change(path)) },
            Is::Url { .. } | Is::Database { .. } => self.clone(),
        }
    }
}

/// Whether a path is that folder or lies in it. Both are as they are after every link.
pub(crate) fn lies_below(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) && path.components().all(|part| part != Component::ParentDir)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Place {
    type Error = NotAPlace;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = if text.starts_with('/') { folder(text) } else { url(text) };
        let text = text.to_owned();
        match read {
            Ok(is) => Ok(Self { text, is }),
            Err(why) => Err(NotAPlace { text, why }),
        }
    }
}

/// Every name counts that a folder can have. What goes up from a link is not where the text says.
fn folder(text: &str) -> Result<Is, Odd> {
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    if text != "/" && text.split('/').skip(1).any(is_odd) { Err(Odd::Folder) } else { Ok(Is::Folder(text.into())) }
}

const HTTP: u16 = 80;
const HTTPS: u16 = 443;
const SSH: u16 = 22;
const POSTGRES: u16 = 5432;

fn url(text: &str) -> Result<Is, Odd> {
    let (scheme, rest) = text.split_once("://").ok_or(Odd::Scheme)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = parts(path)?;
    match scheme {
        "https" => on_server(Scheme::Https, HTTPS, authority, path),
        "http" => on_server(Scheme::Http, HTTP, authority, path),
        "ssh" => on_server(Scheme::Ssh, SSH, authority, path),
        "postgres" | "postgresql" => database(authority, path),
        _ => Err(Odd::Scheme),
    }
}

fn on_server(scheme: Scheme, port: u16, authority: &str, path: Vec<String>) -> Result<Is, Odd> {
    let (user, address_text) = match authority.rsplit_once('@') {
        Some((user, address)) if scheme == Scheme::Ssh => (Some(user_of(user)?), address),
        Some(_) => return Err(Odd::User),
        None => (None, authority),
    };
    Ok(Is::Url { scheme, user, server: address(address_text, port)?, path })
}

fn database(authority: &str, path: Vec<String>) -> Result<Is, Odd> {
    if authority.contains('@') {
        return Err(Odd::User);
    }
    let server = if authority.is_empty() { None } else { Some(address(authority, POSTGRES)?) };
    match (server, path.as_slice()) {
        (None, []) => Err(Odd::Nothing),
        (server, []) => Ok(Is::Database { server, name: None }),
        (server, [name]) => Ok(Is::Database { server, name: Some(name.clone()) }),
        (_, [_, _, ..]) => Err(Odd::Path),
    }
}

/// Host and port; the host in small letters, an IPv6 address in its shortest form.
fn address(text: &str, port: u16) -> Result<Server, Odd> {
    let (host, said) = match text.strip_prefix('[') {
        Some(rest) => {
            let (inner, after) = rest.split_once(']').ok_or(Odd::Host)?;
            let inner: Ipv6Addr = inner.parse().map_err(|_| Odd::Host)?;
            (
                format!("[{inner}]"),
                if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(Odd::Host)?) },
            )
        }
        None => {
            let (host, said) = text.split_once(':').map_or((text, None), |(host, said)| (host, Some(said)));
            (plain_host(host)?, said)
        }
    };
    Ok(Server { host, port: said.map_or(Ok(port), port_of)? })
}

fn plain_host(text: &str) -> Result<String, Odd> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_plain && text.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Odd::Host)
}

fn port_of(text: &str) -> Result<u16, Odd> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0).ok_or(Odd::Port)
}

fn user_of(text: &str) -> Result<String, Odd> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_plain && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') {
        return Ok(text.to_owned());
    }
    Err(Odd::User)
}

/// What stands between the slashes. One at the end says nothing.
fn parts(path: &str) -> Result<Vec<String>, Odd> {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.strip_suffix('/').unwrap_or(path) {
        "" if path.is_empty() => Ok(Vec::new()),
        path => path.split('/').map(part).collect(),
    }
}

fn part(text: &str) -> Result<String, Odd> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+@=,:".contains(&byte));
    if is_plain && !matches!(text, "" | "." | "..") { Ok(text.to_owned()) } else { Err(Odd::Path) }
}

#[cfg(test)]
mod tests;

//! The rules of single values. They hold for what stands in the file and for what a substitution makes of it.

use crate::archive::ArchiveSource;
use crate::file::reader::{Complaint, shown};
use crate::id::Revision;
use crate::spec::OrderKey;

const MAX_PATH: usize = 1024;

pub(super) fn sha256(text: &str) -> Result<(), Complaint> {
    let is_hex = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints them",
        shown(text)
    )))
}

pub(super) fn revision(text: &str) -> Result<(), Complaint> {
    Revision::new(text).map(|_| ()).map_err(|error| Complaint::invalid(error.to_string()))
}

/// A path on the host, an https URL, or a file to upload.
pub(super) fn archive(text: &str) -> Result<(), Complaint> {
    ArchiveSource::of(text).map(|_| ()).map_err(|why| Complaint::invalid(why.to_string()))
}

/// A folder that belongs to a resource: absolute, and written in the one plain way.
pub(super) fn root(text: &str) -> Result<(), Complaint> {
    let parts = text.strip_prefix('/').filter(|rest| !rest.is_empty());
    let Some(parts) = parts.filter(|_| text.len() <= MAX_PATH) else {
        return Err(Complaint::invalid(format!("{} is no absolute path of 2 to {MAX_PATH} bytes", shown(text))));
    };
    if parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        let message = format!("{} has an empty part, \".\" or \"..\": write the path without them", shown(text));
        return Err(Complaint::invalid(message));
    }
    Ok(())
}

/// Whether one folder is the other or lies in it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Longest URL, and longest text that a body is searched for.
const MAX_URL: usize = 2048;
const MAX_EXPECTED: usize = 1024;

/// A plain URL that a check asks: no credentials, no fragment, nothing that would have to be escaped first.
pub(super) fn url(text: &str) -> Result<(), Complaint> {
    let wrong = |why: &str| Err(Complaint::invalid(format!("{} {why}", shown(text))));
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return wrong("is no URL: it begins with \"http://\" or \"https://\"");
    };
    if text.len() > MAX_URL {
        return Err(Complaint::invalid(format!("a URL has at most {MAX_URL} bytes, this one has {}", text.len())));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)) {
        return wrong("has a character that a URL can't have: escape it as %XX, and leave out \"#\"");
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(Complaint::invalid("a URL with credentials is not allowed: files hold no secrets"));
    }
    let (host, port) = host_and_port(authority);
    match (is_host(host), port.is_none_or(is_port)) {
        (true, true) => Ok(()),
        (false, _) => wrong("has no host that can be read"),
        (true, false) => wrong("has a port outside 1 to 65535"),
    }
}

/// `host:port`.
pub(super) fn address(text: &str) -> Result<(), Complaint> {
    let (host, port) = host_and_port(text);
    if is_host(host) && port.is_some_and(is_port) {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no address: write it like \"127.0.0.1:8080\" or \"[::1]:8080\"",
        shown(text)
    )))
}

pub(super) fn expected_body(text: &str) -> Result<(), Complaint> {
    if (1..=MAX_EXPECTED).contains(&text.len()) {
        return Ok(());
    }
    Err(Complaint::invalid(format!("has {} bytes, 1 to {MAX_EXPECTED} are allowed", text.len())))
}

/// An IPv6 address stands in brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    let after = authority.find(']').map_or(0, |end| end + 1);
    match authority[after..].find(':') {
        Some(colon) => (&authority[..after + colon], Some(&authority[after + colon + 1..])),
        None => (authority, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[') {
        return inside.strip_suffix(']').is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=253).contains(&host.len()) && host.bytes().all(plain) && !host.starts_with(['.', '-'])
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// An order key in a string.
pub(super) fn order(text: &str) -> Result<(), Complaint> {
    OrderKey::parse(text).map(|_| ()).ok_or_else(|| no_order(text))
}

pub(super) fn no_order(text: &str) -> Complaint {
    Complaint::invalid(format!("{} is no order key: a whole number from 0 to {}", shown(text), OrderKey::MAX))
}

pub(super) fn program(text: &str) -> Result<(), Complaint> {
    if text.is_empty() {
        return Err(Complaint::invalid("the first entry is the program and can't be empty"));
    }
    Ok(())
}

//! `adapter = "git"`.

use crate::file::field;
use crate::file::reader::{Complaint, Fields, Reader, shown};
use crate::system::Git;

const MAX_BRANCHES: usize = 20;
const MAX_URL: usize = 1024;
const MAX_BRANCH: usize = 200;
const MAX_PATH: usize = 512;

pub(super) fn read(reader: &mut Reader, fields: &Fields<'_>) -> Option<Git> {
    let with = reader.required(fields, "with")?;
    let with = reader.table(&with, &["url", "branches", "path"])?;
    let url = reader.required(&with, "url").and_then(|item| reader.ruled(&item, url));
    let branches = reader.required(&with, "branches").and_then(|list| {
        let items = reader.list(&list, 1..=MAX_BRANCHES)?;
        let read: Vec<_> = items.iter().map(|item| reader.ruled(item, branch)).collect();
        let branches: Vec<String> = read.into_iter().collect::<Option<_>>()?;
        let twice = branches.iter().enumerate().find(|(at, name)| branches[..*at].contains(name));
        if let Some((at, name)) = twice {
            reader.complain(items[at].place(), Complaint::invalid(format!("{} is named twice", shown(name))));
            return None;
        }
        Some(branches)
    });
    let path = with.get("path").map_or(Some(String::new()), |item| reader.ruled(&item, path));
    Some(Git { url: url?, branches: branches?, path: path? })
}

/// What git takes for a remote and not for an option or a helper that runs commands.
fn url(text: &str) -> Result<(), Complaint> {
    let wrong = |why: &str| Err(Complaint::invalid(format!("{} {why}", shown(text))));
    if text.len() > MAX_URL {
        return Err(Complaint::invalid(format!("a repository's URL has at most {MAX_URL} bytes")));
    }
    if text.starts_with('/') {
        return field::root(text);
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return wrong("is no repository: an absolute path, or https://, http:// or ssh://");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    match (scheme, authority.rsplit_once('@')) {
        (_, found) if is_odd(found.map_or(authority, |(_, host)| host)) || authority.starts_with('-') => {
            wrong("has no host")
        }
        ("ssh", Some((user, _))) if user.contains(':') => wrong("holds a password: files hold no secrets"),
        ("https" | "http", Some(_)) => wrong("holds credentials: files hold no secrets"),
        ("https" | "http" | "ssh", _) if rest.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(()),
        ("https" | "http" | "ssh", _) => wrong("has a character that a URL can't have"),
        _ => wrong("is no repository: an absolute path, or https://, http:// or ssh://"),
    }
}

/// A host that is none, or that ssh would take for an option.
fn is_odd(host: &str) -> bool {
    host.is_empty() || host.starts_with('-')
}

/// The rules of git-check-ref-format, and a little stricter.
fn branch(text: &str) -> Result<(), Complaint> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+@".contains(c);
    let part = |part: &str| {
        !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock")
    };
    let fine = (1..=MAX_BRANCH).contains(&text.len())
        && text.chars().all(plain)
        && !text.contains("..")
        && !text.contains("@{")
        && text != "@"
        && text.split('/').all(part);
    if fine { Ok(()) } else { Err(Complaint::invalid(format!("{} is no branch's name", shown(text)))) }
}

fn path(text: &str) -> Result<(), Complaint> {
    below(text, MAX_PATH)
}

/// A path below a folder, written in the one plain way, and not git's own.
pub(super) fn below(text: &str, most: usize) -> Result<(), Complaint> {
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
    if (1..=most).contains(&text.len()) && !text.split('/').any(odd) && !text.contains(char::is_control) {
        return Ok(());
    }
    let message = format!(
        "{} is no path below the folder: 1 to {most} bytes, no \"..\", no \".git\", no \"/\" at its ends",
        shown(text)
    );
    Err(Complaint::invalid(message))
}

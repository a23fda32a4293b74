//! Where a release's archive comes from. What it is, its digest alone says.
//!
//! | written | is |
//! | --- | --- |
//! | `/srv/site.tar.gz`, `site.tar.gz` | a file on the host, absolute or in the attempt's folder |
//! | `https://host/site.tar.zst` | fetched by the agent |
//! | `upload:dist/site.tar.gz` | a file beside the deployment's own, sent to the coordinator by `holdfast deploy` |

const MAX_PATH: usize = 1024;
const MAX_URL: usize = 2048;
const UPLOAD: &str = "upload:";
const HTTPS: &str = "https://";

/// Where an archive comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveSource<'a> {
    /// A path on the host, absolute or relative to the attempt's folder.
    Host(&'a str),
    /// A URL that the agent fetches.
    Https(&'a str),
    /// A path on the operator's machine, relative to the deployment's file. The coordinator has the file by its digest.
    Upload(&'a str),
}

/// Why a text names no source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASource {
    /// Another scheme.
    #[error("an archive comes from an https URL, a path on the host, or \"upload:PATH\"")]
    Scheme,
    /// A URL with a name or a password.
    #[error("a URL with a name or password is not allowed: it would be recorded and shown")]
    Credentials,
    /// Not a plain URL.
    #[error("this is no plain https URL of at most 2048 bytes: https://HOST/PATH")]
    Url,
    /// Nothing, or too long.
    #[error("a path has 1 to 1024 bytes")]
    Length,
    /// A path that leaves its folder.
    #[error("a path with \"..\" is not allowed")]
    Parent,
    /// A folder.
    #[error("this names a folder, not a file")]
    Folder,
}

impl<'a> ArchiveSource<'a> {
    /// What the text of a step's `archive` names.
    pub fn of(text: &'a str) -> Result<Self, NotASource> {
        if let Some(path) = text.strip_prefix(UPLOAD) {
            // On the operator's own machine a path may lead anywhere.
            return file(path).map(ArchiveSource::Upload);
        }
        if let Some(rest) = text.strip_prefix(HTTPS) {
            return url(rest, text).map(ArchiveSource::Https);
        }
        if text.contains("://") {
            return Err(NotASource::Scheme);
        }
        if text.split('/').any(|part| part == "..") {
            return Err(NotASource::Parent);
        }
        file(text).map(ArchiveSource::Host)
    }
}

fn file(path: &str) -> Result<&str, NotASource> {
    match path {
        "" => Err(NotASource::Length),
        long if long.len() > MAX_PATH => Err(NotASource::Length),
        folder if folder.ends_with('/') => Err(NotASource::Folder),
        path => Ok(path),
    }
}

fn url<'a>(rest: &str, whole: &'a str) -> Result<&'a str, NotASource> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(NotASource::Credentials);
    }
    let is_plain = whole.len() <= MAX_URL && whole.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if !is_plain || authority.is_empty() || whole.contains('#') {
        return Err(NotASource::Url);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_sources_are_told_apart() {
        for (text, source) in [
            ("/srv/a.tgz", Ok(ArchiveSource::Host("/srv/a.tgz"))),
            ("a.tgz", Ok(ArchiveSource::Host("a.tgz"))),
            ("upload:dist/a.tgz", Ok(ArchiveSource::Upload("dist/a.tgz"))),
            ("upload:../a.tgz", Ok(ArchiveSource::Upload("../a.tgz"))),
            ("https://x.org/a.tgz?v=1", Ok(ArchiveSource::Https("https://x.org/a.tgz?v=1"))),
            ("http://x.org/a.tgz", Err(NotASource::Scheme)),
            ("HTTPS://x.org/a.tgz", Err(NotASource::Scheme)),
            ("file:///etc/passwd", Err(NotASource::Scheme)),
            ("https://me:secret@x.org/a.tgz", Err(NotASource::Credentials)),
            ("https://x.org/a b", Err(NotASource::Url)),
            ("https://x.org\\@evil/a", Err(NotASource::Credentials)),
            ("https://x.org\\evil/a", Err(NotASource::Url)),
            ("https://x.org/a#b", Err(NotASource::Url)),
            ("https:///a", Err(NotASource::Url)),
            ("", Err(NotASource::Length)),
            ("upload:", Err(NotASource::Length)),
            ("../a.tgz", Err(NotASource::Parent)),
            ("a/", Err(NotASource::Folder)),
            ("upload:a/", Err(NotASource::Folder)),
        ] {
            assert_eq!(ArchiveSource::of(text), source, "{text}");
        }
    }
}

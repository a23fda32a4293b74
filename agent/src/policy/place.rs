//! Where a path leads, as far as it is there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The path after every link. Parts that are not there are kept as they are written.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut there = path;
    let mut rest: Vec<OsString> = Vec::new();
    loop {
        if let Ok(found) = there.canonicalize() {
            return rest.iter().rev().fold(found, |path, part| path.join(part));
        }
        let (Some(parent), Some(last)) = (there.parent(), there.components().next_back()) else {
            return path.to_owned();
        };
        rest.push(last.as_os_str().to_owned());
        there = parent;
    }
}

/// A pattern of paths after every link in the part of it that is a path.
pub(super) fn real_pattern(pattern: &str) -> String {
    let Some(start) = pattern.strip_suffix('*') else { return real(Path::new(pattern)).to_string_lossy().into_owned() };
    let Some((folder, begin)) = start.rsplit_once('/') else { return pattern.to_owned() };
    let folder = real(Path::new(if folder.is_empty() { "/" } else { folder }));
    let folder = folder.to_string_lossy();
    format!("{}/{begin}*", folder.trim_end_matches('/'))
}

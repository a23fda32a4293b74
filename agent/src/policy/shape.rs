//! What git takes a folder for by what is in it: a repository of its own, or one that leads elsewhere.

use std::path::{Path, PathBuf};

/// As what else git takes a path: the repository of a work tree, of a work tree behind it, and a bare one behind it.
pub(crate) fn also_taken(path: &Path) -> [PathBuf; 3] {
    ["/.git", ".git/.git", ".git"].map(|end| {
        let mut text = path.as_os_str().to_owned();
        text.push(end);
        PathBuf::from(text)
    })
}

/// Whether it is a link or a file that names another folder, or keeps its objects or branches elsewhere.
pub(crate) fn leads_elsewhere(path: &Path) -> bool {
    let kind = |path: &Path| path.symlink_metadata().map(|found| found.file_type());
    let is_no_folder = kind(path).is_ok_and(|kind| !kind.is_dir());
    let parts = ["objects", "refs", "objects/info", "HEAD"];
    is_no_folder
        || path.join("commondir").symlink_metadata().is_ok()
        || parts.iter().any(|part| kind(&path.join(part)).is_ok_and(|kind| kind.is_symlink()))
}

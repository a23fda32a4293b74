//! Which file an argument vector runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Program;

/// Finds it as `execvp` would, by the `PATH` that the command gets, and goes on to the file after every link.
pub(super) fn find(name: &str, search: &str, folder: &Path) -> Program {
    let found = if name.contains('/') {
        Some(folder.join(name))
    } else {
        search.split(':').filter(|place| place.starts_with('/')).map(|place| Path::new(place).join(name)).find(can_run)
    };
    match found.and_then(|path| path.canonicalize().ok()) {
        Some(path) => Program::At(path),
        None => Program::Missing(name.to_owned()),
    }
}

fn can_run(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

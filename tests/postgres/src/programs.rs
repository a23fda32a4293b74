//! PostgreSQL's programs, and the user that they run as: the server refuses to be root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Uid, chown};
use rustix::process::geteuid;

/// Where they are.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// `None`: as whoever runs the test.
    user: Option<User>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    gid: u32,
}

impl Programs {
    /// In the search path, or where Debian puts them: the newest.
    pub(crate) fn find() -> Self {
        let folder = folder().expect("PostgreSQL is needed: apt-get install postgresql");
        let user =
            geteuid().is_root().then(|| user("postgres").or_else(|| user("nobody")).expect("a user beside root"));
        Self { folder, user }
    }

    /// Makes a file or folder the server's.
    pub(crate) fn give(&self, path: &Path) {
        if let Some(User { uid, gid }) = self.user {
            chown(path, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).expect("root gives away");
        }
    }

    /// A program, as that user.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(User { uid, gid }) = self.user {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
        }
        command.arg("--").arg(self.folder.join(name)).current_dir("/");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command
    }
}

fn folder() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = debian
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    let all = versions.into_iter().rev().map(|(_, path)| path).chain(std::env::split_paths(&path));
    all.into_iter().find(|folder| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file()))
}

fn user(name: &str) -> Option<User> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some(User { uid: fields.get(2)?.parse().ok()?, gid: fields.get(3)?.parse().ok()? })
}

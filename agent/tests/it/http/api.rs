//! The deployment API of the examples, as a process that can be killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::{Connection, OpenFlags};

/// Tokens that no text should ever show.
pub(crate) const DEPLOY: &str = "deploy-token-3f9a61";
pub(crate) const INSPECT: &str = "inspect-token-77ab02";
pub(crate) const FENCE: &str = "fence-token-c40d18";

pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    pub(crate) data: PathBuf,
    process: Child,
}

impl Api {
    /// With a new resource, where the folder has none of that name.
    pub(crate) fn start(folder: &Path, name: &str, owner: &str) -> Self {
        for (file, token) in [("deploy", DEPLOY), ("inspect", INSPECT), ("fence", FENCE)] {
            std::fs::write(folder.join(file), token).unwrap();
        }
        let data = folder.join(name);
        let mut process = Command::new(env!("CARGO_BIN_EXE_deploy-api-under-test"))
            .args(["--listen", "127.0.0.1:0", "--owner", owner])
            .args([Path::new("--data"), &data])
            .args([Path::new("--deploy-token"), &folder.join("deploy")])
            .args([Path::new("--inspect-token"), &folder.join("inspect")])
            .args([Path::new("--fence-token"), &folder.join("fence")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { address: line.trim().parse().unwrap(), data, process }
    }

    /// As `kill -9` does it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Whether nothing waits and nothing is under way, in the API's own file.
    pub(crate) fn is_at_rest(&self) -> bool {
        let query = "SELECT count(*) FROM deployment WHERE state IN ('queued', 'running')";
        read(&self.data).query_row(query, [], |row| row.get::<_, i64>(0)).unwrap() == 0
    }

    /// How a deployment stands, by its revision, in the API's own file.
    pub(crate) fn state(&self, revision: &str) -> Option<String> {
        let query = "SELECT state FROM deployment WHERE revision = ?1";
        read(&self.data).query_row(query, [revision], |row| row.get(0)).ok()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What took effect, in order, in the API's own file.
pub(crate) fn underwent(data: &Path) -> Vec<String> {
    let connection = read(data);
    let mut query = connection.prepare("SELECT revision FROM history WHERE what = 'deployed' ORDER BY number").unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn read(data: &Path) -> Connection {
    let connection = Connection::open_with_flags(data, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection
}

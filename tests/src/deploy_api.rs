//! The deployment API of the examples, beside a cluster.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::folder::Folder;
use crate::process::{Launch, Process};
use crate::wait;

/// The first argument that makes a program such an API.
pub const COMMAND: &str = "deploy-api";

/// The API's process, with a resource of its own.
#[derive(Debug)]
pub struct DeployApi {
    /// Where it listens.
    pub address: SocketAddr,
    process: Process,
    folder: Folder,
}

impl DeployApi {
    /// Starts it and waits until it listens.
    pub async fn start(program: &Path, owner: &str) -> Self {
        let folder = Folder::new();
        for name in ["deploy", "inspect", "fence"] {
            let path = folder.write(name, &format!("token-of-{name}-4c1f"));
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a test's own folder");
        }
        let log = folder.join("log");
        let words = [
            COMMAND,
            "--listen",
            "127.0.0.1:0",
            "--data",
            "data.db",
            "--owner",
            owner,
            "--deploy-token",
            "deploy",
            "--inspect-token",
            "inspect",
            "--fence-token",
            "fence",
        ];
        let process = Process::start(&Launch {
            name: COMMAND.to_owned(),
            wrapper: Vec::new(),
            program: program.to_owned(),
            arguments: words.map(str::to_owned).to_vec(),
            environment: [].into(),
            folder: folder.path().to_owned(),
            log: log.clone(),
        });
        let address = wait::until("the API to listen", wait::SOON, async || {
            let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
            text.trim().parse::<SocketAddr>().map_err(|error| format!("{text:?}: {error}"))
        });
        Self { address: address.await, process, folder }
    }

    /// What a host says of it, for `HOLDFAST_RESOURCE`: one token in each set.
    #[must_use]
    pub fn rules(&self, target: &str) -> String {
        let set = |name: &str| format!("{name} = {{ files = {{ bearer = {:?} }} }}", self.folder.join(name));
        let sets = ["deploy", "inspect", "fence"].map(set).join(", ");
        let at = format!("http://{}", self.address);
        format!(
            "[{{ target = {target:?}, name = \"service\", adapter = \"http\", at = [{at:?}], credentials = {{ {sets} }} }}]"
        )
    }

    /// Its target, from the example's.
    #[must_use]
    pub fn target(&self, name: &str, policy: &str) -> String {
        let example = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/http/service.target.toml"));
        let url = format!("\"http://{}\"", self.address);
        let reconcile = format!("[reconcile]\npolicy = \"{policy}\"\n");
        let reconcile = if policy == "manual" { reconcile } else { format!("{reconcile}patience = \"200ms\"\n") };
        example
            .replace("\"app@prod\"", &format!("{name:?}"))
            .replace("{ role = \"app\" }", "{ role = \"shop\" }")
            .replace("\"http://127.0.0.1:8099\"", &url)
            .replace("\"500ms\"", "\"100ms\"")
            .replace("[[resource]]\n", &format!("{reconcile}\n[[resource]]\n"))
    }

    /// A step's keys that ask it for a revision, after so much work.
    #[must_use]
    pub fn step(revision: &str, work_ms: u64) -> String {
        let body = format!("{{\"revision\": \"{revision}\", \"duration_ms\": {work_ms}}}");
        format!("retry = \"idempotent\"\nwith = {{ revision = {revision:?}, body = {body:?} }}\n")
    }

    /// As `kill -9` does it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The revisions that took effect, in order, in its own file.
    #[must_use]
    pub fn underwent(&self) -> Vec<String> {
        self.column("SELECT revision FROM history WHERE what = 'deployed' ORDER BY number")
    }

    /// The states of its deployments, in its own file.
    #[must_use]
    pub fn states(&self) -> Vec<String> {
        self.column("SELECT state FROM deployment ORDER BY rowid")
    }

    fn column(&self, query: &str) -> Vec<String> {
        let path: PathBuf = self.folder.join("data.db");
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("its file");
        connection.busy_timeout(wait::SOON).expect("a plain setting");
        let mut query = connection.prepare(query).expect("its schema");
        let rows = query.query_map([], |row| row.get(0)).expect("its schema");
        rows.map(|row| row.expect("its schema")).collect()
    }
}

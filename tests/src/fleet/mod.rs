//! Many agents in few processes: real sessions, drivers and journals, each with its own certificate. Only the hands are not
//! real: what a step would run is told as begun and ended at once, so that what is measured is Holdfast.
//!
//! ```text
//!   test or benchmark ── Fleet ──▶ process: agents 0..1000   session ─ driver ─ journal ─ deft hands, a thousand times
//!                              └─▶ process: agents 1000..2000
//! ```

mod crew;
mod hands;

use std::path::{Path, PathBuf};

use holdfast_common::id::AgentName;

use crate::cluster::Cluster;
use crate::machine;
use crate::process::{Launch, Process};

pub use crew::run;

/// The first argument that makes a program such a process.
pub const COMMAND: &str = "fleet";
/// The label by which a target selects one agent of a fleet.
pub const LABEL: &str = "host";

/// The name of an agent, which is also its [`LABEL`].
#[must_use]
pub fn name(index: usize) -> String {
    format!("fleet-{index:05}")
}

/// The argument vector of a step that ends at once.
#[must_use]
pub fn at_once() -> Vec<String> {
    vec!["/bin/true".to_owned()]
}

/// The argument vector of a step that ends when that file is there.
#[must_use]
pub fn until(gate: &Path) -> Vec<String> {
    vec![hands::UNTIL.to_owned(), gate.to_string_lossy().into_owned()]
}

/// A target that only that agent serves.
#[must_use]
pub fn target(name: &str, agent: usize) -> String {
    let host = self::name(agent);
    format!(
        r#"schema = "holdfast/v1"
name = "{name}"
agents = {{ {LABEL} = "{host}" }}

[[resource]]
name = "box"
adapter = "command"
reach = "shared"
with = {{ outlives = false }}
"#
    )
}

/// The processes of a fleet.
#[derive(Debug)]
pub struct Fleet {
    processes: Vec<Process>,
    agents: usize,
}

impl Fleet {
    /// Starts `agents` agents in `processes` processes, towards that coordinator. Their journals are new, below `folder`.
    #[must_use]
    pub fn start(cluster: &Cluster, address: &str, folder: &str, agents: usize, processes: usize) -> Self {
        machine::raise_descriptors();
        let tls = certificates(cluster, agents);
        let state = cluster.folder().join(folder);
        let each = agents.div_ceil(processes);
        let crews = (0..agents).step_by(each).map(|first| (first, each.min(agents - first)));
        let start = |(first, count)| Process::start(&launch(cluster, address, &tls, &state, first, count));
        Self { processes: crews.map(start).collect(), agents }
    }

    /// How many agents it has.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// Its processes.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().map(Process::pid)
    }
}

/// Makes those that are not there yet.
fn certificates(cluster: &Cluster, agents: usize) -> PathBuf {
    let tls = cluster.authority().certificate().parent().expect("a file is in a folder").to_owned();
    for name in (0..agents).map(name).filter(|name| !tls.join(format!("{name}.pem")).exists()) {
        cluster.authority().agent(&AgentName::new(&*name).expect("a name")).expect("signed");
    }
    tls
}

fn launch(cluster: &Cluster, address: &str, tls: &Path, state: &Path, first: usize, count: usize) -> Launch {
    let [tls, state] = [tls, state].map(|path| path.to_str().expect("a test's paths are plain text").to_owned());
    let arguments = [COMMAND.to_owned(), address.to_owned(), tls, state, first.to_string(), count.to_string()];
    Launch {
        name: format!("fleet from {first}"),
        wrapper: Vec::new(),
        program: cluster.program().to_owned(),
        arguments: arguments.into(),
        environment: std::collections::BTreeMap::new(),
        folder: cluster.folder().path().to_owned(),
        log: cluster.folder().join(&format!("fleet-{first}.log")),
    }
}

//! A coordinator, agents and the proxies between them, each a real process with its own log.
//!
//! ```text
//!   operator ── proxy ──┐
//!   web-01 ──── proxy ──┼──▶ coordinator (a free port, another one after each start)
//!   web-02 ──── proxy ──┘
//! ```
//!
//! Addresses are the proxies', so they stay the same when the coordinator starts again. Everything is killed and removed with
//! the cluster; if the test failed, the ends of all logs are printed first.

mod agent;
mod coordinator;
mod still;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast::ca::{Authority, Pair};
use holdfast::proxy::Proxy;
use holdfast_common::id::AgentName;
use holdfast_net::channel::Limits;
use holdfast_net::tls::{ClientTls, ServerTls};
use holdfast_proto::v1::{Contact, Hello};
use tonic::Status;

pub use agent::Agent;
pub use coordinator::Coordinator;

use crate::api::Operator;
use crate::cli::Cli;
use crate::folder::Folder;
use crate::ledger::Ledger;
use crate::peer::Peer;

/// How often agents renew, in a cluster under test.
pub const HEARTBEAT: Duration = Duration::from_millis(200);
/// How long after its TTL a lease lapses, in a cluster under test.
pub const MARGIN: Duration = Duration::from_millis(300);
/// A lease that is meant to lapse soon. Long enough for a busy machine to keep it alive.
pub const SHORT: Duration = Duration::from_millis(1500);
/// A lease that must not lapse while a test breaks other things.
pub const LONG: Duration = Duration::from_secs(60);

/// What to start.
#[derive(Clone, Debug)]
pub struct Plan {
    program: PathBuf,
    agents: Vec<String>,
    coordinator: Settings,
    agent: Settings,
    serving: Serving,
}

/// How the coordinator serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    /// 0 takes a free one at each start.
    port: u16,
    heartbeat: Duration,
    margin: Duration,
}

/// How processes are started, now and after each restart until it is changed.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Like `HOLDFAST_CRASH`, `HOLDFAST_BUG`, `HOLDFAST_HALT`.
    pub environment: std::collections::BTreeMap<String, String>,
    /// What runs before the program, like `strace -f -o FILE`.
    pub wrapper: Vec<String>,
}

/// Names a seeded fault that is switched on in every process of every cluster of a test run: a test that passes under it
/// does not see it.
pub const BUG: &str = "HOLDFAST_TEST_BUG";

impl Settings {
    fn of_test_run() -> Self {
        let bug = std::env::var(BUG).ok().map(|name| ("HOLDFAST_BUG".to_owned(), name));
        Self { environment: bug.into_iter().collect(), wrapper: Vec::new() }
    }
}

impl Plan {
    /// A coordinator and the agents `web-01` and `web-02`. The program is the test's own
    /// `env!("CARGO_BIN_EXE_holdfast-under-test")`.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let agents = vec!["web-01".to_owned(), "web-02".to_owned()];
        let settings = Settings::of_test_run();
        let serving = Serving { port: 0, heartbeat: HEARTBEAT, margin: MARGIN };
        Self { program: program.into(), agents, coordinator: settings.clone(), agent: settings, serving }
    }

    /// Like in production: the usual heartbeat and margin, one port over all starts, and agents and operators that connect
    /// to it without a proxy between.
    #[must_use]
    pub fn as_in_production(mut self) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        self.serving = Serving { port, heartbeat: Duration::from_secs(5), margin: Duration::from_secs(2) };
        self
    }

    /// Other agents. All have the label `role = shop`.
    #[must_use]
    pub fn agents(mut self, names: &[&str]) -> Self {
        self.agents = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// A variable of the coordinator.
    #[must_use]
    pub fn coordinator_environment(mut self, name: &str, value: &str) -> Self {
        self.coordinator.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A variable of every agent, and so of its shims.
    #[must_use]
    pub fn agent_environment(mut self, name: &str, value: &str) -> Self {
        self.agent.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Runs the coordinator under another program.
    #[must_use]
    pub fn coordinator_wrapper(mut self, words: &[String]) -> Self {
        self.coordinator.wrapper = words.to_vec();
        self
    }

    /// Runs the agents under another program.
    #[must_use]
    pub fn agent_wrapper(mut self, words: &[String]) -> Self {
        self.agent.wrapper = words.to_vec();
        self
    }

    /// Starts everything and waits until every agent is connected.
    pub async fn start(self) -> Cluster {
        let mut cluster = self.prepare().await;
        cluster.coordinator.start().await;
        cluster.redirect(cluster.coordinator.address()).await;
        for agent in &mut cluster.agents {
            agent.start();
        }
        let operator = cluster.operator();
        for agent in &cluster.agents {
            operator.until_contact(agent.name(), Contact::Connected).await;
        }
        cluster
    }

    /// Makes everything and starts nothing: for a hostile coordinator, or another order.
    pub async fn prepare(self) -> Cluster {
        holdfast_net::tls::install_default();
        let folder = Folder::new();
        let authority = Authority::create(&folder.join("tls")).expect("a throw-away authority");
        // A port that nobody listens on: connections are refused until there is a coordinator.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let proxy = Proxy::start(nowhere).await.expect("a free port");
        let straight = (self.serving.port != 0).then(|| SocketAddr::from(([127, 0, 0, 1], self.serving.port)));
        let coordinator = Coordinator::new(&self.program, &folder, &authority, self.coordinator, self.serving);
        let mut agents = Vec::new();
        for name in &self.agents {
            let proxy = Proxy::start(nowhere).await.expect("a free port");
            agents.push(Agent::new(&self.program, &folder, &authority, name, proxy, self.agent.clone(), straight));
        }
        Cluster { coordinator, agents, proxy, authority, straight, program: self.program, folder }
    }
}

/// What was started.
pub struct Cluster {
    coordinator: Coordinator,
    agents: Vec<Agent>,
    proxy: Proxy,
    authority: Authority,
    straight: Option<SocketAddr>,
    program: PathBuf,
    folder: Folder,
}

impl Cluster {
    /// The coordinator's process.
    pub fn coordinator(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }

    /// An agent's process and its proxy.
    pub fn agent(&mut self, name: &str) -> &mut Agent {
        self.agents.iter_mut().find(|agent| agent.name() == name).expect("an agent of the plan")
    }

    /// Process ids of an agent's shims and what they run.
    #[must_use]
    pub fn shims(&self, name: &str) -> Vec<i32> {
        let agent = self.agents.iter().find(|agent| agent.name() == name).expect("an agent of the plan");
        agent.shims(&self.folder)
    }

    /// The proxy between an agent and the coordinator.
    #[must_use]
    pub fn line(&self, name: &str) -> Proxy {
        self.agents.iter().find(|agent| agent.name() == name).expect("an agent of the plan").proxy().clone()
    }

    /// The proxy between operators and the coordinator.
    #[must_use]
    pub fn operators_line(&self) -> &Proxy {
        &self.proxy
    }

    /// A certificate for a server on this machine, signed by the cluster's authority.
    #[must_use]
    pub fn server_pair(&self, name: &str) -> Pair {
        self.authority.server(name).expect("signed")
    }

    /// The authority's certificate.
    #[must_use]
    pub fn ca(&self) -> &Path {
        self.authority.certificate()
    }

    /// The test's folder.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The program under test.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Starts the coordinator, that was killed or has ended, and waits until it listens.
    pub async fn start_coordinator(&mut self) {
        self.coordinator.start().await;
        self.redirect(self.coordinator.address()).await;
    }

    /// Waits until the coordinator, that has begun to start, listens.
    pub async fn until_coordinator_listens(&mut self) {
        self.coordinator.until_it_listens().await;
        self.redirect(self.coordinator.address()).await;
    }

    /// `kill -9` of the coordinator, and its next start.
    pub async fn restart_coordinator(&mut self) {
        self.coordinator.kill();
        self.start_coordinator().await;
    }

    /// Leads every agent and operator somewhere else, as to a hostile coordinator.
    pub async fn redirect(&self, address: SocketAddr) {
        for proxy in self.agents.iter().map(Agent::proxy).chain([&self.proxy]) {
            proxy.redirect(address);
        }
    }

    /// The operator's API with the admin's token.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator_with(self.coordinator.admin())
    }

    /// The operator's API with another token.
    #[must_use]
    pub fn operator_with(&self, token: &str) -> Operator {
        Operator::new(&self.address(), &self.tls(None), token)
    }

    /// The operator's API over a connection with the smallest windows that HTTP/2 has.
    #[must_use]
    pub fn narrow_operator(&self) -> Operator {
        let limits = Limits { stream_window: 1, connection_window: 65_535, ..Limits::default() };
        Operator::over(&self.address(), &self.tls(None), self.coordinator.admin(), &limits)
    }

    /// Where operators connect.
    #[must_use]
    pub fn address(&self) -> String {
        format!("https://{}", self.straight.unwrap_or_else(|| self.proxy.address()))
    }

    /// Who signs certificates here.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The command line with the admin's token.
    #[must_use]
    pub fn cli(&self) -> Cli {
        self.cli_with(self.coordinator.admin())
    }

    /// The command line with another token.
    #[must_use]
    pub fn cli_with(&self, token: &str) -> Cli {
        let ca = self.authority.certificate().to_str().expect("a test's paths are plain text").to_owned();
        let environment =
            vec![("HOLDFAST_ADDRESS", self.address()), ("HOLDFAST_CA", ca), ("HOLDFAST_TOKEN", token.to_owned())];
        Cli { program: self.program.clone(), folder: self.folder.path().to_owned(), environment }
    }

    /// A session as an agent of that name, straight to the coordinator. The real agent of the name must not run; other names
    /// get a certificate of their own.
    pub async fn peer(&self, name: &str, hello: Hello) -> Result<Peer, Status> {
        let address = format!("https://{}", self.coordinator.address());
        Peer::connect(&address, &self.agent_tls(name), hello).await
    }

    /// What a client shows as an agent of that name.
    #[must_use]
    pub fn agent_tls(&self, name: &str) -> ClientTls {
        let pair = match self.agents.iter().find(|agent| agent.name() == name) {
            Some(agent) => agent.pair().clone(),
            None => self.authority.agent(&AgentName::new(name).expect("a name")).expect("signed"),
        };
        self.tls(Some(&pair))
    }

    /// What a client trusts, and what it shows.
    #[must_use]
    pub fn tls(&self, pair: Option<&Pair>) -> ClientTls {
        let identity = pair.map(|pair| (pair.certificate.as_path(), pair.key.as_path()));
        ClientTls::from_files(self.authority.certificate(), identity, None).expect("sound files")
    }

    /// What a hostile coordinator shows: every agent trusts it.
    #[must_use]
    pub fn server_tls(&self) -> ServerTls {
        let pair = self.authority.server("hostile").expect("signed");
        ServerTls::from_files(&pair.certificate, &pair.key, self.authority.certificate()).expect("sound files")
    }

    /// A target's ledger.
    #[must_use]
    pub fn ledger(&self, name: &str) -> Ledger {
        Ledger::new(&self.program, &self.folder, name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_logs(&self.folder);
        }
        self.coordinator.kill();
        self.agents.iter_mut().for_each(Agent::kill);
    }
}

#[expect(clippy::print_stderr, reason = "the logs belong to the failing test's own output")]
fn print_logs(folder: &Folder) {
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log" || end == "ledger"))
        .collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        eprintln!("---- {name}\n{}", crate::process::last_lines(&file, 60));
    }
}

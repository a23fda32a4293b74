//! Networks as they are: holes, moves, bad lines, proxies, and a stop among dead connections.

mod holes;
mod lines;
mod proxies;
mod stop;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::Plan;
use holdfast_tests::folder::Folder;
use holdfast_tests::netns::{self, Host};
use holdfast_tests::wait;

use crate::PROGRAM;
use crate::support::{BOX, change, last_attempt, submit};

/// Where the coordinator is, and the agents.
const HUB: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const EDGE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// What agents know the coordinator by.
const NAME: &str = "coordinator.test";
const PORT: u16 = 7443;
/// The lease of a deployment that says nothing of it.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// After how long without a word both ends know: a keepalive's interval and the wait for its answer.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// For a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// Sessions that the coordinator has open.
const SESSIONS: &str = "holdfast_grpc_open_requests{method=\"holdfast.v1.AgentService/Connect\"}";
/// Deployments that became uncertain.
const UNCERTAIN: &str = "holdfast_deployment_moves_total{state=\"uncertain\"}";

/// Two hosts. The test is on the hub.
struct Net {
    hub: Host,
    edge: Host,
    folder: Folder,
}

impl Net {
    /// The edge's `/etc/hosts`: the coordinator's name stands for these.
    fn name_stands_for(&self, addresses: &[Ipv4Addr]) -> PathBuf {
        let lines: String = addresses.iter().map(|address| format!("{address} {NAME}\n")).collect();
        self.folder.write("hosts", &format!("127.0.0.1 localhost\n{lines}"))
    }

    /// Agents on the edge that know the coordinator by these addresses, as their file has them.
    fn plan(&self, addresses: &str, hosts: &Path) -> Plan {
        Plan::new(PROGRAM)
            .coordinator_environment("HOLDFAST_LISTEN_ADDRESS", &format!("0.0.0.0:{PORT}"))
            .agent_environment("HOLDFAST_COORDINATOR_ADDRESS", addresses)
            .agent_environment("HOLDFAST_COORDINATOR_SERVER_NAME", "localhost")
            .agent_wrapper(&self.edge.wrapper(hosts))
    }
}

/// Runs a test on the hub, where there may be namespaces.
fn on_the_hub(test: impl AsyncFnOnce(&Net)) {
    if !netns::can_be_had(1) {
        return;
    }
    let net = Net { hub: Host::new("hub"), edge: Host::new("edge"), folder: Folder::new() };
    net.hub.enter();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads can be made").block_on(test(&net));
}

/// Digits of padding in a line: enough that a line is some packets.
const WIDE: usize = 4000;

/// Work that prints a line every tenth of a second until it is let go.
struct Chatter {
    label: String,
    agent: String,
    begun: PathBuf,
    progress: PathBuf,
    gate: PathBuf,
}

impl Chatter {
    /// Submits it and waits until it prints.
    async fn begin(operator: &Operator, folder: &Folder, lease: Duration) -> Self {
        let [begun, progress, gate] = ["begun", "progress", "gate"].map(|name| folder.join(name));
        let script = format!(
            "echo begun >> {begun}; n=0; while ! test -e {gate}; do n=$((n+1)); printf \"line %d %0{WIDE}d\\n\" $n 0; echo $n > {progress}; \
             /bin/sleep 0.1; done; echo \"end $n\"",
            begun = begun.display(),
            progress = progress.display(),
            gate = gate.display(),
        );
        let words = ["/bin/sh", "-c", &script].map(str::to_owned);
        let label = submit(operator, &change(lease, "unsafe", &words)).await;
        let running = operator
            .until(&label, "the step to run", |deployment| {
                deployment.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
            })
            .await;
        let agent = last_attempt(&running).agent.clone();
        let chatter = Self { label, agent, begun, progress, gate };
        chatter.goes_on(3).await;
        chatter
    }

    /// Waits until it has printed as many more lines.
    async fn goes_on(&self, lines: u64) {
        let wanted = self.printed() + lines;
        let what = format!("line {wanted} of the step");
        wait::until_true(&what, wait::SOON * 4, || self.printed() >= wanted).await;
    }

    fn printed(&self) -> u64 {
        std::fs::read_to_string(&self.progress).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
    }

    /// Lets it go, and sees that it ran once, was never in doubt, and that every line is there.
    async fn end_well(self, operator: &Operator) {
        std::fs::write(&self.gate, "").expect("a test's own folder can be written");
        let done = operator.until_ended(&self.label).await;
        assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
        assert_eq!(done.attempts.len(), 1, "{done:#?}");
        assert_eq!(std::fs::read_to_string(&self.begun).expect("it has begun"), "begun\n", "it ran once");
        let text = wait::until("all of its output", wait::SOON * 2, async || {
            let text = operator.logs(&self.label).await;
            if text.contains("end ") { Ok(text) } else { Err(tail(&text)) }
        })
        .await;
        let count = self.printed();
        let expected: String = (1..=count).map(|number| format!("line {number} {:0WIDE$}\n", 0)).collect();
        assert!(text == format!("{expected}end {count}\n"), "{count} lines, and read: {}", tail(&text));
    }
}

fn tail(text: &str) -> String {
    let short = |line: &str| line.chars().take(40).collect::<String>();
    text.lines().rev().take(5).map(short).collect::<Vec<_>>().join(" / ")
}

/// How often an agent has said that it has no session.
fn losses(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().matches("no session with the coordinator").count()
}

/// The target of [`Chatter`].
async fn declared(operator: &Operator) {
    operator.apply_target(&holdfast_tests::files::command_target(BOX, false)).await;
}

#[test]
fn hosts_that_a_killed_test_left_are_removed_by_the_next() {
    if !netns::can_be_had(1) {
        return;
    }
    // No process has a number as large.
    let left = "holdfast-4194999-hub-left";
    let made = std::process::Command::new("ip").args(["netns", "add", left]).status();
    assert!(made.expect("ip can be run").success());
    let host = Host::new("hub");
    assert!(!Path::new("/run/netns").join(left).exists(), "it is still there");
    drop(host);
}

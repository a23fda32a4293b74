//! Many agents lose their coordinator at once and come back: how fast, how spread out, and whether a lease is lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_proto::v1::{Contact, DeploymentState, ListAgentsRequest};

use crate::api::{Operator, id_of, label_of, state_of};
use crate::cluster::{Cluster, Plan};
use crate::files::DeploymentFile;
use crate::fleet::{self, Fleet};
use crate::machine;
use crate::wait;

/// Connections are counted as often as this, and told per so long.
pub const SLOT: Duration = Duration::from_millis(100);
/// What the coordinator gives a lease beyond its TTL, and a little.
const MARGIN: Duration = Duration::from_secs(3);
/// How often the coordinator is asked how it stands.
const LOOK: Duration = Duration::from_millis(500);
/// The bound of everything that is not measured.
const PATIENCE: Duration = Duration::from_secs(240);

/// How many there are.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// All agents. They run in two processes.
    pub agents: usize,
    /// How many of them hold a running attempt.
    pub holders: usize,
    /// The lease of each of those.
    pub ttl: Duration,
}

/// Agents in contact, some with a step that runs.
pub struct Assembly {
    cluster: Cluster,
    operator: Operator,
    _fleet: Fleet,
    size: Size,
    gate: PathBuf,
    held: Vec<String>,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Reunion {
    /// From when the coordinator listened again until every agent had a session.
    pub back_within: Duration,
    /// How many connections had reached the machine's listeners by when, from when the coordinator started again.
    pub arrivals: Vec<(Duration, u64)>,
    /// Connections that a full queue dropped.
    pub overflowed: u64,
    /// The most that waited to be accepted at once.
    pub longest_queue: u64,
    /// What no longer runs as it did, and how it stands.
    pub lost: Vec<String>,
}

impl Reunion {
    /// The most that arrived in a [`SLOT`]. Where the kernel was asked later than that, the average until then.
    #[must_use]
    pub fn peak(&self) -> f64 {
        let between = |pair: &[(Duration, u64)]| {
            let [(from, before), (until, after)] = pair else { return 0.0 };
            (after - before) as f64 * SLOT.as_secs_f64() / (*until - *from).max(SLOT).as_secs_f64()
        };
        self.arrivals.windows(2).map(between).fold(0.0, f64::max)
    }
}

impl Assembly {
    /// Starts everything and waits until all are in contact and the holders' steps run.
    pub async fn gather(program: &Path, size: Size) -> Self {
        machine::raise_descriptors();
        let cluster = Plan::new(program).agents(&[]).as_in_production().start().await;
        let fleet = Fleet::start(&cluster, &cluster.address(), "agents", size.agents, 2);
        let operator = cluster.operator();
        let gate = cluster.folder().join("gate");
        let mut assembly = Self { cluster, operator, _fleet: fleet, size, gate, held: Vec::new() };
        assembly.until_all_are_in_contact().await;
        // So that every agent was told how many there are: at its first meeting each only heard of those before it.
        assembly.cluster.restart_coordinator().await;
        assembly.until_all_are_in_contact().await;
        assembly.hand_out().await;
        assembly
    }

    async fn hand_out(&mut self) {
        let argv = fleet::until(&self.gate);
        let each = self.size.agents / self.size.holders.max(1);
        for holder in 0..self.size.holders {
            let target = format!("held@{holder}");
            self.operator.apply_target(&fleet::target(&target, holder * each)).await;
            let file = DeploymentFile::new(&target, self.size.ttl).mutates("change", "unsafe", &argv);
            self.held.push(id_of(&self.operator.submit(file.text()).await));
        }
        for id in &self.held {
            let begun = |deployment: &holdfast_proto::v1::Deployment| {
                deployment.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
            };
            self.operator.until(id, "the step to begin", begun).await;
        }
    }

    /// Kills the coordinator, starts it again after that time, and watches the agents come back until every lease that was
    /// not renewed would have lapsed.
    pub async fn lose(&mut self, away: Duration) -> Reunion {
        self.cluster.coordinator().kill();
        tokio::time::sleep(away).await;
        let sampler = Sampler::start(self.cluster.coordinator().address().port());
        self.cluster.start_coordinator().await;
        let listens = Instant::now();
        self.until_all_are_in_contact().await;
        let back_within = listens.elapsed();
        let seen = sampler.stop();
        let mut lost = self.lost().await;
        while lost.is_empty() && listens.elapsed() < self.size.ttl + MARGIN {
            tokio::time::sleep(LOOK).await;
            lost = self.lost().await;
        }
        Reunion { back_within, lost, ..seen }
    }

    /// Lets every step end, and says what did not end well in its first attempt.
    pub async fn end(self) -> Vec<String> {
        std::fs::write(&self.gate, "").expect("a test's own folder can be written");
        let ended = async |id: &String| self.operator.until_ended(id).await;
        let mut bad = Vec::new();
        for id in &self.held {
            let deployment = ended(id).await;
            if state_of(&deployment) != DeploymentState::Succeeded || deployment.attempts.len() != 1 {
                bad.push(format!("{} is {}", label_of(&deployment), state_of(&deployment).as_str_name()));
            }
        }
        bad
    }

    async fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for id in &self.held {
            let deployment = self.operator.deployment(id).await;
            if state_of(&deployment) != DeploymentState::Active || deployment.attempts.len() != 1 {
                lost.push(format!("{} is {}", label_of(&deployment), state_of(&deployment).as_str_name()));
            }
        }
        lost
    }

    async fn until_all_are_in_contact(&self) {
        until_in_contact(&self.operator, self.size.agents).await;
    }
}

/// Waits until so many agents have a session.
pub async fn until_in_contact(operator: &Operator, agents: usize) {
    wait::until("every agent to be in contact", PATIENCE, async || {
        let seen = in_contact(operator).await.unwrap_or_default();
        if seen >= agents {
            return Ok(());
        }
        // Looking is work for the coordinator too.
        tokio::time::sleep(LOOK).await;
        Err(format!("{seen} of {agents}"))
    })
    .await;
}

async fn in_contact(operator: &Operator) -> Result<usize, tonic::Status> {
    let (mut count, mut page_token) = (0, String::new());
    loop {
        let request = ListAgentsRequest { page_size: 500, page_token };
        let page = operator.client.clone().list_agents(request).await?.into_inner();
        count += page.agents.iter().filter(|agent| agent.contact() == Contact::Connected).count();
        if page.next_page_token.is_empty() {
            return Ok(count);
        }
        page_token = page.next_page_token;
    }
}

/// Reads the kernel's counters on a thread of its own until it is stopped.
struct Sampler {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Reunion>,
}

impl Sampler {
    fn start(port: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        Self { over, thread: std::thread::spawn(move || sample(port, &told)) }
    }

    fn stop(self) -> Reunion {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("reading files does not panic")
    }
}

fn sample(port: u16, over: &AtomicBool) -> Reunion {
    let (begun, first) = (Instant::now(), machine::connections());
    let (mut last, mut longest_queue) = (first, 0);
    let mut arrivals = vec![(Duration::ZERO, 0)];
    while !over.load(Ordering::Relaxed) {
        let slot_begun = Instant::now();
        while slot_begun.elapsed() < SLOT {
            longest_queue = longest_queue.max(machine::waiting_to_be_accepted(port));
            std::thread::sleep(SLOT / 5);
        }
        last = machine::connections();
        arrivals.push((begun.elapsed(), last.arrived - first.arrived));
    }
    let overflowed = last.overflowed - first.overflowed;
    Reunion { back_within: Duration::ZERO, arrivals, overflowed, longest_queue, lost: Vec::new() }
}

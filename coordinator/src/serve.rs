//! From a configuration to a coordinator that serves, and to its orderly end.
//!
//! ```text
//! store -> driver thread -> handlers -> guard -> HTTP/2 over TLS
//!    \________ reader ________/
//! ```
//!
//! Health is told from the first moment on, and says "not ready" until everything stands, and again from the moment that
//! it is to stop. Then sessions are told, streams end, running calls get a few seconds, and the driver commits what it
//! has taken.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use holdfast_common::adapter::Adapter;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, ResourceName, StoreId};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::Candidate;
use holdfast_coordinator_core::{Effect, TargetState};
use holdfast_net::ops::{self, Health, Manager, Pages, Pulse};
use holdfast_net::room::{self, Descriptors};
use holdfast_net::serve::{self as wire, Routes};
use holdfast_net::tls::ServerTls;
use holdfast_proto::v1::agent_service_server::AgentServiceServer;
use holdfast_proto::v1::enroll_service_server::EnrollServiceServer;
use holdfast_proto::v1::operator_service_server::OperatorServiceServer;
use holdfast_proto::{FILE_DESCRIPTOR_SET, MAX_MESSAGE_BYTES};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use uuid::Uuid;

use crate::archives::{self, Archives};
use crate::auth::{Books, Guard, Guesses, Refusals, Revocations};
use crate::config::Config;
use crate::driver::thread::{self, SystemClock};
use crate::driver::{self, Clock, Driver, Moment, Settings};
use crate::grpc::{Agents, Enrolling, Files, Limits, Measured, Measures, Operators, Shared, Signer};
use crate::health::{self, Stage};
use crate::logs::{self, Logs};
use crate::metrics::Metrics;
use crate::room::{Disk, Space};
use crate::sessions::{Directory, Drained, Profile, Standing, mass_loss};
use crate::store::sqlite::SqliteStore;
use crate::store::{self, Identity, Reader, Store};
use crate::tokens::StoredTokens;
use crate::verify::{Verdict, auditor};

/// Longest time that open calls have after a stop was asked for.
const DRAIN_WITHIN: Duration = Duration::from_secs(6);

/// Longest time that the driver has after that.
const COMMIT_WITHIN: Duration = Duration::from_secs(3);

/// Between two tries to open the store on a full disk.
const ROOM_AGAIN: Duration = Duration::from_millis(500);

/// Largest text of a report, in bytes.
const MAX_TEXT_BYTES: u32 = 16 * 1024;

/// Where health and metrics are, on loopback, if nothing else is configured.
pub const DEFAULT_OPS_PORT: u16 = 7444;

/// How often gRPC's health service is brought up to date, and the longest time that a part has to answer.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);
const READY_WITHIN: Duration = Duration::from_secs(3);

const SERVICES: [&str; 4] =
    ["", "holdfast.v1.AgentService", "holdfast.v1.OperatorService", "holdfast.v1.EnrollService"];

/// Largest message of a host that asks for a certificate.
const MAX_ENROLLING_BYTES: usize = 64 * 1024;

/// What the configuration names and this host does not give.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The data can't be there.
    #[error("could not make the data folder {}: {source}", folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The address can't be taken.
    #[error("could not listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Serves until `shutdown`. An error is why it could not start, or how it failed.
pub async fn serve(config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let tls = ServerTls::trusting(&config.tls.cert, &config.tls.key, &config.client_authorities()?)?;
    make_folder(&config.data_dir).map_err(|source| Unusable::Folder { folder: config.data_dir.clone(), source })?;
    let listener = wire::listen(config.listen.address)
        .map_err(|source| Unusable::Listen { address: config.listen.address, source })?;
    let address = listener.local_addr().context("could not read the address that was taken")?;

    let manager = Manager::of_environment();
    let health = Health::new();
    let stage = Stage::register(&health);
    let threads = wire::Threads::start().context("could not start the threads that serve")?;
    let metrics = Arc::new(Metrics::new().of_process(threads.runtimes()));
    let _ops = start_ops(&config, &health, &metrics).await?;

    let disk = Disk::new(config.data_dir.clone(), config.disk.reserve_bytes);
    let descriptors = room::watch_descriptors();
    room::register(&health, disk.watch(), descriptors.clone());
    let pulse = Pulse::new();
    let verdict = Verdict::default();
    health::certificates(&health, &tls);
    tokio::spawn(tls.clone().follow(shutdown.clone()));
    let around =
        Around { disk, descriptors, pulse: &pulse, metrics: &metrics, verdict: &verdict, tls: &tls, manager: &manager };
    let started = start(&config, &shutdown, around).await;
    let Some((shared, driver_thread)) = started.context("could not start on the store")? else { return Ok(()) };
    let (logs, reader, age) = (shared.logs.clone(), shared.reader.clone(), config.output.keep_age.0);
    tokio::spawn(logs::retention::run(logs, reader, age, wall, shutdown.clone()));
    let (archives, reader) = (shared.archives.clone(), shared.reader.clone());
    tokio::spawn(archives::retention::run(archives, reader, shutdown.clone()));
    let (reader, driver, every) = (shared.reader.clone(), shared.driver.clone(), config.audit.every.0.into());
    auditor::register(&health, &verdict);
    mass_loss::register(&health, &shared.directory);
    tokio::spawn(mass_loss::watch(Arc::clone(&shared.directory), shared.driver.clone(), shutdown.clone()));
    tokio::spawn(auditor::run(reader, verdict, driver, every, shutdown.clone()));
    health::register(&health, &config, &pulse, &shared.driver).context("could not look at the store")?;
    let reporter = HealthReporter::new();
    set_health(&reporter, ServingStatus::NotServing).await;

    let limits = wire::Limits::default();
    let guesses = Arc::new(Guesses::default());
    let books = Books {
        tokens: Arc::new(StoredTokens::new(shared.reader.clone())),
        refusals: Arc::new(shared.driver.clone()),
        revocations: shared.revocations.clone(),
        guesses: Arc::clone(&guesses),
        clock: shared.clock,
    };
    let gate = Guard::new(routes(&shared, guesses, &reporter, metrics.measures())?, books);
    let gate = Measured::new(gate, metrics);
    let stop = shutdown.clone();
    let server = threads.serve(listener, &tls, &limits, move |incoming| {
        wire::builder(&limits).serve_with_incoming_shutdown(gate.clone(), incoming, stop.clone().cancelled_owned())
    });
    stage.send_replace(Stage::Serving);
    set_health(&reporter, ServingStatus::Serving).await;
    // The port is open since before the store was; from here on what comes is answered.
    manager.ready();
    let (told, directory) = (manager.clone(), Arc::clone(&shared.directory));
    let telling = tokio::spawn(told.follow(health.clone(), move || standing(&directory, address)));
    let following = tokio::spawn(follow(health, reporter.clone()));
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "listening");
    if let Some(file) = &config.listen.address_file {
        wire::announce(file, address).with_context(|| format!("could not write the address to {}", file.display()))?;
    }

    let served = until(shutdown, server, &shared, Ending { stage, following, telling, reporter, manager }).await;
    if tokio::time::timeout(COMMIT_WITHIN, shared.driver.stop()).await.is_err() {
        anyhow::bail!("the driver did not stop within {} s", COMMIT_WITHIN.as_secs());
    }
    tokio::task::spawn_blocking(move || driver_thread.join())
        .await?
        .map_err(|_| anyhow::anyhow!("the driver panicked"))?;
    tracing::info!("stopped");
    served
}

/// Waits for the stop, then for the open calls, with a bound.
async fn until(
    shutdown: CancellationToken,
    mut server: wire::Serving,
    shared: &Shared,
    ending: Ending,
) -> anyhow::Result<()> {
    tokio::select! {
        // First: a server that has nothing open ends as soon as it is told to.
        biased;
        () = shutdown.cancelled() => {}
        ended = server.next_end() => {
            shutdown.cancel();
            ended.transpose().context("the server failed")?;
            anyhow::bail!("the server ended by itself");
        }
    }
    tracing::info!("stopping");
    ending.begin().await;
    shared.directory.close_all(Code::NotServing, "the coordinator is stopping");
    let all_ended = async {
        while let Some(ended) = server.next_end().await {
            ended.context("the server failed")?;
        }
        Ok(())
    };
    match tokio::time::timeout(DRAIN_WITHIN, all_ended).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::warn!("some connections did not end in time and are cut");
            Ok(())
        }
    }
}

/// What has to know that the end has begun.
struct Ending {
    stage: watch::Sender<Stage>,
    following: tokio::task::JoinHandle<()>,
    telling: tokio::task::JoinHandle<()>,
    reporter: HealthReporter,
    manager: Manager,
}

impl Ending {
    async fn begin(self) {
        self.stage.send_replace(Stage::Stopping);
        self.telling.abort();
        self.manager.stopping();
        self.manager.status("stopping: open calls get their time");
        self.following.abort();
        let _aborted = self.following.await;
        set_health(&self.reporter, ServingStatus::NotServing).await;
    }
}

/// For the service manager.
fn standing(directory: &Directory, address: SocketAddr) -> String {
    let agents = directory.list();
    let (all, here) = (agents.len(), agents.iter().filter(|agent| agent.connected).count());
    let drained = agents.iter().filter(|agent| agent.drained.is_some()).count();
    let drained = if drained > 0 { format!(", {drained} drained") } else { String::new() };
    format!("listening on {address}; {here} of {all} agents in contact{drained}")
}

/// Tells gRPC's health service what `/readyz` tells.
async fn follow(health: Health, reporter: HealthReporter) {
    let mut told = ServingStatus::Serving;
    loop {
        tokio::time::sleep(FOLLOW_EVERY).await;
        let asked = health.clone();
        let look = tokio::task::spawn_blocking(move || asked.readiness().is_ok());
        let ready = matches!(tokio::time::timeout(READY_WITHIN, look).await, Ok(Ok(true)));
        let now = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        if now != told {
            told = now;
            set_health(&reporter, now).await;
        }
    }
}

async fn start_ops(config: &Config, health: &Health, metrics: &Arc<Metrics>) -> anyhow::Result<Option<ops::Server>> {
    let metrics = Arc::clone(metrics);
    let pages = Pages::new(health.clone(), move |form| metrics.text(form));
    let listener = ops::listen(&config.ops, DEFAULT_OPS_PORT).await?;
    Ok(listener.map(|listener| ops::Server::start(listener, pages)))
}

/// What stands before the store does.
struct Around<'a> {
    disk: Disk,
    descriptors: watch::Receiver<Descriptors>,
    pulse: &'a Pulse,
    metrics: &'a Arc<Metrics>,
    verdict: &'a Verdict,
    tls: &'a ServerTls,
    manager: &'a Manager,
}

/// The store, its driver, and what handlers work with. On a disk that is full it waits for room, without a restart; `None`
/// when it was told to stop meanwhile.
async fn start(
    config: &Config,
    shutdown: &CancellationToken,
    around: Around<'_>,
) -> anyhow::Result<Option<(Shared, std::thread::JoinHandle<()>)>> {
    let Around { mut disk, descriptors, pulse, metrics, verdict, tls, manager } = around;
    let clock = SystemClock::new();
    let room = disk.watch();
    let opened = loop {
        disk.look(clock.monotonic(), 0);
        let error = match open(config, &clock) {
            Ok(opened) => break opened,
            Err(error) if error.may_lack_room() && !disk.room().takes_new_work() => error,
            Err(error) => return Err(error.into()),
        };
        let source = std::error::Error::source(&error).map(ToString::to_string);
        tracing::error!(code = %Code::DiskFull, %error, source, room = %disk.room(), "waiting for room on the disk");
        disk.release(clock.monotonic());
        manager.status("starting, waits for room on the disk");
        manager.extend(ROOM_AGAIN * 60);
        tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(ROOM_AGAIN) => {}
        }
    };
    let Opened { driver, identity, reader, directory, revocations, handle, inbox } = opened;
    let driver = driver.measured(Arc::clone(metrics))?.audited(verdict.clone());
    metrics.read_from(Arc::clone(&directory), handle.clone(), wall);
    let driver_thread = thread::spawn(driver.on(Box::new(disk)), inbox, clock, pulse.clone())?;
    let shared = Shared {
        room,
        descriptors,
        verdict: verdict.clone(),
        driver: handle,
        reader,
        directory,
        logs: Logs::open(
            config.data_dir.join("logs"),
            logs::Bounds { stream_bytes: config.output.max_bytes, total_bytes: config.output.keep_bytes_total },
        )?,
        archives: Archives::open(
            config.data_dir.join("archives"),
            archives::Bounds {
                archive_bytes: config.archives.max_bytes,
                total_bytes: config.archives.keep_bytes_total,
                age: config.archives.keep_age.0.into(),
            },
        )?,
        files: Files::default(),
        attachments: config.data_dir.join("attachments"),
        revocations,
        signer: Signer { files: config.authority(), life: config.enrol.certificate_life.0, tls: tls.clone() },
        identity,
        limits: Limits {
            heartbeat_interval: config.heartbeat.interval.0,
            max_text_bytes: MAX_TEXT_BYTES,
            max_log_bytes: config.output.max_bytes,
            pace: config.agents.pace(),
        },
        clock: wall,
        stop: shutdown.clone(),
    };
    Ok(Some((shared, driver_thread)))
}

/// A store that is open, and what drives it.
struct Opened {
    driver: Driver<SqliteStore>,
    identity: Identity,
    reader: Reader,
    directory: Arc<Directory>,
    revocations: Revocations,
    handle: driver::Handle,
    inbox: driver::Inbox,
}

fn open(config: &Config, clock: &SystemClock) -> Result<Opened, store::Error> {
    let store = SqliteStore::open(&config.store(), StoreId(Uuid::new_v4()), wall())?;
    let (identity, reader) = (store.identity(), store.reader());
    let directory = Arc::new(Directory::new(config.mass_loss.bounds()));
    for row in reader.agents()? {
        directory.remember(row.name.clone(), remembered(&row), row.last_heard);
    }
    let identities = reader.agent_identities()?;
    for (agent, identity) in &identities {
        directory.stand(agent, Standing::from(identity));
    }
    let revocations = Revocations::of(&identities, &reader.certificates()?);
    for row in reader.drains()? {
        directory.drain(&row.agent, Some(Drained { by: row.by, reason: row.reason, since: row.since }));
    }
    let (handle, inbox) = driver::channel();
    let driver = Driver::open(
        store,
        Arc::clone(&directory) as Arc<dyn driver::Sessions>,
        Box::new(StdRng::from_os_rng()),
        Settings { lease_margin: config.lease.margin.0, absence: config.lease.detach.0 },
        &inbox,
        Moment::of(clock),
    )?;
    Ok(Opened { driver, identity, reader, directory, revocations, handle, inbox })
}

fn remembered(row: &store::AgentRow) -> Profile {
    Profile {
        incarnation: row.incarnation,
        labels: row.labels.clone(),
        adapters: BTreeSet::new(),
        targets: Vec::new(),
        version: String::new(),
        instance: String::new(),
    }
}

fn routes(
    shared: &Shared,
    guesses: Arc<Guesses>,
    health: &HealthReporter,
    measures: Measures,
) -> anyhow::Result<Routes> {
    let agents = AgentServiceServer::new(Agents::new(shared.clone(), measures))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let operators = OperatorServiceServer::new(Operators::new(shared.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let enrolling = EnrollServiceServer::new(Enrolling::new(shared.clone(), guesses))
        .max_decoding_message_size(MAX_ENROLLING_BYTES);
    let health = HealthServer::new(HealthService::from_health_reporter(health.clone()));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .context("could not read the protocol's own descriptors")?;
    Ok(Routes::new().with(agents).with(operators).with(enrolling).with(health).with(reflection))
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        health.set_service_status(service, status).await;
    }
}

impl Refusals for driver::Handle {
    fn keep(&self, who: String, what: String, why: String) {
        self.refused(who, what, why);
    }
}

impl driver::Sessions for Directory {
    fn stand(&self, agent: &AgentName, identity: &holdfast_coordinator_core::identity::Identity) {
        Directory::stand(self, agent, Standing::from(identity));
    }

    fn candidates(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Vec<Candidate> {
        Directory::candidates(self, target, needs)
    }

    fn reachable(&self, target: &TargetSpec, resource: &ResourceName, home: Option<&AgentName>) -> Vec<AgentName> {
        Directory::reachable(self, target, resource, home)
    }

    fn suspects_itself(&self) -> bool {
        self.suspicion().is_some()
    }

    fn stands(&self, agent: &AgentName) {
        Directory::stands(self, agent);
    }

    fn send(&self, state: &TargetState, effect: &Effect) {
        Directory::send(self, state, effect);
    }
}

/// The wall clock, for people.
#[must_use]
pub fn wall() -> Wall {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

/// Only its owner may look into the data.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

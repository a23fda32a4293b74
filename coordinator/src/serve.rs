//! From a configuration to a coordinator that serves, and to its orderly end.
//!
//! ```text
//! store -> driver thread -> handlers -> guard -> HTTP/2 over TLS
//!    \________ reader ________/
//! ```
//!
//! Health says `NOT_SERVING` until everything stands, and again from the moment that it is to stop. Then sessions are
//! told, streams end, running calls get a few seconds, and the driver commits what it has taken.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, ResourceName, StoreId};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::Candidate;
use holdfast_coordinator_core::{Effect, TargetState};
use holdfast_net::serve::{self as wire, Routes};
use holdfast_net::tls::ServerTls;
use holdfast_proto::MAX_MESSAGE_BYTES;
use holdfast_proto::v1::agent_service_server::AgentServiceServer;
use holdfast_proto::v1::operator_service_server::OperatorServiceServer;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use uuid::Uuid;

use crate::auth::Guard;
use crate::config::Config;
use crate::driver::thread::{self, SystemClock};
use crate::driver::{self, Driver, Moment, Settings};
use crate::grpc::{Agents, Limits, Operators, Shared};
use crate::logs::Logs;
use crate::sessions::{Directory, Profile};
use crate::store::sqlite::SqliteStore;
use crate::store::{self, Store};
use crate::tokens::StoredTokens;

/// Longest time that open calls have after a stop was asked for.
const DRAIN_WITHIN: Duration = Duration::from_secs(6);

/// Longest time that the driver has after that.
const COMMIT_WITHIN: Duration = Duration::from_secs(3);

/// Largest text of a report, in bytes.
const MAX_TEXT_BYTES: u32 = 16 * 1024;

const SERVICES: [&str; 3] = ["", "holdfast.v1.AgentService", "holdfast.v1.OperatorService"];

/// Serves until `shutdown`. An error is why it could not start, or how it failed.
pub async fn serve(config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let tls = ServerTls::from_files(&config.tls.cert, &config.tls.key, &config.tls.client_ca)?;
    make_folder(&config.data_dir)
        .with_context(|| format!("could not make the data folder {}", config.data_dir.display()))?;
    let listener = wire::listen(config.listen.address)
        .with_context(|| format!("could not listen on {}", config.listen.address))?;
    let address = listener.local_addr().context("could not read the address that was taken")?;

    let (shared, driver_thread) = start(&config, &shutdown).context("could not start on the store")?;
    let health = HealthReporter::new();
    set_health(&health, ServingStatus::NotServing).await;

    let limits = wire::Limits::default();
    let gate = Guard::new(routes(&shared, &health), Arc::new(StoredTokens::new(shared.reader.clone())), shared.clock);
    let stop = shutdown.clone();
    let serving =
        wire::builder(&limits).serve_with_incoming_shutdown(gate, wire::incoming(listener, tls, &limits), async move {
            stop.cancelled().await
        });
    let server = tokio::spawn(serving);
    set_health(&health, ServingStatus::Serving).await;
    tracing::info!("listening on {address}");
    if let Some(file) = &config.listen.address_file {
        write_whole(file, &address.to_string())
            .with_context(|| format!("could not write the address to {}", file.display()))?;
    }

    let served = until(shutdown, server, &shared, &health).await;
    if tokio::time::timeout(COMMIT_WITHIN, shared.driver.stop()).await.is_err() {
        anyhow::bail!("the driver did not stop within {} s", COMMIT_WITHIN.as_secs());
    }
    tokio::task::spawn_blocking(move || driver_thread.join())
        .await?
        .map_err(|_| anyhow::anyhow!("the driver panicked"))?;
    tracing::info!("stopped");
    served
}

type Server = tokio::task::JoinHandle<Result<(), tonic::transport::Error>>;

/// Waits for the stop, then for the open calls, with a bound.
async fn until(
    shutdown: CancellationToken,
    mut server: Server,
    shared: &Shared,
    health: &HealthReporter,
) -> anyhow::Result<()> {
    tokio::select! {
        // First: a server that has nothing open ends as soon as it is told to.
        biased;
        () = shutdown.cancelled() => {}
        ended = &mut server => {
            shutdown.cancel();
            ended.context("the server panicked")?.context("the server failed")?;
            anyhow::bail!("the server ended by itself");
        }
    }
    tracing::info!("stopping");
    set_health(health, ServingStatus::NotServing).await;
    shared.directory.close_all(Code::NotServing, "the coordinator is stopping");
    match tokio::time::timeout(DRAIN_WITHIN, &mut server).await {
        Ok(ended) => ended.context("the server panicked")?.context("the server failed"),
        Err(_) => {
            tracing::warn!("some connections did not end in time and are cut");
            server.abort();
            Ok(())
        }
    }
}

/// The store, its driver, and what handlers work with.
fn start(config: &Config, shutdown: &CancellationToken) -> anyhow::Result<(Shared, std::thread::JoinHandle<()>)> {
    let clock = SystemClock::new();
    let store = SqliteStore::open(&config.store(), StoreId(Uuid::new_v4()), wall())?;
    let (identity, reader) = (store.identity(), store.reader());
    let directory = Arc::new(Directory::default());
    for row in reader.agents()? {
        directory.remember(row.name.clone(), remembered(&row), row.last_heard);
    }
    let (handle, inbox) = driver::channel();
    let driver = Driver::open(
        store,
        Arc::clone(&directory) as Arc<dyn driver::Sessions>,
        Box::new(StdRng::from_os_rng()),
        Settings { lease_margin: config.lease.margin.0 },
        &inbox,
        Moment::of(&clock),
    )?;
    let driver_thread = thread::spawn(driver, inbox, clock)?;
    let shared = Shared {
        driver: handle,
        reader,
        directory,
        logs: Logs::new(config.data_dir.join("logs"), config.output.max_bytes),
        attachments: config.data_dir.join("attachments"),
        identity,
        limits: Limits {
            heartbeat_interval: config.heartbeat.interval.0,
            max_text_bytes: MAX_TEXT_BYTES,
            max_log_bytes: config.output.max_bytes,
        },
        clock: wall,
        stop: shutdown.clone(),
    };
    Ok((shared, driver_thread))
}

fn remembered(row: &store::AgentRow) -> Profile {
    Profile {
        incarnation: row.incarnation,
        labels: row.labels.clone(),
        adapters: std::collections::BTreeSet::new(),
        targets: Vec::new(),
        version: String::new(),
    }
}

fn routes(shared: &Shared, health: &HealthReporter) -> Routes {
    let agents = AgentServiceServer::new(Agents::new(shared.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let operators = OperatorServiceServer::new(Operators::new(shared.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let health = HealthServer::new(HealthService::from_health_reporter(health.clone()));
    Routes::new().with(agents).with(operators).with(health)
}

async fn set_health(health: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        health.set_service_status(service, status).await;
    }
}

impl driver::Sessions for Directory {
    fn candidates(&self, target: &TargetSpec) -> Vec<Candidate> {
        Directory::candidates(self, target)
    }

    fn reachable(&self, target: &TargetSpec, resource: &ResourceName, home: Option<&AgentName>) -> Vec<AgentName> {
        Directory::reachable(self, target, resource, home)
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

/// So that a reader finds all of it or nothing.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    fs::write(&fresh, text)?;
    fs::rename(&fresh, path)
}

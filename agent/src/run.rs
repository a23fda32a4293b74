//! The agent as a service: journal, driver, session and hands put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_agent_core::leave::{Manner, Mode};
use holdfast_agent_core::work::Boot;
use holdfast_common::code::Code;
use holdfast_common::id::{IncarnationId, SessionId};
use holdfast_common::time::Wall;
use holdfast_net::ops::{self, Health, Manager, Pulse};
use holdfast_net::room;
use holdfast_net::tls::{self as net_tls, ClientTls};
use holdfast_proto::v1::{ConnectRequest, Hello};
use tokio::sync::{mpsc as channel, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::boottime::BootTime;
use crate::bulk::Bulk;
use crate::config::{Certificates, Config, NotTogether};
use crate::driver::{self, Clock, Driver, Event, Hands};
use crate::enrol::renew;
use crate::fetch::Fetcher;
use crate::hands::{Surroundings, Workshop};
use crate::health;
use crate::journal::{self, Journal};
use crate::logs::Uploader;
use crate::machine;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::policy;
use crate::room::HostRoom;
use crate::session::{self, Ending, FromCoordinator, Hurry, Owner, Pace, Welcome};
use crate::standing::Standing;
use crate::supervisor::Cgroups;

/// Between two tries to open the journal on a full disk.
const ROOM_AGAIN: Duration = Duration::from_millis(500);

/// Longest wait for the coordinator to have heard the last word.
const LAST_WORD_WITHIN: Duration = Duration::from_secs(3);
/// What the end takes beyond the wait for work, at most.
const LEFT_TO_END: Duration = Duration::from_secs(30);

/// Why the agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal can't be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// A certificate or key can't be used.
    #[error(transparent)]
    Tls(#[from] net_tls::Error),
    /// The configuration names no whole identity.
    #[error(transparent)]
    Identity(#[from] NotTogether),
    /// The identity's folder is empty.
    #[error("this host has not joined a coordinator: no identity is in {}", dir.display())]
    NotJoined {
        /// The folder.
        dir: PathBuf,
    },
    /// Health and metrics can't be served.
    #[error(transparent)]
    Ops(#[from] ops::Error),
    /// The host's policy can't be kept.
    #[error("the host's policy can't be kept: {}", .0.join("; "))]
    Policy(Vec<String>),
    /// The cgroup that the configuration names can't be used.
    #[error("could not use the cgroup of [supervisor]: {0}")]
    Cgroup(#[source] std::io::Error),
    /// The thread or runtime can't be made.
    #[error("could not start the agent's threads: {0}")]
    Threads(#[from] std::io::Error),
}

/// How often somebody asked the agent to stop.
pub type Requests = watch::Receiver<u32>;

/// Runs until it was asked to stop and may: see [`holdfast_agent_core::leave`]. Work that is under way then goes on under its shims;
/// the next agent takes it up.
pub async fn run(config: Config, mut requests: Requests) -> Result<(), Error> {
    let manager = Manager::of_environment();
    let exit = Ending::default();
    let stop = exit.stop.clone();
    let policy = policy::check(&config, policy::Occasion::Start);
    if !policy.errors.is_empty() {
        return Err(Error::Policy(policy.errors));
    }
    policy.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let tls = tls(&config)?;
    let folder = config.certificates()?.folder;
    tokio::spawn(tls.clone().follow(stop.clone()));
    if let Err(error) = tls.must_be_good_now() {
        tracing::error!(%error, "no coordinator will let this agent in: set the clock, or join again with holdfast-agent join");
    }
    let _journal_says_what_is_wrong = std::fs::create_dir_all(&config.state_dir);
    let descriptors = room::watch_descriptors();
    let room = Arc::new(HostRoom::on(&config.state_dir, config.disk.reserve_bytes, descriptors.clone()));
    let (health, pulse, metrics) = (Health::new(), Pulse::new(), Arc::new(Metrics::new().of_process()));
    room::register(&health, room.watch(), descriptors);
    let _ops = health::serve(&config, health.clone(), Arc::clone(&metrics)).await?;
    let Some(journal) = open(&config, &room, &mut requests, &manager).await? else { return Ok(()) };
    // Not before the state folder is this agent's alone: another one may be renewing the same identity.
    if let Some(folder) = folder {
        tokio::spawn(renew::keep(config.coordinator.address.clone(), tls.clone(), folder, stop.clone()));
    }
    health::certificates(&health, &tls);
    let standing = Standing::default();
    health::register(&health, &config, &pulse, &metrics, &standing, requests.clone())?;
    let (events, inbox) = driver::channel();
    let bulk = Bulk::start()?;
    let logs = Uploader::start(
        &config.coordinator.address,
        &tls,
        &config.state_dir,
        stop.clone(),
        Arc::clone(&metrics),
        &bulk.handle(),
    )?;
    let places = Places::below(&config.state_dir);
    let fetcher = Fetcher::new(&config, &tls, places.clone(), bulk.handle());
    let surroundings = surroundings(&config)?;
    let host = policy::Host::of(&config);
    let workshop = Workshop::new(places, events.clone(), logs, fetcher, Arc::clone(&room), host, surroundings)?;
    let driver = Driver::new(journal, workshop, Clocks, config.clone())?.measured(Arc::clone(&metrics), pulse).on(room);
    let driver = driver.telling(standing.clone(), exit.clone());
    let asking = tokio::spawn(pass_on(requests, events.clone(), manager.clone(), config.stop.manner(), exit.clone()));
    let told = manager.clone();
    let following = async move {
        // Not before: from here on the folder is this agent's, and what it holds is known. Contact is not waited for.
        told.ready();
        told.follow(health, move || standing.line()).await;
    };
    let following = tokio::spawn(following);
    let kept = keep(&config, &tls, driver, (events, inbox), metrics, &exit).await;
    stop.cancel();
    asking.abort();
    following.abort();
    kept
}

/// Hands each request to stop to the driver, and sees to it that the last word does not take for ever.
async fn pass_on(mut requests: Requests, events: driver::Sender, manager: Manager, manner: Manner, exit: Ending) {
    let bounded = async {
        exit.going.cancelled().await;
        tokio::time::sleep(LAST_WORD_WITHIN).await;
        exit.stop.cancel();
    };
    let passing = async {
        let mut passed = 0;
        loop {
            let asked = *requests.borrow_and_update();
            if passed == 0 && asked > 0 {
                manager.stopping();
                if manner.mode == Mode::Finish {
                    manager.extend(Duration::from(manner.finish_within) + LEFT_TO_END);
                }
            }
            for _ in passed..asked {
                let _ended = events.send(Event::Leave);
            }
            passed = asked;
            if requests.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    };
    tokio::join!(bounded, passing);
}

fn surroundings(config: &Config) -> Result<Surroundings, Error> {
    let cgroups = Cgroups::find(&config.supervisor.cgroup, config.limits).map_err(Error::Cgroup)?;
    Ok(Surroundings {
        cgroups,
        limits: config.limits,
        machine: machine::fingerprint(&config.machine),
        keep: config.keep,
    })
}

/// What the agent trusts and shows.
pub fn tls(config: &Config) -> Result<ClientTls, Error> {
    let Certificates { ca, certificate, key, folder } = config.certificates()?;
    // Whoever may not look into the folder is told by what reads it.
    if let Some(folder) = folder.filter(|_| matches!(certificate.try_exists(), Ok(false))) {
        return Err(Error::NotJoined { dir: folder.path().to_owned() });
    }
    let server_name = config.coordinator.server_name.as_deref();
    Ok(ClientTls::from_files(&ca, Some((&certificate, &key)), server_name)?)
}

/// [`run`] with other hands, that are made once the state folder is this agent's alone, and without a word of its health. They
/// tell what comes of their work through the sender that they get.
pub async fn run_with<H: Hands + Send + 'static>(
    config: Config,
    tls: &ClientTls,
    hands: impl FnOnce(driver::Sender) -> std::io::Result<H>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let journal = Journal::open(&config.state_dir, IncarnationId(Uuid::new_v4()))?;
    let (events, inbox) = driver::channel();
    let driver = Driver::new(journal, hands(events.clone())?, Clocks, config.clone())?;
    let ending = Ending { going: CancellationToken::new(), stop };
    keep(&config, tls, driver, (events, inbox), Arc::default(), &ending).await
}

async fn keep<H: Hands + Send + 'static>(
    config: &Config,
    tls: &ClientTls,
    driver: Driver<H, Clocks>,
    (events, inbox): (driver::Sender, driver::Inbox),
    metrics: Arc<Metrics>,
    ending: &Ending,
) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name("driver".to_owned()).spawn(move || {
        // A thread that decides no more must not leave an agent behind that looks alive.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| driver.run(&inbox)));
        if outcome.is_err() {
            tracing::error!("the deciding thread died: stopping");
            std::process::abort();
        }
    })?;
    let state = Path::new(&config.state_dir).display();
    tracing::info!(%state, version = env!("CARGO_PKG_VERSION"), "agent started");
    let mut owner = DriverInbox(events.clone(), metrics);
    let seed = rand::random();
    session::keep(&config.coordinator.address, tls, Pace::default(), seed, &mut owner, ending).await;
    let _ended = events.send(Event::Stop);
    let _joined = tokio::task::spawn_blocking(move || thread.join()).await;
    Ok(())
}

/// On a disk that is full it waits for room, without a restart. `None` when it was told to stop meanwhile.
async fn open(
    config: &Config,
    room: &HostRoom,
    requests: &mut Requests,
    manager: &Manager,
) -> Result<Option<Journal>, Error> {
    let journal = || Journal::open(&config.state_dir, IncarnationId(Uuid::new_v4()));
    loop {
        let verdict = room.look(0);
        let lacks_room = |error: &journal::Error| error.may_lack_room() && !verdict.takes_offers;
        let opened = journal().or_else(|error| {
            if !lacks_room(&error) {
                return Err(error);
            }
            // At once: what is given back is anybody's.
            room.release();
            journal()
        });
        match opened {
            Ok(journal) => return Ok(Some(journal)),
            Err(error @ journal::Error::Open { .. }) => {
                tracing::error!(%error, "waiting for the journal");
                manager.status("starting, waits for the journal, which another process has open");
                manager.extend(ROOM_AGAIN * 60);
            }
            Err(error) if lacks_room(&error) => {
                tracing::error!(code = %Code::DiskFull, %error, "waiting for room on the disk");
                manager.status("starting, waits for room on the disk");
                manager.extend(ROOM_AGAIN * 60);
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            asked = requests.wait_for(|asked| *asked > 0) => {
                drop(asked);
                return Ok(None);
            }
            () = tokio::time::sleep(ROOM_AGAIN) => {}
        }
    }
}

/// The real clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks;

impl Clock for Clocks {
    fn wall(&self) -> Wall {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Wall(since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
    }

    fn boot(&self) -> Boot {
        Boot(BootTime::now().as_millis())
    }
}

/// The session's way to the driver.
struct DriverInbox(driver::Sender, Arc<Metrics>);

impl Owner for DriverInbox {
    async fn hello(&mut self) -> Option<Hello> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Event::Hello(reply)).ok()?;
        answer.await.ok()
    }

    async fn up(&mut self, welcome: Welcome, outgoing: channel::Sender<ConnectRequest>) {
        let _stopped = self.0.send(Event::Up(welcome, outgoing));
    }

    async fn message(&mut self, session: SessionId, message: FromCoordinator) {
        let _stopped = self.0.send_with_room(Event::Message(session, message)).await;
    }

    fn refused(&mut self, why: String) {
        tracing::error!(why, "the coordinator refuses this agent: it is tried again seldom");
        self.1.is_refused(Some(why));
    }

    async fn down(&mut self) -> Hurry {
        let (reply, answer) = oneshot::channel();
        let _stopped = self.0.send(Event::Down(reply));
        answer.await.unwrap_or(Hurry::Idle)
    }
}

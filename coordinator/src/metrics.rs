//! What is measured of the coordinator. The table is what is served; a test holds the two against each other.
//!
//! ```text
//!   events of one write ── facts::of ──▶ Fact   counted once their commit is done, so that nothing is counted that is not so
//!   state of a target ─────────────────▶ gauges
//!   directory, inbox, process ─────────▶ gauges, read at each scrape
//! ```
//!
//! An outcome that nobody knows has no counterpart among the outcomes: it is a deployment that moved to `uncertain`.

pub mod facts;
mod standing;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_net::ops::Form;
use holdfast_net::ops::process::{self, Process};
use holdfast_net::ops::table::{self, In, Kind, Row};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::auth::methods::{Answers, METHODS};
use crate::driver::Handle;
use crate::grpc::Measures;
use crate::sessions::{Directory, Unfit};
use facts::Fact;
use standing::Standing;

const OUTCOMES: &[&str] = &["succeeded", "failed", "cancelled"];
const OPEN: &[&str] = &["queued", "active", "uncertain", "held"];
const MOVES: &[&str] = &["queued", "active", "uncertain", "held"];
const AGREES: &[&str] = &["yes", "no", "unknown"];
const PLACES: &[&str] = &["report", "permit", "heartbeat", "agent"];
const PHASES: &[&str] = &["unpermitted", "between_permits", "permit_open"];
const RESULTS: &[&str] = &["recorded", "cancelled_at_once", "already_ended"];
const CANCEL_OUTCOMES: &[&str] = &["cancelled", "failed", "too_late"];
const DECISIONS: &[&str] =
    &["retry", "accept-succeeded", "accept-failed", "accept-cancelled", "rollback", "readmit", "abandon"];
const JOINS: &[&str] = &["unknown", "expired", "used", "other_name", "name_taken", "guessing", "closed", "other"];
const CONTACTS: &[&str] = &["connected", "silent"];

const BUILD: &str = "holdfast_build_info";
const TARGETS_UNCERTAIN: &str = "holdfast_targets_uncertain";
const TARGETS_RESERVED: &str = "holdfast_targets_reserved";
const ON_HOLD: &str = "holdfast_targets_on_hold";
const OLDEST: &str = "holdfast_oldest_uncertain_age_seconds";
const OPEN_DEPLOYMENTS: &str = "holdfast_deployments_open";
const DEPLOYMENTS: &str = "holdfast_deployments_total";
const MOVED: &str = "holdfast_deployment_moves_total";
const LATE: &str = "holdfast_late_evidence_total";
const STALE: &str = "holdfast_stale_fence_rejections_total";
const EXPIRED: &str = "holdfast_lease_expirations_total";
const CANCELS: &str = "holdfast_cancel_requests_total";
const CANCEL_ENDS: &str = "holdfast_cancel_outcomes_total";
const DECIDED: &str = "holdfast_decisions_total";
const EVENTS: &str = "holdfast_events_total";
const AGENTS: &str = "holdfast_agents";
const PASSED_OVER: &str = "holdfast_agents_passed_over_total";
const WITHOUT_AGENT: &str = "holdfast_deployments_without_agent";
const LATENESS: &str = "holdfast_agent_heartbeat_lateness_seconds";
const HELD_BACK: &str = "holdfast_agents_held_back_total";
const SUSPECTED: &str = "holdfast_mass_loss_suspected";
const LOCKED: &str = "holdfast_agents_locked";
const COMMIT: &str = "holdfast_store_commit_seconds";
const BATCH: &str = "holdfast_driver_batch_messages";
const WAITING: &str = "holdfast_driver_waiting_messages";
const REQUESTS: &str = "holdfast_grpc_requests_total";
const OPEN_REQUESTS: &str = "holdfast_grpc_open_requests";
const REQUEST: &str = "holdfast_grpc_request_seconds";
const REFUSALS: &str = "holdfast_refusals_total";
const JOIN_REFUSALS: &str = "holdfast_join_refusals_total";

/// The method by which hosts join, as a label.
const ENROLL: &str = "holdfast.v1.EnrollService/Enroll";

/// The coordinator's own rows.
const OWN: &[Row] = &[
    Row::new(BUILD, Kind::Info, In::Number, "The build").by(&[("version", &[])]),
    Row::new(
        TARGETS_UNCERTAIN,
        Kind::Gauge,
        In::Number,
        "Targets held by a deployment of which nobody knows whether it is changing them now",
    ),
    Row::new(TARGETS_RESERVED, Kind::Gauge, In::Number, "Targets that a deployment holds"),
    Row::new(ON_HOLD, Kind::Gauge, In::Number, "Targets that an operator has put on hold"),
    Row::new(
        OLDEST,
        Kind::Gauge,
        In::Seconds,
        "How long the longest uncertain deployment has been uncertain; 0 while none is",
    ),
    Row::new(OPEN_DEPLOYMENTS, Kind::Gauge, In::Number, "Deployments that have not ended").by(&[("state", OPEN)]),
    Row::new(DEPLOYMENTS, Kind::Counter, In::Number, "Deployments that ended").by(&[("outcome", OUTCOMES)]),
    Row::new(MOVED, Kind::Counter, In::Number, "Moves of deployments to a state that is not an end")
        .by(&[("state", MOVES)]),
    Row::new(
        LATE,
        Kind::Counter,
        In::Number,
        "Reports that were kept as evidence only, by whether they agree with what is on record by then",
    )
    .by(&[("agrees", AGREES)]),
    Row::new(STALE, Kind::Counter, In::Number, "What was refused because its fence or attempt is not the current one")
        .by(&[("where", PLACES)]),
    Row::new(EXPIRED, Kind::Counter, In::Number, "Leases that lapsed without a word, by what had been permitted")
        .by(&[("phase", PHASES)]),
    Row::new(CANCELS, Kind::Counter, In::Number, "People's requests to stop, by what came of the request at once")
        .by(&[("result", RESULTS)]),
    Row::new(
        CANCEL_ENDS,
        Kind::Counter,
        In::Number,
        "Deployments that ended with a request to stop on record; too_late is a success all the same",
    )
    .by(&[("outcome", CANCEL_OUTCOMES)]),
    Row::new(DECIDED, Kind::Counter, In::Number, "Recorded recovery decisions").by(&[("kind", DECISIONS)]),
    Row::new(EVENTS, Kind::Counter, In::Number, "Committed events").by(&[("event", facts::EVENTS)]),
    Row::new(AGENTS, Kind::Gauge, In::Number, "Agents that were ever heard, by whether they have a session now")
        .by(&[("contact", CONTACTS)]),
    Row::new(
        WITHOUT_AGENT,
        Kind::Gauge,
        In::Number,
        "Deployments that wait because no agent that their target selects can take them",
    ),
    Row::new(
        PASSED_OVER,
        Kind::Counter,
        In::Number,
        "Times that an agent could not take what looked for one, by what differs: its version of the protocol, the targets that its host allows, its adapters",
    )
    .by(&[("why", Unfit::WORDS)]),
    Row::new(
        LATENESS,
        Kind::Histogram,
        In::Seconds,
        "How late a heartbeat came, against the one before it and the interval that agents are told",
    ),
    Row::new(
        HELD_BACK,
        Kind::Counter,
        In::Number,
        "Times that an agent had said more than it may and was not read for a while",
    ),
    Row::new(
        SUSPECTED,
        Kind::Gauge,
        In::Number,
        "1 while so many agents fell silent at once that nothing new is handed out",
    ),
    Row::new(LOCKED, Kind::Gauge, In::Number, "Agents of which a copy was seen, and nobody has unlocked them since"),
    Row::new(COMMIT, Kind::Histogram, In::Seconds, "How long a commit of the store took, with its sync"),
    Row::new(BATCH, Kind::Histogram, In::Number, "Messages that one turn of the driver took together"),
    Row::new(WAITING, Kind::Gauge, In::Number, "Messages that wait for the driver"),
    Row::new(REQUESTS, Kind::Counter, In::Number, "gRPC calls that are over; streams when they end")
        .by(&[("method", &[]), ("code", &[])]),
    Row::new(OPEN_REQUESTS, Kind::Gauge, In::Number, "gRPC calls that are under way, streams among them")
        .by(&[("method", &[])]),
    Row::new(REQUEST, Kind::Histogram, In::Seconds, "How long gRPC calls took that answer once").by(&[("method", &[])]),
    Row::new(REFUSALS, Kind::Counter, In::Number, "gRPC calls that were refused, by the code that the caller was told")
        .by(&[("code", &[])]),
    Row::new(
        JOIN_REFUSALS,
        Kind::Counter,
        In::Number,
        "Hosts that were not taken in, by what was wrong with their token or name",
    )
    .by(&[("why", JOINS)]),
];

/// Everything that a coordinator serves.
#[must_use]
pub fn table() -> Vec<Row> {
    [OWN, process::TABLE].concat()
}

type By = [(&'static str, &'static str); 1];
type ByTwo = [(&'static str, &'static str); 2];
type ByCode = [(&'static str, String); 1];

/// Every metric.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    standing: Standing,
    sources: OnceLock<Sources>,
    targets_uncertain: Gauge,
    targets_reserved: Gauge,
    on_hold: Gauge,
    oldest: Gauge<f64, std::sync::atomic::AtomicU64>,
    open: Family<By, Gauge>,
    deployments: Family<By, Counter>,
    moved: Family<By, Counter>,
    late: Family<By, Counter>,
    stale: Family<By, Counter>,
    expired: Family<By, Counter>,
    cancels: Family<By, Counter>,
    cancel_ends: Family<By, Counter>,
    decided: Family<By, Counter>,
    events: Family<By, Counter>,
    agents: Family<By, Gauge>,
    without_agent: Gauge,
    passed_over: Family<By, Counter>,
    lateness: Histogram,
    held_back: Counter,
    suspected: Gauge,
    locked: Gauge,
    commit: Histogram,
    batch: Histogram,
    waiting: Gauge,
    requests: Family<ByTwo, Counter>,
    open_requests: Family<By, Gauge>,
    request: Family<By, Histogram, fn() -> Histogram>,
    refusals: Family<ByCode, Counter>,
    join_refusals: Family<By, Counter>,
}

/// What is read at each scrape.
struct Sources {
    directory: Arc<Directory>,
    driver: Handle,
    clock: fn() -> Wall,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// From a quarter of a millisecond to two seconds.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 14))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    #[must_use]
    pub fn new() -> Self {
        let metrics = Self {
            registry: table::registry(),
            standing: Standing::default(),
            sources: OnceLock::new(),
            targets_uncertain: Gauge::default(),
            targets_reserved: Gauge::default(),
            on_hold: Gauge::default(),
            oldest: Gauge::default(),
            open: Family::default(),
            deployments: Family::default(),
            moved: Family::default(),
            late: Family::default(),
            stale: Family::default(),
            expired: Family::default(),
            cancels: Family::default(),
            cancel_ends: Family::default(),
            decided: Family::default(),
            events: Family::default(),
            agents: Family::default(),
            locked: Gauge::default(),
            commit: latencies(),
            batch: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
            without_agent: Gauge::default(),
            passed_over: Family::default(),
            lateness: Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]),
            held_back: Counter::default(),
            suspected: Gauge::default(),
            waiting: Gauge::default(),
            requests: Family::default(),
            open_requests: Family::default(),
            request: Family::new_with_constructor(latencies),
            refusals: Family::default(),
            join_refusals: Family::default(),
        };
        metrics.begin_at_zero();
        metrics.registered()
    }

    /// So that a rate is right from the first one on, and a name that is missing is a mistake and not a zero.
    fn begin_at_zero(&self) {
        for (family, label, values) in [
            (&self.deployments, "outcome", OUTCOMES),
            (&self.moved, "state", MOVES),
            (&self.late, "agrees", AGREES),
            (&self.stale, "where", PLACES),
            (&self.expired, "phase", PHASES),
            (&self.cancels, "result", RESULTS),
            (&self.cancel_ends, "outcome", CANCEL_OUTCOMES),
            (&self.decided, "kind", DECISIONS),
            (&self.events, "event", facts::EVENTS),
            (&self.passed_over, "why", Unfit::WORDS),
            (&self.join_refusals, "why", JOINS),
        ] {
            for value in values {
                drop(family.get_or_create(&[(label, *value)]));
            }
        }
        for (family, label, values) in [(&self.open, "state", OPEN), (&self.agents, "contact", CONTACTS)] {
            for value in values {
                drop(family.get_or_create(&[(label, *value)]));
            }
        }
        for row in METHODS {
            let method = label_of(row.path);
            drop(self.requests.get_or_create(&[("method", method), ("code", "OK")]));
            drop(self.open_requests.get_or_create(&[("method", method)]));
            if row.answers == Answers::Once {
                drop(self.request.get_or_create(&[("method", method)]));
            }
        }
        for code in Code::ALL {
            drop(self.refusals.get_or_create(&[("code", code.to_string())]));
        }
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        table::register(registry, OWN, BUILD, Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        table::register(registry, OWN, TARGETS_UNCERTAIN, self.targets_uncertain.clone());
        table::register(registry, OWN, TARGETS_RESERVED, self.targets_reserved.clone());
        table::register(registry, OWN, ON_HOLD, self.on_hold.clone());
        table::register(registry, OWN, OLDEST, self.oldest.clone());
        table::register(registry, OWN, OPEN_DEPLOYMENTS, self.open.clone());
        table::register(registry, OWN, DEPLOYMENTS, self.deployments.clone());
        table::register(registry, OWN, MOVED, self.moved.clone());
        table::register(registry, OWN, LATE, self.late.clone());
        table::register(registry, OWN, STALE, self.stale.clone());
        table::register(registry, OWN, EXPIRED, self.expired.clone());
        table::register(registry, OWN, CANCELS, self.cancels.clone());
        table::register(registry, OWN, CANCEL_ENDS, self.cancel_ends.clone());
        table::register(registry, OWN, DECIDED, self.decided.clone());
        table::register(registry, OWN, EVENTS, self.events.clone());
        table::register(registry, OWN, AGENTS, self.agents.clone());
        table::register(registry, OWN, WITHOUT_AGENT, self.without_agent.clone());
        table::register(registry, OWN, PASSED_OVER, self.passed_over.clone());
        table::register(registry, OWN, LATENESS, self.lateness.clone());
        table::register(registry, OWN, HELD_BACK, self.held_back.clone());
        table::register(registry, OWN, SUSPECTED, self.suspected.clone());
        table::register(registry, OWN, LOCKED, self.locked.clone());
        table::register(registry, OWN, COMMIT, self.commit.clone());
        table::register(registry, OWN, BATCH, self.batch.clone());
        table::register(registry, OWN, WAITING, self.waiting.clone());
        table::register(registry, OWN, REQUESTS, self.requests.clone());
        table::register(registry, OWN, OPEN_REQUESTS, self.open_requests.clone());
        table::register(registry, OWN, REQUEST, self.request.clone());
        table::register(registry, OWN, REFUSALS, self.refusals.clone());
        table::register(registry, OWN, JOIN_REFUSALS, self.join_refusals.clone());
        self
    }

    /// With the figures of the process, which has these runtimes beside the one that this is called in.
    #[must_use]
    pub fn of_process(mut self, beside: Vec<tokio::runtime::Handle>) -> Self {
        self.registry.register_collector(Box::new(Process::here().and(beside)));
        self
    }

    /// What is read at each scrape from now on.
    pub fn read_from(&self, directory: Arc<Directory>, driver: Handle, clock: fn() -> Wall) {
        let _only_once = self.sources.set(Sources { directory, driver, clock });
    }

    /// What is measured of how agents speak.
    #[must_use]
    pub fn measures(&self) -> Measures {
        Measures { held_back: self.held_back.clone(), lateness: self.lateness.clone() }
    }

    /// The text of `/metrics`.
    #[must_use]
    pub fn text(&self, form: Form) -> String {
        self.gather();
        table::text(&self.registry, form)
    }

    fn gather(&self) {
        let Some(sources) = self.sources.get() else { return };
        let stands = self.standing.sum((sources.clock)());
        self.targets_uncertain.set(stands.uncertain);
        self.targets_reserved.set(stands.reserved);
        self.on_hold.set(stands.on_hold);
        self.oldest.set(stands.oldest.as_secs_f64());
        self.without_agent.set(stands.without_agent);
        for (state, count) in OPEN.iter().zip(stands.open) {
            self.open.get_or_create(&[("state", state)]).set(count);
        }
        let agents = sources.directory.list();
        let connected = agents.iter().filter(|agent| agent.connected).count();
        self.locked.set(number(agents.iter().filter(|agent| agent.standing.lock.is_some()).count()));
        for (contact, count) in CONTACTS.iter().zip([connected, agents.len() - connected]) {
            self.agents.get_or_create(&[("contact", contact)]).set(number(count));
        }
        for (why, count) in Unfit::WORDS.iter().zip(sources.directory.passed_over()) {
            self.passed_over.get_or_create(&[("why", *why)]).inner().store(count, std::sync::atomic::Ordering::Relaxed);
        }
        self.suspected.set(i64::from(sources.directory.suspicion().is_some()));
        self.waiting.set(number(sources.driver.waiting()));
    }

    /// How a target stands after a commit.
    pub(crate) fn stands(&self, target: &TargetName, state: &TargetState, now: Wall) {
        self.standing.put(target, state, now);
    }

    /// Since when a deployment is uncertain.
    pub(crate) fn uncertain_since(&self, deployment: DeploymentId, at: Wall) {
        self.standing.uncertain_since(deployment, at);
    }

    /// These are committed, or were answered after a commit.
    pub(crate) fn count(&self, facts: &[Fact]) {
        facts.iter().for_each(|fact| self.count_one(fact));
    }

    fn count_one(&self, fact: &Fact) {
        let (family, labels) = match fact {
            Fact::Event(word) => (&self.events, [("event", *word)]),
            Fact::Ended(word) => (&self.deployments, [("outcome", *word)]),
            Fact::Moved { word, .. } => (&self.moved, [("state", *word)]),
            Fact::Late(agrees) => (&self.late, [("agrees", agrees.word())]),
            Fact::Stale(place) => (&self.stale, [("where", place.word())]),
            Fact::Expired(word) => (&self.expired, [("phase", *word)]),
            Fact::CancelAsked(word) => (&self.cancels, [("result", *word)]),
            Fact::CancelEnded(word) => (&self.cancel_ends, [("outcome", *word)]),
            Fact::Decided(word) => (&self.decided, [("kind", *word)]),
        };
        family.get_or_create(&labels).inc();
        if let Fact::Moved { uncertain: Some((deployment, at)), .. } = fact {
            self.uncertain_since(*deployment, *at);
        }
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.commit.observe(took.as_secs_f64());
    }

    pub(crate) fn took(&self, messages: usize) {
        if messages > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
            self.batch.observe(messages as f64);
        }
    }

    pub(crate) fn call_began(&self, method: &'static str) {
        self.open_requests.get_or_create(&[("method", method)]).inc();
    }

    pub(crate) fn call_ended(&self, method: &'static str, code: &'static str, answered_once_in: Option<Duration>) {
        self.open_requests.get_or_create(&[("method", method)]).dec();
        self.requests.get_or_create(&[("method", method), ("code", code)]).inc();
        if let Some(took) = answered_once_in {
            self.request.get_or_create(&[("method", method)]).observe(took.as_secs_f64());
        }
    }

    pub(crate) fn refused(&self, method: &'static str, code: Code) {
        self.refusals.get_or_create(&[("code", code.to_string())]).inc();
        if method == ENROLL {
            self.join_refusals.get_or_create(&[("why", facts::join_refusal(code))]).inc();
        }
    }
}

/// A method as a label: its path without the first slash.
pub(crate) fn label_of(path: &'static str) -> &'static str {
    path.trim_start_matches('/')
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

//! What is measured of the agent. The table is what is served; a test holds the two against each other.
//!
//! What counts is counted after its commit. Contact is a figure here and never a part of readiness.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_agent_core::Work;
use holdfast_agent_core::work::Phase;
use holdfast_common::outcome::StepEnd;
use holdfast_common::report::DeclineReason;
use holdfast_net::ops::Form;
use holdfast_net::ops::process::{self, Process};
use holdfast_net::ops::table::{self, In, Kind, Row};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

const PHASES: &[&str] = &["ready", "asked", "starting", "running", "over"];
const ENDS: &[&str] = &["applied", "failed", "stopped", "unknown", "not_started"];
const REASONS: &[&str] =
    &["busy", "conflict", "unknown_target", "fence_regression", "host_policy", "draining", "no_room"];
const PLACES: &[&str] = &["offer", "resource"];

const BUILD: &str = "holdfast_build_info";
const CONNECTED: &str = "holdfast_agent_connected";
const SINCE_CONTACT: &str = "holdfast_agent_since_contact_seconds";
const RECONNECTS: &str = "holdfast_agent_reconnects_total";
const OUTBOX: &str = "holdfast_agent_outbox_reports";
const ATTEMPTS: &str = "holdfast_agent_attempts";
const COMMIT: &str = "holdfast_agent_journal_commit_seconds";
const STEPS: &str = "holdfast_agent_steps_total";
const DECLINED: &str = "holdfast_agent_declined_offers_total";
const STALE: &str = "holdfast_stale_fence_rejections_total";
const WAITING: &str = "holdfast_agent_waiting_messages";
const BUFFERED: &str = "holdfast_agent_log_buffered_bytes";
const CUT: &str = "holdfast_agent_log_cut_bytes_total";

/// The agent's own rows.
const OWN: &[Row] = &[
    Row::new(BUILD, Kind::Info, In::Number, "The build").by(&[("version", &[])]),
    Row::new(CONNECTED, Kind::Gauge, In::Number, "1 while there is a session with the coordinator, else 0"),
    Row::new(
        SINCE_CONTACT,
        Kind::Gauge,
        In::Seconds,
        "How long ago the coordinator was last heard; since the start if it never was",
    ),
    Row::new(RECONNECTS, Kind::Counter, In::Number, "Sessions that began after the first one"),
    Row::new(OUTBOX, Kind::Gauge, In::Number, "Reports that the coordinator has not answered"),
    Row::new(ATTEMPTS, Kind::Gauge, In::Number, "Attempts in the journal, by where the agent is with them")
        .by(&[("phase", PHASES)]),
    Row::new(COMMIT, Kind::Histogram, In::Seconds, "How long a commit of the journal took, with its sync"),
    Row::new(
        STEPS,
        Kind::Counter,
        In::Number,
        "Steps by the end that was journaled for them; unknown is none of the others",
    )
    .by(&[("end", ENDS)]),
    Row::new(DECLINED, Kind::Counter, In::Number, "Offers that were not taken").by(&[("reason", REASONS)]),
    Row::new(STALE, Kind::Counter, In::Number, "What was refused because a higher fence had been seen")
        .by(&[("where", PLACES)]),
    Row::new(WAITING, Kind::Gauge, In::Number, "Messages of the coordinator that wait for the work loop"),
    Row::new(BUFFERED, Kind::Gauge, In::Bytes, "Outputs of steps that the coordinator does not have yet"),
    Row::new(CUT, Kind::Counter, In::Bytes, "Outputs of steps that were too large to be kept"),
];

/// Everything that an agent serves.
#[must_use]
pub fn table() -> Vec<Row> {
    [OWN, process::TABLE].concat()
}

type By = [(&'static str, &'static str); 1];

/// Every metric.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    base: Instant,
    /// Milliseconds from `base` to the last word of the coordinator, plus one; 0 before the first.
    heard: AtomicU64,
    /// Why the coordinator refuses this agent for good.
    refused: Mutex<Option<String>>,
    connected: Gauge,
    since_contact: Gauge<f64, AtomicU64>,
    sessions: AtomicU64,
    reconnects: Counter,
    outbox: Gauge,
    attempts: Family<By, Gauge>,
    commit: Histogram,
    steps: Family<By, Counter>,
    declined: Family<By, Counter>,
    stale: Family<By, Counter>,
    waiting: Gauge,
    buffered: Gauge,
    cut: Counter,
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
            base: Instant::now(),
            heard: AtomicU64::new(0),
            refused: Mutex::default(),
            connected: Gauge::default(),
            since_contact: Gauge::default(),
            sessions: AtomicU64::new(0),
            reconnects: Counter::default(),
            outbox: Gauge::default(),
            attempts: Family::default(),
            commit: Histogram::new(exponential_buckets(0.000_25, 2.0, 14)),
            steps: Family::default(),
            declined: Family::default(),
            stale: Family::default(),
            waiting: Gauge::default(),
            buffered: Gauge::default(),
            cut: Counter::default(),
        };
        for phase in PHASES {
            drop(metrics.attempts.get_or_create(&[("phase", phase)]));
        }
        for (family, label, values) in
            [(&metrics.steps, "end", ENDS), (&metrics.declined, "reason", REASONS), (&metrics.stale, "where", PLACES)]
        {
            for value in values {
                drop(family.get_or_create(&[(label, *value)]));
            }
        }
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        table::register(registry, OWN, BUILD, Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        table::register(registry, OWN, CONNECTED, self.connected.clone());
        table::register(registry, OWN, SINCE_CONTACT, self.since_contact.clone());
        table::register(registry, OWN, RECONNECTS, self.reconnects.clone());
        table::register(registry, OWN, OUTBOX, self.outbox.clone());
        table::register(registry, OWN, ATTEMPTS, self.attempts.clone());
        table::register(registry, OWN, COMMIT, self.commit.clone());
        table::register(registry, OWN, STEPS, self.steps.clone());
        table::register(registry, OWN, DECLINED, self.declined.clone());
        table::register(registry, OWN, STALE, self.stale.clone());
        table::register(registry, OWN, WAITING, self.waiting.clone());
        table::register(registry, OWN, BUFFERED, self.buffered.clone());
        table::register(registry, OWN, CUT, self.cut.clone());
        self
    }

    /// With the figures of the process. Needs a tokio runtime.
    #[must_use]
    pub fn of_process(mut self) -> Self {
        self.registry.register_collector(Box::new(Process::here()));
        self
    }

    /// The text of `/metrics`.
    #[must_use]
    pub fn text(&self, form: Form) -> String {
        self.since_contact.set(self.silence().as_secs_f64());
        table::text(&self.registry, form)
    }

    /// How long ago the coordinator was last heard, or the agent was started.
    #[must_use]
    pub fn silence(&self) -> Duration {
        let heard = self.heard.load(Ordering::Relaxed).saturating_sub(1);
        self.base.elapsed().saturating_sub(Duration::from_millis(heard))
    }

    /// Contact with the coordinator, in words.
    #[must_use]
    pub fn contact(&self) -> String {
        let seconds = self.silence().as_secs();
        match (self.connected.get(), self.heard.load(Ordering::Relaxed)) {
            (0, 0) => format!("no contact since the start {seconds} s ago; work goes on under its lease"),
            (0, _) => format!("no contact for {seconds} s; work goes on under its lease"),
            (_, _) => format!("in contact, last heard {seconds} s ago"),
        }
    }

    /// Why the coordinator refuses this agent, until a person does something about it.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The coordinator refuses this agent, or does not any more.
    pub(crate) fn is_refused(&self, why: Option<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn session_began(&self) {
        self.is_refused(None);
        if self.sessions.fetch_add(1, Ordering::Relaxed) > 0 {
            self.reconnects.inc();
        }
        self.heard();
    }

    pub(crate) fn heard(&self) {
        let millis = u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(millis.saturating_add(1), Ordering::Relaxed);
    }

    /// How the agent stands after a turn.
    pub(crate) fn stands<'a>(&self, connected: bool, outbox: usize, works: impl Iterator<Item = &'a Work>) {
        self.connected.set(connected.into());
        self.outbox.set(i64::try_from(outbox).unwrap_or(i64::MAX));
        let mut counts = [0_i64; PHASES.len()];
        for work in works {
            counts[place(&work.phase)] += 1;
        }
        for (phase, count) in PHASES.iter().zip(counts) {
            self.attempts.get_or_create(&[("phase", phase)]).set(count);
        }
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.commit.observe(took.as_secs_f64());
    }

    /// A step's end is in the journal.
    pub(crate) fn step_ended(&self, end: StepEnd) {
        self.steps.get_or_create(&[("end", word(end))]).inc();
    }

    /// The resource itself refused a step's fence.
    pub(crate) fn refused_by_resource(&self) {
        self.stale.get_or_create(&[("where", "resource")]).inc();
    }

    pub(crate) fn declined(&self, reason: DeclineReason) {
        let word = match reason {
            DeclineReason::Busy => "busy",
            DeclineReason::Conflict => "conflict",
            DeclineReason::UnknownTarget => "unknown_target",
            DeclineReason::FenceRegression => "fence_regression",
            DeclineReason::HostPolicy => "host_policy",
            DeclineReason::Draining => "draining",
            DeclineReason::NoRoom => "no_room",
        };
        self.declined.get_or_create(&[("reason", word)]).inc();
        if reason == DeclineReason::FenceRegression {
            self.stale.get_or_create(&[("where", "offer")]).inc();
        }
    }

    pub(crate) fn waits(&self, messages: usize) {
        self.waiting.set(i64::try_from(messages).unwrap_or(i64::MAX));
    }

    pub(crate) fn buffered(&self, bytes: u64) {
        self.buffered.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(crate) fn cut(&self, bytes: u64) {
        self.cut.inc_by(bytes);
    }
}

fn place(phase: &Phase) -> usize {
    match phase {
        Phase::Ready => 0,
        Phase::Asked { .. } => 1,
        Phase::Starting => 2,
        Phase::Running => 3,
        Phase::Over => 4,
    }
}

fn word(end: StepEnd) -> &'static str {
    match end {
        StepEnd::Applied => "applied",
        StepEnd::Failed { .. } => "failed",
        StepEnd::Stopped { .. } => "stopped",
        StepEnd::Unknown => "unknown",
        StepEnd::NotStarted => "not_started",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_last_word_or_the_start() {
        let mut metrics = Metrics::new();
        metrics.base = Instant::now() - Duration::from_secs(60);
        assert_eq!(metrics.silence().as_secs(), 60);
        assert!(metrics.contact().contains("no contact since the start 60 s ago"));
        metrics.session_began();
        metrics.stands(true, 0, [].into_iter());
        assert!(metrics.silence() < Duration::from_secs(5));
        assert!(metrics.contact().starts_with("in contact"));
        metrics.stands(false, 0, [].into_iter());
        assert!(metrics.contact().starts_with("no contact for"));
        assert!(metrics.text(Form::Prometheus).contains("holdfast_agent_reconnects_total 0\n"));
        metrics.session_began();
        assert!(metrics.text(Form::Prometheus).contains("holdfast_agent_reconnects_total 1\n"));
    }
}

//! How fast one agent may speak.
//!
//! ```text
//!   message ─▶ its cost ─▶ Pace::take ─▶ zero: read on │ a span: read nothing of this agent for so long
//! ```
//!
//! Nothing is dropped and nothing is refused: what the agent says meanwhile fills its own connection's window, and then waits
//! with the agent. The budget is the agent's, not the session's, so that a new session is no new budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::id::AgentName;
use holdfast_proto::v1::ConnectRequest;
use holdfast_proto::v1::connect_request::Message;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prost::Message as _;

/// Bytes of a message that cost as much as a message.
const BYTES: usize = 4096;

/// What a word about something that the store does not know costs beside: it is looked up in the store, and recorded.
pub(super) const STRANGE: u64 = 20;

/// What one agent may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Messages a second, for ever.
    pub per_second: u32,
    /// Messages at once, after a rest.
    pub burst: u32,
}

/// An agent with 64 attempts, each of which asks, begins and ends ten steps a second, says 2,000 messages a second; after an outage it
/// says at most 2,048 reports again at once.
impl Default for Bounds {
    fn default() -> Self {
        Self { per_second: 5_000, burst: 10_000 }
    }
}

impl Bounds {
    /// Of so many messages.
    fn span(self, messages: u64) -> Duration {
        let nanos = u128::from(messages) * 1_000_000_000 / u128::from(self.per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A bucket of tokens, kept as the instant at which it is full again.
#[derive(Clone, Copy, Debug)]
struct Pace {
    bounds: Bounds,
    full_at: Duration,
}

impl Pace {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, full_at: Duration::ZERO }
    }

    /// Takes a message of that cost, which has come already. Answers how long nothing more is to be read. `now` is on any clock that
    /// does not go back.
    fn take(&mut self, now: Duration, cost: u64) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.bounds.span(cost));
        self.full_at.saturating_sub(now).saturating_sub(self.bounds.span(self.bounds.burst.into()))
    }
}

/// What a message costs, in messages: each claim of a heartbeat is decided by itself, and long ones are more to read.
pub(super) fn cost(request: &ConnectRequest) -> u64 {
    let claims = match &request.message {
        Some(Message::Heartbeat(heartbeat)) => heartbeat.claims.len(),
        Some(
            Message::Hello(_)
            | Message::OfferAnswer(_)
            | Message::PermitRequest(_)
            | Message::Report(_)
            | Message::InquiryAnswer(_)
            | Message::Detach(_)
            | Message::WelcomeKept(_)
            | Message::Pong(_),
        )
        | None => 0,
    };
    let cost = 1 + claims + request.encoded_len() / BYTES;
    u64::try_from(cost).unwrap_or(u64::MAX)
}

/// One agent's budgets. Outputs have one of their own: however many small lines a step prints, its agent's words are read.
#[derive(Debug)]
struct Budget {
    words: Mutex<Pace>,
    outputs: Mutex<Pace>,
}

/// What an agent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// In its session.
    Words,
    /// Of what its steps print.
    Outputs,
}

/// What is measured of how agents speak.
#[derive(Clone, Debug)]
pub struct Measures {
    /// How often an agent was not read on at once.
    pub held_back: Counter,
    /// How late heartbeats came, in seconds.
    pub lateness: Histogram,
}

/// The budgets of all agents. As many as there are names with a certificate.
#[derive(Debug)]
pub(super) struct Paces {
    bounds: Bounds,
    since: Instant,
    measures: Measures,
    agents: Mutex<BTreeMap<AgentName, Arc<Budget>>>,
}

impl Paces {
    pub(super) fn new(bounds: Bounds, measures: Measures) -> Arc<Self> {
        Arc::new(Self { bounds, since: Instant::now(), measures, agents: Mutex::default() })
    }

    /// The meter of one stream of an agent.
    pub(super) fn of(self: &Arc<Self>, agent: &AgentName, stream: Stream) -> Meter {
        let fresh = || {
            let pace = Pace::new(self.bounds);
            Arc::new(Budget { words: Mutex::new(pace), outputs: Mutex::new(pace) })
        };
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = Arc::clone(agents.entry(agent.clone()).or_insert_with(fresh));
        Meter { paces: Arc::clone(self), agent: agent.clone(), budget, stream, told: false, last_beat: None }
    }
}

/// Counts what comes on one stream.
#[derive(Debug)]
pub(super) struct Meter {
    paces: Arc<Paces>,
    agent: AgentName,
    budget: Arc<Budget>,
    stream: Stream,
    told: bool,
    last_beat: Option<Instant>,
}

impl Meter {
    /// A heartbeat has come, of an agent that was told to send one so often.
    pub(super) fn beat(&mut self, interval: Duration) {
        let now = Instant::now();
        if let Some(last) = self.last_beat.replace(now) {
            let late = now.duration_since(last).saturating_sub(interval);
            self.paces.measures.lateness.observe(late.as_secs_f64());
        }
    }

    /// A message of that cost has come. Some span: for so long nothing more of this stream is to be read.
    #[must_use]
    pub(super) fn take(&mut self, cost: u64) -> Option<Duration> {
        let pace = match self.stream {
            Stream::Words => &self.budget.words,
            Stream::Outputs => &self.budget.outputs,
        };
        let now = self.paces.since.elapsed();
        let wait = pace.lock().unwrap_or_else(PoisonError::into_inner).take(now, cost);
        if wait.is_zero() {
            return None;
        }
        self.paces.measures.held_back.inc();
        if !std::mem::replace(&mut self.told, true) {
            let (agent, stream) = (&self.agent, self.stream);
            tracing::warn!(%agent, ?stream, "an agent says more than it may: from now on it is read as slowly as it may speak");
        }
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_proto::v1::{Claim, Heartbeat, Report, StepEnded, report};

    use super::*;

    const BOUNDS: Bounds = Bounds { per_second: 100, burst: 50 };

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_burst_is_free_and_what_follows_is_read_at_its_pace() {
        let mut pace = Pace::new(BOUNDS);
        assert!((0..50).all(|_| pace.take(at(0), 1).is_zero()));
        assert_eq!(pace.take(at(0), 1), at(10));
        assert_eq!(pace.take(at(0), 1), at(20));
        // Whoever waits as told is read a hundred times a second.
        let mut now = at(20);
        for _ in 0..100 {
            now += pace.take(now, 1);
        }
        assert_eq!(now, at(1_020));
    }

    #[test]
    fn a_rest_fills_the_bucket_and_no_more_than_the_bucket() {
        let mut pace = Pace::new(BOUNDS);
        assert_eq!(pace.take(at(0), 150), at(1_000));
        assert_eq!(pace.take(at(1_000), 1), at(10));
        assert!(pace.take(at(1_510), 49).is_zero());
        assert!((0..50).all(|_| pace.take(at(3_600_000), 1).is_zero()));
        assert!(!pace.take(at(3_600_000), 1).is_zero());
    }

    #[test]
    fn a_clock_that_stands_still_and_a_bound_of_zero_stop_nobody_for_ever() {
        let mut pace = Pace::new(Bounds { per_second: 0, burst: 0 });
        assert_eq!(pace.take(at(5), 1), at(1_000));
        assert!(pace.take(at(5), u64::MAX).as_secs() > 1);
    }

    #[test]
    fn claims_and_bytes_cost_what_they_are_to_read() {
        let heartbeat = |claims| Heartbeat { number: 1, claims: vec![Claim::default(); claims], no_room: None };
        let said = |message| cost(&ConnectRequest { message: Some(message) });
        assert_eq!(said(Message::Heartbeat(heartbeat(0))), 1);
        assert_eq!(said(Message::Heartbeat(heartbeat(64))), 65);
        let detail = "x".repeat(3 * BYTES);
        let body = Some(report::Body::StepEnded(StepEnded { detail, ..StepEnded::default() }));
        assert_eq!(said(Message::Report(Report { body, ..Report::default() })), 4);
    }

    #[test]
    fn the_budget_is_the_agents_and_outputs_have_their_own() {
        let measures = Measures { held_back: Counter::default(), lateness: Histogram::new([1.0]) };
        let paces = Paces::new(Bounds { per_second: 1, burst: 2 }, measures);
        let [one, other] = ["web-01", "web-02"].map(|name| AgentName::new(name).unwrap());
        assert_eq!(paces.of(&one, Stream::Words).take(2), None);
        assert!(paces.of(&one, Stream::Words).take(1).is_some(), "a new session is no new budget");
        assert_eq!(paces.of(&one, Stream::Outputs).take(2), None);
        assert_eq!(paces.of(&other, Stream::Words).take(2), None);
        assert_eq!(paces.measures.held_back.get(), 1);
    }
}

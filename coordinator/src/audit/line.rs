//! One line.

use std::collections::BTreeMap;

use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::rows::{ActRow, RawEvent};

/// The format of these lines.
pub const FORMAT: &str = "holdfast/audit/1";

/// One line of an audit file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "line", deny_unknown_fields)]
pub enum Line {
    /// The first one.
    Head(Head),
    /// One event.
    Event {
        /// The target.
        target: String,
        /// Its place on it.
        sequence: u64,
        /// Microseconds since 1970, as hashed.
        at: i64,
        /// The same, for people.
        time: String,
        /// The deployment that it is about.
        deployment: Option<String>,
        /// JSON, as hashed.
        body: String,
        /// The hash of the event before.
        before: String,
        /// Its own.
        hash: String,
    },
    /// The evidence of the event before this line.
    Evidence {
        /// The target.
        target: String,
        /// The event.
        event: u64,
        /// The deployment.
        deployment: String,
        /// As filed.
        evidence: Value,
    },
    /// The decision of the event before this line.
    Decision {
        /// The target.
        target: String,
        /// The event.
        event: u64,
        /// The deployment.
        deployment: String,
        /// As recorded.
        decision: Value,
    },
    /// Something that is about no target.
    Act {
        /// Its place.
        sequence: u64,
        /// Microseconds since 1970, as hashed.
        at: i64,
        /// The same, for people.
        time: String,
        /// Who did it.
        by: String,
        /// What.
        kind: String,
        /// To what.
        about: String,
        /// How.
        detail: String,
        /// The hash of the act before.
        before: String,
        /// Its own.
        hash: String,
    },
    /// Something that was refused.
    Refusal {
        /// When.
        time: String,
        /// Who asked.
        by: String,
        /// For what.
        what: String,
        /// Why not.
        why: String,
    },
    /// The last one.
    End {
        /// Lines before this one.
        lines: u64,
        /// Of those lines, each with its line end.
        sha256: String,
        /// The last event of each target.
        heads: BTreeMap<String, Tip>,
        /// The last act, where there is one.
        acts: Option<Tip>,
    },
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// [`FORMAT`].
    pub format: String,
    /// Which store it is of.
    pub store: String,
    /// Its epoch.
    pub epoch: u32,
    /// When it was exported.
    pub exported_at: String,
    /// By whom.
    pub exported_by: String,
    /// Whether it is of the whole store: every target, and what is about none.
    pub whole: bool,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tip {
    /// The place of the last one.
    pub sequence: u64,
    /// Its hash.
    pub hash: String,
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("plain data serializes")
}

/// An instant, for people, to the microsecond.
pub(super) fn time(at: i64) -> String {
    jiff::Timestamp::from_microsecond(at).map_or_else(|_| format!("{at} us after 1970"), |at| format!("{at:.6}"))
}

impl Line {
    /// The event's own line, and the one that tells its evidence or decision.
    pub(super) fn of_event(row: RawEvent) -> Vec<Line> {
        let sequence = u64::try_from(row.sequence).unwrap_or_default();
        let told = Self::told(&row.target, sequence, &row.body);
        let RawEvent { target, deployment, at, body, before_hash: before, hash, .. } = row;
        let event = Line::Event { target, sequence, at, time: time(at), deployment, body, before, hash };
        [Some(event), told].into_iter().flatten().collect()
    }

    /// What an event tells beside itself.
    pub(super) fn told(target: &str, event: u64, body: &str) -> Option<Line> {
        let target = target.to_owned();
        #[allow(clippy::wildcard_enum_match_arm, reason = "these two have lines of their own; nothing else does")]
        match serde_json::from_str::<Event>(body).ok()? {
            Event::EvidenceFiled { deployment, evidence } => {
                let (deployment, evidence) = (deployment.to_string(), json(&evidence));
                Some(Line::Evidence { target, event, deployment, evidence })
            }
            Event::Decided { deployment, record } => {
                let (deployment, decision) = (deployment.to_string(), json(&record));
                Some(Line::Decision { target, event, deployment, decision })
            }
            _ => None,
        }
    }

    pub(super) fn of_act(act: ActRow) -> Line {
        let ActRow { sequence, at: Wall(at), by, kind, about, detail, before_hash: before, hash } = act;
        Line::Act { sequence, at, time: time(at), by, kind, about, detail, before, hash }
    }

    /// As it stands in the file, without a line end.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data serializes")
    }
}

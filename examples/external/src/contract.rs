//! What is asked and answered: `docs/external-adapters.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version that this program speaks.
pub(crate) const PROTOCOL: &str = "holdfast.adapter/1";

/// A request. Keys that this program has no use for are left out here.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) protocol: String,
    pub(crate) call: Call,
    pub(crate) target: String,
    pub(crate) resource: String,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) operation: Operation,
    /// Decimal.
    pub(crate) fence: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    Describe,
    Examine,
    Apply,
    Inspect,
    Raise,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) revision: Option<String>,
    pub(crate) expected_revision: Option<String>,
    pub(crate) settings: Option<BTreeMap<String, String>>,
}

/// An answer.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    protocol: &'static str,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub(crate) enum Outcome {
    Described { capability: Capability },
    Fit,
    Applied,
    AppliedBefore,
    Read { reading: Reading },
    Raised,
    Refused { reason: Reason, detail: String },
    Failed { detail: String },
}

#[derive(Debug, Serialize)]
pub(crate) struct Capability {
    pub(crate) inspect: &'static str,
    pub(crate) enforce: &'static str,
    pub(crate) outlives: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reading {
    pub(crate) resource_identity: String,
    pub(crate) state: State,
    pub(crate) revision: Option<String>,
    pub(crate) highest_fence: Option<String>,
    pub(crate) detail: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Applied,
    NotApplied,
    Unknown,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Fence,
    Revision,
    Content,
    Resource,
}

impl Answer {
    pub(crate) fn failed(detail: String) -> Self {
        Outcome::Failed { detail }.into()
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self { protocol: PROTOCOL, outcome }
    }
}

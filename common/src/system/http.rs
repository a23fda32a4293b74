//! A service behind a deployment API: what the API is declared to do, and what is sent to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::adapter::{Capability, Enforce, Inspect};
use crate::time::Millis;

/// A service behind an API. In each path `{operation}` stands for the operation id, escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// `http://` or `https://`, without credentials. The paths come behind it.
    pub url: String,
    /// Where a change is sent to, by `method`.
    pub submit: String,
    /// `POST` or `PUT`.
    pub method: String,
    /// Where an operation is read, with its gap; `None`: the API does not tell operations apart.
    pub status: Option<String>,
    /// Where the resource is read: identity, revision, highest fence.
    pub resource: Option<String>,
    /// Where the fence is raised by a POST; `None`: nowhere.
    pub fence: Option<String>,
    /// What the API refuses in the same step as the change.
    pub enforce: Enforce,
    /// The headers that it reads.
    pub headers: Headers,
    /// Where its answers tell what.
    pub pointers: Pointers,
    /// What its words for a state mean.
    pub words: Words,
    /// Statuses that are worth another try: the API says that nothing was begun.
    pub transient: Vec<u16>,
    /// From one look at the status to the next.
    pub poll: Millis,
}

/// Names of headers. Without one for the key no change is ever sent twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headers {
    /// Takes the operation id: the API does the same operation once.
    pub idempotency: Option<String>,
    /// Takes the fence, in decimal.
    pub fence: Option<String>,
    /// Takes the expected revision.
    pub expected: Option<String>,
}

/// JSON pointers into answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointers {
    /// Of a status: the state.
    pub state: String,
    /// Of the resource: its revision.
    pub revision: String,
    /// Of the resource: what tells it from every other.
    pub identity: String,
    /// Of the resource: the highest fence that it has seen.
    pub fence: String,
    /// Of the resource: who it belongs to, `target/resource`; `None`: it does not tell.
    pub owner: Option<String>,
}

/// Words that a status uses for a state. Any other word means that nobody can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The whole effect is there.
    pub applied: Vec<String>,
    /// It is at work.
    pub applying: Vec<String>,
    /// Nothing of it is there, and nothing will be.
    pub not_applied: Vec<String>,
    /// A part of it is there.
    pub partial: Vec<String>,
}

impl Http {
    pub(super) fn capability(&self) -> Capability {
        let inspect = match (&self.status, &self.resource) {
            (Some(_), _) => Inspect::Operation,
            (None, Some(_)) => Inspect::Revision,
            (None, None) => Inspect::None,
        };
        Capability { inspect, enforce: self.enforce, outlives: true }
    }
}

/// A change that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The body, as it is sent.
    pub body: String,
    /// Its type.
    pub content_type: String,
    /// Headers of its own.
    pub headers: BTreeMap<String, String>,
}

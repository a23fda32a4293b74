//! One difference, named.

use std::fmt;

use serde::Serialize;

/// What kind of difference it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An event is not what was hashed, or does not follow the one before it.
    Chain,
    /// An event that was there is not there any more.
    Missing,
    /// Events stand in another order than they were committed in.
    Order,
    /// An event can't be read, or can't follow on the state before it.
    Event,
    /// An event breaks an invariant.
    Invariant,
    /// A row is not what the events lead to.
    Row,
    /// A snapshot is not what the events lead to.
    Snapshot,
    /// The chain of acts that are about no target is broken.
    Act,
}

/// One difference between what is stored and what follows from the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind it is.
    pub kind: Kind,
    /// The target, as it stands in the row; empty for what is about all of them.
    pub target: String,
    /// The event, where it is about one, by its place on the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The row, like `deployments #3`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub row: String,
    /// What is stored, as far as one value can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// What follows from the events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<String>,
    /// In one sentence.
    pub what: String,
}

/// All that was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether nothing was found.
    pub sound: bool,
    /// Targets that were looked at.
    pub targets: u64,
    /// Events that were followed.
    pub events: u64,
    /// Acts about no target that were followed.
    pub acts: u64,
    /// Every difference, by target.
    pub findings: Vec<Finding>,
}

impl Finding {
    pub(crate) fn new(kind: Kind, target: &str, what: impl Into<String>) -> Self {
        let (target, what) = (target.to_owned(), what.into());
        Self { kind, target, event: None, row: String::new(), stored: None, derived: None, what }
    }

    pub(crate) fn at(self, event: u64) -> Self {
        Self { event: Some(event), ..self }
    }

    pub(crate) fn of_row(self, row: impl Into<String>) -> Self {
        Self { row: row.into(), ..self }
    }

    pub(crate) fn values(self, stored: Option<String>, derived: Option<String>) -> Self {
        Self { stored: stored.map(short), derived: derived.map(short), ..self }
    }
}

/// A value as it fits a line. What is cut is marked.
fn short(value: String) -> String {
    const MOST: usize = 160;
    match value.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}…", &value[..cut]),
        None => value,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.event.map(|event| format!("event {event}"));
        let row = (!self.row.is_empty()).then(|| self.row.clone());
        let target = (!self.target.is_empty()).then(|| self.target.clone());
        let place: Vec<String> = [target, row, event].into_iter().flatten().collect();
        if !place.is_empty() {
            write!(f, "{}: ", place.join(", "))?;
        }
        f.write_str(&self.what)?;
        match (&self.stored, &self.derived) {
            (Some(stored), Some(derived)) => write!(f, ": stored {stored}, the events lead to {derived}"),
            (Some(stored), None) => write!(f, ": stored {stored}"),
            (None, Some(derived)) => write!(f, ": the events lead to {derived}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_that_names_place_and_values() {
        let found = Finding::new(Kind::Row, "shop@prod", "another value")
            .of_row("deployments #3, state")
            .values(Some("succeeded".to_owned()), Some("failed".to_owned()));
        assert_eq!(
            found.to_string(),
            "shop@prod, deployments #3, state: another value: stored succeeded, the events lead to failed"
        );
        assert_eq!(Finding::new(Kind::Chain, "a", "broken").at(7).to_string(), "a, event 7: broken");
        let long = Finding::new(Kind::Row, "", "long").values(Some("é".repeat(500)), None).to_string();
        assert!(long.ends_with('…') && long.chars().count() < 200);
    }
}

//! The rows that follow from a target's events, and how rows are compared.

use std::collections::BTreeMap;

use holdfast_common::fence::Fence;
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::history::History;
use holdfast_coordinator_core::state::{Deployment, Evidence};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Finding, Kind};
use crate::store::resource::Place;

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text.
    Text,
    /// As the JSON of a target's declaration.
    Spec,
    /// As the JSON of a deployment's record.
    Record,
    /// As the JSON of a piece of evidence.
    Evidence,
}

/// A table whose rows follow from events.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// What finds a target's rows, and what names each of them among these.
    pub(crate) of_target: &'static str,
    pub(crate) key: &'static str,
    pub(crate) columns: &'static [(&'static str, Form)],
}

/// A value as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(Option<String>),
    Json(Value),
    /// Stored in no form that it could have. That is a finding of its own.
    Unreadable,
}

/// By column, in the table's order.
pub(crate) type Row = Vec<Cell>;
/// By the row's name.
pub(crate) type Rows = BTreeMap<String, Row>;

const TEXT: Form = Form::Text;

/// Every table that is derived from events, but the snapshots.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "targets",
        of_target: "name = ?1",
        key: "''",
        columns: &[
            ("spec", Form::Spec),
            ("declared_by", TEXT),
            ("declared_at", TEXT),
            ("sequence", TEXT),
            ("last_hash", TEXT),
            ("waiting", TEXT),
            ("busy", TEXT),
        ],
    },
    Table { name: "resources", of_target: "target = ?1", key: "name", columns: &[("place", TEXT), ("selector", TEXT)] },
    Table {
        name: "deployments",
        of_target: "target = ?1",
        key: "'#' || number",
        columns: &[
            ("id", TEXT),
            ("request", TEXT),
            ("state", TEXT),
            ("submitted_by", TEXT),
            ("submitted_at", TEXT),
            ("ended_at", TEXT),
            ("last_evidence", TEXT),
            ("record", Form::Record),
        ],
    },
    Table {
        name: "attempts",
        of_target: "target = ?1 OR deployment IN (SELECT id FROM deployments WHERE target = ?1)",
        key: "id",
        columns: &[
            ("deployment", TEXT),
            ("target", TEXT),
            ("number", TEXT),
            ("agent", TEXT),
            ("incarnation", TEXT),
            ("fence", TEXT),
            ("state", TEXT),
        ],
    },
    Table {
        name: "reservations",
        of_target: "target = ?1",
        key: "''",
        columns: &[("deployment", TEXT), ("since", TEXT)],
    },
    Table {
        name: "open_permits",
        of_target: "target = ?1",
        key: "''",
        columns: &[("attempt", TEXT), ("step", TEXT), ("since", TEXT)],
    },
    Table { name: "fences", of_target: "target = ?1", key: "''", columns: &[("fence", TEXT)] },
    Table {
        name: "evidence",
        of_target: "deployment IN (SELECT id FROM deployments WHERE target = ?1)",
        key: "deployment || ' ' || sequence",
        columns: &[("id", TEXT), ("kind", TEXT), ("received_at", TEXT), ("body", Form::Evidence)],
    },
    Table {
        name: "rollbacks",
        of_target: "rollback IN (SELECT id FROM deployments WHERE target = ?1)",
        key: "undone || ' ' || rollback",
        columns: &[("rollback", TEXT)],
    },
];

/// A stored text in the form that it is compared in. What was written by an older version reads like what is written now.
pub(crate) fn normal(form: Form, text: Option<String>) -> Result<Cell, serde_json::Error> {
    fn read<T: DeserializeOwned + Serialize>(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str::<T>(text).and_then(|value| serde_json::to_value(&value))
    }
    let text = match (form, text) {
        (Form::Text, text) => return Ok(Cell::Text(text)),
        (Form::Spec | Form::Record | Form::Evidence, text) => text.unwrap_or_default(),
    };
    match form {
        Form::Text => Ok(Cell::Text(Some(text))),
        Form::Spec => read::<TargetSpec>(&text).map(Cell::Json),
        Form::Record => {
            let mut deployment: Deployment = serde_json::from_str(&text)?;
            still(&mut deployment);
            serde_json::to_value(&deployment).map(Cell::Json)
        }
        Form::Evidence => read::<Evidence>(&text).map(Cell::Json),
    }
}

/// Signs of life between two written renewals are in memory, and in whatever is written meanwhile: no event tells them.
fn still(deployment: &mut Deployment) {
    for attempt in &mut deployment.attempts {
        if let Some(lease) = &mut attempt.lease {
            lease.heard = holdfast_common::time::Serving(0);
        }
    }
}

/// Every row of the table as the events lead to it. `hash` is that of the last event.
pub(super) fn derived(table: &str, history: &History, state: &TargetState, hash: &str) -> Rows {
    match table {
        "targets" => targets(history, state, hash),
        "resources" => resources(state),
        "deployments" => history.deployments().into_iter().map(deployment).collect(),
        "attempts" => attempts(history, state),
        "reservations" => {
            let row = history.reserved.map(|(holder, since)| vec![text(holder), text(since.0)]);
            row.map(|row| (String::new(), row)).into_iter().collect()
        }
        "open_permits" => {
            let row = history.open_permit().map(|it| vec![text(it.attempt), text(&it.step), text(it.since.0)]);
            row.map(|row| (String::new(), row)).into_iter().collect()
        }
        "fences" => {
            let row = state.fence.map(Fence::as_u64).map(|fence| vec![text(fence)]);
            row.map(|row| (String::new(), row)).into_iter().collect()
        }
        "evidence" => evidence(history),
        "rollbacks" => history.deployments().into_iter().flat_map(rollbacks).collect(),
        other => unreachable!("no table {other} is derived"),
    }
}

fn text(value: impl ToString) -> Cell {
    Cell::Text(Some(value.to_string()))
}

fn json(value: &impl Serialize) -> Cell {
    Cell::Json(serde_json::to_value(value).expect("plain data serializes"))
}

/// An enum as rows have it: one word, or `declined:busy`.
fn word(value: &impl Serialize) -> Cell {
    match serde_json::to_value(value).expect("plain data serializes") {
        Value::String(word) => text(word),
        Value::Object(map) => {
            let parts = map.iter().map(|(name, reason)| format!("{name}:{}", reason.as_str().unwrap_or_default()));
            text(parts.collect::<String>())
        }
        other => text(other),
    }
}

fn targets(history: &History, state: &TargetState, hash: &str) -> Rows {
    let busy = state.current.is_some() || !state.queue.is_empty() || state.hold.is_some();
    let row = history.declared.as_ref().map(|declared| {
        vec![
            json(&declared.spec),
            text(&declared.by),
            text(declared.at.0),
            text(state.sequence.0),
            text(hash),
            text(state.queue.len()),
            text(u8::from(busy)),
        ]
    });
    row.map(|row| (String::new(), row)).into_iter().collect()
}

fn resources(state: &TargetState) -> Rows {
    let row = |resource| {
        let place = Place::of(&state.spec, resource)?;
        let labels = |labels| serde_json::to_string(labels).expect("plain data serializes");
        let selector = place.selector.as_ref().map_or_else(String::new, labels);
        Some((resource.name.to_string(), vec![text(place.key), text(selector)]))
    };
    state.spec.resources.iter().filter_map(row).collect()
}

fn deployment(deployment: &Deployment) -> (String, Row) {
    let mut record = deployment.clone();
    still(&mut record);
    let row = vec![
        text(deployment.id),
        text(deployment.request),
        word(&deployment.state),
        text(&deployment.submitted_by),
        text(deployment.submitted_at.0),
        Cell::Text(deployment.ended.as_ref().map(|ended| ended.at.0.to_string())),
        text(deployment.newest_evidence().0),
        json(&record),
    ];
    (format!("#{}", deployment.number), row)
}

fn attempts(history: &History, state: &TargetState) -> Rows {
    let all = history.deployments().into_iter().flat_map(|of| of.attempts.iter().map(move |attempt| (of, attempt)));
    let row = |(of, attempt): (&Deployment, &holdfast_coordinator_core::state::Attempt)| {
        let row = vec![
            text(of.id),
            text(&state.spec.name),
            text(attempt.number),
            text(&attempt.agent),
            text(attempt.incarnation),
            text(attempt.fence.as_u64()),
            word(&attempt.state),
        ];
        (attempt.id.to_string(), row)
    };
    all.map(row).collect()
}

fn evidence(history: &History) -> Rows {
    let row = |(deployment, evidence): &(holdfast_common::id::DeploymentId, Evidence)| {
        let body = serde_json::to_value(&evidence.body).expect("plain data serializes");
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let row = vec![text(evidence.id), text(kind), text(evidence.received_at.0), json(evidence)];
        (format!("{deployment} {}", evidence.sequence.0), row)
    };
    history.evidence.iter().map(row).collect()
}

fn rollbacks(deployment: &Deployment) -> Vec<(String, Row)> {
    let undone = deployment.kind.rollback().into_iter().flat_map(|of| &of.undoes);
    undone.map(|undone| (format!("{} {}", undone.id, deployment.id), vec![text(deployment.id)])).collect()
}

/// Every difference between the rows of one table.
pub(super) fn compare(target: &str, table: &Table, stored: &Rows, derived: &Rows) -> Vec<Finding> {
    let mut found = Vec::new();
    let place = |key: &str| [table.name, key].join(" ").trim_end().to_owned();
    for key in derived.keys().filter(|key| !stored.contains_key(*key)) {
        found.push(
            Finding::new(Kind::Row, target, "there is no such row, and the events lead to one").of_row(place(key)),
        );
    }
    for (key, row) in stored {
        let Some(expected) = derived.get(key) else {
            found.push(Finding::new(Kind::Row, target, "no event led to this row").of_row(place(key)));
            continue;
        };
        for ((column, _), (is, should)) in table.columns.iter().zip(row.iter().zip(expected)) {
            found.extend(cells(is, should).into_iter().map(|(at, is, should)| {
                Finding::new(Kind::Row, target, "another value")
                    .of_row(format!("{}, {column}{at}", place(key)))
                    .values(Some(is), Some(should))
            }));
        }
    }
    found
}

/// Where two cells differ, below the cell, and both values.
fn cells(is: &Cell, should: &Cell) -> Vec<(String, String, String)> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    match (is, should) {
        (Cell::Text(is), Cell::Text(should)) if is == should => Vec::new(),
        (Cell::Text(is), Cell::Text(should)) => vec![(String::new(), shown(is), shown(should))],
        (Cell::Json(is), Cell::Json(should)) => {
            let mut all = Vec::new();
            differences("", Some(is), Some(should), &mut all);
            all
        }
        (Cell::Unreadable, _) | (_, Cell::Unreadable) => Vec::new(),
        (Cell::Text(_), Cell::Json(_)) | (Cell::Json(_), Cell::Text(_)) => {
            vec![(String::new(), "another form".to_owned(), "what the table holds".to_owned())]
        }
    }
}

/// Most differences that are named in one value.
const NAMED: usize = 8;

fn differences(at: &str, is: Option<&Value>, should: Option<&Value>, all: &mut Vec<(String, String, String)>) {
    if is == should || all.len() >= NAMED {
        return;
    }
    match (is, should) {
        (Some(Value::Object(is)), Some(Value::Object(should))) => {
            let keys: std::collections::BTreeSet<&String> = is.keys().chain(should.keys()).collect();
            keys.into_iter().for_each(|key| differences(&format!("{at}/{key}"), is.get(key), should.get(key), all));
        }
        (Some(Value::Array(is)), Some(Value::Array(should))) => {
            let longest = is.len().max(should.len());
            (0..longest).for_each(|index| differences(&format!("{at}/{index}"), is.get(index), should.get(index), all));
        }
        (is, should) => {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            all.push((at.to_owned(), shown(is), shown(should)));
        }
    }
}

/// Where a snapshot differs from the state that the events lead to: the first place.
pub(super) fn snapshot(stored: &TargetState, derived: &TargetState) -> Option<(String, String, String)> {
    cells(&json(stored), &json(derived)).into_iter().next()
}

/// A value of any type, as text.
pub(crate) fn as_text(value: rusqlite::types::ValueRef<'_>) -> Option<String> {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Some(format!("{} bytes", bytes.len())),
    }
}

//! Appends events and brings the rows that follow from them up to date.
//!
//! The walls (reservation, permit, fence) are moved by the events themselves and not by the state that the core made
//! of them: a wrong state can't take them down.

use std::collections::BTreeSet;

use holdfast_common::id::{AttemptId, DeploymentId};
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::state::{Attempt, Deployment, DeploymentState, Evidence, InquiryKind};
use rusqlite::{Connection, Params, params};

use super::look_up::one;
use super::{convert, failed};
use crate::store::chain::{GENESIS, Link};
use crate::store::resource::Place;
use crate::store::{AnsweredReport, Appended, Error, GlobalOrder, Write};

/// How many snapshots of a target are kept.
const SNAPSHOTS_KEPT: u64 = 2;

pub(super) fn write(connection: &Connection, write: &Write<'_>) -> Result<Appended, Error> {
    let mut hash = check_version(connection, write)?;
    let bodies: Vec<Body> = write.events.iter().map(|recorded| Body::new(write.after, recorded, &mut hash)).collect();
    put_target(connection, write, &hash)?;
    let newest = append(connection, write, &bodies)?;
    for id in touched(write) {
        put_deployment(connection, write, id)?;
    }
    for recorded in write.events {
        follow(connection, write.after, recorded)?;
    }
    close_permit(connection, write.after)?;
    if let Some(report) = &write.report {
        remember(connection, report)?;
    }
    if let Some(state) = write.snapshot {
        put_snapshot(connection, state)?;
    }
    Ok(Appended { newest, hashes: bodies.into_iter().map(|body| body.hash).collect() })
}

fn execute(connection: &Connection, doing: &'static str, sql: &str, values: impl Params) -> Result<usize, Error> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(failed(doing))
}

/// The target is where the decision saw it, and the events follow from there. Answers the last hash.
fn check_version(connection: &Connection, write: &Write<'_>) -> Result<String, Error> {
    let target = &write.after.spec.name;
    let sql = "SELECT sequence, last_hash FROM targets WHERE name = ?1";
    let row = one(connection, "read a target's version", sql, [target.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let (found, hash) = row.unwrap_or_else(|| (0, GENESIS.to_owned()));
    let found = convert::unsigned("a target's sequence", found)?;
    let expected = write.before.map_or(0, |state| state.sequence.0);
    if found != expected {
        return Err(Error::Moved { target: target.clone(), expected, found });
    }
    let in_order = write.events.iter().zip(expected + 1..).all(|(recorded, next)| recorded.sequence.0 == next);
    let to_the_end = write.after.sequence.0 == expected + write.events.len() as u64;
    if in_order && to_the_end && !write.events.is_empty() {
        return Ok(hash);
    }
    Err(Error::Wall { rule: "events follow one another".to_owned() })
}

/// An event as it stands in its row.
struct Body {
    deployment: Option<String>,
    text: String,
    before: String,
    hash: String,
}

impl Body {
    fn new(state: &TargetState, recorded: &Recorded, last: &mut String) -> Self {
        let deployment = recorded.deployment.map(|id| id.to_string());
        let text = convert::json(&recorded.event);
        let hash = Link {
            before: last,
            target: state.spec.name.as_str(),
            sequence: recorded.sequence.0,
            at: recorded.at.0,
            deployment: deployment.as_deref(),
            body: &text,
        }
        .hash();
        let before = std::mem::replace(last, hash.clone());
        Self { deployment, text, before, hash }
    }
}

fn put_target(connection: &Connection, write: &Write<'_>, hash: &str) -> Result<(), Error> {
    let state = write.after;
    let sequence = convert::number("sequence", state.sequence.0)?;
    let waiting = convert::number("waiting", state.queue.len() as u64)?;
    for recorded in write.events {
        if let Event::TargetDeclared { spec, by } = &recorded.event {
            execute(
                connection,
                "write a target",
                "INSERT INTO targets (name, spec, declared_by, declared_at, sequence, last_hash, waiting, busy)
                 VALUES (?1, ?2, ?3, ?4, 0, '', 0, 0)
                 ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, declared_by = excluded.declared_by,
                     declared_at = excluded.declared_at",
                params![state.spec.name.as_str(), convert::json(spec), by.as_str(), recorded.at.0],
            )?;
            put_resources(connection, spec)?;
        }
    }
    execute(
        connection,
        "write a target's version",
        "UPDATE targets SET sequence = ?2, last_hash = ?3, waiting = ?4 WHERE name = ?1",
        params![state.spec.name.as_str(), sequence, hash, waiting],
    )?;
    let busy = is_busy(state);
    if write.before.is_some_and(is_busy) != busy {
        let sql = "UPDATE targets SET busy = ?2 WHERE name = ?1";
        execute(connection, "write that a target is busy", sql, params![state.spec.name.as_str(), busy])?;
    }
    Ok(())
}

fn is_busy(state: &TargetState) -> bool {
    state.current.is_some() || !state.queue.is_empty() || state.hold.is_some()
}

fn put_resources(connection: &Connection, spec: &TargetSpec) -> Result<(), Error> {
    let doing = "write a target's resources";
    execute(connection, doing, "DELETE FROM resources WHERE target = ?1", [spec.name.as_str()])?;
    for resource in &spec.resources {
        let Some(place) = Place::of(spec, resource) else { continue };
        let selector = place.selector.as_ref().map_or_else(String::new, convert::json);
        let sql = "INSERT INTO resources (target, name, place, selector) VALUES (?1, ?2, ?3, ?4)";
        execute(connection, doing, sql, params![spec.name.as_str(), resource.name.as_str(), place.key, selector])?;
    }
    Ok(())
}

fn append(connection: &Connection, write: &Write<'_>, bodies: &[Body]) -> Result<GlobalOrder, Error> {
    let target = write.after.spec.name.as_str();
    for (recorded, body) in write.events.iter().zip(bodies) {
        let sequence = convert::number("sequence", recorded.sequence.0)?;
        execute(
            connection,
            "append an event",
            "INSERT INTO events (target, sequence, deployment, at, body, before_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![target, sequence, body.deployment, recorded.at.0, body.text, body.before, body.hash],
        )?;
    }
    convert::unsigned("the global order", connection.last_insert_rowid()).map(GlobalOrder)
}

/// Those that the events are about, and those behind them that now wait for another one.
fn touched(write: &Write<'_>) -> BTreeSet<DeploymentId> {
    let mut touched: BTreeSet<DeploymentId> = write.events.iter().filter_map(|recorded| recorded.deployment).collect();
    let moves = |recorded: &Recorded| matches!(recorded.event, Event::Reserved { .. } | Event::DeploymentEnded { .. });
    if write.events.iter().any(moves) {
        let moved = |waits: &&Deployment| {
            let before = write.before.and_then(|state| live(state, waits.id));
            before.is_some_and(|before| before.waiting != waits.waiting)
        };
        touched.extend(write.after.queue.iter().filter(moved).map(|waits| waits.id));
    }
    touched
}

fn live(state: &TargetState, id: DeploymentId) -> Option<&Deployment> {
    state.current.iter().chain(&state.queue).find(|deployment| deployment.id == id)
}

fn put_deployment(connection: &Connection, write: &Write<'_>, id: DeploymentId) -> Result<(), Error> {
    let ended = write.ended.iter().find(|deployment| deployment.id == id);
    let Some(deployment) = ended.or_else(|| live(write.after, id)) else {
        return Ok(());
    };
    let before = write.before.and_then(|state| live(state, id));
    match before {
        Some(before) => update_deployment(connection, before.state, deployment)?,
        None => insert_deployment(connection, write, deployment)?,
    }
    for attempt in &deployment.attempts {
        match before.and_then(|before| before.attempts.iter().find(|old| old.id == attempt.id)) {
            None => insert_attempt(connection, write.after, deployment, attempt)?,
            Some(old) if old.state != attempt.state => update_attempt(connection, deployment, attempt)?,
            Some(_unchanged) => {}
        }
    }
    Ok(())
}

fn insert_deployment(connection: &Connection, write: &Write<'_>, deployment: &Deployment) -> Result<(), Error> {
    let Some(content) = write.submission else {
        return Err(Error::Wall { rule: "a submission has the digest of its request".to_owned() });
    };
    execute(
        connection,
        "write a deployment",
        "INSERT INTO deployments (id, target, number, request, request_digest, state, submitted_by, submitted_at,
                                  ended_at, last_evidence, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            deployment.id.to_string(),
            write.after.spec.name.as_str(),
            convert::number("deployment", deployment.number)?,
            deployment.request.to_string(),
            content.to_string(),
            convert::deployment_state(deployment.state),
            deployment.submitted_by.as_str(),
            deployment.submitted_at.0,
            deployment.ended.as_ref().map(|ended| ended.at.0),
            convert::number("evidence", deployment.newest_evidence().0)?,
            convert::json(deployment)
        ],
    )?;
    Ok(())
}

/// A state that stays is not written: its index would be written too. One that is not what the write saw is, so that the
/// schema judges the move.
fn update_deployment(connection: &Connection, was: DeploymentState, deployment: &Deployment) -> Result<(), Error> {
    let doing = "write a deployment";
    let (id, record) = (deployment.id.to_string(), convert::json(deployment));
    let evidence = convert::number("evidence", deployment.newest_evidence().0)?;
    let state = convert::deployment_state(deployment.state);
    if deployment.state == was {
        let sql = "UPDATE deployments SET last_evidence = ?2, record = ?3 WHERE id = ?1 AND state = ?4";
        if execute(connection, doing, sql, params![id, evidence, record, state])? == 1 {
            return Ok(());
        }
    }
    let ended_at = deployment.ended.as_ref().map(|ended| ended.at.0);
    let sql = "UPDATE deployments SET last_evidence = ?2, record = ?3, state = ?4, ended_at = ?5 WHERE id = ?1";
    execute(connection, doing, sql, params![id, evidence, record, state, ended_at])?;
    Ok(())
}

fn insert_attempt(
    connection: &Connection,
    state: &TargetState,
    deployment: &Deployment,
    attempt: &Attempt,
) -> Result<(), Error> {
    execute(
        connection,
        "write an attempt",
        "INSERT INTO attempts (id, deployment, target, number, agent, incarnation, fence, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            attempt.id.to_string(),
            deployment.id.to_string(),
            state.spec.name.as_str(),
            attempt.number,
            attempt.agent.as_str(),
            attempt.incarnation.to_string(),
            convert::number("fence", attempt.fence.as_u64())?,
            convert::attempt_state(attempt.state)
        ],
    )?;
    Ok(())
}

fn update_attempt(connection: &Connection, deployment: &Deployment, attempt: &Attempt) -> Result<(), Error> {
    let rows = execute(
        connection,
        "write an attempt",
        "UPDATE attempts SET state = ?6
         WHERE id = ?1 AND deployment = ?2 AND agent = ?3 AND incarnation = ?4 AND fence = ?5",
        params![
            attempt.id.to_string(),
            deployment.id.to_string(),
            attempt.agent.as_str(),
            attempt.incarnation.to_string(),
            convert::number("fence", attempt.fence.as_u64())?,
            convert::attempt_state(attempt.state)
        ],
    )?;
    let keep = || Error::Wall { rule: "attempts keep their identity".to_owned() };
    if rows == 1 { Ok(()) } else { Err(keep()) }
}

/// What one event moves beside the records.
fn follow(connection: &Connection, state: &TargetState, recorded: &Recorded) -> Result<(), Error> {
    let at = recorded.at.0;
    let target = state.spec.name.as_str();
    match &recorded.event {
        Event::Reserved { deployment, .. } => {
            let sql = "INSERT INTO reservations (target, deployment, since) VALUES (?1, ?2, ?3)";
            execute(connection, "reserve a target", sql, params![target, deployment.to_string(), at])?;
        }
        Event::DeploymentEnded { deployment, .. } => {
            let sql = "DELETE FROM reservations WHERE target = ?1 AND deployment = ?2";
            execute(connection, "free a target", sql, params![target, deployment.to_string()])?;
        }
        Event::PermitGranted { attempt, step, .. } => {
            let sql = "INSERT INTO open_permits (target, attempt, step, since) VALUES (?1, ?2, ?3, ?4)";
            execute(connection, "open a permit", sql, params![target, attempt.to_string(), step.as_str(), at])?;
        }
        Event::LeaseGranted { fence, attempt, readmits, .. } => {
            raise(connection, target, fence.as_u64())?;
            if let Some(earlier) = readmits {
                let sql = "UPDATE open_permits SET attempt = ?2 WHERE target = ?1 AND attempt = ?3";
                let row = params![target, attempt.to_string(), earlier.to_string()];
                execute(connection, "move an open permit", sql, row)?;
            }
        }
        Event::InquiryOpened { inquiry, .. } => match inquiry.kind {
            InquiryKind::FenceOff { fence } => raise(connection, target, fence.as_u64())?,
            InquiryKind::Inspect => {}
        },
        Event::EvidenceFiled { deployment, evidence } => file(connection, state, *deployment, evidence)?,
        Event::Submitted { deployment, kind, .. } => {
            for undone in kind.rollback().iter().flat_map(|of| &of.undoes) {
                let sql = "INSERT INTO rollbacks (undone, rollback) VALUES (?1, ?2)";
                execute(connection, "chain a rollback", sql, params![undone.id.to_string(), deployment.to_string()])?;
            }
        }
        Event::TargetDeclared { .. }
        | Event::Waits { .. }
        | Event::LeaseRenewed { .. }
        | Event::AgentAway { .. }
        | Event::OfferAccepted { .. }
        | Event::OfferDeclined { .. }
        | Event::ReportAccepted { .. }
        | Event::AttemptEnded { .. }
        | Event::CancelRecorded { .. }
        | Event::CancelAfterEnd { .. }
        | Event::DeadlinePassed { .. }
        | Event::DeploymentDeadlinePassed { .. }
        | Event::DeploymentMoved { .. }
        | Event::PolicyScheduled { .. }
        | Event::RetryScheduled { .. }
        | Event::Decided { .. }
        | Event::RevisionRecorded { .. }
        | Event::HoldPlaced { .. }
        | Event::HoldEnded { .. } => {}
    }
    Ok(())
}

fn raise(connection: &Connection, target: &str, fence: u64) -> Result<(), Error> {
    let sql = "INSERT INTO fences (target, fence) VALUES (?1, ?2)
               ON CONFLICT (target) DO UPDATE SET fence = excluded.fence";
    execute(connection, "raise a fence", sql, params![target, convert::number("fence", fence)?])?;
    Ok(())
}

fn file(connection: &Connection, state: &TargetState, id: DeploymentId, evidence: &Evidence) -> Result<(), Error> {
    let body = serde_json::to_value(&evidence.body).expect("plain data serializes");
    let kind = body.get("kind").and_then(serde_json::Value::as_str).expect("evidence is tagged by its kind").to_owned();
    execute(
        connection,
        "file evidence",
        "INSERT INTO evidence (deployment, sequence, id, kind, received_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            id.to_string(),
            convert::number("evidence", evidence.sequence.0)?,
            evidence.id.to_string(),
            kind,
            evidence.received_at.0,
            convert::json(evidence)
        ],
    )?;
    match live(state, id) {
        Some(_) => Ok(()),
        None => file_with_ended(connection, id, evidence),
    }
}

/// Evidence that came after the end stands in the record too; all else of the record stays.
fn file_with_ended(connection: &Connection, id: DeploymentId, evidence: &Evidence) -> Result<(), Error> {
    let sql = "SELECT record FROM deployments WHERE id = ?1";
    let text: Option<String> = one(connection, "read an ended deployment", sql, [id.to_string()], |row| row.get(0))?;
    let text = text.ok_or_else(|| Error::Wall { rule: "evidence belongs to a deployment".to_owned() })?;
    let mut deployment: Deployment = convert::from_json("a deployment's record", &text)?;
    if deployment.newest_evidence() < evidence.sequence {
        deployment.evidence.push(evidence.clone());
    }
    update_deployment(connection, deployment.state, &deployment)
}

/// Takes the row of the open permit away once nothing of the attempt is open.
fn close_permit(connection: &Connection, state: &TargetState) -> Result<(), Error> {
    let target = state.spec.name.as_str();
    let sql = "SELECT attempt, step FROM open_permits WHERE target = ?1";
    let row = one(connection, "read the open permit", sql, [target], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((attempt, step)) = row else { return Ok(()) };
    let attempt: AttemptId = convert::parse("the open permit's attempt", &attempt)?;
    if !is_open(state, attempt, &step) {
        execute(connection, "close a permit", "DELETE FROM open_permits WHERE target = ?1", [target])?;
    }
    Ok(())
}

fn is_open(state: &TargetState, attempt: AttemptId, step: &str) -> bool {
    let mut attempts = state.current.iter().flat_map(|deployment| &deployment.attempts);
    let open = attempts.find(|candidate| candidate.id == attempt).and_then(Attempt::open_permit);
    open.is_some_and(|run| run.name.as_str() == step)
}

fn remember(connection: &Connection, report: &AnsweredReport) -> Result<(), Error> {
    execute(
        connection,
        "remember a report",
        "INSERT INTO reports (incarnation, sequence, digest, disposition) VALUES (?1, ?2, ?3, ?4)",
        params![
            report.incarnation.to_string(),
            convert::number("report", report.sequence.0)?,
            report.content.to_string(),
            convert::json(&report.disposition)
        ],
    )?;
    Ok(())
}

fn put_snapshot(connection: &Connection, state: &TargetState) -> Result<(), Error> {
    let (target, sequence) = (state.spec.name.as_str(), convert::number("sequence", state.sequence.0)?);
    let sql = "INSERT INTO snapshots (target, sequence, state) VALUES (?1, ?2, ?3)";
    execute(connection, "write a snapshot", sql, params![target, sequence, convert::json(state)])?;
    let sql = "DELETE FROM snapshots WHERE target = ?1 AND sequence NOT IN
                   (SELECT sequence FROM snapshots WHERE target = ?1 ORDER BY sequence DESC LIMIT ?2)";
    execute(connection, "drop old snapshots", sql, params![target, convert::number("kept", SNAPSHOTS_KEPT)?])?;
    Ok(())
}

//! Small questions that decisions need answered in their own transaction.

use holdfast_common::id::{AttemptId, DeploymentId, IncarnationId, RequestId, TargetName};
use holdfast_common::report::ReportSequence;
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::input::{Answered, PastDeployment};
use holdfast_coordinator_core::state::{Deployment, EvidenceSequence, PastAttempt, Undone};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::{convert, failed};
use crate::store::resource::Place;
use crate::store::{Digest, Error, Submission, Taken};

/// One row or none, with a cached statement.
pub(super) fn one<R>(
    connection: &Connection,
    doing: &'static str,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<R>,
) -> Result<Option<R>, Error> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row(values, read).optional())
        .map_err(failed(doing))
}

/// All rows, with a cached statement.
pub(super) fn all<R>(
    connection: &Connection,
    doing: &'static str,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<R>,
) -> Result<Vec<R>, Error> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map(values, read)?.collect())
        .map_err(failed(doing))
}

pub(super) fn busy_targets(connection: &Connection) -> Result<Vec<TargetName>, Error> {
    let sql = "SELECT name FROM targets WHERE busy = 1 ORDER BY name";
    let names = all(connection, "list busy targets", sql, [], |row| row.get::<_, String>(0))?;
    names.iter().map(|name| convert::parse("a target", name)).collect()
}

pub(super) fn target_of(connection: &Connection, id: DeploymentId) -> Result<Option<TargetName>, Error> {
    let sql = "SELECT target FROM deployments WHERE id = ?1";
    let name: Option<String> = one(connection, "find a deployment's target", sql, [id.to_string()], |row| row.get(0))?;
    name.map(|name| convert::parse("a target", &name)).transpose()
}

pub(super) fn submission(connection: &Connection, request: RequestId) -> Result<Option<Submission>, Error> {
    let sql = "SELECT id, target, number, request_digest FROM deployments WHERE request = ?1";
    let row = one(connection, "look up a request", sql, [request.to_string()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
    })?;
    let Some((id, target, number, digest)) = row else { return Ok(None) };
    Ok(Some(Submission {
        deployment: convert::parse("a deployment", &id)?,
        target: convert::parse("a target", &target)?,
        number: convert::unsigned("a deployment's number", number)?,
        content: Digest::parse(&digest).ok_or_else(|| Error::damaged("a request's digest", digest))?,
    }))
}

pub(super) fn past_attempt(connection: &Connection, id: AttemptId) -> Result<Option<PastAttempt>, Error> {
    let sql = "SELECT a.deployment, a.agent, a.incarnation, a.fence, a.state, d.last_evidence
               FROM attempts a JOIN deployments d ON d.id = a.deployment WHERE a.id = ?1";
    let row = one(connection, "look up an attempt", sql, [id.to_string()], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, String>(2)?,
            row.get::<_, i64>(3)?,
            row.get::<_, String>(4)?,
            row.get::<_, i64>(5)?,
        ))
    })?;
    let Some((deployment, agent, incarnation, fence, state, last_evidence)) = row else { return Ok(None) };
    Ok(Some(PastAttempt {
        deployment: convert::parse("an attempt's deployment", &deployment)?,
        id,
        agent: convert::parse("an attempt's agent", &agent)?,
        incarnation: convert::parse("an attempt's incarnation", &incarnation)?,
        fence: convert::fence(fence)?,
        state: convert::parse_attempt_state(&state)?,
        last_evidence: EvidenceSequence(convert::unsigned("an evidence sequence", last_evidence)?),
    }))
}

pub(super) fn past_deployment(
    connection: &Connection,
    target: &TargetName,
    id: DeploymentId,
) -> Result<Option<PastDeployment>, Error> {
    let sql = "SELECT state, last_evidence FROM deployments WHERE id = ?1 AND target = ?2 AND ended_at IS NOT NULL";
    let values = params![id.to_string(), target.as_str()];
    let row = one(connection, "look up a deployment", sql, values, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let Some((state, last_evidence)) = row else { return Ok(None) };
    Ok(Some(PastDeployment {
        id,
        state: convert::parse_deployment_state(&state)?,
        last_evidence: EvidenceSequence(convert::unsigned("an evidence sequence", last_evidence)?),
    }))
}

pub(super) fn past_deployments(
    connection: &Connection,
    target: &TargetName,
    limit: u32,
) -> Result<Vec<Deployment>, Error> {
    let sql = "SELECT record FROM deployments WHERE target = ?1 AND ended_at IS NOT NULL ORDER BY number DESC LIMIT ?2";
    let rows =
        all(connection, "list ended deployments", sql, params![target.as_str(), limit], |row| row.get::<_, String>(0))?;
    rows.iter().map(|record| convert::from_json("a deployment's record", record)).collect()
}

pub(super) fn rollbacks_of(connection: &Connection, id: DeploymentId) -> Result<Vec<Undone>, Error> {
    let sql = "SELECT d.id, d.number FROM rollbacks r JOIN deployments d ON d.id = r.rollback
               WHERE r.undone = ?1 ORDER BY d.number";
    let rows = all(connection, "list the rollbacks of a deployment", sql, [id.to_string()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let read = |(id, number): (String, i64)| {
        Ok(Undone { id: convert::parse("a rollback", &id)?, number: convert::unsigned("a rollback's number", number)? })
    };
    rows.into_iter().map(read).collect()
}

pub(super) fn answered(
    connection: &Connection,
    incarnation: IncarnationId,
    sequence: ReportSequence,
    content: Digest,
) -> Result<Option<Answered>, Error> {
    let sql = "SELECT max(digest = ?3) FROM reports WHERE incarnation = ?1 AND sequence = ?2";
    let values = params![incarnation.to_string(), convert::number("report", sequence.0)?, content.to_string()];
    let same: Option<bool> = one(connection, "look up a report", sql, values, |row| row.get(0))?.flatten();
    Ok(same.map(|same| if same { Answered::Same } else { Answered::Different }))
}

pub(super) fn taken(connection: &Connection, spec: &TargetSpec) -> Result<Option<Taken>, Error> {
    let mut own: Vec<Place> = Vec::new();
    for resource in &spec.resources {
        let Some(place) = Place::of(spec, resource) else { continue };
        let holder = match own.iter().any(|other| other.may_be(&place)) {
            true => Some(spec.name.clone()),
            false => holder(connection, &spec.name, &place)?,
        };
        if let Some(target) = holder {
            return Ok(Some(Taken { resource: resource.name.clone(), target }));
        }
        own.push(place);
    }
    Ok(None)
}

fn holder(connection: &Connection, but: &TargetName, place: &Place) -> Result<Option<TargetName>, Error> {
    let sql = "SELECT target, selector FROM resources WHERE place = ?1 AND target <> ?2 ORDER BY target";
    let rows = all(connection, "look up a resource", sql, params![place.key, but.as_str()], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    for (target, selector) in rows {
        let other = Place { key: place.key.clone(), selector: parse_selector(&selector)? };
        if other.may_be(place) {
            return convert::parse("a target", &target).map(Some);
        }
    }
    Ok(None)
}

fn parse_selector(text: &str) -> Result<Option<std::collections::BTreeMap<String, String>>, Error> {
    match text {
        "" => Ok(None),
        labels => convert::from_json("a resource's selector", labels).map(Some),
    }
}

//! The journal's rows.

use holdfast_agent_core::Work;
use holdfast_agent_core::work::{Assignment, LeaseCount, Phase, Stop};
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, IncarnationId, TargetName};
use holdfast_common::report::{Disposition, Report, ReportBody, ReportSequence};
use holdfast_common::time::Wall;
use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{Error, Position};

/// An attempt as the journal remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// As it was offered.
    pub assignment: Assignment,
    /// The step at hand.
    pub at: usize,
    /// Where the agent was with it.
    pub phase: Phase,
    /// A request to stop.
    pub stop: Stop,
}

impl Remembered {
    /// As a restart takes it up: nobody has said that its lease lives, and it belongs to no session.
    pub(crate) fn work(self) -> Work {
        let mut work = Work::taken(self.assignment, LeaseCount::NotLive, None);
        (work.at, work.phase, work.stop) = (self.at, self.phase, self.stop);
        work
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    Ok(serde_json::to_string(value)?)
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    Ok(serde_json::from_str(text)?)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("fences and sequences stay below 2^63")
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).expect("only non-negative numbers are written")
}

pub(super) fn identify(connection: &Connection, incarnation: IncarnationId) -> Result<(), Error> {
    let text = incarnation.to_string();
    connection.execute("INSERT INTO identity (only_row, incarnation, commits) VALUES (1, ?1, 0)", [text])?;
    Ok(())
}

pub(super) fn incarnation(connection: &Connection) -> Result<IncarnationId, Error> {
    let text: String = connection.query_row("SELECT incarnation FROM identity", [], |row| row.get(0))?;
    let id: Uuid = from_json(&json(&text)?)?;
    Ok(IncarnationId(id))
}

pub(super) fn count_commit(connection: &Connection) -> Result<(), Error> {
    connection.prepare_cached("UPDATE identity SET commits = commits + 1")?.execute([])?;
    Ok(())
}

pub(super) fn standing(connection: &Connection) -> Result<(u64, String, Option<Position>), Error> {
    let query = "SELECT commits, token, position FROM identity";
    let (commits, token, position): (i64, String, String) =
        connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let position = if position.is_empty() { None } else { Some(from_json(&position)?) };
    Ok((unsigned(commits), token, position))
}

pub(super) fn welcomed(connection: &Connection, token: &str, position: &Position) -> Result<(), Error> {
    connection.execute("UPDATE identity SET token = ?1, position = ?2", params![token, json(position)?])?;
    Ok(())
}

pub(super) fn put_attempt(connection: &Connection, work: &Work) -> Result<(), Error> {
    let attempt = work.assignment.claim.attempt.to_string();
    let (at, phase, stop) = (signed(work.at as u64), json(&work.phase)?, json(&work.stop)?);
    // The assignment never changes, and most of these are about an attempt that is there.
    let update = "UPDATE attempts SET step = ?2, phase = ?3, stop = ?4 WHERE attempt = ?1";
    if connection.prepare_cached(update)?.execute(params![attempt, at, phase, stop])? == 0 {
        let insert = "INSERT INTO attempts (attempt, assignment, step, phase, stop) VALUES (?1, ?2, ?3, ?4, ?5)";
        let assignment = json(&work.assignment)?;
        connection.prepare_cached(insert)?.execute(params![attempt, assignment, at, phase, stop])?;
    }
    Ok(())
}

pub(super) fn forget(connection: &Connection, attempt: AttemptId) -> Result<(), Error> {
    connection.prepare_cached("DELETE FROM attempts WHERE attempt = ?1")?.execute([attempt.to_string()])?;
    Ok(())
}

pub(super) fn attempts(connection: &Connection) -> Result<Vec<Remembered>, Error> {
    let mut query = connection.prepare("SELECT assignment, step, phase, stop FROM attempts ORDER BY rowid")?;
    let rows = query.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
    })?;
    rows.map(|row| {
        let (assignment, at, phase, stop) = row?;
        Ok(Remembered {
            assignment: from_json(&assignment)?,
            at: usize::try_from(unsigned(at)).expect("a step's index fits"),
            phase: from_json(&phase)?,
            stop: from_json(&stop)?,
        })
    })
    .collect()
}

pub(super) fn put_fence(connection: &Connection, target: &TargetName, fence: Fence) -> Result<(), Error> {
    let insert = "INSERT INTO fences (target, fence) VALUES (?1, ?2) ON CONFLICT (target) DO UPDATE SET fence = ?2";
    connection.prepare_cached(insert)?.execute(params![target.as_str(), signed(fence.as_u64())])?;
    Ok(())
}

pub(super) fn fences(connection: &Connection) -> Result<Vec<(TargetName, Fence)>, Error> {
    let mut query = connection.prepare("SELECT target, fence FROM fences ORDER BY target")?;
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    rows.map(|row| {
        let (target, fence) = row?;
        let fence = Fence::from_u64(unsigned(fence)).expect("zero is never written");
        Ok((from_json(&json(&target)?)?, fence))
    })
    .collect()
}

pub(super) fn put_report(
    connection: &Connection,
    claim: &Claim,
    said_at: Wall,
    body: &ReportBody,
    keep: i64,
) -> Result<ReportSequence, Error> {
    let insert = "INSERT INTO outbox (claim, said_at, body) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(insert)?.execute(params![json(claim)?, said_at.0, json(body)?])?;
    let sequence = connection.last_insert_rowid();
    let prune = "DELETE FROM outbox WHERE answer IS NOT NULL AND sequence <= ?1";
    connection.prepare_cached(prune)?.execute([sequence - keep])?;
    Ok(ReportSequence(unsigned(sequence)))
}

pub(super) fn last_sequence(connection: &Connection) -> Option<u64> {
    let query = "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'";
    connection.query_row(query, [], |row| row.get(0)).ok().map(unsigned)
}

pub(super) fn answer(connection: &Connection, sequence: ReportSequence, disposition: Disposition) -> Result<(), Error> {
    let update = "UPDATE outbox SET answer = ?2 WHERE sequence = ?1";
    connection.prepare_cached(update)?.execute(params![signed(sequence.0), json(&disposition)?])?;
    Ok(())
}

pub(super) fn unanswered(connection: &Connection) -> Result<Vec<(Claim, Report)>, Error> {
    let text = "SELECT sequence, claim, said_at, body FROM outbox WHERE answer IS NULL ORDER BY sequence";
    let mut query = connection.prepare_cached(text)?;
    let rows = query.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
    })?;
    rows.map(|row| {
        let (sequence, claim, said_at, body) = row?;
        let sequence = ReportSequence(unsigned(sequence));
        Ok((from_json(&claim)?, Report { sequence, said_at: Wall(said_at), body: from_json(&body)? }))
    })
    .collect()
}

pub(super) fn told(connection: &Connection, attempts: &[AttemptId]) -> Result<Vec<ReportBody>, Error> {
    let text = "SELECT claim, body FROM outbox ORDER BY sequence";
    let mut query = connection.prepare_cached(text)?;
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut told = Vec::new();
    for row in rows {
        let (claim, body) = row?;
        let claim: Claim = from_json(&claim)?;
        if attempts.contains(&claim.attempt) {
            told.push(from_json(&body)?);
        }
    }
    Ok(told)
}

/// How many reports have an answer. For tests.
#[cfg(test)]
pub(super) fn count_answered(connection: &Connection) -> i64 {
    let query = "SELECT count(*) FROM outbox WHERE answer IS NOT NULL";
    connection.query_row(query, [], |row| row.get(0)).expect("reads")
}

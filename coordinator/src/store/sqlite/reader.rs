//! Reading, beside the writer: what is committed and nothing else.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_common::id::{AgentName, DeploymentId, DeploymentLabel, OperatorName, RequestId, TargetName};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::identity::Identity;
use holdfast_coordinator_core::state::{Evidence, Undone};
use rusqlite::{Connection, OpenFlags, Row, params};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::look_up::{all, one};
use super::replay::{COLUMNS, EventRow};
use super::{acts, convert, drains, failed, joining, look_up, migrate, replay, verify};
use crate::store::rows::{DeploymentFilter, DeploymentRow, EventFilter, RawEvent, StoredEvent, TargetRow};
use crate::store::{
    ActRow, AgentRow, CertificateRow, Digest, DrainRow, Error, GlobalOrder, JoinTokenRow, OrphanRow, RefusalRow,
    Submission, TokenRow,
};
use crate::verify::{Finding, Report};

/// A few read-only connections. Its calls block on the disk: async callers go through [`Reader::run`] or, for a
/// few rows, [`Reader::glance`].
#[derive(Clone)]
pub struct Reader {
    pub(super) pool: Arc<Pool>,
}

pub(super) struct Pool {
    path: PathBuf,
    keep: usize,
    idle: Mutex<Vec<Connection>>,
    /// With the turns of glances as many as connections are kept: a read that waits for one costs far less than one that opens
    /// its own and parses the schema.
    pub(super) turns: Semaphore,
    /// Every call looks at its token: that waits for no long read.
    glances: Semaphore,
}

impl Reader {
    /// Over a store's file as it is, for looking only: nothing is made, moved to a newer schema, or locked.
    pub fn over(path: &Path) -> Result<Self, Error> {
        let connection = open(path).map_err(super::open_error(path))?;
        if !migrate::is_ours(&connection).map_err(|source| super::unreadable(path, source))? {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        migrate::is_newest(&connection)?;
        Ok(Self::new(path, 1))
    }

    pub(super) fn new(path: &Path, keep: usize) -> Self {
        Self {
            pool: Arc::new(Pool {
                path: path.to_owned(),
                keep,
                idle: Mutex::new(Vec::new()),
                turns: Semaphore::new(keep - keep / 2),
                glances: Semaphore::new(keep / 2),
            }),
        }
    }

    /// Opens the connections that are kept, so that there are some when no descriptor is left.
    pub(super) fn warm(&self) -> rusqlite::Result<()> {
        let fresh = (0..self.pool.keep).map(|_| open(&self.pool.path)).collect::<Result<Vec<_>, _>>()?;
        for connection in &fresh {
            // The files are opened by the first read.
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        }
        *self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }

    /// Does a piece of reading on a thread that may block.
    ///
    /// A task of its own waits for the turn and has it: whoever asked may be left waiting itself, as a stream whose client reads
    /// nothing, and must not keep a turn from others meanwhile.
    pub async fn run<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let reader = self.clone();
        let reading = async move {
            let _turn = reader.pool.turns.acquire().await.expect("nobody closes it");
            let reader = reader.clone();
            tokio::task::spawn_blocking(move || read(&reader)).await
        };
        match AbortOnDropHandle::new(tokio::spawn(reading)).await.flatten() {
            Ok(result) => result,
            Err(source) => Err(Error::Failed { doing: "finish a read", source: source.into() }),
        }
    }

    /// Does a piece of reading that takes no longer than handing it to another thread: a few rows by their keys. Where as many
    /// look already, it is handed over all the same.
    pub async fn glance<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        match self.pool.glances.try_acquire() {
            Ok(_turn) => read(self),
            Err(_) => self.run(read).await,
        }
    }

    /// Every target, by name.
    pub fn targets(&self) -> Result<Vec<TargetRow>, Error> {
        self.with(|connection| {
            let sql = format!("{TARGETS} ORDER BY t.name");
            all(connection, "list targets", &sql, [], raw_target)?.into_iter().map(target).collect()
        })
    }

    /// Every target's name, in order.
    pub fn target_names(&self) -> Result<Vec<TargetName>, Error> {
        self.with(|connection| {
            let sql = "SELECT name FROM targets ORDER BY name";
            let found = all(connection, "list the names of targets", sql, [], |row| row.get::<_, String>(0))?;
            found.iter().map(|name| convert::parse("a target", name)).collect()
        })
    }

    /// One target.
    pub fn target(&self, name: &TargetName) -> Result<Option<TargetRow>, Error> {
        self.with(|connection| {
            let sql = format!("{TARGETS} WHERE t.name = ?1");
            one(connection, "read a target", &sql, [name.as_str()], raw_target)?.map(target).transpose()
        })
    }

    /// A target's committed state. What is only in the driver's memory, the last sign of life, is not in it.
    pub fn state(&self, name: &TargetName) -> Result<Option<TargetState>, Error> {
        self.with(|connection| {
            let tx = connection.unchecked_transaction().map_err(failed("begin to read"))?;
            replay::load(&tx, name)
        })
    }

    /// One deployment.
    pub fn deployment(&self, id: DeploymentId) -> Result<Option<DeploymentRow>, Error> {
        self.with(|connection| {
            let sql = "SELECT place, target, record FROM deployments WHERE id = ?1";
            one(connection, "read a deployment", sql, [id.to_string()], raw_deployment)?.map(deployment).transpose()
        })
    }

    /// One deployment by what people call it.
    pub fn deployment_by_label(&self, label: &DeploymentLabel) -> Result<Option<DeploymentRow>, Error> {
        self.with(|connection| {
            let sql = "SELECT place, target, record FROM deployments WHERE target = ?1 AND number = ?2";
            let values = params![label.target.as_str(), i64::try_from(label.number).unwrap_or(i64::MAX)];
            one(connection, "read a deployment", sql, values, raw_deployment)?.map(deployment).transpose()
        })
    }

    /// The identities that begin so, of deployments `among` these targets, at most `limit`. `prefix` is hexadecimal
    /// digits and dashes; other text begins none.
    pub fn deployments_beginning(
        &self,
        prefix: &str,
        among: Option<&[TargetName]>,
        limit: u32,
    ) -> Result<Vec<DeploymentId>, Error> {
        let prefix = prefix.to_ascii_lowercase();
        if prefix.is_empty() || !prefix.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
            return Ok(Vec::new());
        }
        self.with(|connection| {
            let sql = "SELECT id FROM deployments WHERE id >= ?1 AND id < ?1 || 'g'
                         AND (?2 IS NULL OR target IN (SELECT value FROM json_each(?2))) ORDER BY id LIMIT ?3";
            let values = params![prefix, among.map(names), limit];
            let ids = all(connection, "find deployments", sql, values, |row| row.get::<_, String>(0))?;
            ids.iter().map(|id| convert::parse("a deployment", id)).collect()
        })
    }

    /// Deployments, the latest submission first.
    pub fn deployments(&self, filter: &DeploymentFilter) -> Result<Vec<DeploymentRow>, Error> {
        self.with(|connection| {
            let states: Vec<String> = filter.states.iter().map(|state| convert::deployment_state(*state)).collect();
            let states = (!states.is_empty()).then(|| convert::json(&states));
            let before = filter.before.map_or(i64::MAX, |place| i64::try_from(place).unwrap_or(i64::MAX));
            let target = filter.target.as_ref().map(TargetName::as_str);
            // A target's deployments are numbered in the order of their places, and found by number.
            let (by, order) = match target {
                Some(_) => ("target = ?2 AND number < coalesce((SELECT number FROM deployments WHERE place = ?1 AND target = ?2), ?1)", "number"),
                None => ("?2 IS NULL", "place"),
            };
            let sql = format!(
                "SELECT place, target, record FROM deployments
                 WHERE place < ?1 AND {by} AND (?3 IS NULL OR state IN (SELECT value FROM json_each(?3)))
                   AND (?5 IS NULL OR target IN (SELECT value FROM json_each(?5)))
                 ORDER BY {order} DESC LIMIT ?4"
            );
            let among = filter.among.as_deref().map(names);
            let values = params![before, target, states, filter.limit, among];
            all(connection, "list deployments", &sql, values, raw_deployment)?.into_iter().map(deployment).collect()
        })
    }

    /// What a request id stands for.
    pub fn submission(&self, request: RequestId) -> Result<Option<Submission>, Error> {
        self.with(|connection| look_up::submission(connection, request))
    }

    /// The rollbacks that go back over a deployment, in order.
    pub fn rollbacks_of(&self, id: DeploymentId) -> Result<Vec<Undone>, Error> {
        self.with(|connection| look_up::rollbacks_of(connection, id))
    }

    /// The target of a deployment.
    pub fn target_of(&self, id: DeploymentId) -> Result<Option<TargetName>, Error> {
        self.with(|connection| look_up::target_of(connection, id))
    }

    /// Events in global order.
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<StoredEvent>, Error> {
        self.with(|connection| {
            let after = i64::try_from(filter.after.0).unwrap_or(i64::MAX);
            let deployment = filter.deployment.map(|id| id.to_string());
            let target = filter.target.as_ref().map(TargetName::as_str);
            // Each filter has an index of its own, so each has a statement of its own.
            let by = match (&deployment, target) {
                (Some(_), _) => "deployment = ?2 AND (?3 IS NULL OR target = ?3)",
                (None, Some(_)) => "?2 IS NULL AND target = ?3",
                (None, None) => "?2 IS NULL AND ?3 IS NULL",
            };
            let sql =
                format!("SELECT {COLUMNS} FROM events WHERE global_order > ?1 AND {by} ORDER BY global_order LIMIT ?4");
            let values = params![after, deployment, target, filter.limit];
            all(connection, "list events", &sql, values, EventRow::read)?.iter().map(event).collect()
        })
    }

    /// The last event's place among all.
    pub fn newest(&self) -> Result<GlobalOrder, Error> {
        self.with(|connection| {
            let sql = "SELECT coalesce(max(global_order), 0) FROM events";
            let newest = one(connection, "read the newest event", sql, [], |row| row.get::<_, i64>(0))?;
            convert::unsigned("the global order", newest.unwrap_or_default()).map(GlobalOrder)
        })
    }

    /// A deployment's evidence, in order of arrival.
    pub fn evidence(&self, id: DeploymentId) -> Result<Vec<Evidence>, Error> {
        self.with(|connection| {
            let sql = "SELECT body FROM evidence WHERE deployment = ?1 ORDER BY sequence";
            let rows = all(connection, "list evidence", sql, [id.to_string()], |row| row.get::<_, String>(0))?;
            rows.iter().map(|text| convert::from_json("evidence", text)).collect()
        })
    }

    /// Reports on deployments that are not known, the oldest first.
    pub fn orphans(&self, agent: Option<&AgentName>, limit: u32) -> Result<Vec<OrphanRow>, Error> {
        self.with(|connection| {
            let sql = "SELECT agent, incarnation, claim, report, digest, received_at FROM orphan_reports
                       WHERE (?1 IS NULL OR agent = ?1) ORDER BY received_at, incarnation, sequence LIMIT ?2";
            let rows = all(connection, "list orphans", sql, params![agent.map(AgentName::as_str), limit], |row| {
                let texts: [String; 5] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
                Ok((texts, row.get::<_, i64>(5)?))
            })?;
            rows.into_iter().map(orphan).collect()
        })
    }

    /// The token of that hash.
    pub fn token(&self, hash: Digest) -> Result<Option<TokenRow>, Error> {
        self.with(|connection| {
            let sql = format!("{TOKENS} WHERE hash = ?1");
            one(connection, "read a token", &sql, [hash.to_string()], raw_token)?.map(token).transpose()
        })
    }

    /// Every token, by name.
    pub fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        self.with(|connection| {
            let sql = format!("{TOKENS} ORDER BY name");
            all(connection, "list tokens", &sql, [], raw_token)?.into_iter().map(token).collect()
        })
    }

    /// Every agent that ever spoke, by name.
    pub fn agents(&self) -> Result<Vec<AgentRow>, Error> {
        self.with(|connection| {
            let sql = format!("{AGENTS} ORDER BY name");
            all(connection, "list agents", &sql, [], raw_agent)?.into_iter().map(agent).collect()
        })
    }

    /// One agent.
    pub fn agent(&self, name: &AgentName) -> Result<Option<AgentRow>, Error> {
        self.with(|connection| {
            let sql = format!("{AGENTS} WHERE name = ?1");
            one(connection, "read an agent", &sql, [name.as_str()], raw_agent)?.map(agent).transpose()
        })
    }

    /// Who every agent is that was enrolled or ever spoke, by name.
    pub fn agent_identities(&self) -> Result<Vec<(AgentName, Identity)>, Error> {
        self.with(|connection| {
            let sql = "SELECT agent, state FROM identities ORDER BY agent";
            let rows = all(connection, "list identities", sql, [], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            let read = |(agent, state): (String, String)| {
                Ok((convert::parse("an agent", &agent)?, convert::from_json("an agent's identity", &state)?))
            };
            rows.into_iter().map(read).collect()
        })
    }

    /// Who the agent is; `None` for one that was never heard of.
    pub fn agent_identity(&self, agent: &AgentName) -> Result<Option<Identity>, Error> {
        self.with(|connection| identity_of(connection, agent))
    }

    /// Every join token, by its id.
    pub fn join_tokens(&self) -> Result<Vec<JoinTokenRow>, Error> {
        self.with(joining::tokens)
    }

    /// The join token of that hash.
    pub fn join_token(&self, hash: Digest) -> Result<Option<JoinTokenRow>, Error> {
        self.with(|connection| joining::token_of_hash(connection, hash))
    }

    /// Every certificate that was signed or revoked here, by its fingerprint.
    pub fn certificates(&self) -> Result<Vec<CertificateRow>, Error> {
        self.with(joining::certificates)
    }

    /// The certificate of that fingerprint.
    pub fn certificate(&self, fingerprint: &str) -> Result<Option<CertificateRow>, Error> {
        self.with(|connection| joining::certificate(connection, fingerprint))
    }

    /// Every agent that gets nothing new, by name.
    pub fn drains(&self) -> Result<Vec<DrainRow>, Error> {
        self.with(drains::list)
    }

    /// The latest refusals, the latest first.
    pub fn refusals(&self, limit: u32) -> Result<Vec<RefusalRow>, Error> {
        self.with(|connection| {
            let sql = "SELECT who, what, why, at FROM refusals ORDER BY place DESC LIMIT ?1";
            all(connection, "list refusals", sql, [limit], |row| {
                Ok(RefusalRow { who: row.get(0)?, what: row.get(1)?, why: row.get(2)?, at: Wall(row.get(3)?) })
            })
        })
    }

    /// Everything again, from the first event, on one snapshot. Nothing found means sound.
    pub fn verify(&self) -> Result<Vec<Finding>, Error> {
        self.verified().map(|report| report.findings)
    }

    /// The same, with what was looked at.
    pub fn verified(&self) -> Result<Report, Error> {
        self.with(verify::verify)
    }

    /// Every target that any row names, for [`Reader::verify_target`].
    pub fn targets_named(&self) -> Result<Vec<String>, Error> {
        self.with(verify::targets)
    }

    /// One target again, on one snapshot.
    pub fn verify_target(&self, target: &str) -> Result<Vec<Finding>, Error> {
        self.with(|connection| {
            let tx = connection.unchecked_transaction().map_err(failed("begin to verify"))?;
            verify::verify_target(&tx, target).map(|(_, found)| found)
        })
    }

    /// What is about no single target again.
    pub fn verify_rest(&self) -> Result<Vec<Finding>, Error> {
        self.with(|connection| {
            let tx = connection.unchecked_transaction().map_err(failed("begin to verify"))?;
            verify::verify_rest(&tx).map(|(_, found)| found)
        })
    }

    /// Acts after that one, in order.
    pub fn acts_after(&self, sequence: u64, limit: u32) -> Result<Vec<ActRow>, Error> {
        self.with(|connection| acts::after(connection, sequence, limit))
    }

    /// The latest acts before that instant, the latest first.
    pub fn latest_acts(&self, before: Wall, limit: u32) -> Result<Vec<ActRow>, Error> {
        self.with(|connection| acts::latest(connection, before, limit))
    }

    /// The latest refusals before that instant, the latest first.
    pub fn latest_refusals(&self, before: Wall, limit: u32) -> Result<Vec<RefusalRow>, Error> {
        self.with(|connection| {
            let sql = "SELECT who, what, why, at FROM refusals WHERE at < ?1 ORDER BY at DESC, place DESC LIMIT ?2";
            all(connection, "list refusals", sql, params![before.0, limit], |row| {
                Ok(RefusalRow { who: row.get(0)?, what: row.get(1)?, why: row.get(2)?, at: Wall(row.get(3)?) })
            })
        })
    }

    /// Events that somebody is behind, on these targets, before that instant, the latest first.
    pub fn acts_of_people(&self, among: &[TargetName], before: Wall, limit: u32) -> Result<Vec<StoredEvent>, Error> {
        self.with(|connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM events
                 WHERE at < ?1 AND target IN (SELECT value FROM json_each(?2))
                   AND (json_extract(body, '$.event') IN ('target_declared', 'submitted', 'inquiry_opened',
                            'cancel_recorded', 'cancel_after_end', 'decided', 'hold_placed', 'hold_ended')
                        OR json_extract(body, '$.evidence.body.kind') IN ('attested', 'note')
                        OR json_extract(body, '$.knowledge.source.from') = 'attested')
                 ORDER BY global_order DESC LIMIT ?3"
            );
            let values = params![before.0, names(among), limit];
            all(connection, "list what people did", &sql, values, EventRow::read)?.iter().map(event).collect()
        })
    }

    /// A target's events as their rows have them, between two places, in order.
    pub fn raw_events(&self, target: &TargetName, after: u64, to: u64, limit: u32) -> Result<Vec<RawEvent>, Error> {
        self.with(|connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM events WHERE target = ?1 AND sequence > ?2 AND sequence <= ?3
                 ORDER BY sequence LIMIT ?4"
            );
            let place = |place: u64| i64::try_from(place).unwrap_or(i64::MAX);
            let values = params![target.as_str(), place(after), place(to), limit];
            all(connection, "list events", &sql, values, EventRow::read)
        })
    }

    /// The place of a target's last event.
    pub fn last_event(&self, target: &TargetName) -> Result<u64, Error> {
        self.with(|connection| {
            let sql = "SELECT coalesce(max(sequence), 0) FROM events WHERE target = ?1";
            let last = one(connection, "read the last event", sql, [target.as_str()], |row| row.get::<_, i64>(0))?;
            convert::unsigned("a sequence", last.unwrap_or_default())
        })
    }

    fn with<R>(&self, read: impl FnOnce(&Connection) -> Result<R, Error>) -> Result<R, Error> {
        let idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open(&self.pool.path).map_err(failed("open the store for reading"))?,
        };
        let result = read(&connection);
        let mut idle = self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.pool.keep {
            idle.push(connection);
        }
        result
    }
}

/// For `json_each`.
fn names(targets: &[TargetName]) -> String {
    convert::json(&targets)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    super::keep_plans(&connection)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

const TARGETS: &str = "SELECT t.spec, t.declared_by, t.declared_at, t.waiting, f.fence, r.deployment FROM targets t
                       LEFT JOIN fences f ON f.target = t.name LEFT JOIN reservations r ON r.target = t.name";
const TOKENS: &str = "SELECT name, hash, grants, expires_at, created_at, created_by FROM tokens";
const AGENTS: &str =
    "SELECT name, fingerprint, incarnation, labels, last_heard, certificate_until, certificate_since FROM agents";

type RawTarget = (String, String, i64, i64, Option<i64>, Option<String>);

fn raw_target(row: &Row<'_>) -> rusqlite::Result<RawTarget> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
}

fn target((spec, by, at, waiting, fence, holder): RawTarget) -> Result<TargetRow, Error> {
    Ok(TargetRow {
        spec: convert::from_json("a target", &spec)?,
        declared_by: convert::parse("a name", &by)?,
        declared_at: Wall(at),
        fence: fence.map(convert::fence).transpose()?,
        holder: holder.map(|id| convert::parse("a deployment", &id)).transpose()?,
        waiting: convert::unsigned("a count", waiting)?,
    })
}

type RawDeployment = (i64, String, String);

fn raw_deployment(row: &Row<'_>) -> rusqlite::Result<RawDeployment> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn deployment((place, target, record): RawDeployment) -> Result<DeploymentRow, Error> {
    Ok(DeploymentRow {
        place: convert::unsigned("a place", place)?,
        target: convert::parse("a target", &target)?,
        record: convert::from_json("a deployment's record", &record)?,
    })
}

fn event(row: &EventRow) -> Result<StoredEvent, Error> {
    Ok(StoredEvent {
        order: GlobalOrder(convert::unsigned("the global order", row.order)?),
        target: convert::parse("a target", &row.target)?,
        recorded: row.recorded()?,
        hash: row.hash.clone(),
    })
}

fn orphan((texts, at): ([String; 5], i64)) -> Result<OrphanRow, Error> {
    let [agent, incarnation, claim, report, digest] = texts;
    Ok(OrphanRow {
        agent: convert::parse("an agent", &agent)?,
        incarnation: convert::parse("an incarnation", &incarnation)?,
        claim: convert::from_json("a claim", &claim)?,
        report: convert::from_json("a report", &report)?,
        content: Digest::parse(&digest).ok_or_else(|| Error::damaged("a report's digest", digest))?,
        received_at: Wall(at),
    })
}

type RawToken = (String, String, String, Option<i64>, Option<i64>, Option<String>);

fn raw_token(row: &Row<'_>) -> rusqlite::Result<RawToken> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
}

/// The token of that name, also inside a transaction.
pub(super) fn token_named(connection: &Connection, name: &OperatorName) -> Result<Option<TokenRow>, Error> {
    let sql = format!("{TOKENS} WHERE name = ?1");
    one(connection, "read a token", &sql, [name.as_str()], raw_token)?.map(token).transpose()
}

fn token((name, hash, grants, expires_at, created_at, created_by): RawToken) -> Result<TokenRow, Error> {
    Ok(TokenRow {
        hash: Digest::parse(&hash).ok_or_else(|| Error::damaged("a token's hash", hash))?,
        name: convert::parse::<OperatorName>("a token's name", &name)?,
        grants: convert::from_json("a token's grants", &grants)?,
        expires_at: expires_at.map(Wall),
        created_at: created_at.map(Wall),
        created_by: created_by.map(|by| convert::parse("a token's maker", &by)).transpose()?,
    })
}

pub(super) fn identity_of(connection: &Connection, agent: &AgentName) -> Result<Option<Identity>, Error> {
    let sql = "SELECT state FROM identities WHERE agent = ?1";
    let state: Option<String> = one(connection, "read an agent's identity", sql, [agent.as_str()], |row| row.get(0))?;
    state.map(|state| convert::from_json("an agent's identity", &state)).transpose()
}

type RawAgent = (String, String, String, String, i64, Option<i64>, Option<i64>);

fn raw_agent(row: &Row<'_>) -> rusqlite::Result<RawAgent> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
}

fn agent(raw: RawAgent) -> Result<AgentRow, Error> {
    let (name, fingerprint, incarnation, labels, last_heard, certificate_until, certificate_since) = raw;
    Ok(AgentRow {
        name: convert::parse("an agent", &name)?,
        fingerprint,
        certificate_since: certificate_since.map(Wall),
        certificate_until: certificate_until.map(Wall),
        incarnation: convert::parse("an incarnation", &incarnation)?,
        labels: convert::from_json("labels", &labels)?,
        last_heard: Wall(last_heard),
    })
}

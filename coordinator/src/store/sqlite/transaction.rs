//! The writer's transaction: look-ups and writes that one commit covers.

use std::cell::{Cell, OnceCell};

use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, DeploymentId, IncarnationId, OperatorName, RequestId, TargetName};
use holdfast_common::report::ReportSequence;
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::{Millis, Serving, Wall};
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::identity::Identity;
use holdfast_coordinator_core::input::{Answered, PastDeployment};
use holdfast_coordinator_core::state::{Deployment, PastAttempt, Run};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{acts, convert, drains, failed, joining, look_up, project, replay};
use crate::store::{
    Act, AgentRow, Appended, CertificateRow, Digest, DrainRow, Error, JoinTokenRow, OrphanRow, RefusalRow, RunStart,
    Submission, Taken, TokenRow, Transaction, Write,
};

/// How many refusals are kept.
const REFUSALS_KEPT: i64 = 10_000;

/// How the writes of a transaction stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// Each can be taken back alone: the pages that it changes are copied for that.
    Apart,
    /// All or none.
    Together,
}

/// See [`Transaction`]. Takes the writer's lock when it is first used: what memory alone answers costs the store nothing.
pub struct SqliteTransaction<'a> {
    connection: &'a Connection,
    begun: OnceCell<rusqlite::Transaction<'a>>,
    writes: Writes,
    /// Whether a write was refused in the middle, and nothing takes its beginning back.
    spoiled: Cell<bool>,
}

impl<'a> SqliteTransaction<'a> {
    /// The only one at a time.
    pub(super) fn new(connection: &'a mut Connection, writes: Writes) -> Self {
        Self { connection, begun: OnceCell::new(), writes, spoiled: Cell::new(false) }
    }

    fn tx(&self) -> Result<&Connection, Error> {
        if let Some(begun) = self.begun.get() {
            return Ok(begun);
        }
        let begun = rusqlite::Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate);
        let begun = begun.map_err(failed("begin a transaction"))?;
        Ok(self.begun.get_or_init(|| begun))
    }

    /// Does it whole or not at all. An error that is not contained leaves the transaction as it is: it will be dropped.
    fn whole<R>(&self, work: impl FnOnce(&Connection) -> Result<R, Error>) -> Result<R, Error> {
        match self.writes {
            Writes::Apart => self.apart(work),
            Writes::Together => work(self.tx()?).map_err(|error| self.spoil(error)),
        }
    }

    fn spoil(&self, error: Error) -> Error {
        self.spoiled.set(true);
        if error.is_contained() { Error::Spoiled { source: Box::new(error) } } else { error }
    }

    fn apart<R>(&self, work: impl FnOnce(&Connection) -> Result<R, Error>) -> Result<R, Error> {
        self.run(&["SAVEPOINT one_write"])?;
        let result = work(self.tx()?);
        match &result {
            Ok(_) => self.run(&["RELEASE one_write"])?,
            Err(error) if error.is_contained() => self.run(&["ROLLBACK TO one_write", "RELEASE one_write"])?,
            Err(_) => {}
        }
        result
    }

    fn run(&self, statements: &[&'static str]) -> Result<(), Error> {
        let doing = failed("mark a write in a transaction");
        let connection = self.tx()?;
        let run = |sql: &&'static str| connection.prepare_cached(sql)?.execute([]).map(drop);
        statements.iter().try_for_each(run).map_err(doing)
    }

    fn execute(&self, doing: &'static str, sql: &str, values: impl rusqlite::Params) -> Result<usize, Error> {
        self.tx()?.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(failed(doing))
    }
}

impl Transaction for SqliteTransaction<'_> {
    fn start_run(&mut self, at: Wall) -> Result<RunStart, Error> {
        let doing = failed("begin a run");
        let (last, base): (i64, i64) = self
            .tx()?
            .query_row("SELECT coalesce(max(run), 0), coalesce(max(base_ms + served_ms), 0) FROM runs", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(&doing)?;
        self.execute(
            "begin a run",
            "INSERT INTO runs (run, base_ms, started_at) VALUES (?1, ?2, ?3)",
            params![last + 1, base, at.0],
        )?;
        let run = Run(convert::unsigned("a run", last + 1)?);
        Ok(RunStart { run, base: Serving(convert::unsigned("a run's base", base)?) })
    }

    fn serve(&mut self, run: Run, served: Millis) -> Result<(), Error> {
        let (run, served) = (convert::number("run", run.0)?, convert::number("served time", served.0)?);
        self.execute("write the served time", "UPDATE runs SET served_ms = ?2 WHERE run = ?1", params![run, served])?;
        Ok(())
    }

    fn run_began(&mut self, run: Run) -> Result<Option<Serving>, Error> {
        let base: Option<i64> = self
            .tx()?
            .prepare_cached("SELECT base_ms FROM runs WHERE run = ?1")
            .and_then(|mut statement| {
                statement.query_row([i64::try_from(run.0).unwrap_or(i64::MAX)], |row| row.get(0)).optional()
            })
            .map_err(failed("read a run"))?;
        base.map(|base| convert::unsigned("a run's base", base).map(Serving)).transpose()
    }

    fn load(&mut self, target: &TargetName) -> Result<Option<TargetState>, Error> {
        replay::load(self.tx()?, target)
    }

    fn busy_targets(&mut self) -> Result<Vec<TargetName>, Error> {
        look_up::busy_targets(self.tx()?)
    }

    fn write(&mut self, write: &Write<'_>) -> Result<Appended, Error> {
        self.whole(|connection| project::write(connection, write))
    }

    fn submission(&mut self, request: RequestId) -> Result<Option<Submission>, Error> {
        look_up::submission(self.tx()?, request)
    }

    fn target_of(&mut self, deployment: DeploymentId) -> Result<Option<TargetName>, Error> {
        look_up::target_of(self.tx()?, deployment)
    }

    fn past_attempt(&mut self, claim: &Claim) -> Result<Option<PastAttempt>, Error> {
        look_up::past_attempt(self.tx()?, claim.attempt)
    }

    fn past_deployment(&mut self, target: &TargetName, id: DeploymentId) -> Result<Option<PastDeployment>, Error> {
        look_up::past_deployment(self.tx()?, target, id)
    }

    fn past_deployments(&mut self, target: &TargetName, limit: u32) -> Result<Vec<Deployment>, Error> {
        look_up::past_deployments(self.tx()?, target, limit)
    }

    fn answered(
        &mut self,
        incarnation: IncarnationId,
        sequence: ReportSequence,
        content: Digest,
    ) -> Result<Option<Answered>, Error> {
        look_up::answered(self.tx()?, incarnation, sequence, content)
    }

    fn taken(&mut self, spec: &TargetSpec) -> Result<Option<Taken>, Error> {
        look_up::taken(self.tx()?, spec)
    }

    fn keep_orphan(&mut self, orphan: &OrphanRow) -> Result<bool, Error> {
        let OrphanRow { agent, incarnation, claim, report, content, received_at } = orphan;
        let sequence = convert::number("report", report.sequence.0)?;
        let rows = self.execute(
            "keep an orphan report",
            "INSERT OR IGNORE INTO orphan_reports (incarnation, sequence, digest, agent, claim, report, received_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                incarnation.to_string(),
                sequence,
                content.to_string(),
                agent.as_str(),
                convert::json(claim),
                convert::json(report),
                received_at.0
            ],
        )?;
        Ok(rows == 1)
    }

    fn keep_refusal(&mut self, refusal: &RefusalRow) -> Result<(), Error> {
        let RefusalRow { who, what, why, at } = refusal;
        self.execute(
            "keep a refusal",
            "INSERT INTO refusals (who, what, why, at) VALUES (?1, ?2, ?3, ?4)",
            params![who, what, why, at.0],
        )?;
        let newest = self.tx()?.last_insert_rowid();
        self.execute(
            "drop an old refusal",
            "DELETE FROM refusals WHERE place <= ?1",
            params![newest.saturating_sub(REFUSALS_KEPT)],
        )?;
        Ok(())
    }

    fn put_agent(&mut self, agent: &AgentRow) -> Result<(), Error> {
        let AgentRow { name, fingerprint, certificate_since, certificate_until, incarnation, labels, last_heard } =
            agent;
        self.execute(
            "write an agent",
            "INSERT INTO agents (name, fingerprint, incarnation, labels, last_heard, certificate_until,
                                  certificate_since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint, incarnation = excluded.incarnation,
                 labels = excluded.labels, last_heard = excluded.last_heard,
                 certificate_until = excluded.certificate_until,
                 certificate_since = excluded.certificate_since",
            params![
                name.as_str(),
                fingerprint,
                incarnation.to_string(),
                convert::json(labels),
                last_heard.0,
                certificate_until.map(|at| at.0),
                certificate_since.map(|at| at.0)
            ],
        )?;
        Ok(())
    }

    fn agent_identity(&mut self, agent: &AgentName) -> Result<Identity, Error> {
        Ok(super::reader::identity_of(self.tx()?, agent)?.unwrap_or_default())
    }

    fn put_agent_identity(&mut self, agent: &AgentName, identity: &Identity) -> Result<(), Error> {
        self.execute(
            "write an agent's identity",
            "INSERT INTO identities (agent, state) VALUES (?1, ?2) ON CONFLICT (agent) DO UPDATE SET state = excluded.state",
            params![agent.as_str(), convert::json(identity)],
        )?;
        Ok(())
    }

    fn put_drain(&mut self, drain: &DrainRow) -> Result<Wall, Error> {
        let DrainRow { agent, by, reason, since } = drain;
        let values = params![agent.as_str(), by.as_str(), reason, since.0];
        let kept = look_up::one(self.tx()?, "drain an agent", drains::PUT, values, |row| row.get(0))?;
        Ok(kept.map_or(*since, Wall))
    }

    fn remove_drain(&mut self, agent: &AgentName) -> Result<bool, Error> {
        Ok(self.execute("resume an agent", drains::REMOVE, params![agent.as_str()])? == 1)
    }

    fn put_token(&mut self, token: &TokenRow) -> Result<(), Error> {
        let TokenRow { hash, name, grants, expires_at, created_at, created_by } = token;
        self.execute(
            "write a token",
            "INSERT INTO tokens (name, hash, grants, expires_at, created_at, created_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, grants = excluded.grants,
                 expires_at = excluded.expires_at, created_at = excluded.created_at, created_by = excluded.created_by",
            params![
                name.as_str(),
                hash.to_string(),
                convert::json(grants),
                expires_at.map(|at| at.0),
                created_at.map(|at| at.0),
                created_by.as_ref().map(OperatorName::as_str)
            ],
        )?;
        Ok(())
    }

    fn token(&mut self, name: &OperatorName) -> Result<Option<TokenRow>, Error> {
        super::reader::token_named(self.tx()?, name)
    }

    fn remove_token(&mut self, name: &OperatorName) -> Result<bool, Error> {
        let rows = self.execute("remove a token", "DELETE FROM tokens WHERE name = ?1", params![name.as_str()])?;
        Ok(rows == 1)
    }

    fn put_join_token(&mut self, token: &JoinTokenRow) -> Result<(), Error> {
        self.whole(|connection| joining::put_token(connection, token))
    }

    fn join_token(&mut self, hash: Digest) -> Result<Option<JoinTokenRow>, Error> {
        joining::token_of_hash(self.tx()?, hash)
    }

    fn join_token_of(&mut self, id: &str) -> Result<Option<JoinTokenRow>, Error> {
        joining::token_of_id(self.tx()?, id)
    }

    fn put_certificate(&mut self, certificate: &CertificateRow) -> Result<(), Error> {
        self.whole(|connection| joining::put_certificate(connection, certificate))
    }

    fn certificate(&mut self, fingerprint: &str) -> Result<Option<CertificateRow>, Error> {
        joining::certificate(self.tx()?, fingerprint)
    }

    fn agent_with(&mut self, fingerprint: &str) -> Result<Option<AgentName>, Error> {
        joining::agent_with(self.tx()?, fingerprint)
    }

    fn revoke_certificates(&mut self, agent: &AgentName, at: Wall) -> Result<(), Error> {
        self.whole(|connection| joining::revoke_all_of(connection, agent, at))
    }

    fn forget_ended(&mut self, before: Wall) -> Result<(), Error> {
        self.whole(|connection| joining::forget_ended(connection, before))
    }

    fn keep_act(&mut self, act: &Act) -> Result<(), Error> {
        self.whole(|connection| acts::keep(connection, act))
    }

    fn commit(self) -> Result<(), Error> {
        if self.spoiled.get() {
            return Err(Error::Spoiled {
                source: Box::new(Error::Wall { rule: "a part is never committed".to_owned() }),
            });
        }
        self.begun.into_inner().map_or(Ok(()), |begun| begun.commit().map_err(failed("commit")))
    }
}

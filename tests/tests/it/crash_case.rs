//! One run through a crash: a process dies at a named point, is started again without it, and everything must come to one true
//! state within a bound.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use holdfast_common::report::Disposition;
use holdfast_proto::v1::{AttestedRunner, AttestedTarget, DecisionKind, Deployment, DeploymentState, SubmitRequest};
use holdfast_tests::api::{Operator, code_of, is_terminal, state_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::command_target;
use holdfast_tests::ledger::Ledger;
use holdfast_tests::process::last_lines;
use holdfast_tests::small_disk::{Of, RESERVE, SmallDisk};
use holdfast_tests::wait;
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use uuid::Uuid;

use crate::PROGRAM;
use crate::full::filling::{Filling, says_full};

/// The agents of a case.
pub(crate) const AGENTS: [&str; 2] = ["web-01", "web-02"];
const CRASH: &str = "HOLDFAST_CRASH";
const NOTE: &str = "HOLDFAST_CRASH_NOTE";
/// The target of a case.
pub(crate) const TARGET: &str = "shop@prod";

/// A cluster in which a process is about to die.
pub(crate) struct Case {
    cluster: Cluster,
    /// Where a process leaves the name of the point at which it dies.
    note: PathBuf,
    point: String,
    /// How often a coordinator or an agent died there.
    died: u32,
    /// Where the agents die after they died the first time.
    pub(crate) next_point: Option<String>,
    /// Whether the agents are killed when the coordinator dies.
    pub(crate) takes_agents_along: bool,
    /// What is filled when a process stops at the point.
    pub(crate) filling: Option<Filling>,
}

impl Case {
    /// Nothing runs yet but the coordinator, which knows the target.
    pub(crate) async fn prepare(plan: Plan) -> Self {
        Self::of(plan.prepare().await).await
    }

    async fn of(mut cluster: Cluster) -> Self {
        cluster.start_coordinator().await;
        cluster.operator().apply_target(&target()).await;
        let note = cluster.folder().join("crash.note");
        let (point, next_point) = (String::new(), None);
        Self { cluster, note, point, died: 0, next_point, takes_agents_along: false, filling: None }
    }

    async fn on_small_disks(folders: &[&str], of: Of, free_when_told: bool) -> Self {
        let (cluster, disks) = on_small_disks(folders).await;
        let mut case = Self::of(cluster).await;
        case.filling = Some(Filling::begin(case.cluster.folder().path(), &case.note, disks, of, free_when_told));
        case
    }

    /// The coordinator's disk is filled while it stands still at that point, `coordinator:name:n=stop`.
    pub(crate) async fn coordinator_fills_at(point: &str, of: Of, free_when_told: bool) -> Self {
        let mut case = Self::on_small_disks(&["coordinator"], of, free_when_told).await;
        case.arm_coordinator(point).await;
        case
    }

    /// The agents' disks are filled while an agent or a shim stands still at that point, `name:n=stop`.
    pub(crate) async fn agent_fills_at(point: &str, of: Of, free_when_told: bool) -> Self {
        let mut case = Self::on_small_disks(&AGENTS, of, free_when_told).await;
        case.arm_agents(point);
        AGENTS.iter().for_each(|name| case.cluster.agent(name).start());
        case
    }

    /// The coordinator of this case dies at that point, `coordinator:name:n`. Everything runs when this returns.
    pub(crate) async fn coordinator_at(point: &str) -> Self {
        let mut case = Self::prepare(Plan::new(PROGRAM).agents(&AGENTS)).await;
        case.arm_coordinator(point).await;
        case
    }

    async fn arm_coordinator(&mut self, point: &str) {
        self.point = point.to_owned();
        self.filling.iter().for_each(|filling| filling.watch(point));
        let note = self.note.to_str().expect("plain text").to_owned();
        let environment = &mut self.cluster.coordinator().settings().environment;
        environment.insert(CRASH.to_owned(), point.to_owned());
        environment.insert(NOTE.to_owned(), note);
        self.cluster.restart_coordinator().await;
        AGENTS.iter().for_each(|name| self.cluster.agent(name).start());
    }

    /// The agents of this case die at that point, `name:n`, and so do their shims. Everything runs when this returns.
    pub(crate) async fn agent_at(point: &str) -> Self {
        let mut case = Self::prepare(Plan::new(PROGRAM).agents(&AGENTS)).await;
        case.arm_agents(point);
        AGENTS.iter().for_each(|name| case.cluster.agent(name).start());
        case
    }

    /// Agents that are started from now on die at that point.
    pub(crate) fn arm_agents(&mut self, point: &str) {
        self.point = point.to_owned();
        self.filling.iter().for_each(|filling| filling.watch(point));
        let _was_not_there = fs::remove_file(&self.note);
        let note = self.note.to_str().expect("plain text").to_owned();
        for name in AGENTS {
            let environment = &mut self.cluster.agent(name).settings().environment;
            environment.insert(CRASH.to_owned(), point.to_owned());
            environment.insert(NOTE.to_owned(), note.clone());
        }
    }

    /// The ledger of the target.
    pub(crate) fn ledger(&self) -> Ledger {
        self.cluster.ledger("box")
    }

    /// How often a coordinator or an agent died at the point.
    pub(crate) fn died(&self) -> u32 {
        self.died
    }

    /// Starts again what died, without the point. Panics where something died elsewhere.
    pub(crate) async fn revive(&mut self) {
        if let Some(status) = self.cluster.coordinator().status() {
            self.expect_abort("coordinator", status);
            if self.takes_agents_along {
                AGENTS.iter().for_each(|name| self.cluster.agent(name).kill());
                AGENTS.iter().for_each(|name| self.cluster.agent(name).start());
            }
            self.cluster.coordinator().settings().environment.remove(CRASH);
            self.cluster.start_coordinator().await;
        }
        for name in AGENTS {
            if let Some(status) = self.cluster.agent(name).status() {
                self.expect_abort(name, status);
                self.cluster.agent(name).settings().environment.remove(CRASH);
                self.die_again();
                self.cluster.agent(name).start();
            }
        }
    }

    /// The other agent may be armed with the first point still, so both start anew.
    fn die_again(&mut self) {
        if let Some(point) = self.next_point.take() {
            self.died = 0;
            self.arm_agents(&point);
            AGENTS.iter().for_each(|name| self.cluster.agent(name).start());
        }
    }

    /// Waits until the command under test has begun.
    pub(crate) async fn until_begun(&mut self) {
        let ledger = self.ledger();
        self.until("a begin in the ledger", async |_| {
            if ledger.intervals().is_empty() { Err("none".to_owned()) } else { Ok(()) }
        })
        .await;
    }

    fn expect_abort(&mut self, name: &str, status: std::process::ExitStatus) {
        let log = last_lines(&self.cluster.folder().join(&format!("{name}.log")), 20);
        assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()), "{name} ended with {status}:\n{log}");
        assert!(self.was_reached(), "{name} aborted, but not at {}:\n{log}", self.point);
        self.died += 1;
    }

    /// Whether a process was at the point and died there. Shims leave the same note.
    fn was_reached(&self) -> bool {
        let armed = self.point.trim_start_matches("coordinator:");
        let name = armed.split(':').next().unwrap_or_default();
        fs::read_to_string(&self.note).is_ok_and(|note| note == name)
    }

    /// Waits until a service has said that its disk is full.
    pub(crate) async fn until_said_full(&mut self) {
        wait::until("a service to say that its disk is full", wait::SOON, async || {
            self.revive().await;
            if says_full(self.cluster.folder().path()) { Ok(()) } else { Err("none has".to_owned()) }
        })
        .await;
    }

    /// Waits until a process has died at the point, which may be later than all that others see. A shim's death is not seen
    /// but by its note.
    pub(crate) async fn until_died(&mut self, in_shim: bool) {
        let note = self.note.clone();
        self.until("a process to die", async |_| {
            let note = fs::read_to_string(&note);
            note.map(drop).map_err(|_| "the point was never reached".to_owned())
        })
        .await;
        wait::until("its death to be seen", wait::SOON, async || {
            self.revive().await;
            if in_shim || self.died > 0 { Ok(()) } else { Err("none died".to_owned()) }
        })
        .await;
        assert!(self.was_reached(), "another point than {}", self.point);
    }

    /// Looks until there is an answer, and starts again meanwhile what died.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        mut look: impl AsyncFnMut(&Operator) -> Result<T, String>,
    ) -> T {
        let what = format!("{what} (point {})", self.point);
        let operator = self.cluster.operator();
        wait::until(&what, wait::SOON, async || {
            self.revive().await;
            look(&operator).await
        })
        .await
    }

    /// Submits, again and again under one request id until there is an answer. Gives the label.
    pub(crate) async fn submit(&mut self, file: &str) -> String {
        let request =
            SubmitRequest { request_id: Uuid::now_v7().to_string(), file: file.to_owned(), ..SubmitRequest::default() };
        let deployment = self
            .until("the submission to be recorded", async |operator| {
                let answer = operator.client.clone().submit(request.clone()).await;
                answer.map(tonic::Response::into_inner).map_err(|status| status.to_string())
            })
            .await
            .deployment;
        holdfast_tests::api::label_of(&deployment.expect("the answer shows the deployment"))
    }

    /// Waits until the deployment is as described.
    pub(crate) async fn deployment(
        &mut self,
        label: &str,
        what: &str,
        is_so: impl Fn(&Deployment) -> bool,
    ) -> Deployment {
        self.until(&format!("{label} to be {what}"), async |operator| {
            let found = operator.try_deployment(label).await.map_err(|status| status.to_string())?;
            if is_so(&found) { Ok(found) } else { Err(told(&found)) }
        })
        .await
    }

    /// Asks for a stop until that is recorded, or until it has ended.
    pub(crate) async fn cancel(&mut self, label: &str) {
        self.until("the request to stop to be recorded", async |operator| {
            let found = operator.try_deployment(label).await.map_err(|status| status.to_string())?;
            if is_terminal(state_of(&found)) || found.cancellation.is_some() {
                return Ok(());
            }
            let request = holdfast_proto::v1::CancelDeploymentRequest {
                deployment: label.to_owned(),
                reason: "a test asks".to_owned(),
            };
            let answer = operator.client.clone().cancel(request).await;
            answer.map(drop).map_err(|status| status.to_string())
        })
        .await;
    }

    /// Waits for one true state: terminal; or uncertain or held, with a reason, and with somebody who can act.
    pub(crate) async fn settled(&mut self, label: &str) -> Deployment {
        let settled = self.deployment(label, "settled", is_settled).await;
        if !is_terminal(state_of(&settled)) {
            let target = self
                .until("the target", async |operator| {
                    let request = holdfast_proto::v1::GetTargetRequest { target: TARGET.to_owned() };
                    let answer = operator.client.clone().get_target(request).await;
                    answer.map_err(|status| status.to_string())?.into_inner().target.ok_or_else(String::new)
                })
                .await;
            let because = &settled.summary.as_ref().expect("a summary").because;
            assert!(!because.is_empty(), "{label} says not why it is {}", told(&settled));
            assert!(!target.who_can_act.is_empty(), "{label} says not who can act: {target:?}");
            assert!(settled.holds_target, "{label} holds nothing: {}", told(&settled));
        }
        settled
    }

    /// Attests and gives it up, again and again until it has ended.
    pub(crate) async fn give_up(&mut self, label: &str) -> Deployment {
        let ledger = self.ledger();
        self.attest(label, &ledger).await;
        self.decide(label, DecisionKind::Abandon).await
    }

    /// Attests that the host is gone and its work is in part done.
    pub(crate) async fn attest(&mut self, label: &str, ledger: &Ledger) {
        let id = self.deployment(label, "there", |_| true).await.summary.expect("a summary").id;
        self.until("the attestation to be recorded", async |operator| {
            let attested = operator.attest(label, TARGET, AttestedRunner::HostGone, AttestedTarget::Partial).await;
            attested.map(drop).map_err(|status| status.to_string())
        })
        .await;
        ledger.attested(&id);
    }

    /// Decides until the decision is recorded, and waits for the end.
    pub(crate) async fn decide(&mut self, label: &str, kind: DecisionKind) -> Deployment {
        self.until("the decision to be recorded", async |operator| {
            let found = operator.try_deployment(label).await.map_err(|status| status.to_string())?;
            if is_terminal(state_of(&found)) {
                return Ok(found);
            }
            let request = holdfast_proto::v1::GetReconciliationRequest { deployment: label.to_owned() };
            let checklist = operator.client.clone().get_reconciliation(request).await;
            let checklist = checklist.map_err(|status| status.to_string())?.into_inner().reconciliation;
            let request = holdfast_proto::v1::DecideRequest {
                deployment: label.to_owned(),
                kind: kind.into(),
                reason: "a test decides".to_owned(),
                evidence_sequence: checklist.expect("the checklist").evidence_sequence,
                confirm: TARGET.to_owned(),
            };
            let answer = operator.client.clone().decide(request).await;
            Err(answer.map_or_else(|status| format!("{} {status}", code_of(&status)), |_| "decided".to_owned()))
        })
        .await
    }

    /// Takes a deployment that is not terminal to its end: what has not ended takes a request to stop, and what is uncertain or
    /// held a decision.
    pub(crate) async fn bring_to_its_end(&mut self, label: &str) -> Deployment {
        self.cancel(label).await;
        let settled = self.settled(label).await;
        if is_terminal(state_of(&settled)) { settled } else { self.give_up(label).await }
    }

    /// What must hold after every case, whatever died: no attempt began twice, no two overlap, every report that an agent
    /// journaled has its one answer on both sides, and every hash and state of the store follows from its events.
    pub(crate) async fn check(mut self) {
        self.ledger().check();
        let mut begun = std::collections::BTreeMap::new();
        for interval in self.ledger().intervals() {
            let times = begun.entry((interval.operation, interval.attempt)).or_insert(0);
            *times += 1;
            assert_eq!(*times, 1, "an attempt began a step twice: {:#?}", self.ledger().intervals());
        }
        for name in AGENTS {
            self.reports_add_up(name).await;
        }
        self.revive().await;
        assert!(self.cluster.coordinator().terminate().await.success());
        let _said = self.cluster.coordinator().run(&["verify"]);
    }

    async fn reports_add_up(&mut self, agent: &str) {
        let journal = self.cluster.agent(agent).state().join("journal.sqlite");
        let (store, seen) = (self.cluster.coordinator().store(), self.cluster.folder().join(&format!("seen-{agent}")));
        self.until(&format!("the reports of {agent} to be answered"), async |_| {
            let read = |error: rusqlite::Error| error.to_string();
            let copy = copied(&journal, &seen).map_err(|error| error.to_string())?;
            let journaled = journaled(&copy).map_err(read)?;
            let answered = answered(&store, &incarnation(&copy).map_err(read)?).map_err(read)?;
            let sequences: Vec<u64> = answered.iter().map(|(sequence, _)| *sequence).collect();
            let wanted: Vec<u64> = journaled.iter().map(|(sequence, _)| *sequence).collect();
            if sequences != wanted {
                return Err(format!("journaled {journaled:?}, answered {answered:?}"));
            }
            for ((sequence, heard), (_, said)) in journaled.iter().zip(&answered) {
                let Some(heard) = heard else { return Err(format!("report {sequence} has no answer yet")) };
                assert!(
                    heard == said || *heard == Disposition::Duplicate,
                    "report {sequence}: {said:?}, heard {heard:?}"
                );
            }
            Ok(())
        })
        .await;
    }
}

/// A cluster of which these folders are small disks, and whose reserves are small. Nothing runs yet.
pub(crate) async fn on_small_disks(folders: &[&str]) -> (Cluster, Vec<SmallDisk>) {
    const RESERVE_BYTES: &str = "HOLDFAST_DISK_RESERVE_BYTES";
    let plan = Plan::new(PROGRAM).agents(&AGENTS);
    let plan = plan.coordinator_environment(RESERVE_BYTES, RESERVE).agent_environment(RESERVE_BYTES, RESERVE);
    let cluster = plan.prepare().await;
    let disks = folders.iter().map(|folder| SmallDisk::at(&cluster.folder().join(folder))).collect();
    (cluster, disks)
}

/// Terminal, or waiting for a decision.
pub(crate) fn is_settled(deployment: &Deployment) -> bool {
    let state = state_of(deployment);
    is_terminal(state) || matches!(state, DeploymentState::Uncertain | DeploymentState::Held)
}

fn told(deployment: &Deployment) -> String {
    let because = deployment.summary.as_ref().map(|summary| summary.because.as_str()).unwrap_or_default();
    format!("{} because {because} (waits: {})", state_of(deployment).as_str_name(), deployment.waiting)
}

/// A box that commands change and that can be looked at, though that says nothing.
fn target() -> String {
    command_target(TARGET, false).replace("outlives = false", "outlives = false, inspect = [\"echo\", \"v0\"]")
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// A journal as it is on the disk, in another folder: its agent lets nobody else open it.
fn copied(journal: &Path, into: &Path) -> io::Result<PathBuf> {
    let copy = into.join("journal.sqlite");
    let beside = |path: &Path, ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    fs::create_dir_all(into)?;
    fs::copy(journal, &copy)?;
    for ending in ["-wal", "-shm"] {
        absent(fs::remove_file(beside(&copy, ending)))?;
    }
    // There is none after an orderly end.
    absent(fs::copy(beside(journal, "-wal"), beside(&copy, "-wal")).map(drop))?;
    Ok(copy)
}

fn absent(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn incarnation(journal: &Path) -> rusqlite::Result<String> {
    open(journal)?.query_row("SELECT incarnation FROM identity", [], |row| row.get(0))
}

/// Sequences of reports and the answers that the agent heard.
fn journaled(journal: &Path) -> rusqlite::Result<Vec<(u64, Option<Disposition>)>> {
    rows(&open(journal)?, "SELECT sequence, answer FROM outbox ORDER BY sequence", [])
}

/// Sequences of reports and the answers that the coordinator keeps, reports on nothing that it knows included.
fn answered(store: &Path, incarnation: &str) -> rusqlite::Result<Vec<(u64, Disposition)>> {
    let found: Vec<(u64, Option<Disposition>)> = rows(
        &open(store)?,
        "SELECT sequence, disposition FROM reports WHERE incarnation = ?1
         UNION ALL
         SELECT sequence, '{\"disposition\":\"filed\",\"reason\":\"unknown_attempt\"}' FROM orphan_reports
         WHERE incarnation = ?1 ORDER BY sequence",
        [incarnation],
    )?;
    Ok(found.into_iter().map(|(sequence, said)| (sequence, said.expect("never empty"))).collect())
}

fn rows(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> rusqlite::Result<Vec<(u64, Option<Disposition>)>> {
    let mut statement = connection.prepare(sql)?;
    let read = |row: &rusqlite::Row<'_>| {
        let answer: Option<String> = row.get(1)?;
        let answer = answer.map(|text| serde_json::from_str(&text).expect("a disposition"));
        Ok((u64::try_from(row.get::<_, i64>(0)?).expect("a sequence"), answer))
    };
    statement.query_map(parameters, read)?.collect()
}

//! A store that the real driver fills, stepped by hand: many deployments for each commit while it is filled, one message for
//! each step while it is measured.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::FutureExt as _;
use holdfast_common::adapter::Adapter;
use holdfast_common::claim::Claim;
use holdfast_common::file::{DeploymentFile, TargetFile};
use holdfast_common::id::{
    AgentName, IncarnationId, OperatorName, RequestId, ResourceName, StepName, StoreId, TargetName,
};
use holdfast_common::outcome::{AttemptEnd, Exit, StepEnd};
use holdfast_common::report::{Disposition, Report, ReportBody, ReportSequence};
use holdfast_common::spec::{DeploymentSpec, PlanDigest, TargetSpec};
use holdfast_common::time::Wall;
use holdfast_coordinator::driver::thread::SystemClock;
use holdfast_coordinator::driver::{Asked, Driver, Error, Handle, Inbox, Moment, Sessions, Settings, Told, channel};
use holdfast_coordinator::store::rows::DeploymentFilter;
use holdfast_coordinator::store::sqlite::SqliteStore;
use holdfast_coordinator::store::{Reader, Store as _};
use holdfast_coordinator_core::input::{Candidate, Speaker};
use holdfast_coordinator_core::{Effect, TargetState};
use holdfast_tests::{files, fleet};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use uuid::Uuid;

const STEP: &str = "change";
const LEASE: Duration = Duration::from_secs(3600);
/// What an agent says of one deployment.
const WORDS: usize = 5;

/// Shelves by the names of their targets.
pub(crate) type Shelves = BTreeMap<TargetName, Shelf>;

/// A driver on a store of its own, and one agent that takes everything.
pub(crate) struct Stored {
    reader: Reader,
    driver: Driver<SqliteStore>,
    handle: Handle,
    inbox: Inbox,
    clock: SystemClock,
    offers: Arc<Offers>,
    incarnation: IncarnationId,
    reports: u64,
    deployments: u64,
}

/// One target and what is deployed to it.
pub(crate) struct Shelf {
    name: TargetName,
    spec: DeploymentSpec,
    plan: PlanDigest,
}

/// Every agent that the driver may know: one. Its offers wait here.
struct Offers {
    incarnation: IncarnationId,
    waiting: Mutex<Vec<(TargetName, Claim)>>,
}

impl Sessions for Offers {
    fn stand(&self, _: &AgentName, _: &holdfast_coordinator_core::identity::Identity) {}

    fn candidates(&self, _target: &TargetSpec, _needs: &BTreeSet<Adapter>) -> Vec<Candidate> {
        vec![Candidate { agent: agent(), incarnation: Some(self.incarnation), unfit: None }]
    }

    fn reachable(&self, _: &TargetSpec, _: &ResourceName, _: Option<&AgentName>) -> Vec<AgentName> {
        vec![agent()]
    }

    fn suspects_itself(&self) -> bool {
        false
    }

    fn stands(&self, _agent: &AgentName) {}

    fn send(&self, state: &TargetState, effect: &Effect) {
        if let Effect::Offer { claim, .. } = effect {
            let offer = (state.spec.name.clone(), *claim);
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(offer);
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Told, Error>>>>;

impl Stored {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let store = SqliteStore::open(path, StoreId(Uuid::new_v4()), Wall(1))?;
        let (reader, incarnation) = (store.reader(), IncarnationId(Uuid::new_v4()));
        let offers = Arc::new(Offers { incarnation, waiting: Mutex::default() });
        let (handle, inbox) = channel();
        let clock = SystemClock::new();
        let random = Box::new(StdRng::from_os_rng());
        let sessions = Arc::clone(&offers) as Arc<dyn Sessions>;
        let driver = Driver::open(store, sessions, random, Settings::default(), &inbox, Moment::of(&clock))?;
        Ok(Self { reader, driver, handle, inbox, clock, offers, incarnation, reports: 0, deployments: 0 })
    }

    /// Deployments that this driver has led to their end.
    pub(crate) fn deployments(&self) -> u64 {
        self.deployments
    }

    /// Deployments in the store, whoever led them: those of each target are numbered.
    pub(crate) fn stored_deployments(&self) -> anyhow::Result<u64> {
        let mut count = 0;
        for target in self.reader.targets()? {
            let last = DeploymentFilter { target: Some(target.spec.name), limit: 1, ..DeploymentFilter::default() };
            count += self.reader.deployments(&last)?.first().map_or(0, |row| row.record.number);
        }
        Ok(count)
    }

    /// Events in the store.
    pub(crate) fn events(&self) -> anyhow::Result<u64> {
        Ok(self.reader.newest()?.0)
    }

    /// Declares so many targets.
    pub(crate) fn shelves(&mut self, group: &str, count: usize) -> anyhow::Result<Shelves> {
        let named = (0..count).map(|index| format!("{group}@{index}"));
        named.map(|name| self.shelf(&name).map(|shelf| (shelf.name.clone(), shelf))).collect()
    }

    fn shelf(&mut self, name: &str) -> anyhow::Result<Shelf> {
        let target = TargetFile::parse(&fleet::target(name, 0))?;
        let text = files::DeploymentFile::new(name, LEASE).mutates(STEP, "idempotent", &fleet::at_once());
        let spec = DeploymentFile::parse(text.text())?.resolve(&BTreeMap::new(), None, &target)?;
        let shelf = Shelf { name: target.name.clone(), plan: PlanDigest::of(&spec, &target), spec };
        let declared = self.ask(&shelf, Asked::Declare { spec: target, by: operator() });
        self.step()?;
        told(declared)?;
        Ok(shelf)
    }

    /// So many deployments to each shelf, from the submission to the success. One commit covers the end of one on each shelf
    /// and the submission of the next.
    pub(crate) fn fill(&mut self, shelves: &Shelves, rounds: u64) -> anyhow::Result<()> {
        let mut answers: Vec<Answer> = shelves.values().map(|shelf| self.submit(shelf)).collect();
        for round in 1..=rounds {
            for (target, claim) in self.offered()? {
                let shelf = shelves.get(&target).with_context(|| format!("an offer of another target: {target}"))?;
                answers.extend((0..WORDS).map(|index| self.word(shelf, claim, index)));
                answers.extend((round < rounds).then(|| self.submit(shelf)));
            }
            self.step()?;
            answers.drain(..).try_for_each(told)?;
            self.deployments += shelves.len() as u64;
        }
        Ok(())
    }

    /// One deployment, one step of the driver for each message, as it is when nothing else goes on.
    pub(crate) fn deploy(&mut self, shelf: &Shelf) -> anyhow::Result<()> {
        let submitted = self.submit(shelf);
        let offered = self.offered()?;
        let [(_, claim)] = offered.as_slice() else { bail!("not one offer: {offered:?}") };
        told(submitted)?;
        for index in 0..WORDS {
            let answer = self.word(shelf, *claim, index);
            self.step()?;
            told(answer)?;
        }
        self.deployments += 1;
        Ok(())
    }

    fn submit(&mut self, shelf: &Shelf) -> Answer {
        let (request, digest) = (RequestId(Uuid::new_v4()), [0; 32]);
        let asked = Asked::Submit { request, digest, spec: shelf.spec.clone(), by: operator(), no_queue: false };
        self.ask(shelf, asked)
    }

    /// What an agent says of an attempt that goes well, in order.
    fn word(&mut self, shelf: &Shelf, claim: Claim, index: usize) -> Answer {
        let speaker = Speaker { agent: agent(), incarnation: self.incarnation };
        let (step, plan) = (step(), shelf.plan.clone());
        let body = match index {
            0 => return self.ask(shelf, Asked::OfferAnswered { speaker, claim, declined: None }),
            1 => return self.ask(shelf, Asked::PermitRequested { speaker, claim, step, plan }),
            2 => ReportBody::StepStarted { step },
            3 => ReportBody::StepEnded {
                step,
                end: StepEnd::Applied,
                exit: Some(Exit::Exited(0)),
                observed: None,
                detail: String::new(),
            },
            _ => ReportBody::AttemptEnded { end: AttemptEnd::Succeeded },
        };
        self.reports += 1;
        let report = Report { sequence: ReportSequence(self.reports), said_at: Wall(1), body };
        self.ask(shelf, Asked::Reported { speaker, claim, report })
    }

    /// In the inbox when it returns.
    fn ask(&mut self, shelf: &Shelf, asked: Asked) -> Answer {
        let (handle, target) = (self.handle.clone(), shelf.name.clone());
        let mut answer: Answer = Box::pin(async move { handle.ask(target, asked).await });
        let early = (&mut answer).now_or_never();
        debug_assert!(early.is_none(), "answered before the step");
        answer
    }

    /// What was offered since the last time.
    fn offered(&mut self) -> anyhow::Result<Vec<(TargetName, Claim)>> {
        self.step()?;
        Ok(std::mem::take(&mut *self.offers.waiting.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Until the inbox is empty.
    fn step(&mut self) -> anyhow::Result<()> {
        loop {
            let taken = self.inbox.take_now();
            if taken.messages.is_empty() {
                return Ok(());
            }
            self.driver.step(taken.messages, Moment::of(&self.clock))?;
        }
    }
}

fn told(answer: Answer) -> anyhow::Result<()> {
    let told = answer.now_or_never().context("not answered by the step")??;
    match told.answer {
        holdfast_coordinator_core::Answer::Denied(why) => bail!("the permit was denied: {why:?}"),
        holdfast_coordinator_core::Answer::Answered(Disposition::Filed(why)) => bail!("a report was filed: {why:?}"),
        _ => Ok(()),
    }
}

fn agent() -> AgentName {
    AgentName::new(fleet::name(0)).expect("a name")
}

fn operator() -> OperatorName {
    OperatorName::new("bench").expect("a name")
}

fn step() -> StepName {
    StepName::new(STEP).expect("a name")
}

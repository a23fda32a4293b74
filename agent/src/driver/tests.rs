//! The driver with a real journal; its hands only note what they are told, so that the order of durable, said and done
//! shows.

mod clocks;
mod leases;
mod leaving;
mod room;
mod sessions;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;

use holdfast_agent_core::work::{Assignment, Boot};
use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, IncarnationId, ResourceName, SessionId, StepName, StoreId, TargetName,
};
use holdfast_common::outcome::{Exit, StepEnd};
use holdfast_common::report::PermitDenial;
use holdfast_common::spec::{PlanDigest, RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::time::{Millis, Wall};
use holdfast_proto::v1::connect_request::Message;
use holdfast_proto::v1::{self, ConnectRequest};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{Clock, Driver, Event, HandEvent, Hands, Told};
use crate::config::{self, Config};
use crate::journal::Journal;
use crate::session::{FromCoordinator, Hurry, Inquiry, Welcome};

/// What was told, until when the last launch may begin, and how many attempts have outputs that are not sent.
#[derive(Clone, Default)]
struct Noted(Rc<RefCell<Vec<String>>>, Rc<RefCell<Option<Boot>>>, Rc<RefCell<usize>>);

impl Noted {
    fn note(&self, what: &str, step: &StepSpec) {
        self.0.borrow_mut().push(format!("{what} {}", step.name));
    }
}

impl Hands for Noted {
    fn reread(&mut self, _: &Assignment, step: &StepSpec) {
        self.note("reread", step);
    }

    fn examine(&mut self, _: &Assignment, step: &StepSpec) {
        self.note("examine", step);
    }

    fn launch(&mut self, _: &Assignment, step: &StepSpec, not_after: Option<Boot>) {
        assert!(not_after.is_some(), "a launch has the end of the lease's count");
        *self.1.borrow_mut() = not_after;
        self.note("launch", step);
    }

    fn stop(&mut self, _: &Assignment, step: &StepSpec) {
        self.note("stop", step);
    }

    fn tombstone(&mut self, _: &Assignment, step: &StepSpec) {
        self.note("tombstone", step);
    }

    fn survey(&mut self, _: &Assignment, step: &StepSpec) {
        self.note("survey", step);
    }

    fn unsent(&self) -> usize {
        *self.2.borrow()
    }

    fn inquire(&mut self, inquiry: Inquiry) {
        self.0.borrow_mut().push(format!("inquire {}", inquiry.resource.name));
    }
}

/// Milliseconds since boot, and the wall clock's microseconds.
#[derive(Clone)]
struct Hand(Rc<RefCell<u64>>, Rc<RefCell<i64>>);

impl Clock for Hand {
    fn wall(&self) -> Wall {
        Wall(*self.1.borrow())
    }

    fn boot(&self) -> Boot {
        Boot(*self.0.borrow())
    }
}

/// One agent, its folder, and the coordinator's end of its session.
struct Agent {
    folder: PathBuf,
    noted: Noted,
    now: Hand,
    driver: Option<Driver<Noted, Hand>>,
    said: Option<mpsc::Receiver<ConnectRequest>>,
}

impl Agent {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("holdfast-driver-{}", Uuid::new_v4()));
        let now = Hand(Rc::new(RefCell::new(1_000)), Rc::default());
        let mut agent = Self { folder, noted: Noted::default(), now, driver: None, said: None };
        agent.restart();
        agent
    }

    fn restart(&mut self) {
        self.driver = None;
        self.said = None;
        self.noted.0.borrow_mut().clear();
        let journal = Journal::open(&self.folder, IncarnationId(Uuid::new_v4())).unwrap();
        let driver = Driver::new(journal, self.noted.clone(), self.now.clone(), config(&self.folder)).unwrap();
        self.driver = Some(driver);
    }

    fn step(&mut self, event: Event) {
        self.driver.as_mut().unwrap().step(vec![event]);
    }

    fn connect(&mut self, session: u128, commit: u64) {
        let (outgoing, said) = mpsc::channel(64);
        let welcome = Welcome {
            session: SessionId(Uuid::from_u128(session)),
            token: "token".to_owned(),
            store: StoreId(Uuid::from_u128(7)),
            epoch: 1,
            commit,
            heartbeat: Millis(500),
            agent: AgentName::new("web-01").unwrap(),
            max_text_bytes: 64,
            max_log_bytes: 1_000,
            reconnect_spread: None,
        };
        self.step(Event::Up(welcome, outgoing));
        self.said = Some(said);
    }

    fn down(&mut self) -> Hurry {
        let (reply, mut answer) = oneshot::channel();
        self.step(Event::Down(reply));
        answer.try_recv().expect("it is answered at once")
    }

    fn tell(&mut self, session: u128, message: FromCoordinator) {
        self.step(Event::Message(SessionId(Uuid::from_u128(session)), message));
    }

    fn said(&mut self) -> Vec<Message> {
        let mut said = Vec::new();
        while let Some(Ok(request)) = self.said.as_mut().map(mpsc::Receiver::try_recv) {
            said.extend(request.message);
        }
        said
    }

    fn did(&self) -> Vec<String> {
        std::mem::take(&mut self.noted.0.borrow_mut())
    }

    /// Up to a launched mutating step.
    fn launched(&mut self) {
        self.connect(1, 1);
        self.tell(1, offer());
        self.tell(1, permit(None));
        assert_eq!(self.did(), ["launch switch"]);
        self.said();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn config(folder: &std::path::Path) -> Config {
    Config {
        state_dir: folder.to_owned(),
        coordinator: config::Coordinator {
            address: "127.0.0.1:1".parse().expect("an address"),
            ca: None,
            server_name: None,
        },
        identity: config::Identity::default(),
        labels: BTreeMap::new(),
        policy: config::Policy { targets: vec!["shop@*".to_owned()], ..config::Policy::default() },
        resource: Vec::new(),
        external: std::collections::BTreeMap::new(),
        fetch: config::Fetch::default(),
        machine: config::Machine::default(),
        disk: config::Disk::default(),
        supervisor: config::Supervisor::default(),
        limits: config::Limits::default(),
        keep: config::Keep::default(),
        log: config::Log::default(),
        ops: holdfast_net::ops::Settings::default(),
        stop: config::Stop::default(),
    }
}

fn claim() -> Claim {
    Claim {
        deployment: DeploymentId(Uuid::from_u128(1)),
        attempt: AttemptId(Uuid::from_u128(2)),
        fence: Fence::first(Epoch(1)).unwrap(),
    }
}

fn step_name() -> StepName {
    StepName::new("switch").unwrap()
}

fn offer_on(target: &str) -> FromCoordinator {
    let step = StepSpec {
        name: step_name(),
        effect: StepEffect::Mutates,
        resource: Some(ResourceName::new("site").unwrap()),
        retry: RetryClass::Unsafe,
        body: StepBody::Command { argv: vec!["true".to_owned()] },
        revision: None,
        expected_revision: None,
        timeout: None,
        data: holdfast_common::rollback::DataEffect::None,
    };
    let assignment = Assignment {
        claim: claim(),
        target: TargetName::new(target).unwrap(),
        number: 1,
        plan: PlanDigest("plan".to_owned()),
        steps: vec![step],
        resources: Vec::new(),
        carried: BTreeSet::new(),
        grace: Millis(10),
        goes_on: None,
        carries: Vec::new(),
        transient_exit_codes: BTreeSet::new(),
    };
    FromCoordinator::Offer { assignment: Box::new(assignment), ttl: Millis(10_000) }
}

fn offer() -> FromCoordinator {
    offer_on("shop@prod")
}

/// One that takes more room in the journal than is left in any page.
fn large_offer() -> FromCoordinator {
    let FromCoordinator::Offer { mut assignment, ttl } = offer() else { unreachable!("an offer") };
    assignment.steps[0].body = StepBody::Command { argv: vec!["x".repeat(100_000)] };
    FromCoordinator::Offer { assignment, ttl }
}

fn permit(denial: Option<PermitDenial>) -> FromCoordinator {
    FromCoordinator::Permit { claim: claim(), step: step_name(), denial }
}

fn ended(detail: &str) -> Event {
    let told = Told { end: StepEnd::Applied, exit: Some(Exit::Exited(0)), observed: None, detail: detail.to_owned() };
    Event::Hand(HandEvent::Ended(claim().attempt, step_name(), told))
}

fn beats(said: &[Message]) -> Vec<&v1::Heartbeat> {
    said.iter().filter_map(|message| if let Message::Heartbeat(beat) = message { Some(beat) } else { None }).collect()
}

/// The number of the last one.
fn last_beat(said: &[Message]) -> u64 {
    beats(said).last().expect("a heartbeat").number
}

fn reports(said: &[Message]) -> Vec<&v1::Report> {
    said.iter().filter_map(|message| if let Message::Report(report) = message { Some(report) } else { None }).collect()
}

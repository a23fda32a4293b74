//! The driver with a real journal; its hands only note what they are told, so that the order of durable, said and done
//! shows.

mod clocks;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use holdfast_agent_core::work::Assignment;
use holdfast_common::fence::Epoch;
use holdfast_common::id::{AgentName, DeploymentId, IncarnationId, ResourceName, StoreId};
use holdfast_common::outcome::Exit;
use holdfast_common::report::Disposition;
use holdfast_common::spec::{PlanDigest, RetryClass, StepBody, StepEffect};
use holdfast_proto::v1::connect_request::Message;
use holdfast_proto::v1::{self};
use uuid::Uuid;

use super::*;
use crate::config;

/// What was told, and until when the last launch may begin.
#[derive(Clone, Default)]
struct Noted(Rc<RefCell<Vec<String>>>, Rc<RefCell<Option<Boot>>>);

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

#[test]
fn what_finds_no_room_in_the_journal_is_neither_said_nor_done_until_it_is_durable() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.said();
    agent.driver.as_mut().unwrap().journal.bound(true);
    agent.tell(1, large_offer());
    for round in 1..=3 {
        *agent.now.0.borrow_mut() += 500;
        agent.driver.as_mut().unwrap().step(Vec::new());
        let said = agent.said();
        assert!(said.iter().all(|message| matches!(message, Message::Heartbeat(_))), "round {round}: {said:?}");
        assert_eq!(said.len(), 1, "heartbeats go on");
    }
    let (reply, mut hello) = tokio::sync::oneshot::channel();
    agent.step(Event::Hello(reply));
    assert!(hello.try_recv().unwrap().held.is_empty(), "a Hello says what is durable");

    agent.driver.as_mut().unwrap().journal.bound(false);
    agent.driver.as_mut().unwrap().step(Vec::new());
    let said = agent.said();
    let accepted = |message: &&Message| matches!(message, Message::OfferAnswer(_));
    let asked = |message: &&Message| matches!(message, Message::PermitRequest(_));
    assert_eq!((said.iter().filter(accepted).count(), said.iter().filter(asked).count()), (1, 1), "{said:?}");
    agent.restart();
    assert_eq!(agent.driver.as_ref().unwrap().works.len(), 1, "it was durable when it was said");
}

fn detached(said: &[Message]) -> Option<&v1::Detach> {
    said.iter().find_map(|message| if let Message::Detach(detach) = message { Some(detach) } else { None })
}

fn exit(agent: &mut Agent) -> (bool, bool) {
    let exit = &agent.driver.as_ref().unwrap().exit;
    (exit.going.is_cancelled(), exit.stop.is_cancelled())
}

#[test]
fn a_stop_says_how_long_and_what_it_holds_and_then_no_more() {
    let mut agent = Agent::new();
    agent.launched();
    agent.step(Event::Leave);
    let said = agent.said();
    let detach = detached(&said).expect("it says that it goes");
    assert_eq!(detach.away.map(|away| away.seconds), Some(60));
    assert_eq!(detach.claims, [holdfast_proto::convert::claim_to_wire(claim())]);
    assert_eq!(exit(&mut agent), (true, false), "the last word is on its way");
    agent.step(Event::Leave);
    *agent.now.0.borrow_mut() += 5_000;
    agent.step(ended("after"));
    assert!(agent.said().is_empty(), "nothing follows the last word");
    agent.restart();
    assert_eq!(
        agent.driver.as_ref().unwrap().journal.unanswered().unwrap().len(),
        3,
        "what came after it is journaled"
    );
}

#[test]
fn a_loop_without_work_and_contact_turns_all_the_same() {
    let agent = Agent::new();
    assert!(agent.driver.as_ref().unwrap().patience() <= Duration::from_secs(1));
}

#[test]
fn a_stop_without_work_or_without_contact_goes_at_once() {
    let mut idle = Agent::new();
    idle.connect(1, 1);
    idle.step(Event::Leave);
    assert!(detached(&idle.said()).is_none());
    assert_eq!(exit(&mut idle), (true, true));
    let mut alone = Agent::new();
    alone.launched();
    let _ = alone.down();
    alone.step(Event::Leave);
    assert_eq!(exit(&mut alone), (true, true));
}

#[test]
fn a_finish_takes_nothing_new_waits_in_words_and_is_hastened() {
    let mut agent = Agent::new();
    agent.driver.as_mut().unwrap().config.stop.mode = config::StopMode::Finish;
    agent.launched();
    agent.step(Event::Leave);
    assert_eq!(exit(&mut agent), (false, false));
    let line = agent.driver.as_ref().unwrap().standing.line();
    assert_eq!(line, "in contact; stopping, waits for shop@prod: step switch runs, a change");
    let FromCoordinator::Offer { mut assignment, ttl } = offer_on("shop@test") else { unreachable!("an offer") };
    assignment.claim.attempt = AttemptId(Uuid::from_u128(9));
    agent.tell(1, FromCoordinator::Offer { assignment, ttl });
    let declines = |message: &Message| matches!(message, Message::OfferAnswer(answer) if answer.reason() == v1::DeclineReason::Draining);
    assert!(agent.said().iter().any(declines), "it takes nothing new");
    agent.step(Event::Leave);
    assert!(detached(&agent.said()).is_some(), "a second request hastens");
}

#[test]
fn a_finish_goes_when_the_coordinator_has_answered_the_end() {
    let mut agent = Agent::new();
    agent.driver.as_mut().unwrap().config.stop.mode = config::StopMode::Finish;
    agent.launched();
    agent.step(Event::Leave);
    agent.step(ended("done"));
    assert_eq!(exit(&mut agent), (false, false), "its end is not answered");
    for sequence in 1..=3 {
        agent.tell(1, FromCoordinator::Disposition(ReportSequence(sequence), Disposition::Accepted));
    }
    assert_eq!(exit(&mut agent), (true, true), "nothing is held any more");
}

fn permit(denial: Option<PermitDenial>) -> FromCoordinator {
    FromCoordinator::Permit { claim: claim(), step: step_name(), denial }
}

fn ended(detail: &str) -> Event {
    let told = Told { end: StepEnd::Applied, exit: Some(Exit::Exited(0)), observed: None, detail: detail.to_owned() };
    Event::Hand(HandEvent::Ended(claim().attempt, step_name(), told))
}

fn reports(said: &[Message]) -> Vec<&v1::Report> {
    said.iter().filter_map(|message| if let Message::Report(report) = message { Some(report) } else { None }).collect()
}

#[test]
fn offer_is_taken_once_and_leads_to_a_permit_request_under_the_plan() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    let said = agent.said();
    let asked =
        said.iter().find_map(|message| if let Message::PermitRequest(asked) = message { Some(asked) } else { None });
    assert_eq!(asked.unwrap().plan_digest, "plan");
    agent.tell(1, offer());
    let again = agent.said();
    assert!(
        matches!(&again[..], [Message::OfferAnswer(answer)] if answer.kind == v1::OfferAnswerKind::Accepted as i32)
    );
}

#[test]
fn host_policy_is_the_last_wall() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer_on("bank@prod"));
    let said = agent.said();
    let declined = said.iter().any(|message| {
        matches!(message, Message::OfferAnswer(answer) if answer.reason == v1::DeclineReason::HostPolicy as i32)
    });
    assert!(declined);
}

#[test]
fn report_that_was_not_answered_is_said_again_in_the_next_session_and_after_a_restart() {
    let mut agent = Agent::new();
    agent.launched();
    assert_eq!(agent.down(), Hurry::HoldsWork);
    agent.step(ended("done"));
    agent.restart();
    agent.connect(2, 1);
    let said = agent.said();
    let sequences: Vec<u64> = reports(&said).iter().map(|report| report.sequence).collect();
    assert_eq!(sequences, [1, 2, 3], "started, ended, attempt ended");
    for sequence in sequences {
        agent.tell(2, FromCoordinator::Disposition(ReportSequence(sequence), Disposition::Accepted));
    }
    assert_eq!(agent.down(), Hurry::Idle, "nothing is left to say");
    agent.connect(3, 1);
    assert_eq!(reports(&agent.said()), Vec::<&v1::Report>::new());
}

#[test]
fn restarted_agent_looks_at_what_may_run_and_starts_nothing() {
    let mut agent = Agent::new();
    agent.launched();
    agent.restart();
    assert_eq!(agent.did(), ["survey switch"]);
    agent.step(Event::Hand(HandEvent::FoundNotStarted(claim().attempt)));
    assert_eq!(agent.did(), ["tombstone switch"]);
}

#[test]
fn lease_counts_from_when_the_heartbeat_was_sent() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    let said = agent.said();
    let numbers =
        said.iter().filter_map(|message| if let Message::Heartbeat(beat) = message { Some(beat.number) } else { None });
    let number = numbers.max().unwrap();
    // The answer comes when the lease it gives has run out already, counted from the sending.
    *agent.now.0.borrow_mut() = 1_000 + 20_000;
    agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), Some(Millis(10_000)))] });
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["tombstone switch"]);
}

#[test]
fn a_heartbeat_says_what_the_host_has_no_room_for() {
    let mut agent = Agent::new();
    let (_descriptors, watched) = tokio::sync::watch::channel(holdfast_net::room::Descriptors::Enough);
    // More than any disk has.
    let room = HostRoom::on(&agent.folder, 1 << 60, watched);
    agent.driver = agent.driver.take().map(|driver| driver.on(Arc::new(room)));
    agent.connect(1, 1);
    *agent.now.0.borrow_mut() += 1_000;
    agent.driver.as_mut().unwrap().step(Vec::new());
    let said = agent.said();
    let mut beats = said.iter().filter_map(|said| if let Message::Heartbeat(beat) = said { Some(beat) } else { None });
    let no_room = beats.next_back().and_then(|beat| beat.no_room.clone()).expect("it says so");
    assert!(no_room.begins_no_step && no_room.why.contains("the disk is full"), "{no_room:?}");
}

#[test]
fn attempt_is_superseded_also_by_an_answer_to_no_heartbeat_and_never_renewed_by_one() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    agent.said();
    *agent.now.0.borrow_mut() = 1_000 + 20_000;
    agent.tell(1, FromCoordinator::Renewed { number: 0, leases: vec![(claim(), Some(Millis(90_000)))] });
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["tombstone switch"]);
    agent.tell(1, FromCoordinator::Renewed { number: 0, leases: vec![(claim(), None)] });
    agent.said();
    *agent.now.0.borrow_mut() += 1_000;
    agent.step(Event::Hand(HandEvent::Tombstoned(claim().attempt, step_name())));
    let claims = agent
        .said()
        .iter()
        .map(|said| if let Message::Heartbeat(beat) = said { beat.claims.len() } else { 0 })
        .sum::<usize>();
    assert_eq!(claims, 0, "a superseded attempt asks for no lease");
}

#[test]
fn a_lease_that_is_lost_while_its_process_may_run_is_answered_by_a_new_session() {
    for (in_heartbeat, stays) in [(false, true), (true, false)] {
        let mut agent = Agent::new();
        agent.launched();
        *agent.now.0.borrow_mut() += 20_000;
        agent.driver.as_mut().unwrap().step(Vec::new());
        let said = agent.said();
        let beats =
            said.iter().filter_map(|said| if let Message::Heartbeat(beat) = said { Some(beat.number) } else { None });
        let number = if in_heartbeat { beats.max().unwrap() } else { 0 };
        agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), None)] });
        *agent.now.0.borrow_mut() += 20_000;
        agent.driver.as_mut().unwrap().step(Vec::new());
        assert_eq!(!agent.said().is_empty(), stays, "it goes on saying heartbeats in the old session");
        assert_eq!(agent.did(), Vec::<String>::new(), "what changes something runs to its end");
    }
}

#[test]
fn message_of_an_older_session_is_not_heard() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    agent.connect(2, 1);
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), Vec::<String>::new());
}

#[test]
fn coordinator_that_is_behind_what_was_seen_is_not_talked_to() {
    let mut agent = Agent::new();
    agent.connect(1, 9);
    agent.said();
    agent.restart();
    agent.connect(2, 8);
    assert_eq!(agent.said(), Vec::new());
}

#[test]
fn oversized_text_is_cut_and_marked_before_it_is_stored() {
    let mut agent = Agent::new();
    agent.launched();
    agent.step(ended(&"x".repeat(10_000)));
    let said = agent.said();
    let texts: Vec<&str> = reports(&said)
        .iter()
        .filter_map(|report| match &report.body {
            Some(v1::report::Body::StepEnded(ended)) => Some(ended.detail.as_str()),
            Some(_) | None => None,
        })
        .collect();
    assert_eq!(texts.len(), 1);
    assert!(texts[0].len() <= 64 && texts[0].ends_with("[cut]"), "{texts:?}");
}

#[test]
fn looks_beyond_what_a_host_can_do_at_once_are_answered_and_not_begun() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.said();
    let resource = holdfast_common::spec::ResourceSpec {
        name: ResourceName::new("site").unwrap(),
        reach: holdfast_common::spec::Reach::Shared,
        adapter: holdfast_common::spec::ResourceAdapter::Command { inspect: None, outlives: false },
    };
    let FromCoordinator::Offer { assignment, .. } = offer() else { unreachable!("an offer") };
    let inquiry = |number: u128| Inquiry {
        id: EvidenceId(Uuid::from_u128(number)),
        target: assignment.target.clone(),
        resource: resource.clone(),
        operation: holdfast_common::id::OperationId { deployment: claim().deployment, step: step_name() },
        step: assignment.steps[0].clone(),
        question: crate::session::Question::Inspect,
    };
    let ask = |agent: &mut Agent, number| agent.tell(1, FromCoordinator::Inquiry(Box::new(inquiry(number))));
    (0..100).for_each(|number| ask(&mut agent, number));
    assert_eq!(agent.did().len(), LOOKS);
    let answers = agent.said().into_iter().filter(|said| matches!(said, Message::InquiryAnswer(_))).count();
    assert_eq!(answers, 100 - LOOKS, "the others are told at once");
    let done = HandEvent::Inquired(EvidenceId(Uuid::from_u128(0)), Finding::Failed("looked".to_owned()));
    agent.step(Event::Hand(done));
    ask(&mut agent, 100);
    assert_eq!(agent.did().len(), 1, "there is room again");
}

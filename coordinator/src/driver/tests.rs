//! The driver on real files, stepped by hand: what is told is on disk, what is due is handed out, a restart forgets
//! nothing.

mod walk;

use std::collections::BTreeSet;
use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::task::{ArcWake, waker};
use holdfast_common::adapter::Adapter;
use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, DeploymentId, RequestId, ResourceName, StoreId};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::{Disposition, FiledReason, ReportBody};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::{Serving, Wall};
use holdfast_coordinator_core::input::{Candidate, Speaker, Until, Via};
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::{AttemptState, DeploymentState, EvidenceSequence, InquiryKind};
use holdfast_coordinator_core::{Answer, Effect, Event, Refusal, TargetState};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tempfile::TempDir;
use uuid::Uuid;

use super::thread::{SystemClock, spawn};
use super::{Asked, Driver, Error, Handle, Inbox, Moment, Sessions, Settings, Told, channel};
use crate::store::rows::EventFilter;
use crate::store::sqlite::SqliteStore;
use crate::store::suite::{
    candidate, deployment_spec, operator, reports, speaker, step_name, target_name, target_spec,
};
use crate::store::{self, Reader, Store as _};
use crate::verify::{Finding, Kind, Verdict};

/// Agents that are there or not, and what was sent to them.
struct Agents {
    there: AtomicBool,
    /// Whether too many fell silent at once.
    suspect: AtomicBool,
    sent: Mutex<Vec<Effect>>,
    reader: Reader,
    /// Effects that left before the store held what they follow from.
    early: Mutex<Vec<Effect>>,
}

impl Agents {
    fn is_committed(&self, state: &TargetState) -> bool {
        let target = state.spec.name.clone();
        let filter = EventFilter { target: Some(target), limit: 10_000, ..EventFilter::default() };
        let events = self.reader.events(&filter).unwrap();
        events.last().is_some_and(|event| event.recorded.sequence == state.sequence)
    }

    fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

impl Sessions for Agents {
    fn stand(&self, _agent: &AgentName, _identity: &holdfast_coordinator_core::identity::Identity) {}

    fn candidates(&self, _target: &TargetSpec, _needs: &BTreeSet<Adapter>) -> Vec<Candidate> {
        let there = self.there.load(Ordering::Relaxed);
        vec![Candidate { incarnation: candidate().incarnation.filter(|_| there), ..candidate() }]
    }

    fn reachable(&self, _target: &TargetSpec, resource: &ResourceName, _home: Option<&AgentName>) -> Vec<AgentName> {
        assert_eq!(resource.as_str(), "site");
        vec![speaker().agent]
    }

    fn suspects_itself(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    fn stands(&self, _agent: &AgentName) {}

    fn send(&self, state: &TargetState, effect: &Effect) {
        if !self.is_committed(state) {
            self.early.lock().unwrap().push(effect.clone());
        }
        self.sent.lock().unwrap().push(effect.clone());
    }
}

struct Rig {
    folder: TempDir,
    monotonic: Duration,
    /// By how much the wall clock was moved, in microseconds.
    moved: i64,
    /// Each start draws other identities.
    starts: u64,
    agents: Arc<Agents>,
    driver: Option<Driver<SqliteStore>>,
    handle: Handle,
    inbox: Inbox,
}

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(&folder.path().join("store.db"), StoreId(Uuid::from_u128(1)), Wall(1)).unwrap()
}

fn agents(store: &SqliteStore, there: bool) -> Arc<Agents> {
    Arc::new(Agents {
        there: AtomicBool::new(there),
        suspect: AtomicBool::new(false),
        sent: Mutex::default(),
        reader: store.reader(),
        early: Mutex::default(),
    })
}

impl Rig {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let agents = agents(&store, true);
        let (handle, inbox) = channel();
        let mut rig = Self {
            folder,
            monotonic: Duration::from_secs(100),
            moved: 0,
            starts: 0,
            agents,
            driver: None,
            handle,
            inbox,
        };
        rig.start(store);
        rig
    }

    fn start(&mut self, store: SqliteStore) {
        self.starts += 1;
        let random = Box::new(StdRng::seed_from_u64(self.starts));
        let settings = Settings::default();
        let driver = Driver::open(store, self.agents.clone(), random, settings, &self.inbox, self.moment()).unwrap();
        self.driver = Some(driver);
    }

    /// As after `kill -9`, when nothing of it was in time.
    fn crash_and_restart(&mut self) {
        self.driver = None;
        self.agents.take();
        (self.handle, self.inbox) = channel();
        let store = open(&self.folder);
        self.start(store);
    }

    fn moment(&self) -> Moment {
        let wall = Wall(i64::try_from(self.monotonic.as_micros()).unwrap() + self.moved);
        Moment { wall, monotonic: self.monotonic }
    }

    fn step(&mut self) {
        let moment = self.moment();
        let taken = self.inbox.take_now();
        self.driver.as_mut().unwrap().step(taken.messages, moment).unwrap();
    }

    /// Lets time pass as the thread would: a step whenever the driver wants one.
    fn pass(&mut self, span: Duration) {
        let end = self.monotonic + span;
        loop {
            let wait = self.driver.as_ref().unwrap().wait().unwrap_or(Duration::MAX).max(Duration::from_millis(1));
            self.monotonic = self.monotonic.saturating_add(wait).min(end);
            self.step();
            if self.monotonic == end {
                return;
            }
        }
    }

    fn ask(&mut self, asked: Asked) -> Result<Told, Error> {
        self.ask_of("shop@prod", asked)
    }

    fn ask_of(&mut self, target: &str, asked: Asked) -> Result<Told, Error> {
        let handle = self.handle.clone();
        let mut answer = Box::pin(handle.ask(target_name(target), asked));
        assert!((&mut answer).now_or_never().is_none(), "answered before the step");
        self.step();
        answer.now_or_never().expect("answered by the step")
    }

    fn state(&mut self) -> Arc<TargetState> {
        let handle = self.handle.clone();
        let mut answer = Box::pin(handle.state(target_name("shop@prod")));
        assert!((&mut answer).now_or_never().is_none());
        self.step();
        answer.now_or_never().flatten().expect("declared")
    }

    fn declare(&mut self) {
        let told = self.ask(Asked::Declare { spec: target_spec("shop@prod", "/srv/shop"), by: operator() });
        assert_eq!(told.unwrap().answer, Answer::Done);
    }

    fn submit(&mut self, request: u128) -> Result<Told, Error> {
        self.ask(submission("shop@prod", request, 1))
    }

    /// Declared, submitted and offered.
    fn offered(&mut self) -> Claim {
        self.declare();
        self.submit(1).unwrap().deployment.unwrap();
        let sent = self.agents.take();
        let [Effect::Offer { claim, .. }] = sent.as_slice() else { panic!("not one offer: {sent:?}") };
        *claim
    }

    /// To the open permit.
    fn permitted(&mut self) -> Claim {
        let claim = self.offered();
        let accepted = self.ask(Asked::OfferAnswered { speaker: speaker(), claim, declined: None });
        assert!(matches!(accepted.unwrap().answer, Answer::Renewed { .. }));
        let plan = self.state().current.as_ref().unwrap().plan.clone();
        let asked = Asked::PermitRequested { speaker: speaker(), claim, step: step_name(), plan };
        assert_eq!(self.ask(asked).unwrap().answer, Answer::Permitted);
        claim
    }

    fn hear(&mut self, claim: Claim) -> Answer {
        self.ask(Asked::Heard { speaker: speaker(), claim, via: Via::Session }).unwrap().answer
    }

    fn report(&mut self, claim: Claim, report: &holdfast_common::report::Report) -> Answer {
        self.ask(Asked::Reported { speaker: speaker(), claim, report: report.clone() }).unwrap().answer
    }

    fn deployment_state(&mut self) -> DeploymentState {
        self.state().current.as_ref().unwrap().state
    }

    fn newest(&self) -> u64 {
        self.agents.reader.newest().unwrap().0
    }
}

fn submission(target: &str, request: u128, content: u8) -> Asked {
    Asked::Submit {
        request: RequestId(Uuid::from_u128(request)),
        digest: [content; 32],
        spec: deployment_spec(target),
        by: operator(),
        no_queue: false,
    }
}

const ACCEPTED: Answer = Answer::Answered(Disposition::Accepted);

#[test]
fn a_deployment_runs_from_submission_to_success() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    for report in reports() {
        assert_eq!(rig.report(claim, &report), ACCEPTED);
    }
    assert_eq!(rig.state().current, None);
    let row = rig.agents.reader.deployment(claim.deployment).unwrap().unwrap();
    assert_eq!(row.record.state, DeploymentState::Succeeded);
    assert_eq!(rig.agents.early.lock().unwrap().as_slice(), []);
    assert_eq!(rig.agents.reader.verify().unwrap(), []);
}

#[test]
fn while_the_coordinator_suspects_itself_nothing_new_is_handed_out_and_what_runs_goes_on() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    rig.agents.suspect.store(true, Ordering::Relaxed);
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    for report in reports() {
        assert_eq!(rig.report(claim, &report), ACCEPTED, "what runs goes on, and is recorded");
    }
    assert!(rig.submit(2).is_ok(), "it is taken, and waits");
    rig.handle.agents_changed();
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.agents.take(), [], "no lease");
    rig.agents.suspect.store(false, Ordering::Relaxed);
    rig.step();
    rig.step();
    assert!(matches!(rig.agents.take().as_slice(), [Effect::Offer { .. }]));
}

#[test]
fn while_the_store_differs_from_its_events_nothing_is_granted_and_results_are_stored() {
    let mut rig = Rig::new();
    let verdict = Verdict::default();
    rig.driver = rig.driver.take().map(|driver| driver.audited(verdict.clone()));
    let claim = rig.permitted();
    verdict.add([Finding::new(Kind::Row, "blog@prod", "another value")]);
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    for report in reports() {
        assert_eq!(rig.report(claim, &report), ACCEPTED, "what runs goes on, and is recorded");
    }
    assert_eq!(rig.state().current, None);
    assert!(rig.submit(2).is_ok(), "it is taken, and waits");
    rig.pass(Duration::from_secs(60));
    assert_eq!(rig.agents.take(), [], "no lease");
    verdict.replace(Vec::new());
    rig.handle.agents_changed();
    rig.step();
    let sent = rig.agents.take();
    let [Effect::Offer { claim, .. }] = sent.as_slice() else { panic!("not one offer: {sent:?}") };
    let accepted = rig.ask(Asked::OfferAnswered { speaker: speaker(), claim: *claim, declined: None });
    assert!(matches!(accepted.unwrap().answer, Answer::Renewed { .. }));
    verdict.add([Finding::new(Kind::Row, "blog@prod", "another value")]);
    let plan = rig.state().current.as_ref().unwrap().plan.clone();
    let asked = Asked::PermitRequested { speaker: speaker(), claim: *claim, step: step_name(), plan };
    let handle = rig.handle.clone();
    let mut answer = Box::pin(handle.ask(target_name("shop@prod"), asked));
    for _step in 0..3 {
        assert!((&mut answer).now_or_never().is_none(), "no permit");
        rig.step();
    }
    verdict.replace(Vec::new());
    rig.step();
    assert_eq!(answer.now_or_never().expect("answered").unwrap().answer, Answer::Permitted);
    assert_eq!(rig.agents.reader.verify().unwrap(), []);
}

/// Wakes whoever waits for an answer, on the driver's thread: looks whether the store holds what is answered.
struct Witness {
    reader: Reader,
    holds: Mutex<Option<bool>>,
}

impl ArcWake for Witness {
    fn wake_by_ref(witness: &Arc<Self>) {
        let rows =
            witness.reader.deployments(&store::rows::DeploymentFilter { limit: 9, ..Default::default() }).unwrap();
        *witness.holds.lock().unwrap() = Some(rows.len() == 1);
    }
}

/// Whether a submission is committed when its answer leaves.
fn answer_leaves_after_the_commit() -> bool {
    let mut rig = Rig::new();
    rig.declare();
    let witness = Arc::new(Witness { reader: rig.agents.reader.clone(), holds: Mutex::new(None) });
    let waker = waker(witness.clone());
    let handle = rig.handle.clone();
    let mut answer = pin!(handle.ask(target_name("shop@prod"), submission("shop@prod", 1, 1)));
    assert!(answer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    rig.step();
    assert!(matches!(answer.poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(_))));
    let holds = *witness.holds.lock().unwrap();
    holds.expect("the answer woke the caller")
}

#[test]
fn an_answer_leaves_after_the_commit_that_covers_it() {
    assert!(answer_leaves_after_the_commit());
}

fn effects_leave_after_the_commit() -> bool {
    let mut rig = Rig::new();
    rig.offered();
    rig.agents.early.lock().unwrap().is_empty()
}

#[test]
fn an_effect_leaves_after_the_commit_that_covers_it() {
    assert!(effects_leave_after_the_commit());
}

#[test]
fn the_same_request_is_the_same_deployment_and_another_content_is_refused() {
    let mut rig = Rig::new();
    rig.declare();
    let first = rig.submit(1).unwrap();
    assert_eq!((first.existed, &first.answer), (false, &Answer::Submitted { number: 1 }));
    rig.crash_and_restart();
    let newest = rig.newest();
    let again = rig.submit(1).unwrap();
    assert_eq!(again, Told { existed: true, after: None, ..first.clone() });
    match rig.ask(submission("shop@prod", 1, 2)) {
        Err(Error::RequestIdReused { existing }) => assert_eq!(Some(existing), first.deployment),
        other => panic!("not refused: {other:?}"),
    }
    assert_eq!(rig.newest(), newest);
    assert_eq!(rig.agents.reader.refusals(9).unwrap().len(), 1, "the refusal is kept");
}

#[test]
fn an_undeclared_target_and_a_taken_resource_are_refused() {
    let mut rig = Rig::new();
    assert!(matches!(rig.submit(1), Err(Error::NotDeclared(_))));
    rig.declare();
    let spec = target_spec("blog@prod", "/srv/shop");
    match rig.ask_of("blog@prod", Asked::Declare { spec, by: operator() }) {
        Err(Error::ResourceTaken(taken)) => assert_eq!(taken.target, target_name("shop@prod")),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_batch_is_one_commit_and_each_input_sees_the_ones_before() {
    let mut rig = Rig::new();
    rig.declare();
    let handle = rig.handle.clone();
    let mut committed = handle.committed();
    let ask = |request| handle.ask(target_name("shop@prod"), submission("shop@prod", request, 1));
    let mut answers: Vec<_> = (1..=20).map(|request| Box::pin(ask(request))).collect();
    assert!(answers.iter_mut().all(|answer| answer.now_or_never().is_none()));
    let before = *committed.borrow_and_update();
    rig.step();
    let numbers: Vec<_> = answers.into_iter().map(|answer| answer.now_or_never().unwrap().unwrap().answer).collect();
    assert!((1..).zip(&numbers).all(|(number, answer)| *answer == Answer::Submitted { number }));
    assert!(*committed.borrow_and_update() > before + 20);
    assert_eq!(*committed.borrow(), rig.newest());
}

/// Whether an offer comes again with a new session of its agent, and only then.
fn a_new_session_gets_what_is_due() -> bool {
    let mut rig = Rig::new();
    let claim = rig.offered();
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.agents.take(), [], "nothing new is due");
    let _taken =
        rig.handle.session_started(Speaker { agent: AgentName::new("db-01").unwrap(), ..speaker() }).now_or_never();
    rig.step();
    assert_eq!(rig.agents.take(), [], "another agent's session");
    let _taken = rig.handle.session_started(speaker()).now_or_never();
    rig.step();
    matches!(rig.agents.take().as_slice(), [Effect::Offer { claim: again, .. }] if *again == claim)
}

#[test]
fn what_is_due_is_handed_out_again_to_a_new_session() {
    assert!(a_new_session_gets_what_is_due());
}

#[test]
fn what_was_due_before_a_crash_is_handed_out_after_it() {
    let mut rig = Rig::new();
    let claim = rig.offered();
    rig.crash_and_restart();
    rig.step();
    assert!(matches!(rig.agents.take().as_slice(), [Effect::Offer { claim: again, .. }] if *again == claim));
    assert_eq!(rig.handle.target_of(claim.deployment).now_or_never().flatten(), Some(target_name("shop@prod")));
}

#[test]
fn what_waits_for_an_agent_is_assigned_when_agents_change_and_does_not_spin() {
    let mut rig = Rig::new();
    rig.agents.there.store(false, Ordering::Relaxed);
    rig.declare();
    let _queued = rig.submit(1).unwrap();
    let newest = rig.newest();
    rig.pass(Duration::from_secs(20));
    assert_eq!((rig.newest(), rig.agents.take()), (newest, Vec::new()));
    assert_eq!(rig.driver.as_ref().unwrap().wait(), None, "nothing depends on time");
    rig.agents.there.store(true, Ordering::Relaxed);
    rig.handle.agents_changed();
    rig.step();
    assert!(matches!(rig.agents.take().as_slice(), [Effect::Offer { .. }]));
}

#[test]
fn an_unanswered_offer_lapses_and_its_deployment_is_offered_again() {
    let mut rig = Rig::new();
    let claim = rig.offered();
    rig.pass(Duration::from_secs(20));
    let sent = rig.agents.take();
    let [Effect::Offer { claim: next, .. }] = sent.as_slice() else { panic!("not one offer: {sent:?}") };
    assert!(next.fence > claim.fence && next.attempt != claim.attempt);
    let attempts = &rig.state().current.as_ref().unwrap().attempts.clone();
    assert_eq!(attempts[0].state, AttemptState::Lapsed);
}

#[test]
fn a_lease_lives_while_it_is_heard_and_silence_under_a_permit_is_uncertain() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    let newest = rig.newest();
    for _beat in 0..20 {
        rig.pass(Duration::from_secs(3));
        assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    }
    assert_eq!(rig.newest(), newest, "signs of life are not written");
    assert_eq!(rig.deployment_state(), DeploymentState::Active);
    rig.pass(Duration::from_millis(11_900));
    assert_eq!(rig.deployment_state(), DeploymentState::Active, "TTL 10 s and margin 2 s are not over");
    rig.pass(Duration::from_millis(200));
    assert_eq!(rig.deployment_state(), DeploymentState::Uncertain);
    assert_eq!(rig.hear(claim), Answer::Superseded);
}

/// Whether a lease that was heard shortly before a crash lives on after it.
fn a_restart_lapses_no_live_lease() -> bool {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    for _beat in 0..10 {
        rig.pass(Duration::from_secs(3));
        let _renewed = rig.hear(claim);
    }
    rig.crash_and_restart();
    rig.pass(Duration::from_secs(5));
    matches!(rig.hear(claim), Answer::Renewed { .. })
}

#[test]
fn a_restart_lapses_no_live_lease_and_writes_its_first_renewal() {
    assert!(a_restart_lapses_no_live_lease());
    let mut rig = Rig::new();
    let claim = rig.permitted();
    rig.crash_and_restart();
    let newest = rig.newest();
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    let events = rig.agents.reader.events(&EventFilter { limit: 1_000, ..EventFilter::default() }).unwrap();
    assert_eq!(rig.newest(), newest + 1, "the first renewal of a run is written");
    assert!(matches!(events.last().unwrap().recorded.event, Event::LeaseRenewed { .. }));
}

/// Whether a lease that nobody renews lapses although the coordinator crashes every 500 ms.
fn a_crash_loop_lapses_a_dead_lease() -> bool {
    let mut rig = Rig::new();
    rig.permitted();
    for _crash in 0..60 {
        rig.crash_and_restart();
        rig.pass(Duration::from_millis(500));
    }
    rig.deployment_state() == DeploymentState::Uncertain
}

#[test]
fn a_crash_loop_keeps_no_dead_lease() {
    assert!(a_crash_loop_lapses_a_dead_lease());
}

#[test]
fn a_coordinator_that_stood_still_lapses_nothing_at_once() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    rig.monotonic += Duration::from_secs(3_600);
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
    rig.step();
    assert_eq!(rig.deployment_state(), DeploymentState::Active);
}

/// How a permitted attempt fares, and when its lease lapses, under a wall clock that is moved again and again.
fn fate_under(jump: i64) -> (Duration, DeploymentState) {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    for step in 0..20 {
        rig.moved += if step % 3 == 2 { -2 * jump } else { jump };
        rig.pass(Duration::from_millis(300));
        assert!(matches!(rig.hear(claim), Answer::Renewed { .. }), "a lease that is renewed lives");
    }
    let heard = rig.monotonic;
    while rig.deployment_state() == DeploymentState::Active {
        rig.moved += jump;
        rig.pass(Duration::from_millis(100));
        assert!(rig.monotonic < heard + Duration::from_secs(3_600), "it lapses at last");
    }
    (rig.monotonic - heard, rig.deployment_state())
}

/// F29
#[test]
fn a_wall_clock_that_jumps_decides_nothing_about_leases() {
    const HOUR: i64 = 3_600_000_000;
    let steady = fate_under(0);
    assert_eq!(steady.1, DeploymentState::Uncertain);
    for jump in [HOUR, -HOUR, 10 * 365 * 24 * HOUR, -10 * 365 * 24 * HOUR] {
        assert_eq!(fate_under(jump), steady, "{jump}");
    }
}

/// Whether the second telling of each report is a duplicate.
fn reports_are_told_once() -> bool {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    reports().iter().all(|report| {
        assert_eq!(rig.report(claim, report), ACCEPTED);
        rig.crash_and_restart();
        let again = rig.ask(Asked::Reported { speaker: speaker(), claim, report: report.clone() });
        again.is_ok_and(|told| told.answer == Answer::Answered(Disposition::Duplicate))
    })
}

#[test]
fn a_report_that_comes_again_is_a_duplicate_also_after_a_crash() {
    assert!(reports_are_told_once());
}

#[test]
fn a_report_on_an_attempt_that_is_not_the_speakers_is_kept_under_the_speaker() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    let newest = rig.newest();
    let other = Speaker { agent: AgentName::new("db-01").unwrap(), ..speaker() };
    for expected in [Disposition::Filed(FiledReason::UnknownAttempt), Disposition::Duplicate] {
        let report = reports().remove(0);
        let told = rig.ask(Asked::Reported { speaker: other.clone(), claim, report }).unwrap();
        assert_eq!(told.answer, Answer::Answered(expected));
    }
    assert_eq!(rig.newest(), newest, "nothing is kept with the work of others");
    assert_eq!(rig.agents.reader.orphans(Some(&other.agent), 9).unwrap().len(), 1);
    assert_eq!(rig.report(claim, &reports()[0]), ACCEPTED);
}

#[test]
fn the_same_sequence_with_another_content_is_filed_once() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    let report = reports().remove(0);
    assert_eq!(rig.report(claim, &report), ACCEPTED);
    let mut other = report;
    other.body = ReportBody::cancel_received();
    let conflict = Answer::Answered(Disposition::Filed(FiledReason::SequenceConflict));
    assert_eq!(rig.report(claim, &other), conflict);
    assert_eq!(rig.report(claim, &other), Answer::Answered(Disposition::Duplicate));
    assert_eq!(rig.agents.reader.evidence(claim.deployment).unwrap().len(), 1);
}

#[test]
fn a_report_on_an_ended_deployment_is_filed_with_it() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    for report in reports() {
        assert_eq!(rig.report(claim, &report), ACCEPTED);
    }
    let mut late = reports().remove(2);
    late.sequence.0 = 4;
    let filed = Answer::Answered(Disposition::Filed(FiledReason::AttemptTerminal));
    assert_eq!(rig.report(claim, &late), filed);
    assert_eq!(rig.agents.reader.evidence(claim.deployment).unwrap().len(), 1);
    let cancel = Asked::Cancel { deployment: claim.deployment, by: operator(), reason: "late".to_owned() };
    assert_eq!(rig.ask(cancel).unwrap().answer, Answer::CancelTooLate(DeploymentState::Succeeded));
}

#[test]
fn a_report_on_an_unknown_deployment_is_kept_under_its_agent() {
    let mut rig = Rig::new();
    let claim = rig.offered();
    let unknown = Claim { deployment: DeploymentId(Uuid::from_u128(5)), ..claim };
    let handle = rig.handle.clone();
    for expected in [Disposition::Filed(FiledReason::UnknownAttempt), Disposition::Duplicate] {
        let mut target = Box::pin(handle.target_of(unknown.deployment));
        assert!((&mut target).now_or_never().is_none());
        rig.step();
        assert_eq!(target.now_or_never(), Some(None));
        let mut filed = Box::pin(handle.file_orphan(speaker(), unknown, reports().remove(0)));
        assert!((&mut filed).now_or_never().is_none());
        rig.step();
        assert_eq!(filed.now_or_never().unwrap().unwrap(), expected);
    }
    assert_eq!(rig.agents.reader.orphans(Some(&speaker().agent), 9).unwrap().len(), 1);
}

#[test]
fn a_wall_refuses_one_input_and_hurts_no_other_of_its_batch() {
    let mut rig = Rig::new();
    rig.declare();
    let blog = Asked::Declare { spec: target_spec("blog@prod", "/srv/blog"), by: operator() };
    assert_eq!(rig.ask_of("blog@prod", blog).unwrap().answer, Answer::Done);
    let raw = rusqlite::Connection::open(rig.folder.path().join("store.db")).unwrap();
    raw.execute("INSERT INTO reservations (target, deployment, since) VALUES ('shop@prod', 'ghost', 1)", []).unwrap();
    let handle = rig.handle.clone();
    let mut shop = Box::pin(handle.ask(target_name("shop@prod"), submission("shop@prod", 1, 1)));
    let mut blog = Box::pin(handle.ask(target_name("blog@prod"), submission("blog@prod", 2, 1)));
    assert!((&mut shop).now_or_never().is_none() && (&mut blog).now_or_never().is_none());
    rig.step();
    match shop.now_or_never().unwrap() {
        Err(Error::Store(error)) => assert!(matches!(&*error, store::Error::Wall { .. }), "{error}"),
        other => panic!("the wall did not hold: {other:?}"),
    }
    assert_eq!(blog.now_or_never().unwrap().unwrap().answer, Answer::Submitted { number: 1 });
    raw.execute("DELETE FROM reservations WHERE deployment = 'ghost'", []).unwrap();
    assert_eq!(rig.submit(1).unwrap().answer, Answer::Submitted { number: 1 });
    assert_eq!(rig.agents.reader.verify().unwrap(), []);
}

#[test]
fn a_wall_makes_nobody_forget_that_an_agent_lives() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    for _beat in 0..5 {
        rig.pass(Duration::from_secs(3));
        let _renewed = rig.hear(claim);
    }
    let raw = rusqlite::Connection::open(rig.folder.path().join("store.db")).unwrap();
    raw.execute_batch("CREATE TRIGGER wall BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'wall'); END").unwrap();
    let cancel = Asked::Cancel { deployment: claim.deployment, by: operator(), reason: "stop".to_owned() };
    assert!(matches!(rig.ask(cancel), Err(Error::Store(_))));
    raw.execute_batch("DROP TRIGGER wall").unwrap();
    rig.pass(Duration::from_secs(5));
    assert!(matches!(rig.hear(claim), Answer::Renewed { .. }));
}

#[test]
fn fence_off_inspection_and_decision_free_the_target() {
    let mut rig = Rig::new();
    let claim = rig.permitted();
    rig.pass(Duration::from_secs(20));
    assert_eq!(rig.deployment_state(), DeploymentState::Uncertain);
    rig.agents.take();
    let deployment = claim.deployment;
    let asked = rig.ask(Asked::FenceOff { deployment, by: operator(), reason: "lost".to_owned() }).unwrap();
    let sent = rig.agents.take();
    let [Effect::Inquire { inquiry, kind: InquiryKind::FenceOff { fence }, .. }] = sent.as_slice() else {
        panic!("not one raise: {sent:?}")
    };
    assert_eq!(asked.answer, Answer::InquiryOpened(*inquiry));
    assert!(*fence > claim.fence);
    let reason = "it is lost".to_owned();
    let early = Asked::Decide {
        deployment,
        by: operator(),
        kind: DecisionKind::AcceptFailed,
        reason,
        shown: EvidenceSequence(0),
        retained: Retained::new(),
    };
    assert!(matches!(rig.ask(early), Err(Error::Refused(Refusal::DecisionNotOpen { .. }))));
    rig.crash_and_restart();
    rig.step();
    assert_eq!(rig.agents.take(), sent, "asked again after a crash");
}

#[test]
fn a_hold_on_an_idle_target_outlasts_a_restart_and_ends_by_itself() {
    let mut rig = Rig::new();
    rig.declare();
    let lasts = holdfast_common::time::Millis(20_000);
    let until = Some(Until { shown: Wall(20_000_000), lasts });
    let hold = Asked::Hold { by: operator(), reason: "freeze".to_owned(), until };
    assert_eq!(rig.ask(hold.clone()).unwrap().answer, Answer::Done);
    assert_eq!(rig.ask(hold).unwrap().answer, Answer::Done, "the same again is one record");
    rig.crash_and_restart();
    assert!(rig.state().hold.is_some());
    assert_eq!(rig.submit(1).unwrap().answer, Answer::Submitted { number: 1 });
    assert!(rig.state().current.is_none(), "nobody takes a target that is on hold");
    // Of a gap between two steps little counts: the hold ends late where the coordinator is stopped, never early.
    let mut passed = 0;
    while rig.state().hold.is_some() {
        rig.pass(Duration::from_secs(1));
        passed += 1;
        assert!(passed < 60, "it ends by itself");
    }
    assert!(passed >= 19, "it ended after {passed} s");
    assert!(rig.state().current.as_ref().unwrap().live().is_some(), "and what waited has begun");
    assert!(matches!(rig.ask(Asked::Unhold { by: operator() }), Err(Error::Refused(Refusal::NotOnHold))));
    assert_eq!(rig.agents.reader.verify().unwrap(), []);
}

#[test]
fn a_driver_that_failed_answers_nothing_more() {
    let mut rig = Rig::new();
    rig.declare();
    let raw = rusqlite::Connection::open(rig.folder.path().join("store.db")).unwrap();
    raw.execute_batch("DROP TABLE runs").unwrap();
    let handle = rig.handle.clone();
    let mut answer = Box::pin(handle.ask(target_name("shop@prod"), submission("shop@prod", 1, 1)));
    assert!((&mut answer).now_or_never().is_none());
    let taken = rig.inbox.take_now();
    let moment = rig.moment();
    let driver = rig.driver.as_mut().unwrap();
    let fatal = driver.step(taken.messages, moment).unwrap_err();
    assert!(matches!(fatal.0, store::Error::Failed { .. }), "{fatal:?}");
    assert!(matches!(answer.now_or_never(), Some(Err(Error::Stopped))), "no answer is no success");
    assert!(driver.step(Vec::new(), moment).is_err(), "nor does it go on");
    assert_eq!(rig.agents.reader.targets().unwrap()[0].waiting, 0);
    assert_eq!(rig.agents.reader.targets().unwrap()[0].holder, None, "nothing of the batch was written");
}

#[tokio::test]
async fn the_thread_answers_wakes_itself_and_stops_in_order() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let agents = agents(&store, true);
    let (handle, inbox) = channel();
    let clock = SystemClock::new();
    let random = Box::new(StdRng::seed_from_u64(1));
    let settings = Settings { lease_margin: holdfast_common::time::Millis(1), ..Settings::default() };
    let driver = Driver::open(store, agents.clone(), random, settings, &inbox, Moment::of(&clock)).unwrap();
    let thread = spawn(driver, inbox, clock, holdfast_net::ops::Pulse::new()).unwrap();
    let spec = target_spec("shop@prod", "/srv/shop");
    let declared = handle.ask(target_name("shop@prod"), Asked::Declare { spec, by: operator() }).await;
    assert_eq!(declared.unwrap().answer, Answer::Done);
    let mut asked = submission("shop@prod", 1, 1);
    if let Asked::Submit { spec, .. } = &mut asked {
        spec.lease_ttl = holdfast_common::time::Millis(50);
    }
    let told = handle.ask(target_name("shop@prod"), asked).await.unwrap();
    let mut committed = handle.committed();
    let lapsed = async {
        loop {
            let state = handle.state(target_name("shop@prod")).await.unwrap();
            if state.current.as_ref().unwrap().attempts[0].state == AttemptState::Lapsed {
                return;
            }
            committed.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), lapsed).await.expect("the lease lapses without a message");
    handle.clone().stop().await;
    let late = handle.ask(target_name("shop@prod"), submission("shop@prod", 2, 1)).await;
    assert!(matches!(late, Err(Error::Stopped)));
    thread.join().unwrap();
    drop(open(&folder));
    assert!(agents.reader.deployment(told.deployment.unwrap()).unwrap().is_some());
    assert_eq!(agents.reader.verify().unwrap(), []);
}

#[test]
fn serving_time_goes_on_where_the_last_run_wrote_it() {
    let mut rig = Rig::new();
    rig.permitted();
    rig.pass(Duration::from_secs(5));
    let heard = |rig: &mut Rig| rig.state().current.as_ref().unwrap().live().unwrap().lease.clone().unwrap().heard;
    let before = heard(&mut rig);
    rig.crash_and_restart();
    let after = heard(&mut rig);
    assert!(after > before && after <= Serving(5_000), "{before:?} {after:?}");
}

/// Each fault of this crate makes the check of a test above fail.
#[cfg(feature = "bugs")]
mod seeded {
    use super::*;
    use crate::bugs::{Bug, set};

    fn caught(bug: Bug, holds: impl Fn() -> bool) {
        set(Some(bug));
        assert!(!holds(), "{} was not noticed", bug.name());
        set(None);
        assert!(holds());
    }

    #[test]
    fn every_fault_of_the_driver_is_noticed() {
        caught(Bug::ReplyBeforeCommit, answer_leaves_after_the_commit);
        caught(Bug::SendBeforeCommit, effects_leave_after_the_commit);
        caught(Bug::SendOnlyOnce, a_new_session_gets_what_is_due);
        caught(Bug::LoseLeaseOnRestart, a_restart_lapses_no_live_lease);
        caught(Bug::ForgetServedTime, a_crash_loop_lapses_a_dead_lease);
        caught(Bug::SkipReportDedupe, reports_are_told_once);
        caught(Bug::SkipRequestLookup, || {
            let mut rig = Rig::new();
            rig.declare();
            let _queued = rig.submit(1).unwrap();
            rig.submit(1).is_ok_and(|told| told.existed)
        });
        caught(Bug::SynchronousOff, || {
            let folder = TempDir::new().unwrap();
            open(&folder).waits_for_the_disk()
        });
    }
}

//! What every store must do. A store's tests name a [`Factory`] and take the whole suite by `conformance!`.

use std::collections::BTreeMap;

use holdfast_common::adapter::Adapter;
use holdfast_common::claim::Claim;
use holdfast_common::fence::Epoch;
use holdfast_common::id::{
    AgentName, AttemptId, DeploymentId, EvidenceId, IncarnationId, OperatorName, RequestId, ResourceName, Revision,
    StepName, TargetName,
};
use holdfast_common::outcome::{AttemptEnd, Exit, StepEnd};
use holdfast_common::recovery::Policy;
use holdfast_common::report::{Disposition, FiledReason, Report, ReportBody, ReportSequence};
use holdfast_common::spec::{
    DeploymentSpec, QueueKind, Reach, ResourceAdapter, ResourceSpec, RetryClass, RetrySpec, StepBody, StepEffect,
    StepSpec, TargetSpec, Timeouts,
};
use holdfast_common::time::{Millis, Serving, Wall};
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::identity::Identity;
use holdfast_coordinator_core::input::{Answered, Candidate, Jitter, Memory, Speaker};
use holdfast_coordinator_core::state::{AttemptState, DeploymentState, Ended, EventSequence, Run};
use holdfast_coordinator_core::{Answer, Input, Now, TargetState, decide, record};
use uuid::Uuid;

use super::rows::{DeploymentFilter, EventFilter};
use super::{
    AgentRow, AnsweredReport, CertificateRow, Digest, DrainRow, Error, GlobalOrder, JoinTokenRow, RefusalRow, RunStart,
    Store, TokenRow, Transaction, Use, Write, orphan, snapshot_due,
};

/// Makes stores on one database of its own.
pub(crate) trait Factory {
    /// What it makes.
    type Store: Store;

    /// Opens the database, and makes it at first.
    fn open(&self) -> Self::Store;

    /// Rewrites an event's body behind the store's back.
    fn edit_event(&self, target: &TargetName, sequence: u64, body: &str);
}

/// The whole suite as tests of the calling module, each on a database of its own.
macro_rules! conformance {
    ($factory:expr) => {
        $crate::store::suite::conformance!($factory;
            events_are_chained_and_verify,
            snapshot_and_replay_lead_to_the_live_state,
            a_second_reservation_is_refused_and_hurts_nothing_else,
            a_first_write_that_is_refused_leaves_nothing_and_the_next_ones_stand,
            begun_together_a_refused_write_takes_all_with_it,
            a_second_open_permit_is_refused,
            a_fence_that_does_not_grow_is_refused,
            an_ended_deployment_stays_as_it_ended,
            an_ended_attempt_stays_as_it_ended,
            a_write_on_an_older_version_is_refused,
            a_dropped_transaction_leaves_nothing_and_readers_see_only_what_is_committed,
            a_request_id_finds_its_deployment_and_is_used_once,
            a_report_that_was_answered_is_found_by_its_content,
            past_attempts_and_deployments_are_found,
            serving_time_adds_up_over_runs_and_crash_loops,
            an_edited_event_is_found_and_its_target_refused,
            a_resource_belongs_to_one_target,
            evidence_after_the_end_is_kept_with_the_deployment,
            tokens_agents_orphans_and_refusals_read_back,
            deployments_and_events_are_listed_in_pages,
        );
    };
    ($factory:expr; $($case:ident,)*) => {
        $(#[test]
        fn $case() {
            $crate::store::suite::$case(&$factory);
        })*
    };
}
pub(crate) use conformance;

/// One target as the core leads it, written through the store.
pub(crate) struct World {
    pub(crate) state: Option<TargetState>,
    pub(crate) name: TargetName,
    pub(crate) now: Now,
    drawn: u128,
}

pub(crate) fn target_name(name: &str) -> TargetName {
    TargetName::new(name).unwrap()
}

pub(crate) fn operator() -> OperatorName {
    OperatorName::new("ada").unwrap()
}

pub(crate) fn speaker() -> Speaker {
    Speaker { agent: AgentName::new("web-07").unwrap(), incarnation: IncarnationId(Uuid::from_u128(7)) }
}

pub(crate) fn candidate() -> Candidate {
    let Speaker { agent, incarnation } = speaker();
    Candidate { agent, incarnation: Some(incarnation), unfit: None }
}

pub(crate) fn target_spec(name: &str, root: &str) -> TargetSpec {
    TargetSpec {
        name: target_name(name),
        agents: BTreeMap::from([("role".to_owned(), "shop".to_owned())]),
        policy: Policy::Manual,
        patience: None,
        queue: QueueKind::Fifo,
        resources: vec![ResourceSpec {
            name: ResourceName::new("site").unwrap(),
            reach: Reach::Host,
            adapter: ResourceAdapter::Release { root: root.to_owned(), retain: 3 },
        }],
    }
}

pub(crate) fn deployment_spec(name: &str) -> DeploymentSpec {
    let step = StepSpec {
        name: step_name(),
        effect: StepEffect::Mutates,
        resource: Some(ResourceName::new("site").unwrap()),
        retry: RetryClass::Idempotent,
        body: StepBody::Release { archive: "/srv/v1.tar.gz".to_owned(), sha256: "0".repeat(64) },
        revision: Some(Revision::new("v1").unwrap()),
        expected_revision: None,
        timeout: None,
        data: holdfast_common::rollback::DataEffect::None,
    };
    assert_eq!(step.body.adapter(), Adapter::Release);
    DeploymentSpec {
        target: target_name(name),
        inputs: BTreeMap::new(),
        lease_ttl: Millis::from_secs(10),
        steps: vec![step],
        cancel_grace: Millis::from_secs(1),
        retry: RetrySpec {
            max_attempts: 3,
            backoff_initial: Millis::from_secs(1),
            backoff_max: Millis::from_secs(5),
            transient_exit_codes: std::collections::BTreeSet::new(),
        },
        timeouts: Timeouts::default(),
        policy: None,
        order: None,
        rollback: None,
    }
}

pub(crate) fn step_name() -> StepName {
    StepName::new("switch").unwrap()
}

/// The reports of one attempt that goes well, in order.
pub(crate) fn reports() -> Vec<Report> {
    let applied = ReportBody::StepEnded {
        step: step_name(),
        end: StepEnd::Applied,
        exit: Some(Exit::Exited(0)),
        observed: Some(Revision::new("v1").unwrap()),
        detail: String::new(),
    };
    let bodies = [
        ReportBody::StepStarted { step: step_name() },
        applied,
        ReportBody::AttemptEnded { end: AttemptEnd::Succeeded },
    ];
    (1..)
        .zip(bodies)
        .map(|(sequence, body)| Report { sequence: ReportSequence(sequence), said_at: Wall(1), body })
        .collect()
}

impl World {
    pub(crate) fn new(name: &str) -> Self {
        let now = Now {
            wall: Wall(1_000_000),
            serving: Serving(0),
            run: Run(1),
            epoch: Epoch(1),
            lease_margin: Millis::from_secs(1),
        };
        let drawn = u128::from_be_bytes(Digest::of_bytes(name.as_bytes()).0[..16].try_into().unwrap()) >> 8 << 8;
        Self { state: None, name: target_name(name), now, drawn }
    }

    fn draw(&mut self) -> Uuid {
        self.drawn += 1;
        Uuid::from_u128(self.drawn)
    }

    /// Decides, applies and writes.
    pub(crate) fn put(&mut self, tx: &mut impl Transaction, input: &Input) -> Answer {
        self.try_put(tx, input).unwrap()
    }

    fn try_put(&mut self, tx: &mut impl Transaction, input: &Input) -> Result<Answer, Error> {
        self.now.wall.0 += 1_000;
        self.now.serving.0 += 1;
        let decision = decide(self.state.as_ref(), self.now, input).unwrap();
        let written = record(self.state.clone(), self.now, decision.events).unwrap().unwrap();
        if !written.recorded.is_empty() {
            let submission = matches!(input, Input::Submit { .. }).then(|| content(input));
            let snapshot = snapshot_due(self.state.as_ref(), &written.state).then_some(&written.state);
            tx.write(&Write {
                before: self.state.as_ref(),
                after: &written.state,
                events: &written.recorded,
                ended: &written.ended,
                submission,
                report: answered(input, &decision.answer),
                snapshot,
            })?;
            self.state = Some(written.state);
        }
        Ok(decision.answer)
    }

    fn state(&self) -> &TargetState {
        self.state.as_ref().unwrap()
    }

    pub(crate) fn declare(&mut self, tx: &mut impl Transaction, root: &str) {
        let spec = target_spec(self.name.as_str(), root);
        let _done = self.put(tx, &Input::Declare { spec, by: operator() });
    }

    fn submission(&mut self) -> Input {
        Input::Submit {
            deployment: DeploymentId(self.draw()),
            request: RequestId(self.draw()),
            spec: deployment_spec(self.name.as_str()),
            by: operator(),
            no_queue: false,
        }
    }

    pub(crate) fn submit(&mut self, tx: &mut impl Transaction) -> DeploymentId {
        let input = self.submission();
        let _submitted = self.put(tx, &input);
        let Input::Submit { deployment, .. } = input else { unreachable!("made so above") };
        deployment
    }

    /// To the open permit of the current deployment.
    pub(crate) fn permit(&mut self, tx: &mut impl Transaction) -> Claim {
        let attempt = AttemptId(self.draw());
        let _leased = self.put(tx, &Input::Assign { candidates: vec![candidate()], attempt });
        let current = self.state().current.as_ref().unwrap();
        let lease = current.live().unwrap();
        let (claim, plan) =
            (Claim { deployment: current.id, attempt: lease.id, fence: lease.fence }, current.plan.clone());
        let _accepted =
            self.put(tx, &Input::OfferAnswered { speaker: speaker(), claim, declined: None, jitter: Jitter(0) });
        let asked = Input::PermitRequested { speaker: speaker(), claim, step: step_name(), plan };
        assert_eq!(self.put(tx, &asked), Answer::Permitted);
        claim
    }

    pub(crate) fn report(&mut self, tx: &mut impl Transaction, claim: Claim, report: Report, memory: Memory) -> Answer {
        let evidence = EvidenceId(self.draw());
        let input = Input::Reported { speaker: speaker(), claim, report, memory, evidence, jitter: Jitter(0) };
        self.put(tx, &input)
    }

    /// Declared, submitted, permitted and succeeded.
    pub(crate) fn deploy(&mut self, tx: &mut impl Transaction) -> Claim {
        if self.state.is_none() {
            let root = format!("/srv/{}", self.name);
            self.declare(tx, &root);
        }
        self.submit(tx);
        let claim = self.permit(tx);
        for report in reports() {
            let answer = self.report(tx, claim, report, Memory::default());
            assert_eq!(answer, Answer::Answered(Disposition::Accepted));
        }
        assert_eq!(self.state().current, None, "it succeeded and let go");
        claim
    }

    /// A write that no decision made: one event on the state as it is.
    fn forge(&self, event: Event, deployment: Option<DeploymentId>) -> (TargetState, Vec<Recorded>) {
        let mut after = self.state().clone();
        after.sequence = EventSequence(after.sequence.0 + 1);
        let recorded = Recorded { sequence: after.sequence, at: self.now.wall, deployment, event };
        (after, vec![recorded])
    }

    fn write_forged(&self, tx: &mut impl Transaction, forged: &(TargetState, Vec<Recorded>)) -> Result<(), Error> {
        tx.write(&plain(self.state.as_ref(), &forged.0, &forged.1)).map(|_| ())
    }
}

fn plain<'a>(before: Option<&'a TargetState>, after: &'a TargetState, events: &'a [Recorded]) -> Write<'a> {
    Write { before, after, events, ended: &[], submission: None, report: None, snapshot: None }
}

fn content(input: &Input) -> Digest {
    Digest::of_bytes(format!("{input:?}").as_bytes())
}

fn answered(input: &Input, answer: &Answer) -> Option<AnsweredReport> {
    let Input::Reported { speaker, claim, report, .. } = input else { return None };
    let Answer::Answered(disposition) = answer else { return None };
    Some(AnsweredReport::new(speaker.incarnation, claim, report, *disposition))
}

fn is_wall(result: Result<(), Error>, rule: &str) {
    match result {
        Err(Error::Wall { rule: found }) => assert!(found.contains(rule), "{found:?} does not name {rule:?}"),
        other => panic!("the wall did not hold: {other:?}"),
    }
}

pub(crate) fn events_are_chained_and_verify(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin().unwrap();
    shop.deploy(&mut tx);
    blog.deploy(&mut tx);
    shop.deploy(&mut tx);
    tx.commit().unwrap();
    let reader = store.reader();
    let events = reader.events(&EventFilter { limit: 1_000, ..EventFilter::default() }).unwrap();
    assert_eq!(events.len() as u64, shop.state().sequence.0 + blog.state().sequence.0);
    assert!(events.windows(2).all(|pair| pair[0].order < pair[1].order));
    for world in [&shop, &blog] {
        let own: Vec<_> = events.iter().filter(|event| event.target == world.name).collect();
        assert!((1..).zip(&own).all(|(sequence, event)| event.recorded.sequence.0 == sequence));
        let hashes: std::collections::BTreeSet<_> = own.iter().map(|event| &event.hash).collect();
        assert_eq!(hashes.len(), own.len());
    }
    assert_eq!(reader.verify().unwrap(), []);
}

pub(crate) fn snapshot_and_replay_lead_to_the_live_state(factory: &impl Factory) {
    let mut world = World::new("shop@prod");
    let mut store = factory.open();
    for _round in 0..30 {
        let mut tx = store.begin().unwrap();
        world.deploy(&mut tx);
        world.submit(&mut tx);
        assert_eq!(tx.load(&world.name).unwrap().as_ref(), Some(world.state()), "with one under way");
        let claim = world.permit(&mut tx);
        assert_eq!(tx.load(&world.name).unwrap().as_ref(), Some(world.state()), "with a permit open");
        for report in reports() {
            let _accepted = world.report(&mut tx, claim, report, Memory::default());
        }
        tx.commit().unwrap();
        drop(store);
        store = factory.open();
        let mut tx = store.begin().unwrap();
        assert_eq!(tx.load(&world.name).unwrap().as_ref(), Some(world.state()), "after a restart");
    }
    assert!(world.state().sequence.0 > 4 * super::SNAPSHOT_EVERY, "several snapshots were passed");
    assert_eq!(store.reader().state(&world.name).unwrap().as_ref(), Some(world.state()));
    assert_eq!(store.reader().verify().unwrap(), []);
}

/// Every one of these targets is in the store as it was led, and the store follows from its events.
fn holds(store: &mut impl Store, worlds: &[&World]) {
    let mut tx = store.begin().unwrap();
    for world in worlds {
        assert_eq!(tx.load(&world.name).unwrap().as_ref(), Some(world.state()));
    }
    drop(tx);
    assert_eq!(store.reader().verify().unwrap(), []);
}

pub(crate) fn a_second_reservation_is_refused_and_hurts_nothing_else(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin().unwrap();
    shop.declare(&mut tx, "/srv/shop");
    shop.submit(&mut tx);
    let other = DeploymentId(Uuid::from_u128(99));
    let forged = shop.forge(Event::Reserved { deployment: other, expected: BTreeMap::new() }, Some(other));
    is_wall(shop.write_forged(&mut tx, &forged), "reservations");
    blog.deploy(&mut tx);
    shop.permit(&mut tx);
    tx.commit().unwrap();
    holds(&mut store, &[&shop, &blog]);
}

pub(crate) fn a_first_write_that_is_refused_leaves_nothing_and_the_next_ones_stand(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin().unwrap();
    shop.declare(&mut tx, "/srv/shop");
    shop.submit(&mut tx);
    tx.commit().unwrap();
    let other = DeploymentId(Uuid::from_u128(99));
    let forged = shop.forge(Event::Reserved { deployment: other, expected: BTreeMap::new() }, Some(other));
    let mut tx = store.begin().unwrap();
    is_wall(shop.write_forged(&mut tx, &forged), "reservations");
    is_wall(shop.write_forged(&mut tx, &forged), "reservations");
    blog.deploy(&mut tx);
    shop.permit(&mut tx);
    tx.commit().unwrap();
    let mut tx = store.begin().unwrap();
    is_wall(
        shop.write_forged(
            &mut tx,
            &shop.forge(Event::Reserved { deployment: other, expected: BTreeMap::new() }, Some(other)),
        ),
        "reservations",
    );
    tx.commit().unwrap();
    holds(&mut store, &[&shop, &blog]);
}

pub(crate) fn begun_together_a_refused_write_takes_all_with_it(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin_together().unwrap();
    shop.declare(&mut tx, "/srv/shop");
    shop.submit(&mut tx);
    shop.permit(&mut tx);
    tx.commit().unwrap();
    let other = DeploymentId(Uuid::from_u128(99));
    let forged = shop.forge(Event::Reserved { deployment: other, expected: BTreeMap::new() }, Some(other));
    let mut tx = store.begin_together().unwrap();
    blog.deploy(&mut tx);
    match shop.write_forged(&mut tx, &forged) {
        Err(Error::Spoiled { source }) => assert!(matches!(*source, Error::Wall { .. }), "{source}"),
        other => panic!("the wall did not hold: {other:?}"),
    }
    assert!(matches!(tx.commit(), Err(Error::Spoiled { .. })), "a half is never committed");
    assert_eq!(store.begin().unwrap().load(&blog.name).unwrap(), None);
    holds(&mut store, &[&shop]);
}

pub(crate) fn a_second_open_permit_is_refused(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    world.declare(&mut tx, "/srv/shop");
    world.submit(&mut tx);
    let claim = world.permit(&mut tx);
    let permit = Event::PermitGranted { attempt: claim.attempt, step: step_name(), deadline: None };
    let forged = world.forge(permit.clone(), Some(claim.deployment));
    is_wall(world.write_forged(&mut tx, &forged), "open_permits");
    let started = reports().remove(0);
    let _accepted = world.report(&mut tx, claim, started, Memory::default());
    let forged = world.forge(permit, Some(claim.deployment));
    is_wall(world.write_forged(&mut tx, &forged), "open_permits");
    for report in reports().split_off(1) {
        let _accepted = world.report(&mut tx, claim, report, Memory::default());
    }
    world.deploy(&mut tx);
}

pub(crate) fn a_fence_that_does_not_grow_is_refused(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    world.deploy(&mut tx);
    let deployment = world.submit(&mut tx);
    let fence = world.state().fence.unwrap();
    let lease = Event::LeaseGranted {
        deployment,
        attempt: AttemptId(Uuid::from_u128(98)),
        number: 1,
        agent: speaker().agent,
        incarnation: speaker().incarnation,
        fence,
        ttl: Millis(1),
        run: Run(1),
        serving: Serving(1),
        carried: Vec::new(),
        reread: Vec::new(),
        readmits: None,
    };
    let forged = world.forge(lease, Some(deployment));
    is_wall(world.write_forged(&mut tx, &forged), "fences only grow");
    let claim = world.permit(&mut tx);
    assert!(claim.fence > fence);
}

pub(crate) fn an_ended_deployment_stays_as_it_ended(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = world.deploy(&mut tx);
    tx.commit().unwrap();
    let row = store.reader().deployment(claim.deployment).unwrap().unwrap();
    assert_eq!(row.record.state, DeploymentState::Succeeded);
    let mut changed = row.record;
    changed.state = DeploymentState::Failed;
    let ended = Ended {
        at: Wall(5),
        by_decision: true,
        because: String::new(),
        never_mutated: false,
        cancel_too_late: false,
        after_deadline: false,
        not_healthy: false,
    };
    let event = Event::DeploymentEnded { deployment: changed.id, state: changed.state, ended };
    let (after, events) = world.forge(event, Some(changed.id));
    let mut before = world.state().clone();
    before.current = Some(changed.clone());
    let forged = Write { ended: &[changed], ..plain(Some(&before), &after, &events) };
    let mut tx = store.begin().unwrap();
    is_wall(tx.write(&forged).map(|_| ()), "ended deployments stay");
}

pub(crate) fn an_ended_attempt_stays_as_it_ended(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = world.deploy(&mut tx);
    tx.commit().unwrap();
    let record = store.reader().deployment(claim.deployment).unwrap().unwrap().record;
    let mut changed = record.clone();
    changed.attempts[0].state = AttemptState::Failed;
    let event = Event::CancelAfterEnd {
        deployment: changed.id,
        by: operator(),
        reason: String::new(),
        ended_as: DeploymentState::Succeeded,
    };
    let (after, events) = world.forge(event, Some(changed.id));
    let mut before = world.state().clone();
    before.current = Some(record);
    let forged = Write { ended: &[changed], ..plain(Some(&before), &after, &events) };
    let mut tx = store.begin().unwrap();
    is_wall(tx.write(&forged).map(|_| ()), "ended attempts stay");
}

pub(crate) fn a_write_on_an_older_version_is_refused(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    world.declare(&mut tx, "/srv/shop");
    let old = world.state.clone();
    world.submit(&mut tx);
    let newest = world.state.clone();
    world.state = old;
    let input = world.submission();
    match world.try_put(&mut tx, &input) {
        Err(Error::Moved { expected: 1, found, .. }) => assert_eq!(found, newest.unwrap().sequence.0),
        other => panic!("written on an older version: {other:?}"),
    }
}

pub(crate) fn a_dropped_transaction_leaves_nothing_and_readers_see_only_what_is_committed(factory: &impl Factory) {
    let mut store = factory.open();
    let reader = store.reader();
    let mut lost = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = lost.deploy(&mut tx);
    tx.put_token(&token()).unwrap();
    assert_eq!(reader.targets().unwrap(), []);
    assert_eq!(reader.deployment(claim.deployment).unwrap(), None);
    drop(tx);
    assert_eq!(reader.newest().unwrap(), GlobalOrder(0));
    assert_eq!(reader.tokens().unwrap(), []);
    let mut kept = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.load(&kept.name).unwrap(), None);
    let claim = kept.deploy(&mut tx);
    assert_eq!(reader.newest().unwrap(), GlobalOrder(0));
    tx.commit().unwrap();
    assert_eq!(reader.newest().unwrap().0, kept.state().sequence.0);
    assert_eq!(reader.deployment(claim.deployment).unwrap().unwrap().record.state, DeploymentState::Succeeded);
}

pub(crate) fn a_request_id_finds_its_deployment_and_is_used_once(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    world.declare(&mut tx, "/srv/shop");
    let input = world.submission();
    let _submitted = world.put(&mut tx, &input);
    let Input::Submit { deployment, request, spec, by, .. } = input.clone() else { unreachable!("made so above") };
    let known = tx.submission(request).unwrap().unwrap();
    assert_eq!((known.deployment, known.target, known.number), (deployment, world.name.clone(), 1));
    assert_eq!(known.content, content(&input));
    assert_eq!(tx.submission(RequestId(Uuid::from_u128(1))).unwrap(), None);
    let again = DeploymentId(Uuid::from_u128(2));
    let second = Input::Submit { deployment: again, request, spec, by, no_queue: false };
    is_wall(world.try_put(&mut tx, &second).map(|_| ()), "request");
    assert_eq!(tx.target_of(deployment).unwrap(), Some(world.name.clone()));
    assert_eq!(tx.target_of(again).unwrap(), None);
    assert_eq!(tx.busy_targets().unwrap(), [world.name.clone()]);
}

pub(crate) fn a_report_that_was_answered_is_found_by_its_content(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = world.deploy(&mut tx);
    tx.commit().unwrap();
    let mut tx = store.begin().unwrap();
    let incarnation = speaker().incarnation;
    for report in reports() {
        let (same, other) = (Digest::of(&(&claim, &report)), Digest::of(&("other", &report)));
        assert_eq!(tx.answered(incarnation, report.sequence, same).unwrap(), Some(Answered::Same));
        assert_eq!(tx.answered(incarnation, report.sequence, other).unwrap(), Some(Answered::Different));
        assert_eq!(tx.answered(IncarnationId(Uuid::from_u128(8)), report.sequence, same).unwrap(), None);
    }
    assert_eq!(tx.answered(incarnation, ReportSequence(4), Digest::of(&claim)).unwrap(), None);
}

pub(crate) fn past_attempts_and_deployments_are_found(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = world.deploy(&mut tx);
    let past = tx.past_attempt(&claim).unwrap().unwrap();
    assert_eq!((past.deployment, past.id, past.fence), (claim.deployment, claim.attempt, claim.fence));
    assert_eq!((past.agent, past.incarnation), (speaker().agent, speaker().incarnation));
    assert_eq!(past.state, AttemptState::Succeeded);
    let ended = tx.past_deployment(&world.name, claim.deployment).unwrap().unwrap();
    assert_eq!(ended.state, DeploymentState::Succeeded);
    assert_eq!(tx.past_deployment(&target_name("blog@prod"), claim.deployment).unwrap(), None);
    let current = world.submit(&mut tx);
    assert_eq!(tx.past_deployment(&world.name, current).unwrap(), None, "it has not ended");
    let unknown = Claim { attempt: AttemptId(Uuid::from_u128(5)), ..claim };
    assert_eq!(tx.past_attempt(&unknown).unwrap(), None);
}

fn start<F: Factory>(factory: &F) -> (F::Store, RunStart) {
    let mut store = factory.open();
    let mut tx = store.begin().unwrap();
    let start = tx.start_run(Wall(1)).unwrap();
    tx.commit().unwrap();
    (store, start)
}

pub(crate) fn serving_time_adds_up_over_runs_and_crash_loops(factory: &impl Factory) {
    let (mut store, first) = start(factory);
    assert_eq!(first, RunStart { run: Run(1), base: Serving(0) });
    let mut tx = store.begin().unwrap();
    tx.serve(first.run, Millis(700)).unwrap();
    tx.commit().unwrap();
    let mut tx = store.begin().unwrap();
    tx.serve(first.run, Millis(900)).unwrap();
    drop(tx);
    drop(store);
    let mut base = 700;
    for run in 2..6 {
        let (mut store, next) = start(factory);
        assert_eq!(next, RunStart { run: Run(run), base: Serving(base) });
        let mut tx = store.begin().unwrap();
        tx.serve(next.run, Millis(150)).unwrap();
        is_wall(tx.serve(next.run, Millis(149)), "served time only grows");
        tx.commit().unwrap();
        base += 150;
    }
    let (mut store, _) = start(factory);
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.run_began(Run(1)).unwrap(), Some(Serving(0)));
    assert_eq!(tx.run_began(Run(3)).unwrap(), Some(Serving(850)));
    assert_eq!(tx.run_began(Run(60)).unwrap(), None);
}

pub(crate) fn an_edited_event_is_found_and_its_target_refused(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin().unwrap();
    shop.deploy(&mut tx);
    blog.deploy(&mut tx);
    tx.commit().unwrap();
    let filter = EventFilter { target: Some(shop.name.clone()), limit: 100, ..EventFilter::default() };
    let events = store.reader().events(&filter).unwrap();
    let body = serde_json::to_string(&events[1].recorded.event).unwrap();
    let edited = body.replacen("ada", "eve", 1);
    assert_ne!(edited, body);
    drop(store);
    factory.edit_event(&shop.name, 2, &edited);
    let mut store = factory.open();
    let breaks = store.reader().verify().unwrap();
    let named: Vec<_> = breaks.iter().map(|found| (found.kind, found.target.as_str(), found.event)).collect();
    assert_eq!(named, [(crate::verify::Kind::Chain, "shop@prod", Some(2))]);
    let mut tx = store.begin().unwrap();
    let error = tx.load(&shop.name).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }) && error.is_contained(), "{error}");
    assert_eq!(tx.load(&blog.name).unwrap().as_ref(), Some(blog.state()));
}

pub(crate) fn a_resource_belongs_to_one_target(factory: &impl Factory) {
    let mut store = factory.open();
    let mut shop = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    shop.declare(&mut tx, "/srv/shop");
    let other = target_spec("blog@prod", "/srv//shop/");
    let taken = tx.taken(&other).unwrap().unwrap();
    assert_eq!((taken.target, taken.resource.as_str()), (shop.name.clone(), "site"));
    assert_eq!(tx.taken(&target_spec("shop@prod", "/srv/shop")).unwrap(), None, "its own");
    assert_eq!(tx.taken(&target_spec("blog@prod", "/srv/blog")).unwrap(), None);
    let mut twice = target_spec("blog@prod", "/srv/blog");
    twice.resources.push(ResourceSpec { name: ResourceName::new("again").unwrap(), ..twice.resources[0].clone() });
    assert_eq!(tx.taken(&twice).unwrap().unwrap().resource.as_str(), "again");
    let mut blog = World::new("blog@prod");
    is_wall(blog.try_put(&mut tx, &Input::Declare { spec: other, by: operator() }).map(|_| ()), "resources");
    shop.declare(&mut tx, "/srv/elsewhere");
    assert_eq!(tx.taken(&target_spec("blog@prod", "/srv/shop")).unwrap(), None, "it was given up");
}

pub(crate) fn evidence_after_the_end_is_kept_with_the_deployment(factory: &impl Factory) {
    let mut store = factory.open();
    let mut world = World::new("shop@prod");
    let mut tx = store.begin().unwrap();
    let claim = world.deploy(&mut tx);
    for sequence in [4, 5] {
        let late = Report { sequence: ReportSequence(sequence), said_at: Wall(9), body: ReportBody::cancel_received() };
        let attempt = tx.past_attempt(&claim).unwrap();
        let answer = world.report(&mut tx, claim, late, Memory { attempt, answered: None });
        assert_eq!(answer, Answer::Answered(Disposition::Filed(FiledReason::AttemptTerminal)));
    }
    tx.commit().unwrap();
    let evidence = store.reader().evidence(claim.deployment).unwrap();
    let record = store.reader().deployment(claim.deployment).unwrap().unwrap().record;
    assert_eq!(evidence.iter().map(|evidence| evidence.sequence.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(record.evidence, evidence);
    assert_eq!(record.state, DeploymentState::Succeeded);
    assert_eq!(store.reader().verify().unwrap(), []);
}

pub(crate) fn token() -> TokenRow {
    TokenRow {
        hash: Digest::of_bytes(b"secret"),
        name: operator(),
        grants: vec!["admin:*".to_owned()],
        expires_at: None,
        created_at: None,
        created_by: None,
    }
}

pub(crate) fn tokens_agents_orphans_and_refusals_read_back(factory: &impl Factory) {
    let mut store = factory.open();
    let Speaker { agent, incarnation } = speaker();
    let row = AgentRow {
        name: agent.clone(),
        fingerprint: "ab".repeat(32),
        certificate_since: Some(Wall(6)),
        certificate_until: Some(Wall(7)),
        incarnation,
        labels: BTreeMap::from([("role".to_owned(), "shop".to_owned())]),
        last_heard: Wall(3),
    };
    let claim = Claim {
        deployment: DeploymentId(Uuid::from_u128(1)),
        attempt: AttemptId(Uuid::from_u128(2)),
        fence: holdfast_common::fence::Fence::first(Epoch(1)).unwrap(),
    };
    let lost = orphan(agent.clone(), incarnation, claim, reports().remove(1), Wall(4));
    let viewer = TokenRow {
        grants: vec!["viewer:shop@*".to_owned(), "viewer:mail@prod".to_owned()],
        expires_at: Some(Wall(9)),
        created_at: Some(Wall(8)),
        created_by: Some(OperatorName::new("root").unwrap()),
        ..token()
    };
    let refusal =
        |why: usize| RefusalRow { who: "eve".to_owned(), what: "submit".to_owned(), why: why.to_string(), at: Wall(5) };
    let mut tx = store.begin().unwrap();
    tx.put_token(&token()).unwrap();
    tx.put_token(&viewer).unwrap();
    assert_eq!(tx.token(&operator()).unwrap(), Some(viewer.clone()));
    assert_eq!(tx.token(&OperatorName::new("eve").unwrap()).unwrap(), None);
    tx.put_agent(&row).unwrap();
    assert_eq!(tx.agent_identity(&agent).unwrap(), Identity::default());
    let who = Identity { machine: "here".to_owned(), ..Identity::default() };
    tx.put_agent_identity(&agent, &Identity::default()).unwrap();
    tx.put_agent_identity(&agent, &who).unwrap();
    assert_eq!(tx.agent_identity(&agent).unwrap(), who);
    let joining = JoinTokenRow {
        id: "0a".to_owned(),
        hash: Digest::of_bytes(b"joining"),
        agent: Some(agent.clone()),
        labels: row.labels.clone(),
        expires_at: Wall(9),
        created_at: Wall(8),
        created_by: "root".to_owned(),
        revoked: false,
        used: None,
    };
    tx.put_join_token(&joining).unwrap();
    let used = Use { by: agent.clone(), key: Digest::of_bytes(b"key") };
    let joined = JoinTokenRow { used: Some(used.clone()), ..joining.clone() };
    tx.put_join_token(&joined).unwrap();
    let stolen = Use { key: Digest::of_bytes(b"another"), ..used };
    let again = tx.put_join_token(&JoinTokenRow { used: Some(stolen), ..joining });
    assert!(matches!(again, Err(Error::Wall { .. })), "a token is used once: {again:?}");
    assert_eq!(tx.join_token(joined.hash).unwrap(), Some(joined.clone()));
    assert_eq!(tx.join_token_of("0a").unwrap(), Some(joined.clone()));
    let certificate = CertificateRow {
        fingerprint: "cd".repeat(32),
        agent: Some(agent.clone()),
        issued_at: Wall(1),
        expires_at: Some(Wall(2)),
        revoked_at: None,
    };
    tx.put_certificate(&certificate).unwrap();
    assert_eq!(tx.certificate(&certificate.fingerprint).unwrap(), Some(certificate.clone()));
    assert_eq!(tx.agent_with(&row.fingerprint).unwrap(), Some(agent.clone()));
    tx.revoke_certificates(&agent, Wall(5)).unwrap();
    let revoked = CertificateRow { revoked_at: Some(Wall(5)), ..certificate.clone() };
    assert!(matches!(tx.put_certificate(&certificate), Err(Error::Wall { .. })), "a revocation stays");
    assert!(tx.keep_orphan(&lost).unwrap());
    assert!(!tx.keep_orphan(&lost).unwrap(), "the same again");
    for why in 0..10_010 {
        tx.keep_refusal(&refusal(why)).unwrap();
    }
    tx.commit().unwrap();
    let reader = store.reader();
    assert_eq!(reader.token(Digest::of_bytes(b"secret")).unwrap(), Some(viewer.clone()));
    assert_eq!(reader.token(Digest::of_bytes(b"other")).unwrap(), None);
    assert_eq!(reader.tokens().unwrap(), [viewer]);
    assert_eq!(reader.agent(&agent).unwrap(), Some(row.clone()));
    assert_eq!(reader.agents().unwrap(), [row]);
    assert_eq!(reader.join_tokens().unwrap(), std::slice::from_ref(&joined));
    assert_eq!(reader.join_token(joined.hash).unwrap(), Some(joined));
    assert_eq!(reader.certificates().unwrap(), std::slice::from_ref(&revoked));
    assert_eq!(reader.agent_identity(&agent).unwrap(), Some(who.clone()));
    assert_eq!(reader.agent_identity(&AgentName::new("other").unwrap()).unwrap(), None);
    assert_eq!(reader.agent_identities().unwrap(), [(agent.clone(), who)]);
    assert_eq!(reader.orphans(Some(&agent), 10).unwrap(), std::slice::from_ref(&lost));
    assert_eq!(reader.orphans(None, 10).unwrap(), [lost]);
    let kept = reader.refusals(20_000).unwrap();
    assert_eq!((kept.len(), &kept[0]), (10_000, &refusal(10_009)));
    let drain =
        |reason: &str, since: Wall| DrainRow { agent: agent.clone(), by: operator(), reason: reason.to_owned(), since };
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.put_drain(&drain("new disk", Wall(6))).unwrap(), Wall(6));
    assert_eq!(tx.put_drain(&drain("new kernel", Wall(9))).unwrap(), Wall(6));
    tx.commit().unwrap();
    assert_eq!(reader.drains().unwrap(), [drain("new kernel", Wall(6))], "the newer word counts, since the first");
    let mut tx = store.begin().unwrap();
    assert!(tx.remove_drain(&agent).unwrap());
    assert!(!tx.remove_drain(&agent).unwrap());
    tx.commit().unwrap();
    assert_eq!(reader.drains().unwrap(), []);
    let elsewhere = CertificateRow { fingerprint: "ef".repeat(32), agent: None, expires_at: None, ..revoked.clone() };
    let mut tx = store.begin().unwrap();
    tx.put_certificate(&elsewhere).unwrap();
    tx.forget_ended(Wall(2)).unwrap();
    tx.commit().unwrap();
    assert_eq!((reader.join_tokens().unwrap().len(), reader.certificates().unwrap().len()), (1, 2), "not ended before");
    let mut tx = store.begin().unwrap();
    tx.forget_ended(Wall(10)).unwrap();
    tx.commit().unwrap();
    assert_eq!(reader.join_tokens().unwrap(), []);
    assert_eq!(reader.certificates().unwrap(), [elsewhere], "a revocation without an end stays");
    let mut tx = store.begin().unwrap();
    assert!(tx.remove_token(&operator()).unwrap());
    assert!(!tx.remove_token(&operator()).unwrap());
    tx.commit().unwrap();
    assert_eq!(reader.tokens().unwrap(), []);
}

pub(crate) fn deployments_and_events_are_listed_in_pages(factory: &impl Factory) {
    let mut store = factory.open();
    let (mut shop, mut blog) = (World::new("shop@prod"), World::new("blog@prod"));
    let mut tx = store.begin().unwrap();
    let first = shop.deploy(&mut tx).deployment;
    let second = blog.deploy(&mut tx).deployment;
    let third = shop.submit(&mut tx);
    let fourth = shop.submit(&mut tx);
    tx.commit().unwrap();
    let reader = store.reader();
    let list = |filter: DeploymentFilter| -> Vec<(u64, DeploymentId)> {
        reader.deployments(&filter).unwrap().iter().map(|row| (row.place, row.record.id)).collect()
    };
    let ids = |rows: Vec<(u64, DeploymentId)>| -> Vec<DeploymentId> { rows.into_iter().map(|(_, id)| id).collect() };
    let page = list(DeploymentFilter { limit: 2, ..DeploymentFilter::default() });
    let rest = list(DeploymentFilter { limit: 9, before: Some(page[1].0), ..DeploymentFilter::default() });
    assert_eq!((ids(page), ids(rest)), (vec![fourth, third], vec![second, first]));
    let of_shop = DeploymentFilter { target: Some(shop.name.clone()), limit: 9, ..DeploymentFilter::default() };
    assert_eq!(ids(list(of_shop.clone())), [fourth, third, first]);
    assert_eq!(ids(list(DeploymentFilter { states: vec![DeploymentState::Succeeded], ..of_shop.clone() })), [first]);
    let among = |names: &[&TargetName]| Some(names.iter().map(|name| (*name).clone()).collect::<Vec<_>>());
    let seen =
        |among, limit, before| ids(list(DeploymentFilter { among, limit, before, ..DeploymentFilter::default() }));
    assert_eq!(seen(among(&[&shop.name]), 2, None), [fourth, third], "a page is full of what may be seen");
    assert_eq!(seen(among(&[&blog.name]), 1, None), [second], "however many others are newer");
    assert_eq!(seen(among(&[&blog.name, &shop.name]), 9, None), [fourth, third, second, first]);
    assert_eq!(seen(among(&[]), 9, None), []);
    assert_eq!(ids(list(DeploymentFilter { among: among(&[&blog.name]), ..of_shop })), []);
    assert_eq!(reader.target_names().unwrap(), [blog.name.clone(), shop.name.clone()]);
    let label = holdfast_common::id::DeploymentLabel { target: shop.name.clone(), number: 2 };
    assert_eq!(reader.deployment_by_label(&label).unwrap().unwrap().record.id, third);
    let prefix = &first.to_string().to_uppercase()[..35];
    assert!(reader.deployments_beginning(prefix, None, 9).unwrap().contains(&first));
    let beginning = |among: &[TargetName]| reader.deployments_beginning(prefix, Some(among), 9).unwrap();
    assert!(beginning(&[blog.name.clone(), shop.name.clone()]).contains(&first));
    assert_eq!(beginning(std::slice::from_ref(&blog.name)), []);
    assert_eq!(reader.deployments_beginning("%", None, 9).unwrap(), []);
    let row = reader.target(&shop.name).unwrap().unwrap();
    assert_eq!((row.holder, row.waiting, row.fence), (Some(third), 1, shop.state().fence));
    let of_first = EventFilter { deployment: Some(first), limit: 3, ..EventFilter::default() };
    let page = reader.events(&of_first).unwrap();
    let next = reader.events(&EventFilter { after: page[2].order, ..of_first }).unwrap();
    assert_eq!(page.len(), 3);
    assert!(page.iter().chain(&next).all(|event| event.recorded.deployment == Some(first)));
    assert!(next[0].order > page[2].order);
}

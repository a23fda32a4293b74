//! Exact decisions: a state, an input, and what must be recorded and answered.

use std::sync::RwLockReadGuard;

use holdfast_common::adapter::Enforce;
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{DeploymentId, EvidenceId, ResourceName};
use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::recovery::{Attestation, AttestedRunner, AttestedTarget, DecisionKind, Runner};
use holdfast_common::report::*;
use holdfast_common::spec::{DeploymentSpec, Reach, RetryClass, StepSpec, TargetSpec, Timeouts};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::input::*;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::*;

use crate::scene::without_faults;
use crate::specs::*;
use crate::world::World;

/// One target, and what is said to it.
pub struct Scene {
    pub world: World,
    said: u64,
    _alone: Option<RwLockReadGuard<'static, ()>>,
}

impl Scene {
    pub fn on(spec: TargetSpec) -> Self {
        let _alone = without_faults();
        let mut world = World::new(vec![spec], 3, false);
        world.oracle = false;
        Self { world, said: 0, _alone }
    }

    pub fn submit(&mut self, steps: Vec<StepSpec>, tries: u32) -> DeploymentId {
        self.try_submit(steps, tries).expect("submits")
    }

    pub fn try_submit(&mut self, steps: Vec<StepSpec>, tries: u32) -> Result<DeploymentId, Refusal> {
        self.submit_within(steps, tries, Timeouts::default())
    }

    pub fn submit_within(
        &mut self,
        steps: Vec<StepSpec>,
        tries: u32,
        timeouts: Timeouts,
    ) -> Result<DeploymentId, Refusal> {
        let spec = DeploymentSpec { timeouts, ..deployment(&self.world.targets[0].state.spec, steps, tries) };
        let number = self.world.deployments + 1;
        let (deployment, request) = (deployment_id(number), request_id(number));
        self.world.feed(0, &Input::Submit { deployment, request, spec, by: anna(), no_queue: false })?;
        Ok(deployment)
    }

    pub fn state(&self) -> &TargetState {
        &self.world.targets[0].state
    }

    pub fn current(&self) -> &Deployment {
        self.state().current.as_ref().expect("somebody holds the target")
    }

    pub fn ended(&self, id: DeploymentId) -> &Deployment {
        self.world.targets[0].ended.get(&id).expect("it ended")
    }

    pub fn claim(&self) -> Claim {
        let attempt = self.current().attempts.last().expect("an attempt");
        Claim { deployment: self.current().id, attempt: attempt.id, fence: attempt.fence }
    }

    pub fn speaker(&self) -> Speaker {
        let attempt = self.current().attempts.last().expect("an attempt");
        Speaker { agent: attempt.agent.clone(), incarnation: attempt.incarnation }
    }

    /// Leases the current deployment and has the offer accepted.
    pub fn run(&mut self) -> Claim {
        self.world.assign(0, &[]);
        let (speaker, claim) = (self.speaker(), self.claim());
        let answer = self.world.feed(0, &Input::OfferAnswered { speaker, claim, declined: None, jitter: Jitter(0) });
        assert!(matches!(answer, Ok(Answer::Renewed { .. })), "{answer:?}");
        claim
    }

    pub fn permit(&mut self, step: &str) -> Answer {
        let (speaker, claim, plan) = (self.speaker(), self.claim(), self.current().plan.clone());
        let input = Input::PermitRequested { speaker, claim, step: step_name(step), plan };
        self.world.feed(0, &input).expect("never refused")
    }

    pub fn say(&mut self, body: ReportBody) -> Disposition {
        let (speaker, claim) = (self.speaker(), self.claim());
        self.say_as(&speaker, claim, body)
    }

    pub fn say_as(&mut self, speaker: &Speaker, claim: Claim, body: ReportBody) -> Disposition {
        self.said += 1;
        let report = Report { sequence: ReportSequence(self.said), said_at: Wall(7), body };
        let agent = self.world.agent(&speaker.agent);
        let incarnation = (0..99).find(|number| incarnation_id(*number) == speaker.incarnation).expect("known");
        self.world.report(agent, incarnation, 0, claim, &report)
    }

    pub fn pass(&mut self, millis: u64) {
        self.world.serving += millis;
        self.world.feed(0, &Input::Tick { jitter: Jitter(0) }).expect("never refused");
    }

    pub fn lapse(&mut self) {
        self.pass(TTL + MARGIN);
    }

    pub fn cancel(&mut self, deployment: DeploymentId) -> Answer {
        let past = self.world.targets[0].ended.get(&deployment).map(|past| PastDeployment {
            id: past.id,
            state: past.state,
            last_evidence: past.newest_evidence(),
        });
        let input = Input::Cancel { deployment, by: anna(), reason: "stop".into(), past };
        self.world.feed(0, &input).expect("recorded")
    }

    pub fn attest(&mut self, deployment: DeploymentId, target: AttestedTarget) {
        self.attest_runner(deployment, AttestedRunner::HostGone, target);
    }

    pub fn attest_runner(&mut self, deployment: DeploymentId, runner: AttestedRunner, target: AttestedTarget) {
        let how = match runner {
            AttestedRunner::HostGone => "it burnt",
            AttestedRunner::Stopped => "went there",
        };
        let attestation = Attestation { runner, target, observed: None, how: how.into(), attachment: None };
        let evidence = self.world.draw_evidence();
        self.world.feed(0, &Input::Attest { deployment, by: anna(), attestation, evidence }).expect("kept");
    }

    pub fn decide(&mut self, kind: DecisionKind) -> Result<Answer, Refusal> {
        let id = self.current().id;
        self.world.decide(0, id, kind, 0)
    }

    pub fn list(&self) -> Checklist {
        open_decisions(self.state(), self.current(), self.world.now().wall)
    }

    pub fn inquiry(&mut self, raise: bool) -> EvidenceId {
        let id = self.current().id;
        let answer = if raise { self.world.fence_off(0, id) } else { self.world.inspect(0, id) };
        let Ok(Answer::InquiryOpened(inquiry)) = answer else { panic!("{answer:?}") };
        inquiry
    }

    pub fn answer(&mut self, inquiry: EvidenceId, raised: bool, state: OperationState) {
        let asked = self.current().inquiries.iter().find(|asked| asked.id == inquiry).expect("open").clone();
        let wanted = self.current().step(&asked.step).and_then(|step| step.revision.clone());
        let reading = Reading {
            resource_identity: "one".into(),
            state,
            revision: wanted.or(Some(revision("r1"))),
            active: None,
            highest_fence: None,
            retained: Vec::new(),
            detail: String::new(),
        };
        let finding = if raised { Finding::Raised { reading } } else { Finding::Read(reading) };
        let speaker = Speaker { agent: asked.agent, incarnation: incarnation_id(0) };
        let evidence = self.world.draw_evidence();
        self.world.feed(0, &Input::InquiryAnswered { speaker, inquiry, finding, evidence }).expect("never refused");
    }
}

pub fn ended(step: &str, end: StepEnd) -> ReportBody {
    ReportBody::StepEnded {
        step: step_name(step),
        end,
        exit: Some(Exit::Exited(0)),
        observed: None,
        detail: String::new(),
    }
}

pub fn over(end: AttemptEnd) -> ReportBody {
    ReportBody::AttemptEnded { end }
}

pub fn switch(retry: RetryClass) -> StepSpec {
    change("switch", "site", retry, Some("r1"))
}

/// An uncertain deployment of the site: permitted, and silent since.
pub fn uncertain() -> (Scene, DeploymentId, Claim) {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    let claim = scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    scene.lapse();
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    (scene, id, claim)
}

#[test]
fn a_deployment_succeeds_and_the_next_in_order_takes_the_target() {
    let mut scene = Scene::on(site(Reach::Shared));
    let first = scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    let second = scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.say(ended("switch", StepEnd::Applied)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    assert_eq!(scene.ended(first).state, DeploymentState::Succeeded);
    assert!(!scene.ended(first).ended.as_ref().expect("ended").never_mutated);
    assert_eq!(scene.current().id, second);
    assert_eq!(scene.current().expected[&ResourceName::new("site").unwrap()], Some(revision("r1")));
}

#[test]
fn a_success_with_a_step_missing_is_not_believed() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.run();
    scene.permit("switch");
    let filed = Disposition::Filed(FiledReason::StepOutOfOrder);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), filed);
    assert_eq!(scene.say(over(AttemptEnd::Failed)), filed);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running);
}

#[test]
fn silence_splits_into_lapsed_interrupted_and_uncertain() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Idempotent), check("verify")], 3);
    scene.run();
    scene.lapse();
    assert_eq!(scene.current().attempts[0].state, AttemptState::Lapsed);
    assert_eq!(scene.current().state, DeploymentState::Queued);
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    scene.lapse();
    assert_eq!(scene.current().attempts[1].state, AttemptState::Interrupted);
    assert_eq!(scene.current().state, DeploymentState::Active);
    scene.run();
    assert_eq!(scene.current().attempts[2].steps[0].state, StepState::Carried { carry: CarryState::Due });
    drop(scene);
    let (scene, ..) = uncertain();
    assert_eq!(scene.current().attempts[0].state, AttemptState::Uncertain);
    assert_eq!(scene.list().runner, Runner::Unknown);
}

#[test]
fn a_lost_deployment_whose_tries_are_used_up_fails_only_if_nothing_was_permitted() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Idempotent)], 1);
    scene.run();
    scene.lapse();
    assert_eq!(scene.ended(id).state, DeploymentState::Failed);
    assert!(scene.ended(id).ended.as_ref().expect("ended").never_mutated);
    scene.submit(vec![switch(RetryClass::Idempotent), check("verify")], 1);
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    scene.lapse();
    assert_eq!(scene.current().state, DeploymentState::Held);
}

#[test]
fn a_tombstone_lets_it_be_said_that_nothing_was_changed() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    scene.permit("switch");
    scene.cancel(id);
    assert_eq!(scene.say(ended("switch", StepEnd::NotStarted)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Stopped)), Disposition::Accepted);
    assert_eq!(scene.ended(id).state, DeploymentState::Cancelled);
    assert!(scene.ended(id).ended.as_ref().expect("ended").never_mutated);
}

#[test]
fn a_permit_is_asked_for_again_with_all_checks() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    let events = scene.state().sequence;
    assert_eq!(scene.permit("switch"), Answer::Permitted);
    assert_eq!(scene.state().sequence, events, "the same permit is one record");
    scene.cancel(id);
    assert_eq!(scene.permit("switch"), Answer::Denied(PermitDenial::CancelRecorded));
    scene.world.serving += TTL + MARGIN;
    assert_eq!(scene.permit("switch"), Answer::Denied(PermitDenial::LeaseExpired));
}

#[test]
pub fn a_second_permit_waits_for_the_first() {
    let mut scene = Scene::on(shop(Reach::Shared));
    let app = change("app", "app", RetryClass::Unsafe, Some("r1"));
    scene.submit(vec![app, change("migrate", "db", RetryClass::Unsafe, None)], 1);
    scene.run();
    assert_eq!(scene.permit("migrate"), Answer::Denied(PermitDenial::OutOfOrder));
    scene.permit("app");
    assert_eq!(scene.permit("migrate"), Answer::Denied(PermitDenial::PermitOpen));
    let _ = scene.say(ended("app", StepEnd::Applied));
    assert_eq!(scene.permit("migrate"), Answer::Permitted);
}

#[test]
fn old_fence_is_evidence_and_completes_nothing() {
    let (mut scene, id, old) = uncertain();
    let speaker = scene.speaker();
    scene.attest(id, AttestedTarget::NotApplied);
    scene.decide(DecisionKind::Retry).expect("open");
    scene.run();
    let before = scene.current().clone();
    let filed = Disposition::Filed(FiledReason::SupersededFence);
    assert_eq!(scene.say_as(&speaker, old, ended("switch", StepEnd::Applied)), filed);
    assert_eq!(scene.say_as(&speaker, old, over(AttemptEnd::Succeeded)), filed);
    assert_eq!(scene.current().attempts, before.attempts);
    assert_eq!(scene.current().evidence.len(), before.evidence.len() + 2);
}

/// A resource of which one step is there and the next is not has a revision that nobody knows, and the decision says so before.
#[test]
fn a_decision_that_leaves_a_resource_half_changed_says_that_its_revision_is_unknown_then() {
    for (first, unknown) in [(None, true), (Some("r1"), false)] {
        let mut scene = Scene::on(shop(Reach::Shared));
        let steps =
            vec![change("first", "db", RetryClass::Unsafe, first), change("second", "db", RetryClass::Unsafe, None)];
        let id = scene.submit(steps, 1);
        scene.run();
        scene.permit("first");
        let _ = scene.say(ended("first", StepEnd::Applied));
        scene.permit("second");
        scene.lapse();
        scene.attest(id, AttestedTarget::NotApplied);
        let list = scene.list();
        let failed = list.decisions.iter().find(|open| open.kind == DecisionKind::AcceptFailed).expect("listed");
        assert_eq!(failed.leads_to.contains("the revision is unknown then"), unknown, "{}", failed.leads_to);
        scene.decide(DecisionKind::AcceptFailed).expect("open");
        let known = &scene.state().resources[&resource_name("db")];
        assert_eq!(matches!(known, ResourceKnowledge::Unknown { .. }), unknown, "{known:?}");
    }
}

/// What a person said stays a person's word, whatever comes after it.
#[test]
fn a_success_that_rests_on_an_attestation_says_so() {
    let mut scene = Scene::on(shop(Reach::Shared));
    let app = change("app", "app", RetryClass::Unsafe, Some("r1"));
    let id = scene.submit(vec![change("migrate", "db", RetryClass::Unsafe, None), app], 2);
    scene.run();
    scene.permit("migrate");
    scene.lapse();
    scene.attest(id, AttestedTarget::Applied);
    scene.decide(DecisionKind::Retry).expect("open");
    scene.run();
    assert_eq!(scene.permit("app"), Answer::Permitted);
    assert_eq!(scene.say(ended("app", StepEnd::Applied)), Disposition::Accepted);
    assert_eq!(scene.say(over(AttemptEnd::Succeeded)), Disposition::Accepted);
    let because = scene.ended(id).ended.clone().expect("ended").because;
    assert_eq!(because, "a0 reported every step as applied but migrate, which a person attested");
}

#[test]
fn a_late_report_of_an_ended_deployment_is_filed_with_it() {
    let (mut scene, id, claim) = uncertain();
    let speaker = scene.speaker();
    scene.attest(id, AttestedTarget::Partial);
    assert_eq!(scene.decide(DecisionKind::Abandon), Ok(Answer::Decided(DeploymentState::Failed)));
    let last = scene.ended(id).newest_evidence();
    let filed = Disposition::Filed(FiledReason::LeaseExpired);
    assert_eq!(scene.say_as(&speaker, claim, ended("switch", StepEnd::Applied)), filed);
    let history = scene.world.targets[0].history.last().expect("filed").clone();
    assert_eq!(history.deployment, Some(id));
    let Event::EvidenceFiled { evidence, .. } = history.event else { panic!("{history:?}") };
    assert_eq!(evidence.sequence.0, last.0 + 1);
}

#[test]
fn a_strangers_report_changes_nothing_and_hears_what_is_said_of_nothing() {
    let (mut scene, _, claim) = uncertain();
    let stranger = Speaker { agent: agent_name(2), incarnation: incarnation_id(2) };
    let before = scene.state().clone();
    let nothing = Claim { attempt: attempt_id(77), ..claim };
    let unknown = Disposition::Filed(FiledReason::UnknownAttempt);
    assert_eq!(scene.say_as(&stranger, claim, ended("switch", StepEnd::Applied)), unknown);
    assert_eq!(scene.say_as(&stranger, nothing, ended("switch", StepEnd::Applied)), unknown);
    assert_eq!(scene.state(), &before);
}

#[test]
fn success_after_a_cancel_stays_a_success_that_the_cancel_missed() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    let recorded = scene.state().sequence;
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    assert_eq!(scene.state().sequence, recorded, "the same request is one record");
    let _ = scene.say(over(AttemptEnd::Succeeded));
    let ended = scene.ended(id).ended.clone().expect("ended");
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
    assert!(ended.cancel_too_late && !ended.by_decision);
    assert_eq!(scene.cancel(id), Answer::CancelTooLate(DeploymentState::Succeeded));
}

#[test]
fn a_queued_deployment_is_cancelled_on_the_spot_and_an_uncertain_one_stays_uncertain() {
    let (mut scene, id, _) = uncertain();
    let waiting = scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    assert_eq!(scene.cancel(waiting), Answer::CancelledAtOnce);
    assert!(scene.ended(waiting).ended.as_ref().expect("ended").never_mutated);
    assert_eq!(scene.cancel(id), Answer::CancelRecorded);
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    let now = scene.world.now();
    assert!(due(scene.state(), now).iter().any(|effect| matches!(effect, Effect::Cancel { .. })));
}

#[test]
fn a_deadline_asks_for_a_stop_and_ends_nothing() {
    let mut scene = Scene::on(site(Reach::Shared));
    let step = StepSpec { timeout: Some(Millis(200)), ..switch(RetryClass::Unsafe) };
    let id = scene.submit(vec![step], 1);
    scene.run();
    scene.permit("switch");
    scene.pass(300);
    assert!(scene.current().attempts[0].steps[0].over_deadline);
    let cause = scene.current().cancel.as_ref().map(|cancel| cancel.cause.clone());
    assert_eq!(cause, Some(CancelCause::Timeout { step: step_name("switch") }));
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running);
    assert_eq!(scene.permit("switch"), Answer::Denied(PermitDenial::DeadlinePassed));
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    assert_eq!(scene.ended(id).state, DeploymentState::Succeeded);
}

#[test]
fn an_unsafe_step_that_may_be_there_in_part_holds_the_target() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 3);
    scene.run();
    scene.permit("switch");
    let failed = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", failed));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(scene.current().state, DeploymentState::Held);
    let list = scene.list();
    assert_eq!((list.runner, list.steps[0].state), (Runner::Stopped, OperationState::Partial));
    assert!(list.why_not(DecisionKind::Retry).is_some());
    assert_eq!(list.why_not(DecisionKind::AcceptFailed), None);
}

#[test]
fn what_a_lost_step_may_have_changed_is_unknown_until_it_is_settled() {
    let (mut scene, id, _) = uncertain();
    let resource = resource_name("site");
    assert_eq!(scene.state().resources[&resource], ResourceKnowledge::Never, "as recorded before it");
    assert_eq!(scene.state().known(&resource), ResourceKnowledge::Unknown { since: id });
    scene.attest(id, AttestedTarget::NotApplied);
    assert_eq!(scene.state().known(&resource), ResourceKnowledge::Unknown { since: id }, "nobody has decided");
    scene.decide(DecisionKind::AcceptFailed).expect("open");
    assert_eq!(scene.state().known(&resource), ResourceKnowledge::Never, "it was not changed");
}

#[test]
fn what_a_deployment_left_in_part_makes_the_queue_wait_for_a_reading() {
    let mut scene = Scene::on(site(Reach::Shared));
    let id = scene.submit(vec![switch(RetryClass::Idempotent)], 1);
    let next = scene.submit(vec![switch(RetryClass::Idempotent)], 1);
    scene.run();
    scene.permit("switch");
    let failed = StepEnd::Failed { maybe_partial: true, class: FailureClass::Transient };
    let _ = scene.say(ended("switch", failed));
    let _ = scene.say(over(AttemptEnd::Failed));
    assert_eq!(scene.ended(id).state, DeploymentState::Failed);
    let resource = resource_name("site");
    assert_eq!(scene.state().resources[&resource], ResourceKnowledge::Unknown { since: id });
    let head = scene.state().queue.front().expect("waits");
    assert_eq!((head.id, &head.waiting), (next, &Some(Waiting::UnreadRevision { resource: resource.clone() })));
    let Ok(Answer::InquiryOpened(inquiry)) = scene.world.inspect(0, next) else { panic!("asked") };
    let reading = Reading {
        resource_identity: "one".into(),
        state: OperationState::NotApplied,
        revision: Some(revision("r0")),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: String::new(),
    };
    let (speaker, evidence) = (scene.world.speaker(0, 0), scene.world.draw_evidence());
    let input = Input::InquiryAnswered { speaker, inquiry, finding: Finding::Read(reading), evidence };
    scene.world.feed(0, &input).expect("never refused");
    assert_eq!(scene.current().id, next);
    assert_eq!(scene.current().expected[&resource], Some(revision("r0")));
}

#[test]
pub fn a_reading_counts_only_if_it_was_asked_for_after_the_runner_was_out() {
    let (mut scene, ..) = uncertain();
    let early = scene.inquiry(false);
    scene.answer(early, false, OperationState::NotApplied);
    assert_eq!(scene.list().steps[0].state, OperationState::Unknown, "inspection alone never releases");
    assert!(scene.list().why_not(DecisionKind::Retry).is_some());
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::Applied);
    let list = scene.list();
    assert_eq!((list.runner, list.steps[0].state), (Runner::FencedOff, OperationState::Applied));
    assert_eq!(scene.decide(DecisionKind::AcceptSucceeded), Ok(Answer::Decided(DeploymentState::Succeeded)));
}

#[test]
pub fn a_reading_of_another_resource_proves_nothing() {
    let (mut scene, ..) = uncertain();
    let first = scene.inquiry(false);
    scene.answer(first, false, OperationState::NotApplied);
    scene.world.targets[0].state.identities.insert(resource_name("site"), "another".into());
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::Applied);
    assert_eq!((scene.list().runner, scene.list().steps[0].state), (Runner::Unknown, OperationState::Unknown));
}

#[test]
fn a_reading_of_a_resource_that_went_back_to_an_earlier_state_proves_nothing_until_it_is_raised_anew() {
    let (mut scene, _, claim) = uncertain();
    let raise = scene.inquiry(true);
    scene.answer(raise, true, OperationState::Unknown);
    let reading = |highest_fence| Reading {
        resource_identity: "one".into(),
        state: OperationState::NotApplied,
        revision: Some(revision("r0")),
        active: None,
        highest_fence: Some(highest_fence),
        retained: Vec::new(),
        detail: String::new(),
    };
    let say = |scene: &mut Scene, inquiry, finding| {
        let asked = scene.current().inquiries.iter().find(|asked| asked.id == inquiry).expect("open").clone();
        let speaker = Speaker { agent: asked.agent, incarnation: incarnation_id(0) };
        let evidence = scene.world.draw_evidence();
        let input = Input::InquiryAnswered { speaker, inquiry, finding, evidence };
        scene.world.feed(0, &input).expect("never refused");
    };
    let look = scene.inquiry(false);
    say(&mut scene, look, Finding::Read(reading(claim.fence)));
    let list = scene.list();
    assert_eq!((list.runner, list.steps[0].state), (Runner::FencedOff, OperationState::Unknown));
    assert!(list.steps[0].because.contains("went back to an earlier state"), "{}", list.steps[0].because);
    let again = scene.inquiry(true);
    let InquiryKind::FenceOff { fence } = scene.current().inquiries[0].kind else { panic!("a raise") };
    say(&mut scene, again, Finding::Raised { reading: reading(fence) });
    assert_eq!(scene.list().steps[0].state, OperationState::NotApplied);
}

#[test]
fn a_resource_that_lost_what_was_applied_is_noticed_by_its_fence() {
    let mut scene = Scene::on(site(Reach::Shared));
    let first = scene.submit(vec![switch(RetryClass::Idempotent)], 1);
    let claim = scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    assert_eq!(scene.ended(first).state, DeploymentState::Succeeded);
    let reading = |highest_fence| Reading {
        resource_identity: "one".into(),
        state: OperationState::NotApplied,
        revision: Some(revision("r0")),
        active: None,
        highest_fence,
        retained: Vec::new(),
        detail: String::new(),
    };
    let stands = |highest_fence| standing(scene.state(), &resource_name("site"), &reading(highest_fence));
    assert_eq!(stands(Some(claim.fence)), None);
    assert_eq!(stands(None), None, "it tells none");
    let below = Fence::from_u64(claim.fence.as_u64() - 1);
    assert_eq!(stands(below), below.map(|_| Odd::WentBack { from: claim.fence }));
}

#[test]
fn a_raise_is_above_every_lease_and_the_next_lease_above_the_raise() {
    let (mut scene, _, claim) = uncertain();
    let raise = scene.inquiry(true);
    let asked = scene.current().inquiries[0].clone();
    let InquiryKind::FenceOff { fence } = asked.kind else { panic!("{asked:?}") };
    assert!(fence > claim.fence);
    assert_eq!(scene.inquiry(true), raise, "the same question is one question");
    scene.answer(raise, true, OperationState::NotApplied);
    scene.decide(DecisionKind::Retry).expect("open");
    assert!(scene.run().fence > fence);
}

#[test]
pub fn a_late_end_proves_the_runner_out_only_where_its_effect_cannot_outlive_it() {
    let (mut scene, ..) = uncertain();
    let _ = scene.say(ended("switch", StepEnd::Applied));
    assert_eq!((scene.list().runner, scene.list().steps[0].state), (Runner::Stopped, OperationState::Unknown));
    drop(scene);
    let mut scene = Scene::on(shop(Reach::Shared));
    let step = change("migrate", "db", RetryClass::Unsafe, None);
    assert_eq!(step.capability(&scene.state().spec.resources[1]).enforce, Enforce::None);
    scene.submit(vec![step], 1);
    scene.run();
    scene.permit("migrate");
    scene.lapse();
    let _ = scene.say(ended("migrate", StepEnd::Applied));
    assert_eq!(scene.list().runner, Runner::Unknown);
    let _ = scene.say(ended("migrate", StepEnd::NotStarted));
    assert_eq!((scene.list().runner, scene.list().steps[0].state), (Runner::Stopped, OperationState::NotApplied));
}

#[test]
fn an_attested_reading_that_the_journal_contradicts_later_makes_the_step_unknown_again() {
    let (mut scene, id, _) = uncertain();
    scene.attest(id, AttestedTarget::NotApplied);
    assert_eq!(scene.list().steps[0].state, OperationState::NotApplied);
    let _ = scene.say(ended("switch", StepEnd::Applied));
    assert_eq!(scene.list().steps[0].state, OperationState::Unknown);
    scene.attest(id, AttestedTarget::Applied);
    assert_eq!(scene.list().steps[0].state, OperationState::Applied);
}

#[test]
pub fn a_decision_on_old_evidence_is_refused() {
    let (mut scene, id, _) = uncertain();
    scene.attest(id, AttestedTarget::NotApplied);
    let stale = scene.world.decide(0, id, DecisionKind::Retry, 1);
    let (shown, newest) = (EvidenceSequence(0), EvidenceSequence(1));
    assert_eq!(stale, Err(Refusal::EvidenceMoved { shown, newest }));
}

#[test]
fn an_accepted_unknown_ends_the_lease_at_once_and_leaves_the_permit_open() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Idempotent)], 3);
    scene.run();
    scene.permit("switch");
    assert_eq!(scene.say(ended("switch", StepEnd::Unknown)), Disposition::Accepted);
    assert_eq!(scene.current().state, DeploymentState::Uncertain);
    assert_eq!(scene.current().attempts[0].lease, None);
    let because = scene.list().runner_because;
    assert!(because.contains("was heard, and could not tell"), "{because}: its agent spoke");
    scene.pass(1_000_000);
    assert_eq!(scene.current().state, DeploymentState::Uncertain, "no timer opens a reservation");
}

#[test]
fn a_declined_offer_is_no_try_and_goes_to_who_declined_least() {
    let mut scene = Scene::on(site(Reach::Host));
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    scene.world.assign(0, &[]);
    let (speaker, claim) = (scene.speaker(), scene.claim());
    let declined = Some(DeclineReason::Busy.into());
    scene.world.feed(0, &Input::OfferAnswered { speaker, claim, declined, jitter: Jitter(500) }).expect("heard");
    let delay = Waiting::backoff(Millis(25), scene.world.now().wall);
    assert_eq!(scene.current().waiting, Some(delay));
    assert_eq!((scene.current().tries(), scene.current().state), (0, DeploymentState::Queued));
    scene.pass(25);
    scene.run();
    assert_eq!(scene.current().attempts[1].agent, agent_name(1));
    assert_eq!(scene.state().home, Some(agent_name(1)), "the first accepted offer binds");
}

#[test]
fn a_lost_offer_stays_due_until_it_is_answered_or_lapses() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 2);
    scene.world.assign(0, &[]);
    let is_offer = |effect: &Effect| matches!(effect, Effect::Offer { .. });
    assert!(due(scene.state(), scene.world.now()).iter().any(is_offer));
    scene.world.restart();
    assert!(due(scene.state(), scene.world.now()).iter().any(is_offer));
    let wake = next_wakeup(scene.state(), scene.world.now()).expect("it lapses");
    scene.pass(wake.0 - scene.world.serving);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Lapsed);
}

#[test]
fn a_pin_that_the_record_contradicts_is_refused_now_or_ends_in_its_turn() {
    let mut scene = Scene::on(site(Reach::Shared));
    let pinned = StepSpec { expected_revision: Some(revision("r0")), ..switch(RetryClass::Unsafe) };
    scene.submit(vec![switch(RetryClass::Unsafe)], 1);
    let waits = scene.submit(vec![pinned.clone()], 1);
    scene.run();
    scene.permit("switch");
    let _ = scene.say(ended("switch", StepEnd::Applied));
    let _ = scene.say(over(AttemptEnd::Succeeded));
    assert_eq!(scene.ended(waits).state, DeploymentState::Failed);
    assert!(scene.ended(waits).ended.as_ref().expect("ended").never_mutated);
    let refused = scene.try_submit(vec![pinned], 1);
    assert!(matches!(refused, Err(Refusal::RevisionMismatch { .. })), "{refused:?}");
}

#[test]
fn an_illegal_event_comes_back_with_its_state_and_changes_neither() {
    let scene = Scene::on(site(Reach::Shared));
    let event = Event::OfferAccepted { attempt: attempt_id(1), deadline: None };
    let sequence = EventSequence(scene.state().sequence.0 + 1);
    let recorded = Recorded { sequence, at: Wall(0), deployment: None, event };
    let illegal = apply(Some(scene.state().clone()), &recorded).expect_err("nothing is on offer");
    assert_eq!((illegal.state.as_deref(), &*illegal.recorded), (Some(scene.state()), &recorded));
}

#[test]
fn a_restart_gives_a_live_lease_one_ttl_of_serving_time_and_never_less() {
    let mut scene = Scene::on(site(Reach::Shared));
    scene.submit(vec![switch(RetryClass::Unsafe)], 2);
    let claim = scene.run();
    scene.world.serving += TTL / 2;
    scene.world.feed(0, &Input::Heard { speaker: scene.speaker(), claim, via: Via::Session }).expect("heard");
    scene.world.serving += TTL / 2;
    scene.world.restart();
    scene.pass(TTL);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Running);
    scene.pass(MARGIN);
    assert_eq!(scene.current().attempts[0].state, AttemptState::Lapsed);
}

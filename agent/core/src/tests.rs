mod carried;
mod goes_on;

use std::collections::BTreeSet;

use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::{AttemptId, DeploymentId, ResourceName, SessionId, StepName, TargetName};
use holdfast_common::outcome::{AttemptEnd, FailureClass, StepEnd};
use holdfast_common::report::{DeclineReason, PermitDenial, ReportBody};
use holdfast_common::spec::{PlanDigest, RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::time::Millis;
use uuid::Uuid;

use crate::decide::Refused;
use crate::offer::{Verdict, judge};
use crate::work::{Assignment, Boot, LeaseCount, Phase, Stop, Work};
use crate::{Action, Input, decide};

const NOW: Boot = Boot(1_000);
const LIVE: LeaseCount = LeaseCount::Until(Boot(2_000));
const LATER: Boot = Boot(3_000);

fn name(text: &str) -> StepName {
    StepName::new(text).unwrap()
}

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn step(text: &str, effect: StepEffect) -> StepSpec {
    StepSpec {
        name: name(text),
        effect,
        resource: Some(ResourceName::new("site").unwrap()),
        retry: RetryClass::Unsafe,
        body: StepBody::Command { argv: vec!["true".to_owned()] },
        revision: None,
        expected_revision: None,
        timeout: None,
        data: holdfast_common::rollback::DataEffect::None,
    }
}

fn claim(attempt: u128, counter: u64) -> Claim {
    let mut fence = Fence::first(Epoch(1)).unwrap();
    for _ in 1..counter {
        fence = fence.next(Epoch(1)).unwrap();
    }
    Claim { deployment: DeploymentId(Uuid::from_u128(9)), attempt: AttemptId(Uuid::from_u128(attempt)), fence }
}

fn work(steps: Vec<StepSpec>) -> Work {
    let assignment = Assignment {
        claim: claim(1, 1),
        target: TargetName::new("shop@prod").unwrap(),
        number: 1,
        plan: PlanDigest("digest".to_owned()),
        steps,
        resources: Vec::new(),
        carried: BTreeSet::new(),
        grace: Millis(1_000),
        goes_on: None,
        carries: Vec::new(),
        transient_exit_codes: BTreeSet::new(),
    };
    Work::taken(assignment, LIVE, Some(session(1)))
}

fn mutating() -> Work {
    work(vec![step("switch", StepEffect::Mutates)])
}

fn asked() -> Work {
    let mut work = mutating();
    assert_eq!(decide(&mut work, NOW, Input::Tick), [Action::Journal, Action::AskPermit(name("switch"))]);
    work
}

fn running() -> Work {
    let mut work = asked();
    let granted = decide(&mut work, NOW, granted_in(1));
    assert_eq!(granted, [Action::Journal, Action::Launch(name("switch"))]);
    let _reported = decide(&mut work, NOW, Input::Started { step: name("switch") });
    assert_eq!(work.phase, Phase::Running);
    work
}

fn granted_in(number: u128) -> Input {
    Input::Granted { step: name("switch"), session: session(number) }
}

fn ended_as(end: StepEnd) -> Input {
    Input::Ended { step: name("switch"), end, exit: None, observed: None, detail: String::new() }
}

fn reports(actions: &[Action]) -> Vec<&ReportBody> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Report(body) => Some(body),
            Action::Journal
            | Action::Examine(_)
            | Action::Reread(_)
            | Action::AskPermit(_)
            | Action::Launch(_)
            | Action::Stop(_)
            | Action::Tombstone(_) => None,
        })
        .collect()
}

fn says_not_started(actions: &[Action]) -> bool {
    reports(actions).iter().any(|body| matches!(body, ReportBody::StepEnded { end: StepEnd::NotStarted, .. }))
}

#[test]
fn mutating_step_starts_only_under_a_permit_of_the_live_session() {
    let mut work = asked();
    assert_eq!(decide(&mut work, NOW, granted_in(2)), [Action::Tombstone(name("switch"))]);
}

#[test]
fn permit_is_not_used_after_the_own_count_of_the_lease() {
    let mut work = asked();
    assert_eq!(decide(&mut work, LATER, granted_in(1)), [Action::Tombstone(name("switch"))]);
    assert!(says_not_started(&decide(&mut work, LATER, Input::Tombstoned { step: name("switch") })));
    assert_eq!(work.phase, Phase::Over);
}

#[test]
fn permit_is_not_used_after_a_stop_was_asked_for() {
    let mut work = asked();
    let _received = decide(&mut work, NOW, Input::StopAsked);
    assert_eq!(decide(&mut work, NOW, granted_in(1)), [Action::Tombstone(name("switch"))]);
    let last = decide(&mut work, NOW, Input::Tombstoned { step: name("switch") });
    assert!(says_not_started(&last));
    assert!(reports(&last).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }));
}

#[test]
fn permit_comes_a_second_time_and_starts_nothing() {
    let mut work = running();
    assert_eq!(decide(&mut work, NOW, granted_in(1)), []);
}

#[test]
fn new_session_asks_again_only_while_the_lease_lives() {
    let mut work = asked();
    let _lost = decide(&mut work, NOW, Input::Session(None));
    let again = decide(&mut work, NOW, Input::Session(Some(session(2))));
    assert_eq!(again, [Action::Journal, Action::AskPermit(name("switch"))]);
    let mut late = asked();
    assert_eq!(decide(&mut late, LATER, Input::Session(Some(session(2)))), []);
    assert_eq!(decide(&mut late, LATER, Input::Superseded), [Action::Tombstone(name("switch"))]);
}

#[test]
fn lost_lease_never_stops_a_running_mutation_and_always_stops_a_step_without_effect() {
    let mut mutation = running();
    assert_eq!(decide(&mut mutation, LATER, Input::Tick), []);
    assert_eq!(decide(&mut mutation, LATER, Input::Superseded), []);
    let mut reading = work(vec![step("fetch", StepEffect::None)]);
    assert_eq!(decide(&mut reading, NOW, Input::Tick), [Action::Journal, Action::Launch(name("fetch"))]);
    assert_eq!(decide(&mut reading, LATER, Input::Tick), [Action::Stop(name("fetch"))]);
}

#[test]
fn late_end_of_a_superseded_mutation_is_still_reported() {
    let mut work = running();
    let _superseded = decide(&mut work, NOW, Input::Superseded);
    let actions = decide(&mut work, LATER, ended_as(StepEnd::Applied));
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }));
}

#[test]
fn superseded_attempt_starts_no_further_step() {
    let mut work = work(vec![step("switch", StepEffect::Mutates), step("restart", StepEffect::Mutates)]);
    let _asked = decide(&mut work, NOW, Input::Tick);
    let _granted = decide(&mut work, NOW, granted_in(1));
    let _superseded = decide(&mut work, NOW, Input::Superseded);
    let actions = decide(&mut work, NOW, ended_as(StepEnd::Applied));
    assert_eq!(reports(&actions).len(), 1);
    assert_eq!(work.phase, Phase::Over);
    assert_eq!(decide(&mut work, NOW, Input::Renewed { until: Boot(9_000) }), []);
}

#[test]
fn restarted_agent_starts_nothing_before_the_coordinator_renewed_its_lease() {
    let mut work = mutating();
    work.lease = LeaseCount::NotLive;
    assert_eq!(decide(&mut work, NOW, Input::Tick), []);
    let renewed = decide(&mut work, NOW, Input::Renewed { until: Boot(5_000) });
    assert_eq!(renewed, [Action::Journal, Action::AskPermit(name("switch"))]);
}

#[test]
fn unknown_end_says_nothing_about_the_attempt() {
    let mut work = running();
    let actions = decide(&mut work, NOW, ended_as(crate::decide::gone()));
    assert_eq!(reports(&actions).len(), 1);
    assert!(matches!(reports(&actions)[0], ReportBody::StepEnded { end: StepEnd::Unknown, .. }));
}

#[test]
fn stop_of_a_running_step_is_received_acted_and_then_observed() {
    let mut work = running();
    let asked = decide(&mut work, NOW, Input::StopAsked);
    assert_eq!(reports(&asked), [&ReportBody::cancel_received()]);
    assert!(asked.contains(&Action::Stop(name("switch"))));
    assert_eq!(reports(&decide(&mut work, NOW, Input::StopAsked)), Vec::<&ReportBody>::new());
    let acted = decide(&mut work, NOW, Input::StopActed { detail: "SIGTERM".to_owned() });
    assert!(matches!(reports(&acted)[0], ReportBody::CancelActed { .. }));
    let again = decide(&mut work, NOW, Input::StopActed { detail: "SIGTERM".to_owned() });
    assert_eq!(again, [], "it is told twice, by two threads, and reported once");
    let over = decide(&mut work, NOW, ended_as(StepEnd::Stopped { maybe_partial: true }));
    assert!(reports(&over).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }));
}

#[test]
fn a_stop_that_is_held_up_is_told_and_stays_asked_for() {
    let held_up = || Input::StopHeldUp { why: "the shim stands still".to_owned() };
    let mut work = running();
    assert_eq!(decide(&mut work, NOW, held_up()), [], "nobody asked");
    let _asked = decide(&mut work, NOW, Input::StopAsked);
    let told = decide(&mut work, NOW, held_up());
    assert_eq!(reports(&told), [&ReportBody::CancelReceived { held_up: "the shim stands still".to_owned() }]);
    assert_eq!(work.stop, Stop::Asked, "nothing was acted on");
    let acted = decide(&mut work, NOW, Input::StopActed { detail: "SIGTERM".to_owned() });
    assert!(matches!(reports(&acted)[0], ReportBody::CancelActed { .. }));
    assert_eq!(decide(&mut work, NOW, held_up()), [], "it was acted on since");
}

#[test]
fn success_after_a_stop_request_stays_a_success() {
    let mut work = running();
    let _asked = decide(&mut work, NOW, Input::StopAsked);
    let actions = decide(&mut work, NOW, ended_as(StepEnd::Applied));
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }));
}

#[test]
fn denials_end_or_give_up_the_attempt_and_never_start_it() {
    for denial in [PermitDenial::NotYours, PermitDenial::NotCurrent, PermitDenial::LeaseExpired] {
        let mut work = asked();
        let actions = decide(&mut work, NOW, Input::Denied { step: name("switch"), denial });
        assert_eq!(actions, [Action::Tombstone(name("switch"))]);
        assert!(!work.wants_lease());
    }
    let mut cancelled = asked();
    let denied = Input::Denied { step: name("switch"), denial: PermitDenial::CancelRecorded };
    let actions = decide(&mut cancelled, NOW, denied);
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }));
    let mut differs = asked();
    let denied = Input::Denied { step: name("switch"), denial: PermitDenial::PlanDiffers };
    let actions = decide(&mut differs, NOW, denied);
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Failed }));
}

#[test]
fn carried_steps_are_not_run_again() {
    let mut assignment =
        work(vec![step("migrate", StepEffect::Mutates), step("switch", StepEffect::Mutates)]).assignment;
    assignment.carried.insert(name("migrate"));
    let work = Work::taken(assignment, LIVE, Some(session(1)));
    assert_eq!(work.step().map(|step| &step.name), Some(&name("switch")));
}

#[test]
fn archive_is_looked_at_before_a_permit_is_asked_for_and_a_refused_one_asks_for_none() {
    let mut release = step("switch", StepEffect::Mutates);
    release.body = StepBody::Release { archive: "site.tar.gz".to_owned(), sha256: "0".repeat(64) };
    let mut good = work(vec![release]);
    let mut bad = good.clone();
    assert_eq!(decide(&mut good, NOW, Input::Tick), [Action::Examine(name("switch"))]);
    assert_eq!(decide(&mut good, NOW, Input::Tick), [], "one look is enough");
    let passed = Input::Examined { step: name("switch"), refused: None };
    assert_eq!(decide(&mut good, NOW, passed), [Action::Journal, Action::AskPermit(name("switch"))]);
    let _looking = decide(&mut bad, NOW, Input::Tick);
    let refused = Refused { class: FailureClass::Permanent, detail: "entry ../x".to_owned() };
    let actions = decide(&mut bad, NOW, Input::Examined { step: name("switch"), refused: Some(refused) });
    let end = StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent };
    assert!(matches!(reports(&actions)[0], ReportBody::StepEnded { end: told, .. } if *told == end));
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Failed }));
    assert_eq!(bad.phase, Phase::Over);
}

#[test]
fn failed_step_ends_the_attempt_as_failed() {
    let mut work = running();
    let failed = StepEnd::Failed { maybe_partial: true, class: FailureClass::Permanent };
    let actions = decide(&mut work, NOW, ended_as(failed));
    assert!(reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Failed }));
}

#[test]
fn second_assignment_never_touches_running_work() {
    let running = running();
    let same_deployment = claim(2, 2);
    let other = Claim { deployment: DeploymentId(Uuid::from_u128(8)), ..claim(2, 2) };
    assert_eq!(judge(claim(1, 1), [&running], None), Verdict::TakenAlready);
    assert_eq!(judge(same_deployment, [&running], None), Verdict::Decline(DeclineReason::Conflict));
    assert_eq!(judge(claim(1, 2), [&running], None), Verdict::Decline(DeclineReason::Conflict));
    assert_eq!(judge(other, [&running], None), Verdict::Decline(DeclineReason::Busy));
}

#[test]
fn offer_at_or_below_the_highest_fence_seen_is_refused() {
    let seen = claim(1, 3).fence;
    assert_eq!(judge(claim(2, 3), [], Some(seen)), Verdict::Decline(DeclineReason::FenceRegression));
    assert_eq!(judge(claim(2, 2), [], Some(seen)), Verdict::Decline(DeclineReason::FenceRegression));
    assert_eq!(judge(claim(2, 4), [], Some(seen)), Verdict::Take);
}

/// Each seeded fault turns one of the tests above around.
#[cfg(feature = "bugs")]
mod bugs {
    use super::*;
    use crate::bugs::{Bug, set};

    fn caught(bug: Bug, test: fn()) {
        set(Some(bug));
        let outcome = std::panic::catch_unwind(test);
        set(None);
        assert!(outcome.is_err(), "the fault {} went unnoticed", bug.name());
    }

    #[test]
    fn permit_not_asked_is_caught() {
        caught(Bug::PermitNotAsked, || drop(asked()));
    }

    #[test]
    fn fence_not_compared_is_caught() {
        caught(Bug::FenceNotCompared, offer_at_or_below_the_highest_fence_seen_is_refused);
    }

    #[test]
    fn permit_used_after_lease_is_caught() {
        caught(Bug::PermitUsedAfterLease, permit_is_not_used_after_the_own_count_of_the_lease);
    }

    #[test]
    fn gone_is_failed_is_caught() {
        caught(Bug::GoneIsFailed, unknown_end_says_nothing_about_the_attempt);
    }
}

#[test]
fn an_attempt_of_which_every_step_is_carried_over_succeeds_under_its_lease() {
    let carried = |lease| {
        let mut work = mutating();
        work.assignment.carried.insert(name("switch"));
        Work::taken(work.assignment, lease, Some(session(1)))
    };
    let succeeded = [Action::Report(ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }), Action::Journal];
    let mut work = carried(LIVE);
    assert_eq!(decide(&mut work, NOW, Input::Tick), succeeded);
    assert_eq!(decide(&mut work, NOW, Input::Tick), [], "it is said once");
    // After a restart the lease counts from its first renewal.
    let mut work = carried(LeaseCount::NotLive);
    assert_eq!(decide(&mut work, NOW, Input::Tick), []);
    assert_eq!(decide(&mut work, NOW, Input::Renewed { until: LATER }), succeeded);
    let mut work = carried(LIVE);
    assert_eq!(decide(&mut work, LATER, Input::Tick), [], "its lease is over");
    assert_eq!(decide(&mut work, LATER, Input::Superseded), [Action::Journal]);
    assert_eq!(work.phase, Phase::Over);
}

#[test]
fn a_deadline_that_denies_a_permit_is_a_stop_and_no_failure() {
    let mut work = asked();
    let denied = Input::Denied { step: name("switch"), denial: PermitDenial::DeadlinePassed };
    let actions = decide(&mut work, NOW, denied);
    let said = reports(&actions);
    assert!(matches!(said[0], ReportBody::CancelReceived { .. }), "{said:?}");
    assert_eq!(said.last(), Some(&&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }));
    assert_eq!(work.phase, Phase::Over);
    let mut work = asked();
    let _heard = decide(&mut work, NOW, Input::StopAsked);
    let denied = Input::Denied { step: name("switch"), denial: PermitDenial::DeadlinePassed };
    let actions = decide(&mut work, NOW, denied);
    assert_eq!(reports(&actions), [&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }]);
}

#[test]
fn a_check_that_a_restarted_agent_finds_running_goes_on_until_its_lease_can_have_been_renewed() {
    let found = |lease| {
        let mut work = work(vec![step("switch", StepEffect::None)]);
        (work.phase, work.lease) = (Phase::Running, lease);
        let actions = decide(&mut work, NOW, Input::FoundRunning);
        (work, actions)
    };
    let stop = [Action::Stop(name("switch"))];
    let (mut work, actions) = found(LeaseCount::NotLive);
    assert_eq!(actions, []);
    let last = Boot(NOW.0 + crate::decide::RESTART_GRACE.0);
    assert_eq!(decide(&mut work, Boot(last.0 - 1), Input::Tick), []);
    assert_eq!(decide(&mut work, last, Input::Tick), stop, "nobody renewed it");
    let (mut work, _) = found(LeaseCount::NotLive);
    assert_eq!(decide(&mut work, NOW, Input::Renewed { until: Boot(2_000) }), []);
    assert_eq!(decide(&mut work, LATER, Input::Tick), stop, "its own count ran out");
    let (mut work, _) = found(LeaseCount::NotLive);
    assert_eq!(decide(&mut work, NOW, Input::Superseded), stop, "its attempt is over");
    let (mut work, _) = found(LeaseCount::NotLive);
    let asked = decide(&mut work, NOW, Input::StopAsked);
    assert!(asked.contains(&stop[0]), "a stop is acted on at once: {asked:?}");
}

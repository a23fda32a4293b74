//! What is carried over is read again before anything begins.

use holdfast_common::id::Revision;
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::report::{Carry, Reread};

use super::*;

/// The first of two changes is carried over, with that revision.
fn carrying(left: Option<&str>) -> Work {
    let steps = vec![step("app", StepEffect::Mutates), step("switch", StepEffect::Mutates)];
    let carry = Carry { step: name("app"), left: left.map(|left| Revision::new(left).unwrap()) };
    let assignment = Assignment { carried: [name("app")].into(), carries: vec![carry], ..work(steps).assignment };
    Work::taken(assignment, LIVE, Some(session(1)))
}

fn read(state: OperationState, revision: Option<&str>) -> Reread {
    let revision = revision.map(|revision| Revision::new(revision).unwrap());
    let (resource_identity, detail) = ("one".to_owned(), String::new());
    Reread::Read {
        reading: Reading {
            resource_identity,
            state,
            revision,
            active: None,
            highest_fence: None,
            retained: Vec::new(),
            detail,
        },
    }
}

fn found(found: Reread) -> Input {
    Input::Reread { step: name("app"), found }
}

#[test]
fn what_is_carried_over_is_read_again_before_anything_is_asked_for() {
    let mut work = carrying(Some("r2"));
    assert_eq!(decide(&mut work, NOW, Input::Tick), [Action::Reread(name("app"))]);
    assert_eq!(decide(&mut work, NOW, Input::Tick), [], "it is read once at a time");
    let as_left = read(OperationState::Applied, Some("r2"));
    let actions = decide(&mut work, NOW, found(as_left.clone()));
    let said = Action::Report(ReportBody::Reread { step: name("app"), found: as_left.clone() });
    assert_eq!(actions, [said, Action::Journal, Action::AskPermit(name("switch"))]);
    assert_eq!(decide(&mut work, NOW, found(as_left)), [], "nobody asked for it");
}

#[test]
fn nothing_begins_where_what_is_carried_over_is_otherwise_or_could_not_be_read() {
    use OperationState::{Applied, Applying, NotApplied, Partial, Unknown};
    for (left, there, goes_on) in [
        (Some("r2"), read(Applied, Some("r2")), true),
        (Some("r2"), read(Unknown, Some("r2")), true),
        (None, read(Applied, Some("r9")), true),
        (Some("r2"), read(Applied, Some("r3")), false),
        (Some("r2"), read(Applied, None), false),
        (Some("r2"), read(Unknown, None), false),
        (None, read(Unknown, Some("r2")), false),
        (Some("r2"), read(NotApplied, Some("r2")), false),
        (Some("r2"), read(Partial, Some("r2")), false),
        (Some("r2"), read(Applying, Some("r2")), false),
        (Some("r2"), Reread::Failed { detail: "no route".to_owned() }, false),
    ] {
        let mut work = carrying(left);
        let _reads = decide(&mut work, NOW, Input::Tick);
        let actions = decide(&mut work, NOW, found(there.clone()));
        let over = reports(&actions).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Failed });
        assert_eq!((over, work.phase != Phase::Over), (!goes_on, goes_on), "{left:?} {there:?}: {actions:?}");
    }
}

#[test]
fn after_a_restart_it_is_read_anew_until_a_step_has_begun() {
    let mut work = carrying(Some("r2"));
    work.lease = LeaseCount::NotLive;
    assert_eq!(decide(&mut work, NOW, Input::Tick), [], "only under a lease");
    let renewed = Input::Renewed { until: Boot(2_000) };
    assert_eq!(decide(&mut work, NOW, renewed), [Action::Reread(name("app"))]);
    let mut work = carrying(Some("r2"));
    work.phase = Phase::Asked { session: None };
    assert_eq!(
        decide(&mut work, NOW, Input::Session(Some(session(2)))),
        [Action::Journal, Action::AskPermit(name("switch"))]
    );
    let mut work = carrying(Some("r2"));
    work.at = 2;
    let ended = decide(&mut work, NOW, Input::Tick);
    assert!(reports(&ended).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }), "{ended:?}");
}

#[test]
fn a_stop_while_it_is_read_is_a_stop_and_what_was_read_is_no_news() {
    let mut work = carrying(Some("r2"));
    let _reads = decide(&mut work, NOW, Input::Tick);
    let stopped = decide(&mut work, NOW, Input::StopAsked);
    assert!(reports(&stopped).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Stopped }), "{stopped:?}");
    assert_eq!(decide(&mut work, NOW, found(read(OperationState::Applied, Some("r2")))), []);
}

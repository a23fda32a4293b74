use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::{AttemptId, DeploymentId, Revision, StepName};
use holdfast_common::outcome::{Exit, FailureClass, OperationState, Reading, StepEnd};
use holdfast_common::report::{Disposition, FiledReason, Report, ReportBody, ReportSequence, Reread};
use holdfast_common::spec::{CheckSpec, Probe, RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::time::{Millis, Wall};
use uuid::Uuid;

use super::*;
use crate::v1;

fn claim() -> Claim {
    Claim {
        deployment: DeploymentId(Uuid::from_u128(1)),
        attempt: AttemptId(Uuid::from_u128(2)),
        fence: Fence::first(Epoch(1)).expect("first"),
    }
}

#[test]
fn message_without_fence_is_refused_and_never_given_the_current_one() {
    let mut wire = claim_to_wire(claim());
    assert_eq!(claim_from_wire(Some(wire.clone())), Ok(claim()));
    wire.fence = 0;
    assert_eq!(claim_from_wire(Some(wire)), Err(Invalid::Missing { field: "claim.fence" }));
    assert_eq!(claim_from_wire(None), Err(Invalid::Missing { field: "claim" }));
}

#[test]
fn unspecified_and_future_enum_values_are_refused_by_name() {
    for number in [0, 99, -1] {
        let wire = v1::Disposition { sequence: 1, kind: v1::DispositionKind::Filed as i32, reason: number };
        let refused = Invalid::Enum { field: "reason", kind: "FiledReason", number };
        assert_eq!(disposition_from_wire(wire), Err(refused));
    }
}

#[test]
fn reports_survive_the_wire() {
    let step = StepName::new("switch").expect("valid");
    let failed = StepEnd::Failed { maybe_partial: true, class: FailureClass::Permanent };
    for (end, exit) in [
        (StepEnd::Applied, Some(Exit::Exited(0))),
        (failed, Some(Exit::Exited(255))),
        (StepEnd::Stopped { maybe_partial: false }, Some(Exit::Signaled { signal: 9, by_us: true })),
        (StepEnd::Unknown, Some(Exit::Unknown)),
        (StepEnd::NotStarted, None),
    ] {
        let detail = String::from("text");
        let body = ReportBody::StepEnded { step: step.clone(), end, exit, observed: None, detail };
        let report = Report { sequence: ReportSequence(7), said_at: Wall(-1_500_000), body };
        assert_eq!(report_from_wire(report_to_wire(claim(), &report)), Ok((claim(), report)));
    }
    let reading = Reading {
        resource_identity: "shop@prod/app".to_owned(),
        state: OperationState::Unknown,
        revision: Revision::new("by-hand").ok(),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: "read".to_owned(),
    };
    for found in [Reread::Read { reading }, Reread::Failed { detail: "no route".to_owned() }] {
        let body = ReportBody::Reread { step: step.clone(), found };
        let report = Report { sequence: ReportSequence(8), said_at: Wall(0), body };
        assert_eq!(report_from_wire(report_to_wire(claim(), &report)), Ok((claim(), report)));
    }
    for disposition in [Disposition::Accepted, Disposition::Filed(FiledReason::LeaseExpired)] {
        let wire = disposition_to_wire(ReportSequence(3), disposition);
        assert_eq!(disposition_from_wire(wire), Ok((ReportSequence(3), disposition)));
    }
}

#[test]
fn checks_survive_the_wire_and_a_check_without_its_times_is_refused() {
    let argv = vec!["test".to_owned(), "-e".to_owned(), "/srv/up".to_owned()];
    let url = "http://127.0.0.1/".to_owned();
    for probe in [
        Probe::Http { url: url.clone(), expect_status: 204, expect_body: None },
        Probe::Http { url, expect_status: 200, expect_body: Some("ok".to_owned()) },
        Probe::Tcp { address: "[::1]:80".to_owned() },
        Probe::Command { argv },
    ] {
        let check = CheckSpec { probe, hold: Millis(0), interval: Millis(250), give_up: Millis(90_000) };
        let step = StepSpec {
            name: StepName::new("verify-1").expect("valid"),
            effect: StepEffect::None,
            resource: None,
            retry: RetryClass::Pure,
            body: StepBody::Check(check),
            revision: None,
            expected_revision: None,
            timeout: None,
            data: holdfast_common::rollback::DataEffect::None,
        };
        let wire = step_to_wire(&step);
        assert_eq!(step_from_wire(wire.clone()), Ok(step));
        let Some(v1::step::Body::Check(mut body)) = wire.body.clone() else { panic!("a check was sent") };
        body.give_up = None;
        let wire = v1::Step { body: Some(v1::step::Body::Check(body)), ..wire };
        assert_eq!(step_from_wire(wire), Err(Invalid::Missing { field: "step.check.give_up" }));
    }
}

mod checks;
mod effect;
mod frames;
mod lists;
mod plans;
mod raw;

use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::{duration_to_wire, wall_to_wire};
use holdfast_proto::v1::{self, AttemptState, DeploymentState, StepEffect, StepState};

use super::*;

/// 2026-11-29T14:20:00Z
const START: i64 = 1_795_962_000_000_000;

fn at(second: i64) -> Wall {
    Wall(START + second * 1_000_000)
}

fn stamp(second: i64) -> Option<prost_types::Timestamp> {
    Some(wall_to_wire(at(second)))
}

fn seen(second: i64) -> Option<v1::Seen> {
    Some(v1::Seen { said_at: stamp(second), received_at: stamp(second) })
}

fn canvas() -> Canvas<'static> {
    Canvas { terminal: &Terminal::PLAIN, now: at(120) }
}

fn uncertain() -> v1::Deployment {
    let step = v1::StepRun {
        name: "switch".to_owned(),
        state: StepState::Started as i32,
        effect: StepEffect::Mutates as i32,
        resource: "site".to_owned(),
        permitted_at: stamp(7),
        started: seen(9),
        ..v1::StepRun::default()
    };
    let look = v1::StepRun {
        name: "look".to_owned(),
        state: StepState::Applied as i32,
        effect: StepEffect::None as i32,
        ..v1::StepRun::default()
    };
    let attempt = v1::Attempt {
        number: 1,
        agent: "web-07".to_owned(),
        fence: 42,
        fence_text: "1.42".to_owned(),
        state: AttemptState::Uncertain as i32,
        offered_at: stamp(5),
        steps: vec![look, step],
        ..v1::Attempt::default()
    };
    v1::Deployment {
        summary: Some(v1::DeploymentSummary {
            id: "0193a1b2-0000-7000-8000-000000000001".to_owned(),
            label: "shop@prod#12".to_owned(),
            target: "shop@prod".to_owned(),
            state: DeploymentState::Uncertain as i32,
            because: "nothing that was accepted says how it ended".to_owned(),
            submitted_by: "alice".to_owned(),
            submitted_at: stamp(0),
            ..v1::DeploymentSummary::default()
        }),
        inputs: [("revision".to_owned(), "v2".to_owned())].into(),
        attempts: vec![attempt],
        holds_target: true,
        reserved_at: stamp(1),
        ..v1::Deployment::default()
    }
}

fn decided(target: v1::OperationState, revision: &str, second: i64) -> v1::DecisionRecord {
    v1::DecisionRecord {
        by: "dev".to_owned(),
        at: stamp(second),
        kind: v1::DecisionKind::Retry as i32,
        target: target as i32,
        runner: v1::RunnerState::Stopped as i32,
        observed_revision: revision.to_owned(),
        evidence_ids: vec!["0193a1b2-0000-7000-8000-000000000009".to_owned()],
        ..v1::DecisionRecord::default()
    }
}

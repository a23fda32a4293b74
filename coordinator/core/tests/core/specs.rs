//! The targets and deployments of the worlds, and identities that count.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::*;
use holdfast_common::recovery::Policy;
use holdfast_common::spec::*;
use holdfast_common::time::Millis;
use uuid::Uuid;

pub const TTL: u64 = 1_000;
pub const MARGIN: u64 = 100;
/// What a lease is given for a planned absence at most.
pub const AWAY: u64 = 1_000;

fn id(kind: u8, number: u64) -> Uuid {
    Uuid::from_u128((u128::from(kind) << 64) | u128::from(number))
}

pub fn deployment_id(number: u64) -> DeploymentId {
    DeploymentId(id(1, number))
}
pub fn attempt_id(number: u64) -> AttemptId {
    AttemptId(id(2, number))
}
pub fn evidence_id(number: u64) -> EvidenceId {
    EvidenceId(id(3, number))
}
pub fn incarnation_id(number: u64) -> IncarnationId {
    IncarnationId(id(4, number))
}
pub fn request_id(number: u64) -> RequestId {
    RequestId(id(5, number))
}
pub fn agent_name(number: usize) -> AgentName {
    AgentName::new(format!("a{number}")).unwrap()
}
pub fn step_name(text: &str) -> StepName {
    StepName::new(text).unwrap()
}
pub fn resource_name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}
pub fn revision(text: &str) -> Revision {
    Revision::new(text).unwrap()
}
pub fn anna() -> OperatorName {
    OperatorName::new("anna").unwrap()
}

/// A release that a fence protects.
pub fn site(reach: Reach) -> TargetSpec {
    let adapter = ResourceAdapter::Release { root: "/srv/site".into(), retain: 3 };
    target("site@prod", vec![ResourceSpec { name: resource_name("site"), reach, adapter }])
}

/// An application that can be read, and a database that can't and whose effects outlive their process.
pub fn shop(reach: Reach) -> TargetSpec {
    let app = ResourceAdapter::Command { inspect: Some(vec!["revision".into()]), outlives: false };
    let db = ResourceAdapter::Command { inspect: None, outlives: true };
    let app = ResourceSpec { name: resource_name("app"), reach, adapter: app };
    let db = ResourceSpec { name: resource_name("db"), reach: Reach::Shared, adapter: db };
    target("shop@prod", vec![app, db])
}

/// An application that can be read and keeps no fences.
pub fn cart(outlives: bool) -> TargetSpec {
    let adapter = ResourceAdapter::Command { inspect: Some(vec!["revision".into()]), outlives };
    target("cart@prod", vec![ResourceSpec { name: resource_name("app"), reach: Reach::Shared, adapter }])
}

fn target(name: &str, resources: Vec<ResourceSpec>) -> TargetSpec {
    let agents = BTreeMap::from([("role".to_owned(), "web".to_owned())]);
    TargetSpec {
        name: TargetName::new(name).unwrap(),
        agents,
        policy: Policy::Manual,
        patience: None,
        queue: QueueKind::Fifo,
        resources,
    }
}

pub fn deployment(target: &TargetSpec, steps: Vec<StepSpec>, max_attempts: u32) -> DeploymentSpec {
    DeploymentSpec {
        target: target.name.clone(),
        inputs: BTreeMap::new(),
        lease_ttl: Millis(TTL),
        steps,
        cancel_grace: Millis(100),
        retry: RetrySpec {
            max_attempts,
            backoff_initial: Millis(50),
            backoff_max: Millis(400),
            transient_exit_codes: BTreeSet::new(),
        },
        timeouts: Timeouts::default(),
        policy: None,
        order: None,
        rollback: None,
    }
}

/// A step without effect.
pub fn check(name: &str) -> StepSpec {
    StepSpec {
        name: step_name(name),
        effect: StepEffect::None,
        resource: None,
        retry: RetryClass::Pure,
        body: StepBody::Command { argv: vec!["true".into()] },
        revision: None,
        expected_revision: None,
        timeout: None,
        data: holdfast_common::rollback::DataEffect::None,
    }
}

/// A health check.
pub fn verify(name: &str) -> StepSpec {
    let probe = Probe::Tcp { address: "127.0.0.1:80".into() };
    let spec = CheckSpec { probe, hold: Millis(0), interval: Millis(100), give_up: Millis(1_000) };
    StepSpec { body: StepBody::Check(spec), ..check(name) }
}

/// A mutating step.
pub fn change(name: &str, resource: &str, retry: RetryClass, to: Option<&str>) -> StepSpec {
    let release = resource == "site";
    let archive = StepBody::Release { archive: "site.tar.gz".into(), sha256: "00".into() };
    StepSpec {
        effect: StepEffect::Mutates,
        resource: Some(resource_name(resource)),
        retry,
        body: if release { archive } else { StepBody::Command { argv: vec!["change".into()] } },
        revision: to.map(revision),
        ..check(name)
    }
}

//! Steps and resources, as an offer or an inquiry carries them.

use holdfast_common::id::{ResourceName, Revision};
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{
    CheckSpec, Probe, Reach, ResourceAdapter, ResourceSpec, RetryClass, StepBody, StepEffect, StepSpec,
};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Invalid, WireEnum, duration_from_wire, duration_to_wire, parsed, parsed_or_none, required};
use crate::v1;

/// A step.
pub fn step_from_wire(step: v1::Step) -> Result<StepSpec, Invalid> {
    let body = match required("step.body", step.body)? {
        v1::step::Body::Command(command) if command.argv.is_empty() => {
            return Err(Invalid::Missing { field: "step.command.argv" });
        }
        v1::step::Body::Command(command) => StepBody::Command { argv: command.argv },
        v1::step::Body::Release(release) => StepBody::Release { archive: release.archive, sha256: release.sha256 },
        v1::step::Body::Check(check) => StepBody::Check(check_from_wire(check)?),
        v1::step::Body::Restore(v1::RestoreBody {}) => StepBody::Restore,
        v1::step::Body::System(system) => StepBody::System(json_from_wire("step.system.change", &system.change)?),
    };
    Ok(StepSpec {
        name: parsed("step.name", &step.name)?,
        effect: StepEffect::from_wire("step.effect", step.effect)?,
        resource: parsed_or_none("step.resource", &step.resource)?,
        retry: RetryClass::from_wire("step.retry", step.retry)?,
        body,
        revision: parsed_or_none("step.revision", &step.revision)?,
        expected_revision: parsed_or_none("step.expected_revision", &step.expected_revision)?,
        timeout: step.timeout.map(|timeout| duration_from_wire("step.timeout", timeout)).transpose()?,
        data: DataEffect::from_wire("step.data", step.data)?,
    })
}

/// A step.
#[must_use]
pub fn step_to_wire(step: &StepSpec) -> v1::Step {
    let body = match &step.body {
        StepBody::Command { argv } => v1::step::Body::Command(v1::CommandBody { argv: argv.clone() }),
        StepBody::Release { archive, sha256 } => {
            v1::step::Body::Release(v1::ReleaseBody { archive: archive.clone(), sha256: sha256.clone() })
        }
        StepBody::Check(check) => v1::step::Body::Check(check_to_wire(check)),
        StepBody::Restore => v1::step::Body::Restore(v1::RestoreBody {}),
        StepBody::System(change) => v1::step::Body::System(v1::SystemBody { change: json_to_wire(change) }),
    };
    v1::Step {
        name: step.name.to_string(),
        effect: step.effect.to_number(),
        resource: step.resource.as_ref().map(ResourceName::to_string).unwrap_or_default(),
        retry: step.retry.to_number(),
        body: Some(body),
        revision: step.revision.as_ref().map(Revision::to_string).unwrap_or_default(),
        expected_revision: step.expected_revision.as_ref().map(Revision::to_string).unwrap_or_default(),
        timeout: step.timeout.map(duration_to_wire),
        data: step.data.to_number(),
    }
}

/// A system's own terms are one text on the wire: they are read whole, or refused.
fn json_from_wire<T: DeserializeOwned>(field: &'static str, text: &str) -> Result<T, Invalid> {
    serde_json::from_str(text).map_err(|error| Invalid::Json { field, why: error.to_string() })
}

fn json_to_wire(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data serializes")
}

fn check_from_wire(check: v1::CheckBody) -> Result<CheckSpec, Invalid> {
    let probe = match required("step.check.probe", check.probe)? {
        v1::check_body::Probe::Http(http) => Probe::Http {
            url: not_empty("step.check.http.url", http.url)?,
            expect_status: u16::try_from(http.expect_status)
                .ok()
                .filter(|status| (100..=599).contains(status))
                .ok_or(Invalid::Missing { field: "step.check.http.expect_status" })?,
            expect_body: (!http.expect_body.is_empty()).then_some(http.expect_body),
        },
        v1::check_body::Probe::Tcp(tcp) => Probe::Tcp { address: not_empty("step.check.tcp.address", tcp.address)? },
        v1::check_body::Probe::Command(command) if command.argv.is_empty() => {
            return Err(Invalid::Missing { field: "step.check.command.argv" });
        }
        v1::check_body::Probe::Command(command) => Probe::Command { argv: command.argv },
    };
    let span = |field, span| duration_from_wire(field, required(field, span)?);
    Ok(CheckSpec {
        probe,
        hold: span("step.check.hold", check.hold)?,
        interval: span("step.check.interval", check.interval)?,
        give_up: span("step.check.give_up", check.give_up)?,
    })
}

fn not_empty(field: &'static str, text: String) -> Result<String, Invalid> {
    if text.is_empty() { Err(Invalid::Missing { field }) } else { Ok(text) }
}

fn check_to_wire(check: &CheckSpec) -> v1::CheckBody {
    let probe = match &check.probe {
        Probe::Http { url, expect_status, expect_body } => v1::check_body::Probe::Http(v1::HttpProbe {
            url: url.clone(),
            expect_status: u32::from(*expect_status),
            expect_body: expect_body.clone().unwrap_or_default(),
        }),
        Probe::Tcp { address } => v1::check_body::Probe::Tcp(v1::TcpProbe { address: address.clone() }),
        Probe::Command { argv } => v1::check_body::Probe::Command(v1::CommandBody { argv: argv.clone() }),
    };
    v1::CheckBody {
        probe: Some(probe),
        hold: Some(duration_to_wire(check.hold)),
        interval: Some(duration_to_wire(check.interval)),
        give_up: Some(duration_to_wire(check.give_up)),
    }
}

/// A resource.
pub fn resource_from_wire(resource: v1::Resource) -> Result<ResourceSpec, Invalid> {
    let adapter = match required("resource.adapter", resource.adapter)? {
        v1::resource::Adapter::Command(command) => ResourceAdapter::Command {
            inspect: (!command.inspect.is_empty()).then_some(command.inspect),
            outlives: command.outlives,
        },
        v1::resource::Adapter::Release(release) => {
            ResourceAdapter::Release { root: release.root, retain: release.retain }
        }
        v1::resource::Adapter::System(system) => {
            ResourceAdapter::System(json_from_wire("resource.system.settings", &system.settings)?)
        }
    };
    Ok(ResourceSpec {
        name: parsed("resource.name", &resource.name)?,
        reach: Reach::from_wire("resource.reach", resource.reach)?,
        adapter,
    })
}

/// A resource.
#[must_use]
pub fn resource_to_wire(resource: &ResourceSpec) -> v1::Resource {
    let adapter = match &resource.adapter {
        ResourceAdapter::Command { inspect, outlives } => v1::resource::Adapter::Command(v1::CommandResource {
            inspect: inspect.clone().unwrap_or_default(),
            outlives: *outlives,
        }),
        ResourceAdapter::Release { root, retain } => {
            v1::resource::Adapter::Release(v1::ReleaseResource { root: root.clone(), retain: *retain })
        }
        ResourceAdapter::System(system) => v1::resource::Adapter::System(v1::SystemResource {
            adapter: system.adapter().name().to_owned(),
            settings: json_to_wire(system),
        }),
    };
    v1::Resource { name: resource.name.to_string(), reach: resource.reach.to_number(), adapter: Some(adapter) }
}

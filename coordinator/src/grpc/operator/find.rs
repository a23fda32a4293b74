//! From what people write to what is meant.

use std::sync::Arc;

use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, DeploymentLabel, TargetName};
use holdfast_common::problem::Problem;
use holdfast_common::text::bounded;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::state::{Deployment, EventSequence};
use holdfast_proto::convert::parsed;
use holdfast_proto::v1;
use tonic::Status;

use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentRow;

/// Shortest prefix of a deployment's identity that is looked up.
const SHORTEST_PREFIX: usize = 4;

/// Candidates that an ambiguous prefix is answered with.
const CANDIDATES: u32 = 5;

/// How a deployment may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// `TARGET#N` or the whole identity: for whatever changes something.
    Whole,
    /// A unique prefix of the identity too: for reads.
    Prefix,
}

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Label(DeploymentLabel),
    Id(DeploymentId),
    Prefix(String),
}

/// The deployment of that name.
pub(super) async fn deployment(shared: &Shared, text: &str, naming: Naming) -> Result<DeploymentRow, Status> {
    let name = name(text, naming).ok_or_else(|| no_such_deployment(text))?;
    let found = shared.reader.run(move |reader| match name {
        Name::Label(label) => Ok(Found::One(reader.deployment_by_label(&label)?.map(Box::new))),
        Name::Id(id) => Ok(Found::One(reader.deployment(id)?.map(Box::new))),
        Name::Prefix(prefix) => match reader.deployments_beginning(&prefix, CANDIDATES)?.as_slice() {
            [] => Ok(Found::One(None)),
            [only] => Ok(Found::One(reader.deployment(*only)?.map(Box::new))),
            several => Ok(Found::Several(several.to_vec())),
        },
    });
    match found.await.map_err(|error| refused::by_store(&error))? {
        Found::One(row) => row.map(|row| *row).ok_or_else(|| no_such_deployment(text)),
        Found::Several(ids) => Err(status::of(&ambiguous(text, &ids))),
    }
}

enum Found {
    One(Option<Box<DeploymentRow>>),
    Several(Vec<DeploymentId>),
}

fn name(text: &str, naming: Naming) -> Option<Name> {
    if let Some((target, number)) = text.split_once('#') {
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| number.parse().ok()).flatten()?;
        return Some(Name::Label(DeploymentLabel { target: TargetName::new(target).ok()?, number }));
    }
    match (text.parse::<DeploymentId>(), naming) {
        (Ok(id), _) => Some(Name::Id(id)),
        (Err(_), Naming::Whole) => None,
        (Err(_), Naming::Prefix) => {
            let fits = (SHORTEST_PREFIX..36).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
            fits.then(|| Name::Prefix(text.to_owned()))
        }
    }
}

fn no_such_deployment(text: &str) -> Status {
    let text = bounded(text, 100);
    status::of(
        &Problem::new(Code::DeploymentNotFound, format!("no such deployment: {text}"))
            .so("nothing was changed")
            .next("holdfast list"),
    )
}

fn ambiguous(text: &str, ids: &[DeploymentId]) -> Problem {
    let title = format!("{} fits more than one deployment", bounded(text, 100));
    ids.iter().fold(Problem::new(Code::AmbiguousId, title), |problem, id| problem.next(format!("holdfast show {id}")))
}

/// A target's name, or the field that is wrong.
pub(super) fn target_name(text: &str) -> Result<TargetName, Status> {
    parsed("target", text).map_err(|why| status::invalid(&why))
}

/// The target as it stands.
pub(super) async fn target(shared: &Shared, text: &str) -> Result<Arc<TargetState>, Status> {
    let name = target_name(text)?;
    let state = shared.driver.state(name.clone()).await;
    state.ok_or_else(|| status::of(&refused::no_such_target(name.as_str())))
}

/// The deployment as it stands now: from the target's state while it is current or waits, else as it ended.
pub(super) async fn shown(shared: &Shared, row: DeploymentRow) -> v1::Deployment {
    let state = shared.driver.state(row.target.clone()).await;
    let sequence = state.as_ref().map_or(EventSequence(0), |state| state.sequence);
    let record = live(state.as_deref(), row.record.id).unwrap_or(&row.record);
    view::deployment::whole(&row.target, record, sequence, &|agent| shared.silence(agent))
}

/// The deployment as it stands in that state of its target, if it is current or waits there.
pub(super) fn shown_in(shared: &Shared, state: &TargetState, id: DeploymentId) -> Option<v1::Deployment> {
    let record = live(Some(state), id)?;
    Some(view::deployment::whole(&state.spec.name, record, state.sequence, &|agent| shared.silence(agent)))
}

/// By its identity, after something was recorded about it.
pub(super) async fn shown_by_id(shared: &Shared, id: DeploymentId) -> Result<v1::Deployment, Status> {
    Ok(shown(shared, deployment(shared, &id.to_string(), Naming::Whole).await?).await)
}

fn live(state: Option<&TargetState>, id: DeploymentId) -> Option<&Deployment> {
    let state = state?;
    state.current.iter().chain(&state.queue).find(|deployment| deployment.id == id)
}

/// The target's name, typed by whoever asks for something severe.
pub(super) fn confirmed(target: &TargetName, typed: &str) -> Result<(), Status> {
    if typed == target.as_str() {
        return Ok(());
    }
    Err(status::of(
        &Problem::new(Code::NotConfirmed, format!("this needs the target's name, typed: {target}"))
            .so("nothing was changed")
            .next(format!("--confirm {target}"))
            .with("target", target.as_str()),
    ))
}

/// Longest reason, in bytes.
const MAX_REASON: usize = 4096;

/// A reason that says something.
pub(super) fn reason(text: &str) -> Result<String, Status> {
    match text.trim() {
        "" => Err(status::of(
            &Problem::new(Code::ReasonMissing, "a reason is required").so("nothing was changed").next("--reason TEXT"),
        )),
        long if long.len() > MAX_REASON => Err(status::of(
            &Problem::new(Code::TooLarge, format!("a reason has at most {MAX_REASON} bytes")).so("nothing was changed"),
        )),
        reason => Ok(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_go_by_label_identity_and_for_reads_by_prefix() {
        let id = "0193a1b2-0000-7000-8000-000000000001";
        let label = |text| name(text, Naming::Whole);
        assert!(matches!(label("shop@prod#12"), Some(Name::Label(label)) if label.number == 12));
        assert!(matches!(label(id), Some(Name::Id(_))));
        assert_eq!(name("0193a1b2", Naming::Prefix), Some(Name::Prefix("0193a1b2".to_owned())));
        assert_eq!(name("0193a1b2", Naming::Whole), None, "nothing is changed by a prefix");
        for bad in [
            "",
            "shop@prod#",
            "shop@prod#-1",
            "shop@prod#+1",
            "#1",
            "../x#1",
            "019",
            "xyz1",
            "shop@prod#99999999999999999999",
        ] {
            assert_eq!(name(bad, Naming::Prefix), None, "{bad:?}");
        }
    }

    #[test]
    fn a_severe_request_needs_the_exact_name_and_a_reason_that_says_something() {
        let target = TargetName::new("shop@prod").unwrap();
        assert!(confirmed(&target, "shop@prod").is_ok());
        for typed in ["", "shop", "SHOP@PROD", " shop@prod"] {
            assert!(confirmed(&target, typed).is_err(), "{typed:?}");
        }
        assert_eq!(reason("  because ").expect("a reason"), "because");
        assert!(reason(" \n ").is_err() && reason(&"x".repeat(4097)).is_err());
    }
}

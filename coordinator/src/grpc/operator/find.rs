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

use crate::auth::guard::not_allowed;
use crate::auth::{Operator, Permission};
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentRow;

/// Shortest prefix of a deployment's identity that is looked up.
const SHORTEST_PREFIX: usize = 4;

/// Candidates that an ambiguous prefix is answered with.
const CANDIDATES: u32 = 5;

/// How a deployment may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// `TARGET#N` or the whole identity: for whatever changes something.
    Whole,
    /// A unique prefix of the identity too: for reads.
    Prefix,
}

impl Naming {
    fn of(permission: Permission) -> Self {
        if permission == Permission::View { Naming::Prefix } else { Naming::Whole }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Label(DeploymentLabel),
    Id(DeploymentId),
    Prefix(String),
}

/// Whether the caller may do that on the target. What they may not even view is answered by `hidden`: as what does not
/// exist is. Either way it is kept that they asked.
pub(super) fn admitted(
    shared: &Shared,
    by: &Operator,
    permission: Permission,
    target: &TargetName,
    hidden: impl FnOnce() -> Status,
) -> Result<(), Status> {
    if by.scope.may(permission, target) {
        return Ok(());
    }
    let problem = not_allowed(by, permission, Some(target));
    shared.driver.refused(by.name.to_string(), format!("{} on {target}", permission.words()), problem.title.clone());
    Err(if by.scope.may(Permission::View, target) { status::of(&problem) } else { hidden() })
}

/// The targets that the caller may view; `None` where that is all of them.
pub(super) async fn seen(shared: &Shared, by: &Operator) -> Result<Option<Vec<TargetName>>, Status> {
    if by.scope.may_everywhere(Permission::View) {
        return Ok(None);
    }
    let read = shared.reader.run(|reader| reader.target_names()).await;
    let mut names = read.map_err(|error| refused::by_store(&error))?;
    names.retain(|name| by.scope.may(Permission::View, name));
    Ok(Some(names))
}

/// The deployment of that name, for whoever has the permission on its target. To view it, a unique prefix of its
/// identity will do: unique among what the caller may view.
pub(super) async fn deployment(
    shared: &Shared,
    by: &Operator,
    text: &str,
    permission: Permission,
) -> Result<DeploymentRow, Status> {
    let name = name(text, Naming::of(permission)).ok_or_else(|| no_such_deployment(text))?;
    let among = match name {
        Name::Prefix(_) => seen(shared, by).await?,
        Name::Label(_) | Name::Id(_) => None,
    };
    let row = look_up(shared, text, name, among).await?;
    admitted(shared, by, permission, &row.target, || no_such_deployment(text))?;
    Ok(row)
}

async fn look_up(
    shared: &Shared,
    text: &str,
    name: Name,
    among: Option<Vec<TargetName>>,
) -> Result<DeploymentRow, Status> {
    let found = shared.reader.run(move |reader| match name {
        Name::Label(label) => Ok(Found::One(reader.deployment_by_label(&label)?.map(Box::new))),
        Name::Id(id) => Ok(Found::One(reader.deployment(id)?.map(Box::new))),
        Name::Prefix(prefix) => match reader.deployments_beginning(&prefix, among.as_deref(), CANDIDATES)?.as_slice() {
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

pub(super) fn no_such_deployment(text: &str) -> Status {
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
fn target_name(text: &str) -> Result<TargetName, Status> {
    parsed("target", text).map_err(|why| status::invalid(&why))
}

/// The name of a target that the caller may put on hold.
pub(super) fn holdable(shared: &Shared, by: &Operator, text: &str) -> Result<TargetName, Status> {
    let name = target_name(text)?;
    let none = || status::of(&refused::no_such_target(name.as_str()));
    admitted(shared, by, Permission::Hold, &name, none)?;
    Ok(name)
}

/// The target as it stands, for whoever has the permission on it.
pub(super) async fn target(
    shared: &Shared,
    by: &Operator,
    text: &str,
    permission: Permission,
) -> Result<Arc<TargetState>, Status> {
    let name = target_name(text)?;
    let none = || status::of(&refused::no_such_target(name.as_str()));
    admitted(shared, by, permission, &name, none)?;
    shared.driver.state(name.clone()).await.ok_or_else(none)
}

/// The deployment as it stands now: from the target's state while it is current or waits, else as it ended.
pub(super) async fn shown(shared: &Shared, row: DeploymentRow) -> v1::Deployment {
    let state = shared.driver.state(row.target.clone()).await;
    let sequence = state.as_ref().map_or(EventSequence(0), |state| state.sequence);
    let record = live(state.as_deref(), row.record.id).unwrap_or(&row.record);
    let mut whole = whole(shared, &row.target, record, sequence);
    whole.rolled_back_by = rolled_back_by(shared, &row).await;
    whole
}

/// With why it does not go on now.
fn whole(shared: &Shared, target: &TargetName, record: &Deployment, sequence: EventSequence) -> v1::Deployment {
    let mut whole = view::deployment::whole(target, record, sequence, &|agent| shared.silence(agent));
    if let Some(why) = shared.waits_now(record) {
        whole.waiting = why;
    }
    if let Some(summary) = &mut whole.summary {
        shared.tell(summary, record);
    }
    whole
}

/// The rollbacks that go back over it. What can't be read now is left out: the rest is worth showing.
async fn rolled_back_by(shared: &Shared, row: &DeploymentRow) -> Vec<String> {
    let (target, id) = (row.target.clone(), row.record.id);
    match shared.reader.run(move |reader| reader.rollbacks_of(id)).await {
        Ok(undone) => view::deployment::undone(&target, &undone),
        Err(error) => {
            tracing::warn!(%error, deployment = %id, "could not read who goes back over a deployment");
            Vec::new()
        }
    }
}

/// The deployment as it stands in that state of its target, if it is current or waits there.
pub(super) fn shown_in(shared: &Shared, state: &TargetState, id: DeploymentId) -> Option<v1::Deployment> {
    let record = live(Some(state), id)?;
    Some(whole(shared, &state.spec.name, record, state.sequence))
}

/// By its identity, after something was recorded about it.
pub(super) async fn shown_by_id(shared: &Shared, id: DeploymentId) -> Result<v1::Deployment, Status> {
    let text = id.to_string();
    Ok(shown(shared, look_up(shared, &text, Name::Id(id), None).await?).await)
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
        "" => Err(status::of(&Problem::without_reason("--reason").so("nothing was changed"))),
        long if long.len() > MAX_REASON => Err(status::of(
            &Problem::new(Code::TooLarge, format!("a reason has at most {MAX_REASON} bytes")).so("nothing was changed"),
        )),
        reason => Ok(reason.to_owned()),
    }
}

/// Text that need not be given, and says something where it is.
pub(super) fn bounded_or_none(field: &'static str, text: &str, max: usize) -> Result<Option<String>, Status> {
    let text = text.trim();
    if text.len() > max {
        let problem = Problem::new(Code::TooLarge, format!("{field} has at most {max} bytes"));
        return Err(status::of(&problem.so("nothing was changed")));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// A fault of our own: something was recorded, and the driver does not say what.
pub(super) fn no_deployment_told() -> Status {
    tracing::error!("a submission was taken and has no deployment");
    status::plain(Code::Internal, Code::Internal.title())
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

//! Going back: where to, and doing it.

use holdfast_common::id::{DeploymentId, RequestId, ResourceName, Revision, TargetName};
use holdfast_coordinator_core::rollback::{self, Candidate, Retained};
use holdfast_coordinator_core::state::ResourceKnowledge;
use holdfast_coordinator_core::{Answer, TargetState};
use holdfast_proto::convert::parsed;
use holdfast_proto::v1;
use sha2::{Digest, Sha256};
use tonic::Status;

use super::{Call, find, inquire, inspect_target};
use crate::auth::Permission;
use crate::driver::{Asked, PAST};
use crate::grpc::refused::Subject;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::rows::DeploymentFilter;

/// Longest text on how somebody knows that it is compatible, in bytes.
const MAX_ATTESTED: usize = 4096;

pub(super) async fn candidates(
    call: Call<'_, v1::ListRollbackCandidatesRequest>,
) -> Result<v1::ListRollbackCandidatesResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = inquire::wait(asked.wait)?;
    let state = find::target(shared, &by, &asked.target, Permission::View).await?;
    let retained = match by.scope.may(Permission::Inspect, &state.spec.name) {
        true => inspect_target::retained(shared, &state, wait).await?,
        false => Retained::new(),
    };
    let filter = DeploymentFilter { target: Some(state.spec.name.clone()), limit: PAST, ..DeploymentFilter::default() };
    let rows = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let rows = rows.map_err(|error| refused::by_store(&error))?;
    let past: Vec<_> = rows.into_iter().map(|row| row.record).filter(|record| record.ended.is_some()).collect();
    let found = rollback::candidates(&state, &past, &retained, shared.now());
    let candidates = found.iter().map(|candidate| shown(&state, candidate)).collect();
    Ok(v1::ListRollbackCandidatesResponse { candidates })
}

fn shown(state: &TargetState, candidate: &Candidate) -> v1::RollbackCandidate {
    let why_not = candidate.why_not.as_ref();
    let revisions = candidate.revisions.iter().map(|(resource, revision)| {
        let own = candidate.own.get(resource);
        v1::CandidateRevision {
            resource: resource.to_string(),
            revision: view::text(revision.as_ref()),
            asked: !candidate.not_asked.contains(resource),
            own_steps: own.map(|own| own.steps.iter().map(ToString::to_string).collect()).unwrap_or_default(),
            brings: view::text(own.and_then(|own| own.brings.as_ref())),
            recorded: view::text(recorded(state, resource).as_ref()),
        }
    });
    v1::RollbackCandidate {
        undoes: view::deployment::undone(&state.spec.name, &candidate.undoes),
        numbers: candidate.undoes.iter().map(|undone| undone.number).collect(),
        revisions: revisions.collect(),
        compatible: why_not.is_none(),
        why_not: why_not.map(view::sentence::no_way_back).unwrap_or_default(),
        may_be_attested: why_not.is_some_and(rollback::WhyNot::may_be_attested),
    }
}

/// The revision on record now, where there is one.
fn recorded(state: &TargetState, resource: &ResourceName) -> Option<Revision> {
    match state.known(resource) {
        ResourceKnowledge::Revision { revision, .. } => revision,
        ResourceKnowledge::Never | ResourceKnowledge::Unknown { .. } => None,
    }
}

pub(super) async fn rollback(call: Call<'_, v1::RollbackRequest>) -> Result<v1::RollbackResponse, Status> {
    let Call { shared, by, asked } = call;
    let wait = inquire::wait(asked.wait)?;
    let request: RequestId = parsed("request_id", &asked.request_id).map_err(|why| status::invalid(&why))?;
    let to: Revision = parsed("to", &asked.to).map_err(|why| status::invalid(&why))?;
    let reason = find::reason(&asked.reason)?;
    let attested = find::bounded_or_none("attested", &asked.attested, MAX_ATTESTED)?;
    let state = find::target(shared, &by, &asked.target, Permission::Rollback).await?;
    let target = state.spec.name.clone();
    find::confirmed(&target, &asked.confirm)?;
    let digest = content(&target, &to, &reason, attested.as_deref());
    if let Some(id) = known(shared, request, digest).await? {
        return Ok(v1::RollbackResponse { deployment: Some(find::shown_by_id(shared, id).await?), existed: true });
    }
    refused::without_descriptors(shared)?;
    let retained = inspect_target::retained(shared, &state, wait).await?;
    let (by_name, shown) = (by.name.clone(), asked.undoes);
    let asked = Asked::Rollback { request, digest, to, shown, by: by_name, reason, attested, retained };
    let told = match shared.driver.ask(target.clone(), asked).await {
        Ok(told) => told,
        Err(error) => return Err(refused::by_driver(shared, &by, &Subject::Target(target), error).await),
    };
    debug_assert!(matches!(told.answer, Answer::Submitted { .. }), "a rollback is submitted");
    let id = told.deployment.ok_or_else(find::no_deployment_told)?;
    Ok(v1::RollbackResponse { deployment: Some(find::shown_by_id(shared, id).await?), existed: told.existed })
}

/// The rollback that the same request was recorded as: what resources retain may have changed since.
async fn known(shared: &Shared, request: RequestId, digest: [u8; 32]) -> Result<Option<DeploymentId>, Status> {
    let read = shared.reader.run(move |reader| reader.submission(request)).await;
    let known = read.map_err(|error| refused::by_store(&error))?;
    Ok(known.filter(|known| known.content.0 == digest).map(|known| known.deployment))
}

/// SHA-256 of what the request asks for.
fn content(target: &TargetName, to: &Revision, reason: &str, attested: Option<&str>) -> [u8; 32] {
    let whole = serde_json::to_vec(&("rollback", target, to, reason, attested)).expect("plain data serializes");
    Sha256::digest(whole).into()
}

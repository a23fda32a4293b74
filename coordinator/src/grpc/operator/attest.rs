//! Putting a person's word on record, for ever as one.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use holdfast_common::code::Code;
use holdfast_common::id::ResourceName;
use holdfast_common::problem::Problem;
use holdfast_common::recovery::{Attestation, AttestedRunner, AttestedTarget};
use holdfast_common::spec::hex;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::state::EvidenceBody;
use holdfast_proto::convert::{WireEnum, parsed, parsed_or_none};
use holdfast_proto::v1;
use sha2::{Digest, Sha256};
use tonic::Status;

use super::{Call, find, reconciliation, targets};
use crate::auth::Permission;
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::room::is_no_room;

pub(super) async fn attest(call: Call<'_, v1::AttestRequest>) -> Result<v1::AttestResponse, Status> {
    let Call { shared, by, asked } = call;
    let invalid = |why| status::invalid(&why);
    let runner = AttestedRunner::from_wire("runner", asked.runner).map_err(invalid)?;
    let target = AttestedTarget::from_wire("target_state", asked.target_state).map_err(invalid)?;
    let observed = parsed_or_none("observed_revision", &asked.observed_revision).map_err(invalid)?;
    let how = find::reason(&asked.how)?;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::Attest).await?;
    reconciliation::not_ended(&row)?;
    find::confirmed(&row.target, &asked.confirm)?;
    let attachment = match asked.attachment {
        none if none.is_empty() => None,
        bytes => Some(kept(shared, bytes).await?),
    };
    let attestation = Attestation { runner, target, observed, how, attachment };
    let id = row.record.id;
    let attest = Asked::Attest { deployment: id, by: by.name.clone(), attestation: attestation.clone() };
    if let Err(error) = shared.driver.ask(row.target.clone(), attest).await {
        return Err(refused::by_driver(shared, &by, &Subject::of(&row), error).await);
    }
    let read = shared.reader.run(move |reader| reader.evidence(id)).await;
    let evidence = read.map_err(|error| refused::by_store(&error))?;
    let recorded = evidence.iter().rev().find(|evidence| {
        matches!(&evidence.body, EvidenceBody::Attested { by: who, attestation: what, .. } if *who == by.name && *what == attestation)
    });
    Ok(v1::AttestResponse { evidence: recorded.map(view::evidence::evidence) })
}

/// What a person saw at a resource whose revision nobody knows. Nothing is said of any attempt.
pub(super) async fn revision(call: Call<'_, v1::AttestRevisionRequest>) -> Result<v1::AttestRevisionResponse, Status> {
    let Call { shared, by, asked } = call;
    let invalid = |why| status::invalid(&why);
    let resource: ResourceName = parsed("resource", &asked.resource).map_err(invalid)?;
    let revision = parsed("observed_revision", &asked.observed_revision).map_err(invalid)?;
    let how = find::reason(&asked.how)?;
    let state = find::target(shared, &by, &asked.target, Permission::Attest).await?;
    let target = &state.spec.name;
    find::confirmed(target, &asked.confirm)?;
    if state.spec.resource(&resource).is_none() {
        return Err(status::of(&no_such_resource(&state, &resource)));
    }
    let attest = Asked::AttestRevision { by: by.name.clone(), resource, revision, how };
    if let Err(error) = shared.driver.ask(target.clone(), attest).await {
        return Err(refused::by_driver(shared, &by, &Subject::Target(target.clone()), error).await);
    }
    Ok(v1::AttestRevisionResponse { target: targets::shown(shared, target).await })
}

fn no_such_resource(state: &TargetState, resource: &ResourceName) -> Problem {
    let target = &state.spec.name;
    let names: Vec<&str> = state.spec.resources.iter().map(|resource| resource.name.as_str()).collect();
    Problem::new(Code::InvalidMessage, format!("{target} has no resource {resource}"))
        .known(format!("its resources: {}", names.join(", ")))
        .so("nothing was changed")
        .with("target", target.as_str())
        .with("resource", resource.as_str())
}

/// Keeps the file by its hash, durably, before anything on record names it. Answers the hash.
async fn kept(shared: &Shared, bytes: Vec<u8>) -> Result<String, Status> {
    let (folder, room) = (shared.attachments.clone(), *shared.room.borrow());
    let written = tokio::task::spawn_blocking(move || {
        let hash = hex(&Sha256::digest(&bytes));
        write(&folder, &hash, &bytes).map(|()| hash)
    });
    let failed = |error: &dyn std::error::Error| {
        tracing::error!(%error, "could not keep an attached file");
        status::plain(Code::StoreFailed, "the attached file could not be stored")
    };
    written
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| if is_no_room(&error) { status::of(&refused::no_room(room)) } else { failed(&error) })
}

fn write(folder: &Path, hash: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(hash);
    if path.exists() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let fresh = folder.join(format!("{hash}.{}.new", uuid::Uuid::new_v4()));
    let mut file = fs::File::create_new(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, &path)?;
    fs::File::open(folder)?.sync_all()
}

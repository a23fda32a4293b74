//! Asking for a deployment.

use std::collections::BTreeMap;

use holdfast_common::code::Code;
use holdfast_common::file::DeploymentFile;
use holdfast_common::id::{DeploymentId, RequestId, TargetName};
use holdfast_common::problem::Problem;
use holdfast_common::spec::TargetSpec;
use holdfast_proto::convert::{parsed, parsed_or_none};
use holdfast_proto::v1;
use sha2::{Digest, Sha256};
use tonic::Status;

use super::{Call, archives, find};
use crate::auth::Permission;
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};

pub(super) async fn submit(call: Call<'_, v1::SubmitRequest>) -> Result<v1::SubmitResponse, Status> {
    let Call { shared, by, asked } = call;
    let request: RequestId = parsed("request_id", &asked.request_id).map_err(|why| status::invalid(&why))?;
    let instead: Option<TargetName> = parsed_or_none("target", &asked.target).map_err(|why| status::invalid(&why))?;
    let inputs: BTreeMap<String, String> = asked.inputs.into_iter().collect();
    let (bytes, text) = (asked.file.len(), asked.file);
    let parse = move || (DeploymentFile::parse(&text), text);
    let (parsed_file, text) = shared.files.read(bytes, parse).await?;
    let file = parsed_file.map_err(|errors| status::bad_file(&errors, "FILE"))?;
    let target = instead.as_ref().or(file.target()).cloned().ok_or_else(|| status::of(&no_target()))?;
    let digest = content(&text, &inputs, &target);
    let none = || status::of(&refused::no_such_target(target.as_str()));
    find::admitted(shared, &by, Permission::Deploy, &target, none)?;
    let (id, declared) = look_up(shared, request, digest, &target).await?;
    if let Some(id) = id {
        return Ok(v1::SubmitResponse { deployment: Some(find::shown_by_id(shared, id).await?), existed: true });
    }
    let declared = declared.ok_or_else(none)?;
    refused::without_descriptors(shared)?;
    let resolved = shared.files.read(bytes, move || file.resolve(&inputs, instead.as_ref(), &declared)).await?;
    let spec = resolved.map_err(|errors| status::bad_file(&errors, "FILE"))?;
    archives::present(shared, &spec).await?;
    let asked = Asked::Submit { request, digest, spec, by: by.name.clone(), no_queue: asked.no_queue };
    let told = match shared.driver.ask(target.clone(), asked).await {
        Ok(told) => told,
        Err(error) => return Err(refused::by_driver(shared, &by, &Subject::Target(target), error).await),
    };
    let id = told.deployment.ok_or_else(find::no_deployment_told)?;
    let shown = match told.after.as_deref().and_then(|state| find::shown_in(shared, state, id)) {
        Some(shown) => shown,
        None => find::shown_by_id(shared, id).await?,
    };
    Ok(v1::SubmitResponse { deployment: Some(shown), existed: told.existed })
}

/// The deployment that the same request was recorded as, for what it was resolved against may have changed since; and the
/// target as it is declared, in one read.
async fn look_up(
    shared: &Shared,
    request: RequestId,
    digest: [u8; 32],
    target: &TargetName,
) -> Result<(Option<DeploymentId>, Option<TargetSpec>), Status> {
    let target = target.clone();
    let read = shared.reader.glance(move |reader| {
        let known = reader.submission(request)?.filter(|known| known.content.0 == digest);
        Ok((known.map(|known| known.deployment), reader.target(&target)?.map(|row| row.spec)))
    });
    read.await.map_err(|error| refused::by_store(&error))
}

pub(super) fn no_target() -> Problem {
    Problem::new(Code::MissingKey, "the file names no target")
        .so("nothing was recorded")
        .next("add `target = \"NAME\"` to the file, or use --target NAME")
}

/// SHA-256 of what the request asks for. How it is asked for (`no_queue`) is no part of it.
fn content(file: &str, inputs: &BTreeMap<String, String>, target: &TargetName) -> [u8; 32] {
    let whole = serde_json::to_vec(&(file, inputs, target)).expect("plain data serializes");
    Sha256::digest(whole).into()
}

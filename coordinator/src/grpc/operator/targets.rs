//! Targets: declared, looked at, listed.

use holdfast_common::file::TargetFile;
use holdfast_common::id::TargetName;
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::TargetState;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, page};
use crate::auth::Permission;
use crate::auth::guard::not_allowed;
use crate::driver::Asked;
use crate::grpc::refused::Subject;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};

pub(super) async fn apply(call: Call<'_, v1::ApplyTargetRequest>) -> Result<v1::ApplyTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let parsed = shared.files.read(asked.file.len(), move || TargetFile::parse(&asked.file)).await?;
    let spec = parsed.map_err(|errors| status::bad_file(&errors, "FILE"))?;
    let name = spec.name.clone();
    refused::without_descriptors(shared)?;
    // The same answer whether it is there or not: a new name is nobody's secret.
    let problem = not_allowed(&by, Permission::Hold, Some(&name));
    find::admitted(shared, &by, Permission::Hold, &name, || status::of(&problem))?;
    let before = shared.driver.state(name.clone()).await;
    let change = change(before.as_deref().map(|state| &state.spec), &spec) as i32;
    match shared.driver.ask(name.clone(), Asked::Declare { spec, by: by.name.clone() }).await {
        Ok(_told) => Ok(v1::ApplyTargetResponse { target: shown(shared, &name).await, change }),
        Err(error) => Err(refused::by_driver(shared, &by, &Subject::Target(name), error).await),
    }
}

fn change(before: Option<&TargetSpec>, spec: &TargetSpec) -> v1::TargetChange {
    match before {
        None => v1::TargetChange::New,
        Some(before) if before == spec => v1::TargetChange::None,
        Some(_) => v1::TargetChange::Anew,
    }
}

pub(super) async fn get(call: Call<'_, v1::GetTargetRequest>) -> Result<v1::GetTargetResponse, Status> {
    let state = find::target(call.shared, &call.by, &call.asked.target, Permission::View).await?;
    Ok(v1::GetTargetResponse { target: Some(as_it_stands(call.shared, &state)) })
}

pub(super) async fn list(call: Call<'_, v1::ListTargetsRequest>) -> Result<v1::ListTargetsResponse, Status> {
    let Call { shared, by, asked } = call;
    let after: Option<TargetName> = page::token(&asked.page_token)?;
    let names = shared.reader.run(|reader| reader.target_names()).await.map_err(|error| refused::by_store(&error))?;
    let names: Vec<TargetName> = names.into_iter().filter(|name| by.scope.may(Permission::View, name)).collect();
    let (names, next_page_token) =
        page::cut(names, after.as_ref().map(TargetName::as_str), page::size(asked.page_size), TargetName::as_str);
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let target = shown(shared, &name).await;
        targets.push(target.ok_or_else(|| status::of(&refused::no_such_target(name.as_str())))?);
    }
    Ok(v1::ListTargetsResponse { targets, next_page_token })
}

/// The target as it stands after something was recorded.
pub(super) async fn shown(shared: &Shared, name: &TargetName) -> Option<v1::Target> {
    Some(as_it_stands(shared, &*shared.driver.state(name.clone()).await?))
}

/// With why its holder does not go on now.
fn as_it_stands(shared: &Shared, state: &TargetState) -> v1::Target {
    let mut target = view::target::target(state);
    if let (Some(shown), Some(holder)) = (&mut target.holder, &state.current) {
        shared.tell(shown, holder);
        target.held_because = shown.because.clone();
    }
    target
}

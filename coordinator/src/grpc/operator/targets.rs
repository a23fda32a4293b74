//! Targets: declared, looked at, listed.

use holdfast_common::file::TargetFile;
use holdfast_common::id::TargetName;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find, page};
use crate::driver::Asked;
use crate::grpc::{refused, status, view};

pub(super) async fn apply(call: Call<'_, v1::ApplyTargetRequest>) -> Result<v1::ApplyTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let spec = TargetFile::parse(&asked.file).map_err(|errors| status::bad_file(&errors, "FILE"))?;
    let name = spec.name.clone();
    match shared.driver.ask(name.clone(), Asked::Declare { spec, by: by.name }).await {
        Ok(_told) => Ok(v1::ApplyTargetResponse { target: Some(shown(shared, name).await?) }),
        Err(error) => Err(refused::by_driver(shared, &name, error).await),
    }
}

pub(super) async fn get(call: Call<'_, v1::GetTargetRequest>) -> Result<v1::GetTargetResponse, Status> {
    let state = find::target(call.shared, &call.asked.target).await?;
    Ok(v1::GetTargetResponse { target: Some(view::target::target(&state)) })
}

pub(super) async fn list(call: Call<'_, v1::ListTargetsRequest>) -> Result<v1::ListTargetsResponse, Status> {
    let Call { shared, asked, .. } = call;
    let after: Option<TargetName> = page::token(&asked.page_token)?;
    let rows = shared.reader.run(|reader| reader.targets()).await.map_err(|error| refused::by_store(&error))?;
    let names: Vec<TargetName> = rows.into_iter().map(|row| row.spec.name).collect();
    let (names, next_page_token) =
        page::cut(names, after.as_ref().map(TargetName::as_str), page::size(asked.page_size), TargetName::as_str);
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        targets.push(shown(shared, name).await?);
    }
    Ok(v1::ListTargetsResponse { targets, next_page_token })
}

/// The target as it stands after something was recorded.
pub(super) async fn shown(shared: &crate::grpc::shared::Shared, name: TargetName) -> Result<v1::Target, Status> {
    Ok(view::target::target(&*find::target(shared, name.as_str()).await?))
}

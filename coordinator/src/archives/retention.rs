//! Which archives must stay, and the task that removes the others.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use holdfast_common::archive::ArchiveSource;
use holdfast_common::spec::StepBody;
use holdfast_coordinator_core::state::{Deployment, DeploymentState};
use tokio_util::sync::CancellationToken;

use super::{Archives, Sha256};
use crate::store::rows::{DeploymentFilter, DeploymentRow};
use crate::store::{Error, Reader};

/// How often it looks.
const PACE: Duration = Duration::from_secs(300);
/// So long after its last use an archive stays in any case.
pub(super) const FRESH: Duration = Duration::from_secs(3600);
/// Of so many last deployments of each target that succeeded the archives stay, for a rollback.
const KEPT_PER_TARGET: u32 = 10;
/// Deployments that are read at once.
const PAGE: u32 = 200;

/// Removes what nothing needs, again and again, until `stop`.
pub async fn run(archives: Archives, reader: Reader, stop: CancellationToken) {
    loop {
        match reader.run(needed).await {
            Ok(needed) => {
                let archives = archives.clone();
                let swept = tokio::task::spawn_blocking(move || archives.sweep(&needed, SystemTime::now())).await;
                match swept {
                    Ok(Ok(gone)) if gone.is_empty() => {}
                    Ok(Ok(gone)) => tracing::info!(count = gone.len(), "archives removed by retention"),
                    Ok(Err(error)) => tracing::error!(%error, "could not remove old archives"),
                    Err(error) => tracing::error!(%error, "could not remove old archives"),
                }
            }
            Err(error) => tracing::error!(%error, "could not find out which archives are needed: all stay"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PACE) => {}
        }
    }
}

/// Of every deployment that has not ended, and of the last ones of each target that succeeded.
fn needed(reader: &Reader) -> Result<BTreeSet<Sha256>, Error> {
    let mut needed = BTreeSet::new();
    let states =
        vec![DeploymentState::Queued, DeploymentState::Active, DeploymentState::Uncertain, DeploymentState::Held];
    let mut before = None;
    loop {
        let page = reader.deployments(&DeploymentFilter {
            states: states.clone(),
            before,
            limit: PAGE,
            target: None,
            among: None,
        })?;
        needed.extend(page.iter().flat_map(of_row));
        match page.last() {
            Some(last) => before = Some(last.place),
            None => break,
        }
    }
    for target in reader.targets()? {
        let filter = DeploymentFilter {
            target: Some(target.spec.name),
            states: vec![DeploymentState::Succeeded],
            before: None,
            among: None,
            limit: KEPT_PER_TARGET,
        };
        needed.extend(reader.deployments(&filter)?.iter().flat_map(of_row));
    }
    Ok(needed)
}

fn of_row(row: &DeploymentRow) -> Vec<Sha256> {
    uploads(&row.record)
}

fn uploads(deployment: &Deployment) -> Vec<Sha256> {
    deployment.spec.steps_both_ways().filter_map(|step| uploaded(&step.body)).collect()
}

/// The digest of the uploaded archive that a step needs, where it needs one.
#[must_use]
pub fn uploaded(body: &StepBody) -> Option<Sha256> {
    let (archive, sha256) = body.archive()?;
    match ArchiveSource::of(archive) {
        Ok(ArchiveSource::Upload(_)) => Sha256::new(sha256),
        Ok(ArchiveSource::Host(_) | ArchiveSource::Https(_)) | Err(_) => None,
    }
}

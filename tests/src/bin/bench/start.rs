//! How long the coordinator takes to start over a full store: from the start of its process to its first answer.

use std::time::Instant;

use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::folder::Folder;
use holdfast_tests::{machine, wait};

use crate::decisions;
use crate::options::Options;
use crate::report::{Aim, Figure, Report};
use crate::stored::Stored;

/// In seconds.
const AIM: f64 = 5.0;
/// Targets that the deployments are spread over, beside the one that was filled before.
const TARGETS: usize = 50;

/// What is stored in `before` counts too.
pub(crate) async fn measure(options: &Options, report: &mut Report, before: Option<Folder>) -> anyhow::Result<()> {
    let mut cluster = Plan::new(options.program()).agents(&[]).as_in_production().prepare().await;
    let path = cluster.coordinator().store();
    if let Some(before) = before {
        bring(&before, &path)?;
    }
    let deployments = tokio::task::block_in_place(|| fill(&path, options.deployments))?;
    // The first start makes the tokens; it also leaves the store's pages in memory, as a restart finds them.
    cluster.start_coordinator().await;
    answered(&cluster).await;
    cluster.coordinator().kill();
    let begun = Instant::now();
    cluster.start_coordinator().await;
    answered(&cluster).await;
    let figure =
        Figure::new(format!("start with {deployments} stored deployments"), begun.elapsed().as_secs_f64(), "s");
    report.put(figure.aim(Aim::AtMost(AIM)));
    let memory = machine::memory(cluster.coordinator().pid()).proportional as f64 / 1024.0 / 1024.0;
    report.put(Figure::new("coordinator just started on it", memory, "MiB"));
    let size = std::fs::metadata(&path)?.len() as f64 / 1024.0 / deployments as f64;
    report.put(Figure::new("store, for each deployment", size, "KiB"));
    Ok(())
}

/// The store with its log: what was committed last may stand in the log alone.
fn bring(from: &Folder, to: &std::path::Path) -> std::io::Result<()> {
    for end in ["", "-wal"] {
        let from = from.join(&format!("{}{end}", decisions::FILE));
        let mut to = to.as_os_str().to_owned();
        to.push(end);
        if from.exists() {
            std::fs::rename(from, to)?;
        }
    }
    Ok(())
}

/// Until there are so many. Gives how many there are.
fn fill(path: &std::path::Path, wanted: u64) -> anyhow::Result<u64> {
    const ROUNDS: u64 = 20;
    let mut stored = Stored::open(path)?;
    let shelves = stored.shelves("start", TARGETS)?;
    let before = stored.stored_deployments()?;
    while before + stored.deployments() < wanted {
        let missing = (wanted - before - stored.deployments()).div_ceil(TARGETS as u64);
        stored.fill(&shelves, missing.min(ROUNDS))?;
    }
    Ok(before + stored.deployments())
}

async fn answered(cluster: &Cluster) {
    let operator = cluster.operator();
    wait::until("the first answer", wait::SOON, async || {
        operator.try_agents().await.map(drop).map_err(|status| status.to_string())
    })
    .await;
}

//! Takes away old outputs in the background: what is older than its age, and the oldest where there is too much.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_common::id::{AttemptId, DeploymentId};
use holdfast_common::time::{Millis, Wall};
use tokio_util::sync::CancellationToken;

use super::removal::{self, Kept};
use super::{Error, Logs};
use crate::store::{self, Reader};

/// How often it looks by itself.
const PACE: Duration = Duration::from_secs(60);
/// Room is made from this share of the bound on, in tenths, so that agents seldom wait.
const HIGH_TENTHS: u64 = 9;

/// Looks at what is kept, again and again, until `stop`.
pub async fn run(logs: Logs, reader: Reader, keep_age: Millis, clock: fn() -> Wall, stop: CancellationToken) {
    let mut ended = BTreeMap::new();
    loop {
        if let Err(error) = once(&logs, &reader, keep_age, clock(), &mut ended).await {
            tracing::error!(%error, "could not remove old outputs");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = logs.0.tidy.notified() => {}
            () = tokio::time::sleep(PACE) => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Logs(#[from] Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the thread is gone")]
    Thread(#[from] tokio::task::JoinError),
}

async fn once(
    logs: &Logs,
    reader: &Reader,
    keep_age: Millis,
    now: Wall,
    ended: &mut BTreeMap<AttemptId, Wall>,
) -> Result<(), Failed> {
    let surveyed = logs.clone();
    let kept = tokio::task::spawn_blocking(move || removal::survey(&surveyed.0.places)).await??;
    ended.retain(|attempt, _| kept.iter().any(|kept| kept.attempt == *attempt));
    let unknown: Vec<Kept> = kept.iter().filter(|kept| !ended.contains_key(&kept.attempt)).copied().collect();
    ended.extend(ends(reader, unknown).await?);
    let chosen = choose(&kept, ended, logs.0.bounds.total_bytes, keep_age, now);
    if chosen.is_empty() {
        return Ok(());
    }
    let logs = logs.clone();
    tokio::task::spawn_blocking(move || {
        for kept in &chosen {
            logs.remove(kept, now)?;
        }
        Ok::<(), Error>(())
    })
    .await??;
    Ok(())
}

/// When the deployments of these attempts ended, of those that did. What the store does not know ended before it.
async fn ends(reader: &Reader, kept: Vec<Kept>) -> Result<Vec<(AttemptId, Wall)>, store::Error> {
    reader
        .run(move |reader| {
            let mut of: BTreeMap<DeploymentId, Option<Wall>> = BTreeMap::new();
            for Kept { deployment, at, .. } in &kept {
                if !of.contains_key(deployment) {
                    let end = match reader.deployment(*deployment)? {
                        Some(row) => row.record.ended.map(|ended| ended.at),
                        None => Some(*at),
                    };
                    of.insert(*deployment, end);
                }
            }
            let end_of = |kept: &Kept| of.get(&kept.deployment).copied().flatten();
            Ok(kept.iter().filter_map(|kept| Some((kept.attempt, end_of(kept)?))).collect())
        })
        .await
}

/// What goes: too old, and then the oldest until the rest fits.
fn choose(
    kept: &[Kept],
    ended: &BTreeMap<AttemptId, Wall>,
    total_bytes: u64,
    keep_age: Millis,
    now: Wall,
) -> Vec<Kept> {
    let mut over: Vec<(Wall, Kept)> =
        kept.iter().filter_map(|kept| Some((*ended.get(&kept.attempt)?, *kept))).collect();
    over.sort_by_key(|(at, kept)| (*at, kept.attempt));
    let mut used: u64 = kept.iter().map(|kept| kept.bytes).sum();
    let high = total_bytes / 10 * HIGH_TENTHS;
    let oldest = now.0.saturating_sub(i64::try_from(keep_age.0).unwrap_or(i64::MAX).saturating_mul(1000));
    let mut chosen = Vec::new();
    for (at, kept) in over {
        if at.0 < oldest || used > high {
            used = used.saturating_sub(kept.bytes);
            chosen.push(kept);
        }
    }
    chosen
}

impl Logs {
    fn remove(&self, kept: &Kept, now: Wall) -> Result<(), Error> {
        let _one_at_a_time = self.lock(kept.attempt);
        let bytes = removal::remove(&self.0.places, kept, now)?;
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _always = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        tracing::info!(attempt = %kept.attempt, bytes, "outputs removed by retention");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn kept(number: u128, bytes: u64) -> Kept {
        Kept { attempt: AttemptId(Uuid::from_u128(number)), deployment: DeploymentId(Uuid::nil()), at: Wall(0), bytes }
    }

    #[test]
    fn the_oldest_that_ended_go_until_the_rest_fits_and_what_runs_stays() {
        let all = [kept(1, 40), kept(2, 30), kept(3, 20), kept(4, 60)];
        let ended = [(2, 500), (3, 100), (1, 900)].map(|(n, at)| (AttemptId(Uuid::from_u128(n)), Wall(at))).into();
        let numbers = |total, age, now| -> Vec<u128> {
            choose(&all, &ended, total, Millis(age), Wall(now)).iter().map(|k| k.attempt.0.as_u128()).collect()
        };
        let for_ever = u64::MAX;
        assert_eq!(numbers(1000, for_ever, 1000), []);
        assert_eq!(numbers(150, for_ever, 1000), [3], "150 used, 135 allowed");
        assert_eq!(numbers(120, for_ever, 1000), [3, 2]);
        assert_eq!(numbers(0, for_ever, 1000), [3, 2, 1], "never 4, which runs");
        assert_eq!(numbers(1000, 1, 1600), [3, 2], "older than a millisecond");
    }
}

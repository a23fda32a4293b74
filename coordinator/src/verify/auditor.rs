//! The walk of a running coordinator over its own store.
//!
//! Slowly, target by target, each on a snapshot of its own: after each piece it rests nine times as long as that took, so that
//! it takes a tenth of one core at most. It begins soon after a start. What it finds goes into the [`Verdict`] at once: from
//! then on no lease and no permit is granted, readiness says why, and the log has every difference. It changes nothing, and
//! only a later whole walk that finds nothing lifts it.

use std::time::{Duration, Instant};

use holdfast_common::code::Code;
use holdfast_net::ops::{Health, State};
use tokio_util::sync::CancellationToken;

use super::{Finding, Verdict};
use crate::driver::Handle;
use crate::store::{Error, Reader};

/// How many times as long as a piece took it rests after it.
const REST: u32 = 9;
/// Longest rest after one piece.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The part of readiness that says what was found.
pub fn register(health: &Health, verdict: &Verdict) {
    let verdict = verdict.clone();
    health.ready("audit", move || match verdict.against() {
        None => State::Ok,
        Some(found) => State::Not(format!("{}: nothing is granted. {found}", Code::StoreUnsound.title())),
    });
}

/// Until `stop`.
pub async fn run(reader: Reader, verdict: Verdict, driver: Handle, every: Duration, stop: CancellationToken) {
    let auditor = Auditor { reader, verdict, driver };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            walked = auditor.walk() => if let Err(error) = walked {
                tracing::error!(%error, "could not audit the store");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}

struct Auditor {
    reader: Reader,
    verdict: Verdict,
    driver: Handle,
}

impl Auditor {
    /// All of it once.
    async fn walk(&self) -> Result<(), Error> {
        let targets = self.reader.run(Reader::targets_named).await?;
        let mut all = self.piece(Reader::verify_rest).await?;
        for target in targets {
            all.extend(self.piece(move |reader| reader.verify_target(&target)).await?);
        }
        let lifted = all.is_empty() && !self.verdict.is_sound();
        self.verdict.replace(all);
        if lifted {
            tracing::warn!("the store follows from its events again: leases and permits are granted");
            self.driver.agents_changed();
        }
        Ok(())
    }

    async fn piece(
        &self,
        read: impl FnOnce(&Reader) -> Result<Vec<Finding>, Error> + Send + 'static,
    ) -> Result<Vec<Finding>, Error> {
        let begun = Instant::now();
        let found = self.reader.run(read).await?;
        for found in &found {
            tracing::error!(code = %Code::StoreUnsound, %found, "the store differs from its events: nothing is granted");
        }
        self.verdict.add(found.clone());
        tokio::time::sleep((begun.elapsed() * REST).min(LONGEST_REST)).await;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Planted;
    use super::*;
    use crate::driver;

    #[tokio::test]
    async fn a_difference_is_told_by_readiness_until_a_whole_walk_finds_none() {
        let planted = Planted::new();
        let (driver, _inbox) = driver::channel();
        let (verdict, health) = (Verdict::default(), Health::new());
        register(&health, &verdict);
        let auditor = Auditor { reader: Reader::over(&planted.path()).unwrap(), verdict: verdict.clone(), driver };
        auditor.walk().await.unwrap();
        assert!(health.readiness().is_ok() && verdict.is_sound());
        planted.change("UPDATE attempts SET agent = 'eve' WHERE target = 'blog@prod'");
        auditor.walk().await.unwrap();
        let told = format!("{:?}", health.readiness());
        assert!(told.contains("nothing is granted") && told.contains("stored eve"), "{told}");
        let before = std::fs::read(planted.path()).unwrap();
        auditor.walk().await.unwrap();
        assert_eq!(std::fs::read(planted.path()).unwrap(), before, "it changes nothing");
        planted.change("UPDATE attempts SET agent = 'web-07' WHERE target = 'blog@prod'");
        auditor.walk().await.unwrap();
        assert!(health.readiness().is_ok() && verdict.is_sound());
    }
}

//! An offer to go on with a process that an earlier attempt of this journal began.

use holdfast_agent_core::readmit::readmit;
use holdfast_agent_core::work::{Assignment, GoesOn, LeaseCount};
use holdfast_common::id::{AttemptId, SessionId};
use holdfast_common::report::{DeclineReason, ReportBody};
use holdfast_common::time::Millis;

use super::batch::Batch;
use super::lease::until;
use super::{Clock, Driver, Hands};

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn go_on(
        &mut self,
        session: SessionId,
        assignment: Assignment,
        goes_on: &GoesOn,
        ttl: Millis,
        batch: &mut Batch,
    ) {
        let (claim, target) = (assignment.claim, assignment.target.clone());
        if self.holds(claim) {
            return batch.accept(claim);
        }
        if self.fences.get(&target).is_some_and(|seen| claim.fence <= *seen) {
            return self.decline(claim, DeclineReason::FenceRegression.into(), batch);
        }
        let held = goes_on.attempts.iter().find(|attempt| self.works.contains_key(attempt));
        let held = held.and_then(|attempt| self.works.get(attempt));
        let now = self.clock.boot();
        let lease = LeaseCount::Until(until(now, ttl));
        match readmit(assignment, held, &self.told(&goes_on.attempts), lease, session, now) {
            Some((work, actions)) => {
                tracing::info!(attempt = %claim.attempt, step = %goes_on.step, "goes on with what was begun");
                for earlier in &goes_on.attempts {
                    self.works.remove(earlier);
                    batch.replaced.insert(*earlier);
                }
                self.fences.insert(target.clone(), claim.fence);
                batch.fences.insert(target, claim.fence);
                self.works.insert(claim.attempt, work);
                batch.accept(claim);
                batch.take(claim, actions);
            }
            None => {
                tracing::warn!(attempt = %claim.attempt, step = %goes_on.step, "holds nothing of what it should go on with");
                self.decline(claim, DeclineReason::Conflict.into(), batch);
            }
        }
    }

    /// What the journal holds of the reports under those attempts, in order.
    fn told(&self, attempts: &[AttemptId]) -> Vec<ReportBody> {
        let told = self.journal.told(attempts);
        told.unwrap_or_else(|error| {
            tracing::error!(%error, "could not read what was told");
            Vec::new()
        })
    }

    /// The attempt under which the records in that attempt's folder are spoken of now.
    pub(super) fn claimed_by(&self, folder: AttemptId) -> AttemptId {
        let now = self.works.values().find(|work| work.assignment.folder() == folder);
        now.map_or(folder, |work| work.assignment.claim.attempt)
    }
}

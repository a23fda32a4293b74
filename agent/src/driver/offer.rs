//! An offer: taken, or declined in words.

use holdfast_agent_core::leave::Asked;
use holdfast_agent_core::offer::{self, Verdict as Judged};
use holdfast_agent_core::work::{Assignment, LeaseCount};
use holdfast_agent_core::{Input, Work};
use holdfast_common::claim::Claim;
use holdfast_common::id::SessionId;
use holdfast_common::report::{DeclineReason, Declined};
use holdfast_common::time::Millis;

use super::batch::Batch;
use super::lease::until;
use super::{Clock, Driver, Hands};

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn offered(&mut self, session: SessionId, assignment: Assignment, ttl: Millis, batch: &mut Batch) {
        if let Some(goes_on) = assignment.goes_on.clone() {
            return self.go_on(session, assignment, &goes_on, ttl, batch);
        }
        let claim = assignment.claim;
        let seen = self.fences.get(&assignment.target).copied();
        let on_target = self.works.values().filter(|work| work.assignment.target == assignment.target);
        let verdict = offer::judge(claim, on_target, seen);
        if let (Judged::Take | Judged::Decline(_), Err(refusal)) = (&verdict, self.host.offer(&assignment)) {
            let declined = Declined { reason: DeclineReason::HostPolicy, detail: refusal.to_string() };
            return self.decline(claim, declined, batch);
        }
        match verdict {
            Judged::TakenAlready => batch.accept(claim),
            Judged::Take if !self.room.takes_offers(self.verdict) => {
                self.decline(claim, DeclineReason::NoRoom.into(), batch)
            }
            Judged::Take if self.asked != Asked::No => self.decline(claim, DeclineReason::Draining.into(), batch),
            Judged::Decline(reason) => self.decline(claim, reason.into(), batch),
            Judged::Take => {
                let (Claim { deployment, attempt, fence }, target) = (claim, &assignment.target);
                tracing::info!(%target, %deployment, %attempt, %fence, "took an offer");
                self.fences.insert(assignment.target.clone(), claim.fence);
                batch.fences.insert(assignment.target.clone(), claim.fence);
                let lease = LeaseCount::Until(until(self.clock.boot(), ttl));
                self.is_leased(claim.attempt);
                self.works.insert(claim.attempt, Work::taken(assignment, lease, Some(session)));
                batch.dirty.insert(claim.attempt);
                batch.accept(claim);
                self.decide(claim.attempt, Input::Tick, batch);
            }
        }
    }

    pub(super) fn decline(&self, claim: Claim, declined: Declined, batch: &mut Batch) {
        let Declined { reason, detail } = &declined;
        tracing::warn!(deployment = %claim.deployment, ?reason, detail, "declined an offer");
        self.metrics.declined(*reason);
        batch.declined.push((claim, declined));
    }
}

//! What the coordinator says in a session.

use holdfast_agent_core::Input;
use holdfast_common::claim::Claim;
use holdfast_common::id::{SessionId, StepName};
use holdfast_common::report::PermitDenial;

use super::batch::Batch;
use super::{Clock, Driver, Hands};
use crate::crash::{self, CrashPoint};
use crate::session::FromCoordinator;

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn message(&mut self, session: SessionId, message: FromCoordinator, batch: &mut Batch) {
        match message {
            FromCoordinator::Renewed { number, leases } => self.renewed(number, leases, batch),
            FromCoordinator::Offer { assignment, ttl } => self.offered(session, *assignment, ttl, batch),
            FromCoordinator::Permit { claim, step, denial } => self.permit(session, claim, step, denial, batch),
            FromCoordinator::Disposition(sequence, disposition) => {
                tracing::debug!(sequence = sequence.0, ?disposition, "report answered");
                crash::point(CrashPoint::DispositionHeard);
                self.journal.answered(sequence, disposition);
                batch.answered.push(sequence);
            }
            FromCoordinator::Cancel { claim, reason } if self.holds(claim) => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::info!(%deployment, %attempt, %fence, reason, "asked to stop");
                crash::point(CrashPoint::CancelHeard);
                self.decide(claim.attempt, Input::StopAsked, batch);
            }
            FromCoordinator::Cancel { claim, .. } => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::info!(%deployment, %attempt, %fence, "asked to stop what is not held");
            }
            FromCoordinator::Inquiry(inquiry) => batch.inquiries.push(*inquiry),
            FromCoordinator::Drained(drained) => self.drained = drained,
            // Answered by the session itself.
            FromCoordinator::Bye { .. } | FromCoordinator::Ping(_) => {}
        }
    }

    fn permit(
        &mut self,
        session: SessionId,
        claim: Claim,
        step: StepName,
        denial: Option<PermitDenial>,
        batch: &mut Batch,
    ) {
        if !self.holds(claim) {
            let Claim { deployment, attempt, fence } = claim;
            tracing::warn!(%deployment, %attempt, %fence, "a permit for what is not held");
            return;
        }
        let input = match denial {
            None => {
                crash::point(CrashPoint::PermitHeard);
                Input::Granted { step, session }
            }
            Some(denial) => {
                let Claim { deployment, attempt, fence } = claim;
                tracing::warn!(%deployment, %attempt, %fence, %step, ?denial, "permit denied");
                Input::Denied { step, denial }
            }
        };
        self.decide(claim.attempt, input, batch);
    }

    pub(super) fn holds(&self, claim: Claim) -> bool {
        self.works.get(&claim.attempt).is_some_and(|work| work.assignment.claim == claim)
    }
}

//! What is done after the commit, in order.

use holdfast_agent_core::work::Assignment;
use holdfast_common::claim::Claim;
use holdfast_common::id::StepName;
use holdfast_common::spec::StepSpec;

use super::lease::lease_end;
use super::{Clock, Driver, Finding, Hands};
use crate::session::Inquiry;

/// Looks that are under way at most: each is a thread, and mostly a process.
pub(super) const LOOKS: usize = 64;

/// To be done after the commit, in order.
#[derive(Debug)]
pub(super) enum After {
    AcceptOffer(Claim),
    Examine(Claim, StepName),
    Reread(Claim, StepName),
    AskPermit(Claim, StepName),
    Launch(Claim, StepName),
    Stop(Claim, StepName),
    Tombstone(Claim, StepName),
}

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn do_after(&mut self, after: After) {
        match after {
            After::AcceptOffer(claim) => self.say_offer_answer(claim, None),
            After::Examine(claim, step) => self.with_step(claim, &step, |hands, assignment, step| {
                hands.examine(assignment, step);
            }),
            After::Reread(claim, step) => self.with_step(claim, &step, |hands, assignment, step| {
                hands.reread(assignment, step);
            }),
            After::AskPermit(claim, step) => self.ask_permit(claim, &step),
            After::Launch(claim, step) => {
                let not_after = self.works.get(&claim.attempt).and_then(lease_end);
                self.with_step(claim, &step, |hands, assignment, step| hands.launch(assignment, step, not_after));
            }
            After::Stop(claim, step) => self.with_step(claim, &step, |hands, assignment, step| {
                hands.stop(assignment, step);
            }),
            After::Tombstone(claim, step) => self.with_step(claim, &step, |hands, assignment, step| {
                hands.tombstone(assignment, step);
            }),
        }
    }

    fn with_step(&mut self, claim: Claim, name: &StepName, act: impl FnOnce(&mut H, &Assignment, &StepSpec)) {
        let Some(work) = self.works.get(&claim.attempt) else { return };
        if let Some(step) = work.assignment.steps.iter().find(|step| &step.name == name) {
            act(&mut self.hands, &work.assignment, step);
        }
    }

    /// Whoever asks for more than this host can look at in one breath is told so, and asks again.
    pub(super) fn inquire(&mut self, inquiry: Inquiry) {
        if self.looking >= LOOKS {
            let busy = format!("this host has {LOOKS} looks under way already");
            return self.say_finding(inquiry.id, Finding::Failed(busy));
        }
        self.looking += 1;
        self.hands.inquire(inquiry);
    }
}

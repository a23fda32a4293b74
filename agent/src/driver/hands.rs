//! What the driver has others do.

use std::collections::BTreeSet;

use holdfast_agent_core::work::{Assignment, Boot};
use holdfast_common::id::AttemptId;
use holdfast_common::spec::StepSpec;

use crate::session::Inquiry;

/// Who touches processes and resources. Every call returns at once; what comes of it arrives as a [`HandEvent`](super::HandEvent).
pub trait Hands {
    /// Looks at the archive that a step would put in place. Changes nothing.
    fn examine(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Reads the resource of a carried step again. Changes nothing.
    fn reread(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Launches a step under a shim. Its body must not begin after `not_after`, the end of the lease's count.
    fn launch(&mut self, assignment: &Assignment, step: &StepSpec, not_after: Option<Boot>);
    /// Stops a step's process group: SIGTERM, grace, SIGKILL.
    fn stop(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Creates a step's start record as "never started". If the step had begun after all, says what is known of it.
    fn tombstone(&mut self, assignment: &Assignment, step: &StepSpec);
    /// After a restart: finds out from locks and records what is known of a step.
    fn survey(&mut self, assignment: &Assignment, step: &StepSpec);
    /// Looks at a resource or raises its fence, outside every lease.
    fn inquire(&mut self, inquiry: Inquiry);
    /// Of how many attempts the coordinator does not have the outputs whole. Hands that send none have none.
    fn unsent(&self) -> usize {
        0
    }
    /// Removes what is kept of older attempts and not needed any more. Hands that keep nothing have nothing to do.
    fn prune(&mut self, _needed: BTreeSet<AttemptId>) {}
}

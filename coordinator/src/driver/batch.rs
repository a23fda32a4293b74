//! What one step gathers before its commit and gives away after it.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::{AgentName, DeploymentId, TargetName};
use holdfast_coordinator_core::event::{Event, Recorded};

use super::targets::{Saved, Targets};
use super::watchers::Entry;
use crate::crash::{CrashPoint, reached};
use crate::metrics::facts::Fact;
use crate::store::{Appended, GlobalOrder};

/// Gives one answer, with the states as they are on disk.
type Say = Box<dyn FnOnce(&Targets) + Send>;

/// Gathered by one step.
#[derive(Default)]
pub(super) struct Batch {
    /// Whether there is anything to commit.
    pub(super) wrote: bool,
    /// Targets whose effects may have changed.
    pub(super) touched: BTreeSet<TargetName>,
    /// What was written, for those who watch.
    pub(super) written: Vec<Entry>,
    /// Agents whose session started.
    pub(super) started: BTreeSet<AgentName>,
    /// Whether agents came, went or changed.
    pub(super) agents_changed: bool,
    /// The last event.
    pub(super) newest: Option<GlobalOrder>,
    /// Deployments that were recorded, and their targets.
    pub(super) begun: Vec<(DeploymentId, TargetName)>,
    /// Deployments that ended.
    pub(super) ended: Vec<DeploymentId>,
    /// What is to be counted once it is committed.
    pub(super) facts: Vec<Fact>,
    /// Every target that was written, as it was before.
    pub(super) before: BTreeMap<TargetName, Option<Saved>>,
    answers: Vec<Say>,
    points: BTreeSet<(CrashPoint, CrashPoint)>,
}

impl Batch {
    pub(super) fn touching(touched: BTreeSet<TargetName>) -> Self {
        Self { touched, ..Self::default() }
    }

    /// To be said after the commit, with the states as they are then.
    pub(super) fn answer(&mut self, say: impl FnOnce(&Targets) + Send + 'static) {
        self.answers.push(Box::new(say));
    }

    pub(super) fn say_all(&mut self, targets: &Targets) {
        for say in self.answers.drain(..) {
            reached(CrashPoint::BeforeReply);
            say(targets);
            reached(CrashPoint::AfterReply);
        }
    }

    /// These were written.
    pub(super) fn note(&mut self, target: &TargetName, events: Vec<Recorded>, appended: Appended) {
        self.wrote = true;
        self.newest = Some(appended.newest);
        self.touched.insert(target.clone());
        self.points.extend(events.iter().filter_map(|recorded| points(&recorded.event)));
        for recorded in &events {
            if let Event::Submitted { deployment, .. } = &recorded.event {
                self.begun.push((*deployment, target.clone()));
            }
            if let Event::DeploymentEnded { deployment, .. } = &recorded.event {
                self.ended.push(*deployment);
            }
        }
        self.written.push(Entry { target: target.clone(), events, appended });
    }

    pub(super) fn before_commit(&self) {
        self.points.iter().for_each(|(before, _)| reached(*before));
        reached(CrashPoint::BeforeCommit);
    }

    pub(super) fn after_commit(&self) {
        reached(CrashPoint::AfterCommit);
        self.points.iter().for_each(|(_, after)| reached(*after));
    }
}

/// The places around the commit of such an event.
fn points(event: &Event) -> Option<(CrashPoint, CrashPoint)> {
    use CrashPoint as P;
    match event {
        Event::Submitted { .. } => Some((P::BeforeSubmitCommit, P::AfterSubmitCommit)),
        Event::LeaseGranted { .. } => Some((P::BeforeLeaseCommit, P::AfterLeaseCommit)),
        Event::PermitGranted { .. } => Some((P::BeforePermitCommit, P::AfterPermitCommit)),
        Event::ReportAccepted { .. } | Event::EvidenceFiled { .. } => {
            Some((P::BeforeReportCommit, P::AfterReportCommit))
        }
        Event::CancelRecorded { .. } | Event::CancelAfterEnd { .. } => {
            Some((P::BeforeCancelCommit, P::AfterCancelCommit))
        }
        Event::InquiryOpened { .. } => Some((P::BeforeInquiryCommit, P::AfterInquiryCommit)),
        Event::Decided { .. } => Some((P::BeforeDecisionCommit, P::AfterDecisionCommit)),
        Event::TargetDeclared { .. }
        | Event::Reserved { .. }
        | Event::Waits { .. }
        | Event::LeaseRenewed { .. }
        | Event::AgentAway { .. }
        | Event::OfferAccepted { .. }
        | Event::OfferDeclined { .. }
        | Event::AttemptEnded { .. }
        | Event::DeadlinePassed { .. }
        | Event::DeploymentDeadlinePassed { .. }
        | Event::DeploymentMoved { .. }
        | Event::PolicyScheduled { .. }
        | Event::RetryScheduled { .. }
        | Event::DeploymentEnded { .. }
        | Event::RevisionRecorded { .. }
        | Event::HoldPlaced { .. }
        | Event::HoldEnded { .. } => None,
    }
}

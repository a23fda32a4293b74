//! What a batch of events decided, collected until it is durable.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_agent_core::Action;
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, EvidenceId, TargetName};
use holdfast_common::report::{Declined, ReportBody, ReportSequence};

use super::Finding;
use super::after::After;
use crate::session::Inquiry;

/// Collected while a batch is decided.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Attempts whose position or phase changed.
    pub(super) dirty: BTreeSet<AttemptId>,
    /// Fences that rose.
    pub(super) fences: BTreeMap<TargetName, Fence>,
    /// Attempts whose process goes on under another claim.
    pub(super) replaced: BTreeSet<AttemptId>,
    /// A session began: its token and position are to be kept.
    pub(super) welcomed: bool,
    /// A session began: everything unanswered is to be said again.
    pub(super) replay: bool,
    /// Reports that were answered.
    pub(super) answered: Vec<ReportSequence>,
    /// New questions about resources.
    pub(super) inquiries: Vec<Inquiry>,
    /// Answers to such questions.
    pub(super) findings: Vec<(EvidenceId, Finding)>,
    /// Offers that are not taken: that promises nothing, and is said at once.
    pub(super) declined: Vec<(Claim, Declined)>,
    /// Whether the log has heard that this one is owed.
    pub(super) told: bool,
    /// Whether an attempt may have nothing left to say.
    pub(super) settles: bool,
    pub(super) reports: Vec<(Claim, ReportBody)>,
    /// So many of the reports are counted as unsaid.
    pub(super) counted: usize,
    pub(super) after: Vec<After>,
}

impl Batch {
    pub(super) fn take(&mut self, claim: Claim, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Journal => drop(self.dirty.insert(claim.attempt)),
                Action::Report(body) => self.reports.push((claim, body)),
                Action::Examine(step) => self.after.push(After::Examine(claim, step)),
                Action::Reread(step) => self.after.push(After::Reread(claim, step)),
                Action::AskPermit(step) => self.after.push(After::AskPermit(claim, step)),
                Action::Launch(step) => self.after.push(After::Launch(claim, step)),
                Action::Stop(step) => self.after.push(After::Stop(claim, step)),
                Action::Tombstone(step) => self.after.push(After::Tombstone(claim, step)),
            }
        }
    }

    pub(super) fn accept(&mut self, claim: Claim) {
        self.after.push(After::AcceptOffer(claim));
    }

    /// Whether there is anything that must be durable before more is said.
    pub(super) fn is_owed(&self) -> bool {
        self.is_durable_work() || !self.after.is_empty()
    }

    pub(super) fn is_durable_work(&self) -> bool {
        !(self.dirty.is_empty() && self.reports.is_empty() && self.fences.is_empty() && !self.welcomed)
    }
}

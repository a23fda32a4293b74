//! A batch that was decided becomes durable: one commit, and only then what follows from it.

use holdfast_agent_core::Work;
use holdfast_agent_core::work::Phase;
use holdfast_common::claim::Claim;
use holdfast_common::id::AttemptId;
use holdfast_common::outcome::Exit;
use holdfast_common::report::{Report, ReportBody, Reread};
use holdfast_common::text::bounded;
use holdfast_proto::v1::{self, connect_request};

use super::batch::Batch;
use super::{Clock, Driver, Hands};
use crate::adapters::exit;
use crate::bugs::{self, Bug};
use crate::journal::{Entry, NoRoom};

impl<H: Hands, C: Clock> Driver<H, C> {
    /// One commit for everything, then reports and questions out, then processes.
    pub(super) fn settle(&mut self, mut batch: Batch) {
        self.bound_texts(&mut batch);
        if bugs::on(Bug::OutboxAfterSend) {
            self.send_unjournaled(&batch);
        }
        let committed = self.commit(&mut batch);
        if committed.is_ok() && std::mem::take(&mut batch.welcomed) {
            self.kept_token.clone_from(&self.token);
            self.say(connect_request::Message::WelcomeKept(v1::WelcomeKept {}));
        }
        match (std::mem::take(&mut batch.replay), &committed) {
            // Also while something is owed: what the journal has is durable.
            (true, _) => self.replay(),
            (false, Ok(reports)) => reports.iter().for_each(|(claim, report)| self.say_report(*claim, report)),
            (false, Err(NoRoom)) => {}
        }
        for (claim, declined) in std::mem::take(&mut batch.declined) {
            self.say_offer_answer(claim, Some(declined));
        }
        for (id, finding) in std::mem::take(&mut batch.findings) {
            self.say_finding(id, finding);
        }
        for inquiry in std::mem::take(&mut batch.inquiries) {
            self.inquire(inquiry);
        }
        match committed {
            Ok(_) => std::mem::take(&mut batch.after).into_iter().for_each(|after| self.do_after(after)),
            Err(NoRoom) => {
                if !std::mem::replace(&mut batch.told, true) {
                    tracing::warn!("the journal has no room: nothing of it is said or done until it is durable");
                }
                self.owed = batch;
            }
        }
        self.beat();
    }

    /// Out of the reserve, if need be.
    fn commit(&mut self, batch: &mut Batch) -> Result<Vec<(Claim, Report)>, NoRoom> {
        self.try_commit(batch).or_else(|NoRoom| {
            self.room.release();
            self.journal.make_room();
            self.try_commit(batch)
        })
    }

    /// Report texts are bounded before they are stored: an oversized one is cut and marked, never a reconnect loop.
    fn bound_texts(&self, batch: &mut Batch) {
        const WITHOUT_SESSION: usize = 4096;
        let max = self.session.as_ref().map_or(WITHOUT_SESSION, |live| live.max_text.min(WITHOUT_SESSION));
        for (_, body) in &mut batch.reports {
            match body {
                ReportBody::StepEnded { detail, .. }
                | ReportBody::CancelActed { detail }
                | ReportBody::CancelReceived { held_up: detail } => {
                    *detail = bounded(detail, max);
                }
                ReportBody::Reread { found, .. } => {
                    let detail = match found {
                        Reread::Read { reading } => &mut reading.detail,
                        Reread::Failed { detail } => detail,
                    };
                    *detail = bounded(detail, max);
                }
                ReportBody::StepStarted { .. } | ReportBody::AttemptEnded { .. } => {}
            }
        }
    }

    fn try_commit(&mut self, batch: &mut Batch) -> Result<Vec<(Claim, Report)>, NoRoom> {
        let forgotten = self.settle_answers(batch);
        let mut entries = Vec::new();
        for attempt in &batch.dirty {
            entries.extend(self.works.get(attempt).map(Entry::Work));
        }
        entries.extend(batch.fences.iter().map(|(target, fence)| Entry::Fence(target, *fence)));
        entries.extend(batch.reports.iter().map(|(claim, body)| Entry::Report(*claim, body.clone())));
        entries.extend(batch.replaced.iter().chain(&forgotten).map(|attempt| Entry::Forget(*attempt)));
        if let (true, Some(position)) = (batch.welcomed, self.position) {
            entries.push(Entry::Welcomed(&self.token, position));
        }
        // Answers alone wait for the next commit; so do forgotten attempts, which cost nothing to keep.
        if !batch.is_durable_work() && forgotten.is_empty() {
            return Ok(Vec::new());
        }
        let begun = std::time::Instant::now();
        let reports = self.journal.commit(self.clock.wall(), &entries)?;
        self.metrics.committed(begun.elapsed());
        reports.iter().for_each(|(claim, report)| self.count(*claim, report));
        for attempt in forgotten {
            self.works.remove(&attempt);
        }
        Ok(reports)
    }

    /// May be called again for the same batch.
    fn settle_answers(&mut self, batch: &mut Batch) -> Vec<AttemptId> {
        for (claim, _) in &batch.reports[batch.counted..] {
            *self.unsaid.entry(claim.attempt).or_default() += 1;
        }
        batch.counted = batch.reports.len();
        for sequence in std::mem::take(&mut batch.answered) {
            batch.settles = true;
            if let Some(attempt) = self.said.remove(&sequence) {
                self.unsaid.entry(attempt).and_modify(|count| *count = count.saturating_sub(1));
            }
        }
        if !batch.settles {
            return Vec::new();
        }
        let settled = |work: &&Work| {
            let unsaid = self.unsaid.get(&work.assignment.claim.attempt).copied().unwrap_or(0);
            is_settled(work, unsaid)
        };
        self.works.values().filter(settled).map(|work| work.assignment.claim.attempt).collect()
    }

    /// Counts and logs what is in the journal now.
    fn count(&self, claim: Claim, report: &Report) {
        let Claim { deployment, attempt, fence } = claim;
        let work = self.works.get(&attempt);
        let target = work.map(|work| tracing::field::display(&work.assignment.target));
        match &report.body {
            ReportBody::StepStarted { step } => {
                tracing::info!(target, %deployment, %attempt, %fence, %step, "step started");
            }
            ReportBody::StepEnded { step, end, exit, .. } => {
                tracing::info!(target, %deployment, %attempt, %fence, %step, ?end, ?exit, "step ended");
                self.metrics.step_ended(*end);
                let found = work.and_then(|work| work.assignment.steps.iter().find(|found| &found.name == step));
                let ours = found.is_some_and(|step| step.body.is_examined());
                if ours && *exit == Some(Exit::Exited(exit::REFUSED_FENCE.into())) {
                    self.metrics.refused_by_resource();
                }
            }
            ReportBody::AttemptEnded { end } => {
                tracing::info!(target, %deployment, %attempt, %fence, ?end, "attempt ended");
            }
            ReportBody::Reread { step, found } => {
                tracing::info!(target, %deployment, %attempt, %fence, %step, ?found, "read again what is carried over");
            }
            ReportBody::CancelReceived { .. } | ReportBody::CancelActed { .. } => {
                tracing::debug!(target, %deployment, %attempt, %fence, kind = ?report.body, "reported");
            }
        }
    }
}

/// Whether nothing is left to do or say about an attempt.
fn is_settled(work: &Work, unsaid: usize) -> bool {
    work.phase == Phase::Over && unsaid == 0
}

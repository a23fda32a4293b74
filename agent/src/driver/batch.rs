//! What a batch of events decided: first durable, then said and done.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_agent_core::Action;
use holdfast_agent_core::work::{Boot, LeaseCount};
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, EvidenceId, StepName, TargetName};
use holdfast_common::outcome::Exit;
use holdfast_common::report::{DeclineReason, Declined, Report, ReportBody, ReportSequence, Reread};
use holdfast_common::text::bounded;
use holdfast_proto::convert::{WireEnum as _, claim_to_wire, reading_to_wire, report_to_wire};
use holdfast_proto::v1::{self, ConnectRequest, connect_request};

use super::{Clock, Driver, Finding, Hands, LOOKS, UNANSWERED, is_settled};
use crate::adapters::exit;
use crate::bugs::{self, Bug};
use crate::crash::{self, CrashPoint};
use crate::journal::{Entry, NoRoom};
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
    told: bool,
    /// Whether an attempt may have nothing left to say.
    settles: bool,
    reports: Vec<(Claim, ReportBody)>,
    /// So many of the reports are counted as unsaid.
    counted: usize,
    after: Vec<After>,
}

/// To be done after the commit, in order.
#[derive(Debug)]
enum After {
    AcceptOffer(Claim),
    Examine(Claim, StepName),
    Reread(Claim, StepName),
    AskPermit(Claim, StepName),
    Launch(Claim, StepName),
    Stop(Claim, StepName),
    Tombstone(Claim, StepName),
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

    fn is_durable_work(&self) -> bool {
        !(self.dirty.is_empty() && self.reports.is_empty() && self.fences.is_empty() && !self.welcomed)
    }
}

/// When the agent's own count of the lease ends.
fn lease_end(work: &holdfast_agent_core::Work) -> Option<Boot> {
    match work.lease {
        LeaseCount::Until(until) => Some(until),
        LeaseCount::NotLive | LeaseCount::Superseded => None,
    }
}

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
        let settled = |work: &&holdfast_agent_core::Work| {
            let unsaid = self.unsaid.get(&work.assignment.claim.attempt).copied().unwrap_or(0);
            is_settled(work, unsaid)
        };
        self.works.values().filter(settled).map(|work| work.assignment.claim.attempt).collect()
    }

    fn replay(&mut self) {
        match self.journal.unanswered() {
            Ok(reports) => reports.iter().for_each(|(claim, report)| self.say_report(*claim, report)),
            Err(error) => tracing::error!(%error, "could not read the outbox"),
        }
    }

    fn say_report(&mut self, claim: Claim, report: &Report) {
        self.said.insert(report.sequence, claim.attempt);
        crash::point(CrashPoint::BeforeReportSend);
        self.say(connect_request::Message::Report(report_to_wire(claim, report)));
        crash::point(CrashPoint::AfterReportSend);
    }

    /// The seeded fault: what is said was not durable.
    fn send_unjournaled(&mut self, batch: &Batch) {
        for (claim, body) in &batch.reports {
            let sequence = ReportSequence(self.journal.next_sequence());
            let report = Report { sequence, said_at: self.clock.wall(), body: body.clone() };
            self.say(connect_request::Message::Report(report_to_wire(*claim, &report)));
        }
    }

    fn do_after(&mut self, after: After) {
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

    fn say_offer_answer(&mut self, claim: Claim, declined: Option<Declined>) {
        crash::point(CrashPoint::BeforeOfferAnswer);
        self.say(connect_request::Message::OfferAnswer(v1::OfferAnswer {
            claim: Some(claim_to_wire(claim)),
            kind: match declined {
                None => v1::OfferAnswerKind::Accepted as i32,
                Some(_) => v1::OfferAnswerKind::Declined as i32,
            },
            reason: declined.as_ref().map_or(0, |declined| DeclineReason::to_number(declined.reason)),
            detail: declined.map(|declined| declined.detail).unwrap_or_default(),
        }));
        crash::point(CrashPoint::AfterOfferAnswer);
    }

    fn ask_permit(&mut self, claim: Claim, step: &StepName) {
        let Some(work) = self.works.get(&claim.attempt) else { return };
        let plan_digest = work.assignment.plan.0.clone();
        let request = v1::PermitRequest { claim: Some(claim_to_wire(claim)), step: step.to_string(), plan_digest };
        crash::point(CrashPoint::BeforePermitRequest);
        self.say(connect_request::Message::PermitRequest(request));
        crash::point(CrashPoint::AfterPermitRequest);
    }

    fn with_step(
        &mut self,
        claim: Claim,
        name: &StepName,
        act: impl FnOnce(&mut H, &holdfast_agent_core::work::Assignment, &holdfast_common::spec::StepSpec),
    ) {
        let Some(work) = self.works.get(&claim.attempt) else { return };
        if let Some(step) = work.assignment.steps.iter().find(|step| &step.name == name) {
            act(&mut self.hands, &work.assignment, step);
        }
    }

    /// Whoever asks for more than this host can look at in one breath is told so, and asks again.
    fn inquire(&mut self, inquiry: Inquiry) {
        if self.looking >= LOOKS {
            let busy = format!("this host has {LOOKS} looks under way already");
            return self.say_finding(inquiry.id, Finding::Failed(busy));
        }
        self.looking += 1;
        self.hands.inquire(inquiry);
    }

    fn say_finding(&mut self, id: EvidenceId, finding: Finding) {
        let finding = match finding {
            Finding::Read(reading) => v1::inquiry_answer::Finding::Read(reading_to_wire(&reading)),
            Finding::Raised(reading) => v1::inquiry_answer::Finding::Raised(reading_to_wire(&reading)),
            Finding::Failed(detail) => v1::inquiry_answer::Finding::Failed(v1::InquiryFailed { detail }),
        };
        let answer = v1::InquiryAnswer { id: id.to_string(), finding: Some(finding) };
        self.say(connect_request::Message::InquiryAnswer(answer));
    }

    /// One heartbeat renews every lease that is still wanted.
    fn beat(&mut self) {
        let now = self.clock.boot();
        let claims = self.works.values().filter(|work| work.wants_lease());
        let claims = claims.map(|work| claim_to_wire(work.assignment.claim)).collect();
        let Some(live) = self.session.as_mut().filter(|live| live.next_heartbeat <= now) else { return };
        live.number += 1;
        live.next_heartbeat = Boot(now.0 + live.heartbeat.0);
        live.sent.insert(live.number, now);
        while live.sent.len() > UNANSWERED {
            live.sent.pop_first();
        }
        let begins_no_step = !self.verdict.can_begin;
        let no_room = self.room.lack().map(|why| v1::NoRoom { why, begins_no_step });
        let heartbeat = v1::Heartbeat { number: live.number, claims, no_room };
        self.say(connect_request::Message::Heartbeat(heartbeat));
    }

    /// A full or closed session is no session: what was to be said is in the outbox, or is asked again in the next one.
    pub(super) fn say(&mut self, message: connect_request::Message) {
        let Some(live) = &self.session else { return };
        if live.outgoing.try_send(ConnectRequest { message: Some(message) }).is_err() {
            tracing::warn!(session = %live.id, "the session takes no more messages: leaving it");
            self.session = None;
        }
    }
}

//! What is said, once it is durable. What a session that ended did not take is in the outbox, or is asked again in the next one.

use holdfast_common::claim::Claim;
use holdfast_common::id::{EvidenceId, StepName};
use holdfast_common::report::{DeclineReason, Declined, Report, ReportSequence};
use holdfast_proto::convert::{WireEnum as _, claim_to_wire, reading_to_wire, report_to_wire};
use holdfast_proto::v1::{self, connect_request};

use super::batch::Batch;
use super::{Clock, Driver, Finding, Hands};
use crate::crash::{self, CrashPoint};

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn replay(&mut self) {
        match self.journal.unanswered() {
            Ok(reports) => reports.iter().for_each(|(claim, report)| self.say_report(*claim, report)),
            Err(error) => tracing::error!(%error, "could not read the outbox"),
        }
    }

    pub(super) fn say_report(&mut self, claim: Claim, report: &Report) {
        self.said.insert(report.sequence, claim.attempt);
        crash::point(CrashPoint::BeforeReportSend);
        self.say(connect_request::Message::Report(report_to_wire(claim, report)));
        crash::point(CrashPoint::AfterReportSend);
    }

    pub(super) fn say_offer_answer(&mut self, claim: Claim, declined: Option<Declined>) {
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

    pub(super) fn ask_permit(&mut self, claim: Claim, step: &StepName) {
        let Some(work) = self.works.get(&claim.attempt) else { return };
        let plan_digest = work.assignment.plan.0.clone();
        let request = v1::PermitRequest { claim: Some(claim_to_wire(claim)), step: step.to_string(), plan_digest };
        crash::point(CrashPoint::BeforePermitRequest);
        self.say(connect_request::Message::PermitRequest(request));
        crash::point(CrashPoint::AfterPermitRequest);
    }

    pub(super) fn say_finding(&mut self, id: EvidenceId, finding: Finding) {
        let finding = match finding {
            Finding::Read(reading) => v1::inquiry_answer::Finding::Read(reading_to_wire(&reading)),
            Finding::Raised(reading) => v1::inquiry_answer::Finding::Raised(reading_to_wire(&reading)),
            Finding::Failed(detail) => v1::inquiry_answer::Finding::Failed(v1::InquiryFailed { detail }),
        };
        let answer = v1::InquiryAnswer { id: id.to_string(), finding: Some(finding) };
        self.say(connect_request::Message::InquiryAnswer(answer));
    }

    /// The seeded fault: what is said was not durable.
    pub(super) fn send_unjournaled(&mut self, batch: &Batch) {
        for (claim, body) in &batch.reports {
            let sequence = ReportSequence(self.journal.next_sequence());
            let report = Report { sequence, said_at: self.clock.wall(), body: body.clone() };
            self.say(connect_request::Message::Report(report_to_wire(*claim, &report)));
        }
    }
}

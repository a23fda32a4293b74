//! The messages of a session, each joined with the session's identity and answered.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use holdfast_common::claim::Claim;
use holdfast_common::code::Code;
use holdfast_common::id::{AttemptId, EvidenceId, StepName, TargetName};
use holdfast_common::report::{DeclineReason, Disposition, FiledReason, PermitDenial, Report};
use holdfast_common::spec::PlanDigest;
use holdfast_coordinator_core::Answer;
use holdfast_coordinator_core::input::{Finding, Speaker};
use holdfast_proto::convert::{
    Invalid, WireEnum, claim_from_wire, claim_to_wire, disposition_to_wire, duration_to_wire, parsed,
    reading_from_wire, report_from_wire, required,
};
use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Said;
use holdfast_proto::v1::connect_response::Message;
use tokio::time::Instant;

use super::session::{End, Session};
use crate::driver::{self, Asked};
use crate::grpc::view::enums::denial_words;

/// Claims in one heartbeat.
const MAX_CLAIMS: usize = 4096;

/// How long a session waits for one answer before it listens on.
const PATIENCE: Duration = Duration::from_secs(1);

/// A text longer than an agent was told it may be.
const TOO_LONG: &str = "longer than the Welcome allows";

/// Whether the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    /// The agent said that it goes and will be back.
    Detach,
}

/// When each attempt was last passed on as heard, so that not every message costs a decision.
#[derive(Debug, Default)]
pub(super) struct Signs {
    passed_on: BTreeMap<AttemptId, Instant>,
}

impl Signs {
    const EVERY: Duration = Duration::from_secs(1);
    const MAX: usize = 4096;

    /// Whether a sign of life of this attempt is to be passed on now.
    pub(super) fn due(&mut self, attempt: AttemptId) -> bool {
        let now = Instant::now();
        let due = self.passed_on.get(&attempt).is_none_or(|last| now.duration_since(*last) >= Self::EVERY);
        if due {
            if self.passed_on.len() >= Self::MAX {
                self.passed_on.clear();
            }
            self.passed_on.insert(attempt, now);
        }
        due
    }
}

/// Takes one message.
pub(super) async fn take(session: &mut Session, message: v1::ConnectRequest) -> Result<Next, End> {
    session.shared.directory.heard(&session.speaker.agent, session.id, session.shared.now());
    match required("message", message.message)? {
        Said::Hello(_) => Err(End::new(Code::InvalidMessage, "field `message`: a session has one Hello")),
        Said::Heartbeat(heartbeat) => heartbeat_answer(session, heartbeat).await,
        Said::OfferAnswer(answer) => offer_answer(session, answer).await,
        Said::PermitRequest(request) => permit_answer(session, request).await,
        Said::Report(report) => report_answer(session, report).await,
        Said::InquiryAnswer(answer) => inquiry_answer(session, answer).await,
        Said::Detach(detach) => {
            let reason = holdfast_common::text::bounded(&detach.reason, 200);
            tracing::info!(agent = %session.speaker.agent, reason, "an agent goes and will be back");
            Ok(Next::Detach)
        }
    }
}

async fn heartbeat_answer(session: &mut Session, heartbeat: v1::Heartbeat) -> Result<Next, End> {
    if heartbeat.claims.len() > MAX_CLAIMS {
        return Err(Invalid::Range { field: "heartbeat.claims", problem: "too many elements" }.into());
    }
    // Each is read before any is taken: a message with a bad element changes nothing.
    let claims: Vec<Claim> =
        heartbeat.claims.into_iter().map(|claim| claim_from_wire(Some(claim))).collect::<Result<_, _>>()?;
    let voice = session.voice();
    let leases = join_all(claims.iter().map(|claim| renew(&voice, *claim))).await;
    let leases: Vec<Option<v1::RenewedLease>> = leases.into_iter().collect::<Result<_, _>>()?;
    let leases = leases.into_iter().flatten().collect();
    session.outgoing.send(Message::HeartbeatAnswer(v1::HeartbeatAnswer { number: heartbeat.number, leases }));
    Ok(Next::GoOn)
}

/// Each claim by itself. One that is not this agent's gets the answer of one that does not exist; one whose sign of life
/// could not be recorded gets none, and is asked about again with the next heartbeat.
async fn renew(voice: &Voice, claim: Claim) -> Result<Option<v1::RenewedLease>, End> {
    let ttl = match heard(voice, claim).await? {
        Heard::Is(Answer::Renewed { ttl, .. }) => Some(ttl),
        Heard::Is(_) | Heard::NotHere => None,
        Heard::NotRecorded => return Ok(None),
    };
    let answer = if ttl.is_some() { v1::LeaseAnswer::Renewed } else { v1::LeaseAnswer::Superseded };
    let (claim, ttl) = (Some(claim_to_wire(claim)), ttl.map(duration_to_wire));
    Ok(Some(v1::RenewedLease { claim, answer: answer as i32, ttl }))
}

/// What came of a sign of life.
enum Heard {
    Is(Answer),
    NotHere,
    /// The disk is full.
    NotRecorded,
}

async fn heard(voice: &Voice, claim: Claim) -> Result<Heard, End> {
    let Some(target) = voice.driver.target_of(claim.deployment).await else { return Ok(Heard::NotHere) };
    voice.heard(target, claim).await
}

/// Any message under a claim is a sign of life. What it is worth, the core says.
async fn sign_of_life(session: &mut Session, target: &TargetName, claim: Claim) -> Result<(), End> {
    if session.signs.due(claim.attempt) {
        let _answered_by_heartbeats = session.voice().heard(target.clone(), claim).await?;
    }
    Ok(())
}

async fn offer_answer(session: &mut Session, answer: v1::OfferAnswer) -> Result<Next, End> {
    let claim = claim_from_wire(answer.claim)?;
    let kind = v1::OfferAnswerKind::try_from(answer.kind).unwrap_or(v1::OfferAnswerKind::Unspecified);
    let declined = match kind {
        v1::OfferAnswerKind::Unspecified => {
            return Err(
                Invalid::Enum { field: "offer_answer.kind", kind: "OfferAnswerKind", number: answer.kind }.into()
            );
        }
        v1::OfferAnswerKind::Accepted => None,
        v1::OfferAnswerKind::Declined => Some(DeclineReason::from_wire("offer_answer.reason", answer.reason)?),
    };
    let Some(target) = session.shared.driver.target_of(claim.deployment).await else { return Ok(Next::GoOn) };
    let voice = session.voice();
    answer_when_recorded(session, async move {
        let speaker = voice.speaker.clone();
        voice.ask(target, Asked::OfferAnswered { speaker, claim, declined }).await?;
        Ok(None)
    })
    .await
}

async fn permit_answer(session: &mut Session, request: v1::PermitRequest) -> Result<Next, End> {
    let claim = claim_from_wire(request.claim)?;
    let step: StepName = parsed("permit_request.step", &request.step)?;
    let plan = plan_digest(request.plan_digest)?;
    let target = session.shared.driver.target_of(claim.deployment).await;
    if let Some(target) = &target {
        sign_of_life(session, target, claim).await?;
    }
    let voice = session.voice();
    answer_when_recorded(session, async move { voice.permit(target, claim, step, plan).await.map(Some) }).await
}

impl Voice {
    async fn permit(
        self,
        target: Option<TargetName>,
        claim: Claim,
        step: StepName,
        plan: PlanDigest,
    ) -> Result<Message, End> {
        let denial = match target {
            None => Some(PermitDenial::NotYours),
            Some(target) => {
                let asked = Asked::PermitRequested { speaker: self.speaker.clone(), claim, step: step.clone(), plan };
                match self.ask(target, asked).await? {
                    Some(Answer::Permitted) => None,
                    Some(Answer::Denied(denial)) => Some(denial),
                    Some(other) => return Err(no_answer_of_ours(&other)),
                    None => Some(PermitDenial::NotYours),
                }
            }
        };
        if denial == Some(PermitDenial::NotYours) {
            self.audit("a permit", claim, denial_words(PermitDenial::NotYours));
        }
        let kind = if denial.is_none() { v1::PermitAnswerKind::Granted } else { v1::PermitAnswerKind::Denied };
        Ok(Message::PermitAnswer(v1::PermitAnswer {
            claim: Some(claim_to_wire(claim)),
            step: step.to_string(),
            kind: kind as i32,
            denial: denial.map_or(0, WireEnum::to_number),
        }))
    }
}

fn plan_digest(text: String) -> Result<PlanDigest, Invalid> {
    let is_digest = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_digest {
        Ok(PlanDigest(text))
    } else {
        Err(Invalid::Range { field: "permit_request.plan_digest", problem: "not lower-case hex of SHA-256" })
    }
}

async fn report_answer(session: &mut Session, report: v1::Report) -> Result<Next, End> {
    let (claim, report) = report_from_wire(report)?;
    bounded("report.detail", detail_of(&report), session)?;
    let target = session.shared.driver.target_of(claim.deployment).await;
    if let Some(target) = &target {
        sign_of_life(session, target, claim).await?;
    }
    let voice = session.voice();
    answer_when_recorded(session, async move { voice.report(target, claim, report).await.map(Some) }).await
}

impl Voice {
    async fn report(self, target: Option<TargetName>, claim: Claim, report: Report) -> Result<Message, End> {
        let sequence = report.sequence;
        let disposition = match target {
            None => {
                let filed = self.driver.file_orphan(self.speaker.clone(), claim, report).await;
                filed.map_err(|error| end_of(&error))?
            }
            Some(target) => {
                let asked = Asked::Reported { speaker: self.speaker.clone(), claim, report };
                match self.ask(target, asked).await? {
                    Some(Answer::Answered(disposition)) => disposition,
                    Some(other) => return Err(no_answer_of_ours(&other)),
                    None => return Err(End::new(Code::Internal, "a report was not answered")),
                }
            }
        };
        let told = told(disposition);
        if told == Disposition::Filed(FiledReason::UnknownAttempt) {
            self.audit("a report", claim, "no such attempt of this agent");
        }
        Ok(Message::Disposition(disposition_to_wire(sequence, told)))
    }
}

/// What exists but is another's is told like what does not exist. The record keeps the difference.
fn told(disposition: Disposition) -> Disposition {
    match disposition {
        Disposition::Filed(FiledReason::WrongAgent) => Disposition::Filed(FiledReason::UnknownAttempt),
        Disposition::Accepted | Disposition::Duplicate | Disposition::Filed(_) => disposition,
    }
}

fn detail_of(report: &Report) -> &str {
    use holdfast_common::report::ReportBody;
    match &report.body {
        ReportBody::StepEnded { detail, .. } | ReportBody::CancelActed { detail } => detail,
        ReportBody::StepStarted { .. } | ReportBody::AttemptEnded { .. } | ReportBody::CancelReceived => "",
    }
}

fn bounded(field: &'static str, text: &str, session: &Session) -> Result<(), Invalid> {
    let max = usize::try_from(session.shared.limits.max_text_bytes).unwrap_or(usize::MAX);
    if text.len() <= max { Ok(()) } else { Err(Invalid::Range { field, problem: TOO_LONG }) }
}

async fn inquiry_answer(session: &mut Session, answer: v1::InquiryAnswer) -> Result<Next, End> {
    let inquiry: EvidenceId = parsed("inquiry_answer.id", &answer.id)?;
    let finding = match required("inquiry_answer.finding", answer.finding)? {
        v1::inquiry_answer::Finding::Read(reading) => Finding::Read(reading_from_wire(reading)?),
        v1::inquiry_answer::Finding::Raised(reading) => Finding::Raised { reading: reading_from_wire(reading)? },
        v1::inquiry_answer::Finding::Failed(failed) => Finding::Failed { detail: failed.detail },
    };
    match &finding {
        Finding::Read(reading) | Finding::Raised { reading } => {
            bounded("reading.detail", &reading.detail, session)?;
            bounded("reading.resource_identity", &reading.resource_identity, session)?;
        }
        Finding::Failed { detail } => bounded("inquiry_answer.failed.detail", detail, session)?,
    }
    let (agent, directory) = (&session.speaker.agent, &session.shared.directory);
    let Some(finding) = directory.looked(agent, session.id, inquiry, finding) else { return Ok(Next::GoOn) };
    // Only what this session was asked: an inquiry of an earlier one is asked again, and answered then.
    match session.shared.directory.asked(&session.speaker.agent, session.id, inquiry) {
        Some(target) => {
            let voice = session.voice();
            return answer_when_recorded(session, async move {
                let speaker = voice.speaker.clone();
                voice.ask(target, Asked::InquiryAnswered { speaker, inquiry, finding }).await?;
                Ok(None)
            })
            .await;
        }
        None => {
            tracing::info!(agent = %session.speaker.agent, %inquiry, "an answer that this session was not asked for")
        }
    }
    Ok(Next::GoOn)
}

/// Sends the answer when there is one. What can't be recorded for lack of room waits for long, and a session does not stand
/// still for it: heartbeats go on.
pub(super) async fn answer_when_recorded(
    session: &Session,
    answer: impl Future<Output = Result<Option<Message>, End>> + Send + 'static,
) -> Result<Next, End> {
    let mut answer = Box::pin(answer);
    let outgoing = session.outgoing.clone();
    match tokio::time::timeout(PATIENCE, &mut answer).await {
        Ok(answer) => answer?.into_iter().for_each(|message| outgoing.send(message)),
        Err(_) => {
            tokio::spawn(async move {
                match answer.await {
                    Ok(answer) => answer.into_iter().for_each(|message| outgoing.send(message)),
                    Err(end) => outgoing.bye(end.code, &end.detail),
                }
            });
        }
    }
    Ok(Next::GoOn)
}

/// Who speaks in a session, to whom.
#[derive(Clone)]
pub(super) struct Voice {
    pub(super) driver: driver::Handle,
    pub(super) speaker: Speaker,
}

impl Voice {
    /// `None` where the core does not know what the message is about: for an agent, that is what does not exist.
    pub(super) async fn ask(&self, target: TargetName, asked: Asked) -> Result<Option<Answer>, End> {
        self.answer_to(self.driver.ask(target, asked).await)
    }

    fn answer_to(&self, told: Result<driver::Told, driver::Error>) -> Result<Option<Answer>, End> {
        match told {
            Ok(told) => Ok(Some(told.answer)),
            Err(driver::Error::Refused(refusal)) => {
                tracing::info!(agent = %self.speaker.agent, %refusal, "what an agent said was not taken");
                Ok(None)
            }
            Err(driver::Error::NotDeclared(_)) => Ok(None),
            Err(
                error @ (driver::Error::RequestIdReused { .. }
                | driver::Error::ResourceTaken(_)
                | driver::Error::Store(_)
                | driver::Error::Contradiction(_)
                | driver::Error::NoRoom(_)
                | driver::Error::Stopped),
            ) => Err(end_of(&error)),
        }
    }

    async fn heard(&self, target: TargetName, claim: Claim) -> Result<Heard, End> {
        match self.driver.ask(target, Asked::Heard { speaker: self.speaker.clone(), claim }).await {
            Err(driver::Error::NoRoom(_)) => Ok(Heard::NotRecorded),
            told => Ok(self.answer_to(told)?.map_or(Heard::NotHere, Heard::Is)),
        }
    }

    fn audit(&self, what: &str, claim: Claim, why: &str) {
        tracing::warn!(agent = %self.speaker.agent, what, attempt = %claim.attempt, why, "refused");
        self.driver.refused(
            format!("agent {}", self.speaker.agent),
            format!("{what} for attempt {} of {} under fence {}", claim.attempt, claim.deployment, claim.fence),
            why.to_owned(),
        );
    }
}

fn end_of(error: &driver::Error) -> End {
    tracing::warn!(%error, "an agent's message could not be answered");
    End::new(error.code(), error.code().title())
}

fn no_answer_of_ours(answer: &Answer) -> End {
    tracing::error!(?answer, "the core gave an answer of another kind");
    End::new(Code::Internal, Code::Internal.title())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signs_of_life_are_passed_on_once_a_second_for_each_attempt() {
        let (one, other) = (AttemptId(Uuid::from_u128(1)), AttemptId(Uuid::from_u128(2)));
        let mut signs = Signs::default();
        assert!(signs.due(one) && signs.due(other));
        assert!(!signs.due(one));
        tokio::time::advance(Signs::EVERY).await;
        assert!(signs.due(one));
    }

    #[test]
    fn what_is_anothers_is_told_like_what_does_not_exist() {
        assert_eq!(told(Disposition::Filed(FiledReason::WrongAgent)), Disposition::Filed(FiledReason::UnknownAttempt));
        let kept = Disposition::Filed(FiledReason::SupersededFence);
        assert_eq!(told(kept), kept);
    }
}

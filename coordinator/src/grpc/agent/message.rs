//! The messages of a session, each joined with the session's identity and answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_common::claim::Claim;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, AttemptId, EvidenceId, StepName, TargetName};
use holdfast_common::report::{
    DeclineReason, Declined, Disposition, FiledReason, PermitDenial, Report, ReportSequence,
};
use holdfast_common::spec::PlanDigest;
use holdfast_common::text::{self, one_line};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::Answer;
use holdfast_coordinator_core::input::{Finding, Via};
use holdfast_proto::convert::{
    Invalid, WireEnum, claim_from_wire, claim_of_wire, claim_to_wire, disposition_to_wire, duration_from_wire,
    duration_to_wire, parsed, reading_from_wire, report_from_wire, required,
};
use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Said;
use holdfast_proto::v1::connect_response::Message;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::pace::STRANGE;
use super::session::{End, Session};
use super::{identity, strangers};
use crate::driver::{self, Asked, Told};
use crate::grpc::view::enums::denial_words;
use crate::sessions::{Absence, Outgoing};

/// Longest sentence of a declined offer that is kept.
const DECLINE_BYTES: usize = 500;
/// Claims in one heartbeat.
const MAX_CLAIMS: usize = 4096;

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
    match required("message", message.message)? {
        Said::Hello(_) => Err(End::new(Code::InvalidMessage, "field `message`: a session has one Hello")),
        Said::Heartbeat(heartbeat) => heartbeat_answer(session, heartbeat).await,
        Said::OfferAnswer(answer) => offer_answer(session, answer).await,
        Said::PermitRequest(request) => permit_answer(session, request).await,
        Said::Report(report) => report_answer(session, report).await,
        Said::InquiryAnswer(answer) => inquiry_answer(session, answer).await,
        Said::WelcomeKept(v1::WelcomeKept {}) => {
            identity::kept(session);
            Ok(Next::GoOn)
        }
        Said::Pong(v1::Pong { number }) => {
            session.shared.directory.pong(&session.speaker.agent, session.id, number);
            Ok(Next::GoOn)
        }
        Said::Detach(detach) => leave(session, detach).await,
    }
}

/// How long a session waits for an absence to be on record: the agent waits for the end of the session.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// Longest absence that is believed.
const LONGEST_ABSENCE: Millis = Millis::from_secs(24 * 3600);

/// What it held is on record before its session ends.
async fn leave(session: &mut Session, detach: v1::Detach) -> Result<Next, End> {
    if detach.claims.len() > MAX_CLAIMS {
        return Err(Invalid::Range { field: "detach.claims", problem: "too many elements" }.into());
    }
    let claims = detach.claims.iter().map(claim_of_wire).collect::<Result<Vec<Claim>, Invalid>>()?;
    let away = detach.away.map(|away| duration_from_wire("detach.away", away)).transpose()?;
    let away = away.unwrap_or(Millis(0)).min(LONGEST_ABSENCE);
    let agent = session.speaker.agent.clone();
    let reason = holdfast_common::text::bounded(&detach.reason, 200);
    tracing::info!(%agent, %away, claims = claims.len(), reason, "an agent goes and will be back");
    strangers::note(session, "an absence", &claims).await;
    // What it said before comes first.
    session.send()?;
    let since = session.shared.now();
    let back_by = Wall(since.0.saturating_add_unsigned(away.0.saturating_mul(1000)));
    session.shared.directory.absent(&agent, Absence { since, back_by });
    let recorded = async {
        for claim in claims {
            let Some(target) = session.shared.driver.target_of(claim.deployment).await else { continue };
            let asked = Asked::Detached { speaker: session.speaker.clone(), claim, away };
            if let Err(error) = session.shared.driver.ask(target, asked).await {
                tracing::warn!(%agent, %error, "an absence could not be recorded: its lease lapses without it");
            }
        }
    };
    if tokio::time::timeout(LEAVE_WITHIN, recorded).await.is_err() {
        tracing::warn!(%agent, "not every lease was extended for an absence in time");
    }
    Ok(Next::Detach)
}

async fn heartbeat_answer(session: &mut Session, heartbeat: v1::Heartbeat) -> Result<Next, End> {
    if heartbeat.claims.len() > MAX_CLAIMS {
        return Err(Invalid::Range { field: "heartbeat.claims", problem: "too many elements" }.into());
    }
    // Each is read before any is taken: a message with a bad element changes nothing.
    let claims = heartbeat.claims.into_iter().map(|wire| Ok((claim_of_wire(&wire)?, wire)));
    let claims: Vec<(Claim, v1::Claim)> = claims.collect::<Result<_, Invalid>>()?;
    session.shared.directory.has_room(&session.speaker.agent, session.id, heartbeat.no_room);
    strangers::note(session, "a heartbeat", &claims.iter().map(|(claim, _)| *claim).collect::<Vec<_>>()).await;
    let beat = Arc::new(Beat {
        number: heartbeat.number,
        leases: Mutex::new(Vec::with_capacity(claims.len())),
        outgoing: session.outgoing.clone(),
        _room: room(session).await?,
    });
    for (claim, wire) in claims {
        renew(session, claim, wire, &beat).await?;
    }
    Ok(Next::GoOn)
}

/// Collects what one heartbeat's claims are answered, and answers when the last one is.
struct Beat {
    number: u64,
    leases: Mutex<Vec<v1::RenewedLease>>,
    outgoing: Outgoing,
    _room: OwnedSemaphorePermit,
}

impl Beat {
    /// The claim is told as it came.
    fn note(&self, claim: v1::Claim, ttl: Option<Millis>) {
        let answer = if ttl.is_some() { v1::LeaseAnswer::Renewed } else { v1::LeaseAnswer::Superseded };
        let lease = v1::RenewedLease { claim: Some(claim), answer: answer as i32, ttl: ttl.map(duration_to_wire) };
        self.leases.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        let leases = std::mem::take(self.leases.get_mut().unwrap_or_else(PoisonError::into_inner));
        self.outgoing.send(Message::HeartbeatAnswer(v1::HeartbeatAnswer { number: self.number, leases }));
    }
}

/// Each claim by itself. One that is not this agent's gets the answer of one that does not exist.
async fn renew(session: &mut Session, claim: Claim, wire: v1::Claim, beat: &Arc<Beat>) -> Result<(), End> {
    let Some(target) = session.shared.driver.target_of(claim.deployment).await else {
        session.surcharge += STRANGE;
        beat.note(wire, None);
        return Ok(());
    };
    let (beat, agent) = (beat.clone(), session.speaker.agent.clone());
    let asked = Asked::Heard { speaker: session.speaker.clone(), claim, via: Via::Session };
    let then = move |told| match told {
        // A sign of life that can't be written is neither a renewal nor an end.
        Err(driver::Error::NoRoom(_)) => {}
        told => match understood(&agent, told) {
            Ok(Some(Answer::Renewed { ttl, .. })) => beat.note(wire, Some(ttl)),
            Ok(Some(_) | None) => beat.note(wire, None),
            Err(end) => beat.outgoing.bye(end.code, &end.detail),
        },
    };
    let (driver, gathered) = (&session.shared.driver, &mut session.gathered);
    driver.gather(gathered, target, asked, then).await.map_err(|error| end_of(&error))
}

/// Any message under a claim is a sign of life. What it is worth, the core says.
async fn sign_of_life(session: &mut Session, target: &TargetName, claim: Claim) -> Result<(), End> {
    if !session.signs.due(claim.attempt) {
        return Ok(());
    }
    let asked = Asked::Heard { speaker: session.speaker.clone(), claim, via: Via::Session };
    let (way, room) = (Way::of(session), room(session).await?);
    let then = move |told| {
        match told {
            // What can't be written is said again anyway.
            Err(driver::Error::NoRoom(_)) => {}
            told => drop(understood(&way.agent, told).map_err(|end| way.outgoing.bye(end.code, &end.detail))),
        }
        drop(room);
    };
    let (driver, gathered) = (&session.shared.driver, &mut session.gathered);
    driver.gather(gathered, target.clone(), asked, then).await.map_err(|error| end_of(&error))
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
        v1::OfferAnswerKind::Declined => {
            let reason = DeclineReason::from_wire("offer_answer.reason", answer.reason)?;
            Some(Declined { reason, detail: text::bounded(&one_line(&answer.detail), DECLINE_BYTES) })
        }
    };
    strangers::note(session, "an answer to an offer", &[claim]).await;
    if session.shared.directory.offer_answered(&session.speaker.agent, session.id) {
        session.shared.driver.agents_changed();
    }
    if let Some(target) = session.shared.driver.target_of(claim.deployment).await {
        let speaker = session.speaker.clone();
        queue(session, target, Asked::OfferAnswered { speaker, claim, declined }, |_, _| Ok(())).await?;
    }
    Ok(Next::GoOn)
}

async fn permit_answer(session: &mut Session, request: v1::PermitRequest) -> Result<Next, End> {
    let claim = claim_from_wire(request.claim)?;
    let step: StepName = parsed("permit_request.step", &request.step)?;
    let plan = plan_digest(request.plan_digest)?;
    let Some(target) = session.shared.driver.target_of(claim.deployment).await else {
        session.surcharge += STRANGE;
        say_permit(&Way::of(session), claim, &step, Some(PermitDenial::NotYours));
        return Ok(Next::GoOn);
    };
    sign_of_life(session, &target, claim).await?;
    let asked = Asked::PermitRequested { speaker: session.speaker.clone(), claim, step: step.clone(), plan };
    let then = move |way: &Way, answer| {
        let denial = match answer {
            Some(Answer::Permitted) => None,
            Some(Answer::Denied(denial)) => Some(denial),
            Some(other) => return Err(no_answer_of_ours(&other)),
            None => Some(PermitDenial::NotYours),
        };
        say_permit(way, claim, &step, denial);
        Ok(())
    };
    queue(session, target, asked, then).await?;
    Ok(Next::GoOn)
}

fn say_permit(way: &Way, claim: Claim, step: &StepName, denial: Option<PermitDenial>) {
    if denial == Some(PermitDenial::NotYours) {
        audit(way, "a permit", claim, denial_words(PermitDenial::NotYours));
    }
    let kind = if denial.is_none() { v1::PermitAnswerKind::Granted } else { v1::PermitAnswerKind::Denied };
    way.outgoing.send(Message::PermitAnswer(v1::PermitAnswer {
        claim: Some(claim_to_wire(claim)),
        step: step.to_string(),
        kind: kind as i32,
        denial: denial.map_or(0, WireEnum::to_number),
    }));
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
    let sequence = report.sequence;
    let Some(target) = session.shared.driver.target_of(claim.deployment).await else {
        session.surcharge += STRANGE;
        orphan(session, claim, report).await?;
        return Ok(Next::GoOn);
    };
    sign_of_life(session, &target, claim).await?;
    let asked = Asked::Reported { speaker: session.speaker.clone(), claim, report };
    let then = move |way: &Way, answer| match answer {
        Some(Answer::Answered(disposition)) => {
            say_disposition(way, claim, sequence, disposition);
            Ok(())
        }
        Some(other) => Err(no_answer_of_ours(&other)),
        None => Err(End::new(Code::Internal, "a report was not answered")),
    };
    queue(session, target, asked, then).await?;
    Ok(Next::GoOn)
}

fn say_disposition(way: &Way, claim: Claim, sequence: ReportSequence, disposition: Disposition) {
    let told = told(disposition);
    if told == Disposition::Filed(FiledReason::UnknownAttempt) {
        audit(way, "a report", claim, "no such attempt of this agent");
    }
    way.outgoing.send(Message::Disposition(disposition_to_wire(sequence, told)));
}

/// A session does not stand still while it is recorded: without room on the disk that can take long.
async fn orphan(session: &mut Session, claim: Claim, report: Report) -> Result<(), End> {
    let (way, room, sequence) = (Way::of(session), room(session).await?, report.sequence);
    let (driver, speaker) = (session.shared.driver.clone(), session.speaker.clone());
    tokio::spawn(async move {
        match driver.file_orphan(speaker, claim, report).await {
            Ok(disposition) => say_disposition(&way, claim, sequence, disposition),
            Err(error) => {
                let end = end_of(&error);
                way.outgoing.bye(end.code, &end.detail);
            }
        }
        drop(room);
    });
    Ok(())
}

/// What exists but is another's is told like what does not exist. The record keeps the difference.
fn told(disposition: Disposition) -> Disposition {
    match disposition {
        Disposition::Filed(FiledReason::WrongAgent) => Disposition::Filed(FiledReason::UnknownAttempt),
        Disposition::Accepted | Disposition::Duplicate | Disposition::Filed(_) => disposition,
    }
}

fn detail_of(report: &Report) -> &str {
    use holdfast_common::report::{ReportBody, Reread};
    match &report.body {
        ReportBody::StepEnded { detail, .. } | ReportBody::CancelActed { detail } => detail,
        ReportBody::CancelReceived { held_up } => held_up,
        ReportBody::Reread { found: Reread::Read { reading }, .. } => &reading.detail,
        ReportBody::Reread { found: Reread::Failed { detail }, .. } => detail,
        ReportBody::StepStarted { .. } | ReportBody::AttemptEnded { .. } => "",
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
            let asked = Asked::InquiryAnswered { speaker: session.speaker.clone(), inquiry, finding };
            queue(session, target, asked, |_, _| Ok(())).await?;
        }
        None => {
            let (agent, why) = (&session.speaker.agent, "this session was not asked");
            tracing::info!(%agent, %inquiry, why, "an answer to an inquiry was refused");
            let what = format!("an answer to inquiry {inquiry}");
            session.shared.driver.refused(format!("agent {agent}"), what, why.to_owned());
        }
    }
    Ok(Next::GoOn)
}

/// Where an answer goes once it is on disk.
#[derive(Clone)]
struct Way {
    agent: AgentName,
    outgoing: Outgoing,
    driver: driver::Handle,
}

impl Way {
    fn of(session: &Session) -> Self {
        Self {
            agent: session.speaker.agent.clone(),
            outgoing: session.outgoing.clone(),
            driver: session.shared.driver.clone(),
        }
    }
}

/// Gathers what the agent said, after what it said before, and lets the session read on: what came together is decided in
/// one batch and shares its commit. `then` answers after that commit; what it refuses ends the session.
async fn queue(
    session: &mut Session,
    target: TargetName,
    asked: Asked,
    then: impl FnOnce(&Way, Option<Answer>) -> Result<(), End> + Send + 'static,
) -> Result<(), End> {
    let (way, room) = (Way::of(session), room(session).await?);
    let answer = move |told| {
        if let Err(end) = understood(&way.agent, told).and_then(|answer| then(&way, answer)) {
            way.outgoing.bye(end.code, &end.detail);
        }
        drop(room);
    };
    let (driver, gathered) = (&session.shared.driver, &mut session.gathered);
    driver.gather(gathered, target, asked, answer).await.map_err(|error| end_of(&error))
}

/// Waits until few enough messages of this agent wait for the driver.
async fn room(session: &mut Session) -> Result<OwnedSemaphorePermit, End> {
    if let Ok(room) = session.room.clone().try_acquire_owned() {
        return Ok(room);
    }
    session.send()?;
    Ok(session.room.clone().acquire_owned().await.expect("nobody closes it"))
}

/// `None` where the core does not know what the message is about: for an agent, that is what does not exist.
fn understood(agent: &AgentName, told: Result<Told, driver::Error>) -> Result<Option<Answer>, End> {
    match told {
        Ok(told) => Ok(Some(told.answer)),
        Err(driver::Error::Refused(refusal)) => {
            tracing::info!(%agent, %refusal, "what an agent said was not taken");
            Ok(None)
        }
        Err(driver::Error::NotDeclared(_)) => Ok(None),
        Err(
            error @ (driver::Error::RequestIdReused { .. }
            | driver::Error::ResourceTaken(_)
            | driver::Error::Store(_)
            | driver::Error::Contradiction(_)
            | driver::Error::NoRoom(_)
            | driver::Error::Unsound(_)
            | driver::Error::Stopped),
        ) => Err(end_of(&error)),
    }
}

fn audit(way: &Way, what: &str, claim: Claim, why: &str) {
    let Claim { deployment, attempt, fence } = claim;
    tracing::warn!(agent = %way.agent, what, %deployment, %attempt, %fence, why, "refused");
    way.driver.refused(
        format!("agent {}", way.agent),
        format!("{what} for attempt {} of {} under fence {}", claim.attempt, claim.deployment, claim.fence),
        why.to_owned(),
    );
}

pub(super) fn end_of(error: &driver::Error) -> End {
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

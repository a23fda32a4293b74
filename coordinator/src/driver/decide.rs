//! One decision: load, decide, apply, write.

use std::sync::Arc;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, DeploymentId, TargetName};
use holdfast_common::report::{Disposition, Report};
use holdfast_common::time::{Millis, Serving};
use holdfast_coordinator_core::event::Event;
use holdfast_coordinator_core::input::Speaker;
use holdfast_coordinator_core::{Answer, Input, Now, Refusal, TargetState, Written, decide, record};
use holdfast_net::room::Room;

use super::batch::Batch;
use super::inbox::Published;
use super::input::Draw;
use super::serving::ServingClock;
use super::targets::Targets;
use super::{Error, Fatal, Sessions};
use crate::metrics::{Metrics, facts};
use crate::store::{self, AnsweredReport, Digest, Transaction, Write, snapshot_due};
use crate::verify::Verdict;

/// All of the driver but the store, so that a transaction can be open beside it.
pub(super) struct Inner {
    pub(super) targets: Targets,
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) draw: Draw,
    pub(super) clock: ServingClock,
    /// The instant of the current step.
    pub(super) now: Now,
    pub(super) published: Arc<Published>,
    pub(super) metrics: Arc<Metrics>,
    /// Whether there is room for new work.
    pub(super) gate: Room,
    /// Whether the store follows from its events, as far as anybody looked.
    pub(super) verdict: Verdict,
    /// Whether so many agents fell silent at once that nothing new is handed out.
    pub(super) suspected: bool,
    /// What a lease is given for a planned absence of its agent at most.
    pub(super) absence: Millis,
}

/// What goes into the store with a decision beside its events.
#[derive(Default)]
pub(super) struct Beside {
    /// The new deployment, and the digest of the request.
    pub(super) submission: Option<(DeploymentId, Digest)>,
    /// The report that is answered.
    pub(super) report: Option<(Speaker, Claim, Report)>,
    /// The attempt that speaks.
    pub(super) heard: Option<AttemptId>,
}

/// Why something asked was not done.
pub(super) enum Failure {
    /// Whoever asked is told; all else goes on.
    Answer(Error),
    /// Nothing goes on.
    Fatal(store::Error),
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        match error.is_contained() {
            true => Failure::Answer(Error::Store(Arc::new(error))),
            false => Failure::Fatal(error),
        }
    }
}

impl Failure {
    /// Lets what is fatal pass.
    pub(super) fn contain<T>(result: Result<T, Failure>) -> Result<Result<T, Error>, Fatal> {
        match result {
            Ok(value) => Ok(Ok(value)),
            Err(Failure::Answer(error)) => Ok(Err(error)),
            Err(Failure::Fatal(error)) => Err(Fatal(error)),
        }
    }
}

impl Inner {
    pub(super) fn decide(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        name: &TargetName,
        input: &Input,
        beside: &Beside,
    ) -> Result<Answer, Failure> {
        let result = self.decide_or_fail(tx, batch, name, input, beside);
        if let Err(Failure::Answer(error @ (Error::Store(_) | Error::Contradiction(_)))) = &result {
            let source = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(target = %name, %error, source, "an input was refused by a second wall");
            self.targets.drop_from_memory(name);
        }
        result
    }

    fn decide_or_fail(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        name: &TargetName,
        input: &Input,
        beside: &Beside,
    ) -> Result<Answer, Failure> {
        let before = self.targets.load(tx, name, self.now)?.map(|target| target.state.clone());
        let decision = decide(before.as_deref(), self.now, input).map_err(|refusal| refused(name, refusal))?;
        if let Some(found) = self.verdict.against()
            && decision.events.iter().any(grants)
        {
            return Err(Failure::Answer(Error::Unsound(Box::new(found))));
        }
        // Most signs of life change nothing that is written: then nothing is copied.
        if !decision.events.is_empty() {
            let written = record(before.as_deref().cloned(), self.now, decision.events)
                .map_err(|illegal| Failure::Answer(Error::Contradiction(illegal.to_string())))?;
            if let Some(written) = written {
                let report = answered(&decision.answer, beside);
                self.write(tx, batch, name, before.as_deref(), written, report, beside)?;
            }
        }
        drop(before);
        if let Some((attempt, heard)) = beside.heard.zip(heard(&decision.answer, self.now))
            && let Some(target) = self.targets.get_mut(name)
        {
            target.hear(attempt, heard);
        }
        batch.facts.extend(facts::of_answer(&decision.answer));
        Ok(decision.answer)
    }

    #[expect(clippy::too_many_arguments, reason = "everything that one write consists of")]
    fn write(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        name: &TargetName,
        before: Option<&TargetState>,
        written: Written,
        report: Option<AnsweredReport>,
        beside: &Beside,
    ) -> Result<(), Failure> {
        let Written { state: after, recorded: events, ended } = written;
        let snapshot = snapshot_due(before, &after).then(|| self.targets.as_written(name, &after, &events));
        let appended = tx.write(&Write {
            before,
            after: &after,
            events: &events,
            ended: &ended,
            submission: beside.submission.map(|(_, content)| content),
            report,
            snapshot: snapshot.as_ref(),
        })?;
        let facts = facts::of(&events, &ended, |id, claim, said| {
            let attempt =
                after.deployment(id).and_then(|found| found.attempts.iter().find(|it| it.id == claim.attempt));
            let past = if attempt.is_none() { tx.past_deployment(name, id)? } else { None };
            Ok::<_, store::Error>(facts::agrees(said, attempt, past.map(|past| past.state)))
        })?;
        batch.facts.extend(facts);
        batch.before.entry(name.clone()).or_insert_with(|| self.targets.save(name));
        self.targets.replace(name, after, &events, self.now);
        batch.note(name, events, appended);
        Ok(())
    }
}

/// Whether somebody may act after it who might not before.
fn grants(event: &Event) -> bool {
    matches!(event, Event::LeaseGranted { .. } | Event::PermitGranted { .. })
}

/// Whether the answer shows that the speaker's lease lives: then this was a sign of life too.
fn heard(answer: &Answer, now: Now) -> Option<Serving> {
    match answer {
        Answer::Renewed { heard, .. } => Some(*heard),
        Answer::Permitted | Answer::Answered(Disposition::Accepted) => Some(now.serving),
        Answer::Done
        | Answer::Submitted { .. }
        | Answer::Superseded
        | Answer::Denied(_)
        | Answer::Answered(Disposition::Duplicate | Disposition::Filed(_))
        | Answer::CancelRecorded
        | Answer::CancelledAtOnce
        | Answer::CancelTooLate(_)
        | Answer::InquiryOpened(_)
        | Answer::Decided(_) => None,
    }
}

fn refused(name: &TargetName, refusal: Refusal) -> Failure {
    if refusal == Refusal::NotDeclared {
        return Failure::Answer(Error::NotDeclared(name.clone()));
    }
    if let Refusal::Broken { because } = refusal {
        return Failure::Answer(Error::Contradiction(because.to_owned()));
    }
    Failure::Answer(Error::Refused(refusal))
}

fn answered(answer: &Answer, beside: &Beside) -> Option<AnsweredReport> {
    let (speaker, claim, report) = beside.report.as_ref()?;
    if let Answer::Answered(disposition @ (Disposition::Accepted | Disposition::Filed(_))) = answer {
        return Some(AnsweredReport::new(speaker.incarnation, claim, report, *disposition));
    }
    None
}

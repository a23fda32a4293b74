//! One message of a batch: what it asks for is done in the transaction, and its answer waits for the commit.

use holdfast_common::id::TargetName;
use holdfast_common::report::{Disposition, FiledReason};
use holdfast_coordinator_core::input::Speaker;
use holdfast_coordinator_core::{Answer, Input};

use super::batch::Batch;
use super::decide::{Beside, Failure, Inner};
use super::fleet::{self, Settled};
use super::inbox::{Body, OrphanReport, Reply};
use super::input::Prepared;
use super::{Asked, Error, Fatal, Told, acts};
use crate::store::{self, RefusalRow, TokenRow, Transaction};

impl Inner {
    pub(super) fn take(&mut self, tx: &mut impl Transaction, batch: &mut Batch, body: &Body) -> Result<(), Fatal> {
        match body {
            Body::Ask { target, asked, reply } => self.ask(tx, batch, target, Asked::clone(asked), reply.clone())?,
            Body::State { target, reply } => {
                let reply = reply.clone();
                let loaded = self.targets.load(tx, target, self.now).map(|target| target.map(|it| it.state.clone()));
                let state = Failure::contain(loaded.map_err(Failure::from))?.ok().flatten();
                batch.answer(move |_| reply.say(state));
            }
            Body::TargetOf { deployment, reply } => {
                let reply = reply.clone();
                let target = Failure::contain(tx.target_of(*deployment).map_err(Failure::from))?.ok().flatten();
                batch.answer(move |_| reply.say(target));
            }
            Body::Orphan { report, reply } => {
                self.orphan(tx, batch, OrphanReport::clone(report), reply.clone())?;
            }
            Body::Agent { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(tx.put_agent(row).map_err(Failure::from))?;
                batch.wrote |= result.is_ok();
                batch.answer(move |_| reply.say(result));
            }
            Body::Identify { agent, judge } => self.identify(tx, batch, agent, judge.as_ref())?,
            Body::MakeToken { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(acts::make_token(tx, row, self.now.wall).map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            Body::RevokeToken { row, by, reply } => {
                let reply = reply.clone();
                let revoked = acts::revoke_token(tx, TokenRow::clone(row), by, self.now.wall);
                let result = Failure::contain(revoked.map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            Body::Fleet { change, reply } => {
                let reply = reply.clone();
                let settled = fleet::settle(tx, change, self.now.wall);
                let result = Failure::contain(settled.map_err(Failure::from))?;
                batch.wrote |= result.as_ref().is_ok_and(Settled::wrote);
                batch.answer(move |_| reply.say(result));
            }
            Body::Drain { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(acts::drain(tx, row).map_err(Failure::from))?;
                batch.wrote |= result.is_ok();
                batch.answer(move |_| reply.say(result));
            }
            Body::Resume { agent, by, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(acts::resume(tx, agent, by, self.now.wall).map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            // The reserve is for results.
            Body::Refused { .. } if !self.gate.can_promise() => {}
            Body::Refused { who, what, why } => {
                self.refused(tx, batch, who.clone(), what.clone(), why.clone())?;
            }
            Body::SessionStarted(speaker) => {
                self.sessions.stands(&speaker.agent);
                batch.agents_changed = true;
                batch.started.insert(speaker.agent.clone());
            }
            Body::AgentsChanged => batch.agents_changed = true,
            Body::Several(several) => several.iter().try_for_each(|message| self.take(tx, batch, &message.body))?,
            Body::Stop(_) => {}
        }
        Ok(())
    }

    fn ask(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        target: &TargetName,
        asked: Asked,
        reply: Reply<Result<Told, Error>>,
    ) -> Result<(), Fatal> {
        let operator = asked.by_operator().map(|(what, by)| (what, by.to_string()));
        let result = Failure::contain(self.ask_or_fail(tx, batch, target, asked))?;
        if let (Some((what, by)), Err(error)) = (operator, &result)
            && !matches!(error, Error::NoRoom(_))
        {
            self.refused(tx, batch, by, format!("{what} {target}"), error.to_string())?;
        }
        let target = target.clone();
        batch.answer(move |targets| {
            reply.say(result.map(|told| {
                let shown = told.submitted().and_then(|_| targets.get(&target)).map(|target| target.state.clone());
                Told { after: shown, ..told }
            }));
        });
        Ok(())
    }

    fn ask_or_fail(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        target: &TargetName,
        asked: Asked,
    ) -> Result<Told, Failure> {
        let about = asked.deployment();
        match self.prepare(tx, target, asked)? {
            Prepared::Told(told) => Ok(told),
            Prepared::Decide(prepared) => {
                let (input, beside) = *prepared;
                let answer = self.decide(tx, batch, target, &input, &beside)?;
                let answer = self.keep_unknown(tx, batch, answer, &beside)?;
                if matches!(input, Input::InquiryAnswered { .. }) {
                    self.contradicted(tx, batch, target)?;
                }
                let deployment = beside.submission.map(|(deployment, _)| deployment).or(about);
                Ok(Told { answer, deployment, existed: false, after: None })
            }
        }
    }

    /// A report on an attempt that is not the speaker's is kept with no deployment, but kept.
    fn keep_unknown(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        answer: Answer,
        beside: &Beside,
    ) -> Result<Answer, Failure> {
        let unknown = answer == Answer::Answered(Disposition::Filed(FiledReason::UnknownAttempt));
        let Some((speaker, claim, report)) = beside.report.as_ref().filter(|_| unknown) else { return Ok(answer) };
        let report = OrphanReport { speaker: speaker.clone(), claim: *claim, report: report.clone() };
        self.keep_orphan(tx, batch, report).map(Answer::Answered)
    }

    fn keep_orphan(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        report: OrphanReport,
    ) -> Result<Disposition, Failure> {
        let OrphanReport { speaker: Speaker { agent, incarnation }, claim, report } = report;
        let new = tx.keep_orphan(&store::orphan(agent, incarnation, claim, report, self.now.wall))?;
        batch.wrote |= new;
        Ok(if new { Disposition::Filed(FiledReason::UnknownAttempt) } else { Disposition::Duplicate })
    }

    fn orphan(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        report: OrphanReport,
        reply: Reply<Result<Disposition, Error>>,
    ) -> Result<(), Fatal> {
        let answer = Failure::contain(self.keep_orphan(tx, batch, report))?;
        batch.answer(move |_| reply.say(answer));
        Ok(())
    }

    pub(super) fn refused(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        who: String,
        what: String,
        why: String,
    ) -> Result<(), Fatal> {
        let row = RefusalRow { who, what, why, at: self.now.wall };
        let kept: Result<(), Error> = Failure::contain(tx.keep_refusal(&row).map_err(Failure::from))?;
        batch.wrote |= kept.is_ok();
        Ok(())
    }
}

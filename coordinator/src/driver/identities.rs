//! Who agents are: read, judged and written in one transaction, with the record of it.
//!
//! When a judgement locks an identity, or ends its lock, every target that may still weigh a word of its journal learns of it
//! in the same commit.

use holdfast_common::id::{AgentName, TargetName};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::{Copied, Identity, Lock, Unlocked};
use holdfast_coordinator_core::{Contradiction, Input, contradiction};

use super::batch::Batch;
use super::decide::{Beside, Failure, Inner};
use super::inbox::Reply;
use super::{Error, Fatal};
use crate::store::{Act, Transaction};

/// What a judgement comes to.
#[derive(Clone, Debug)]
pub struct Judged<T> {
    /// To be told once it is on disk.
    pub answer: T,
    /// What is kept of it, in the same commit.
    pub acts: Vec<Act>,
}

impl<T> Judged<T> {
    /// With nothing to keep beside the identity itself.
    pub fn quietly(answer: T) -> Self {
        Self { answer, acts: Vec::new() }
    }
}

/// Tells whoever asked.
type Say = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// One judgement of one identity. May be done again from the start when it could not be written.
pub(super) trait Judge: Send + Sync {
    /// Changes the identity. Answers what is to be kept, and how it is told.
    fn judge(&self, identity: &mut Identity, now: Wall) -> (Vec<Act>, Say);

    /// It was not done.
    fn refuse(&self, why: Error);
}

/// A function as a [`Judge`].
pub(super) struct Judging<F, T> {
    pub(super) judge: F,
    pub(super) reply: Reply<Result<T, Error>>,
}

impl<F, T> Judge for Judging<F, T>
where
    F: Fn(&mut Identity, Wall) -> Judged<T> + Send + Sync,
    T: Send + 'static,
{
    fn judge(&self, identity: &mut Identity, now: Wall) -> (Vec<Act>, Say) {
        let Judged { answer, acts } = (self.judge)(identity, now);
        let reply = self.reply.clone();
        (acts, Box::new(move |written| reply.say(written.map(|()| answer))))
    }

    fn refuse(&self, why: Error) {
        self.reply.say(Err(why));
    }
}

impl Inner {
    pub(super) fn identify(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        agent: &AgentName,
        judge: &dyn Judge,
    ) -> Result<(), Fatal> {
        let (say, written) = match self.judged(tx, batch, agent, judge) {
            Ok(say) => (say, Ok(())),
            Err(failure) => {
                let Err(error) = Failure::contain::<()>(Err(failure))? else { return Ok(()) };
                judge.refuse(error);
                return Ok(());
            }
        };
        batch.answer(move |_| say(written));
        Ok(())
    }

    fn judged(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        agent: &AgentName,
        judge: &dyn Judge,
    ) -> Result<Say, Failure> {
        let before = tx.agent_identity(agent)?;
        let mut after = before.clone();
        let (acts, say) = judge.judge(&mut after, self.now.wall);
        if after != before {
            tx.put_agent_identity(agent, &after)?;
            batch.wrote = true;
            self.sessions.stand(agent, &after);
            self.doubt(tx, batch, agent, &before, &after)?;
        }
        for act in &acts {
            tx.keep_act(act)?;
            batch.wrote = true;
        }
        Ok(say)
    }

    /// A reading contradicts what the journal of an attempt said: its agent is locked, as if a copy of it had been seen.
    pub(super) fn contradicted(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        target: &TargetName,
    ) -> Result<(), Failure> {
        let Some(found) = self.targets.get(target).and_then(|target| contradiction(&target.state)) else {
            return Ok(());
        };
        let Contradiction { agent, incarnation, step } = found;
        let before = tx.agent_identity(&agent)?;
        let mut after = before.clone();
        after.contradicted(incarnation, self.now.wall);
        if after == before {
            return Ok(());
        }
        let why = Copied::Contradicted.words();
        tracing::error!(%target, %agent, %incarnation, %step, why, "an agent's identity is locked");
        tx.put_agent_identity(&agent, &after)?;
        tx.keep_act(&Act {
            at: self.now.wall,
            by: format!("agent {agent}"),
            kind: "agent_locked",
            about: agent.to_string(),
            detail: format!("{why}: step {step} on {target}"),
        })?;
        batch.wrote = true;
        batch.agents_changed = true;
        self.sessions.stand(&agent, &after);
        self.doubt(tx, batch, &agent, &before, &after)
    }

    /// Tells every target that has something under way what the word of that journal is worth now.
    fn doubt(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        agent: &AgentName,
        before: &Identity,
        after: &Identity,
    ) -> Result<(), Failure> {
        for target in self.targets.names().cloned().collect::<Vec<_>>() {
            let (agent, evidence) = (agent.clone(), self.draw.evidence());
            let input = match (&after.lock, &after.unlocked) {
                (Some(Lock { incarnation, copied, .. }), _) if before.lock.is_none() => {
                    let (incarnation, because) = (*incarnation, copied.words().to_owned());
                    Input::IdentityLocked { agent, incarnation, because, evidence }
                }
                (None, Some(Unlocked { incarnation, by, .. })) if before.unlocked != after.unlocked => {
                    Input::IdentityUnlocked { agent, incarnation: *incarnation, by: by.clone(), evidence }
                }
                (Some(_) | None, _) => return Ok(()),
            };
            // One target that can't be written hides the lock from no other; it is logged, and grants nothing.
            if let Err(fatal @ Failure::Fatal(_)) = self.decide(tx, batch, &target, &input, &Beside::default()) {
                return Err(fatal);
            }
        }
        Ok(())
    }
}

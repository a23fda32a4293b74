//! Who agents are: read, judged and written in one transaction, with the record of it.
//!
//! When a judgement locks an identity, or ends its lock, every target that may still weigh a word of its journal learns of it
//! in the same commit.

use holdfast_common::id::AgentName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::Identity;

use super::batch::Batch;
use super::decide::{Failure, Inner};
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
        }
        for act in &acts {
            tx.keep_act(act)?;
            batch.wrote = true;
        }
        Ok(say)
    }
}

//! The end of a step: the commit, and only then what is made known, counted and handed out.

use std::sync::PoisonError;
use std::time::Instant;

use super::batch::Batch;
use super::decide::Inner;
use super::own::addressee;
use super::watchers::Entry;
use super::{Fatal, tell};
use crate::bugs::{self, Bug};
use crate::store::Transaction;

impl Inner {
    /// Commits what is to be committed.
    pub(super) fn finish(&mut self, mut tx: impl Transaction, batch: &Batch, whole: bool) -> Result<(), Fatal> {
        let served_is_due = whole && self.targets.next_wakeup().is_some() && self.clock.write_in().is_zero();
        if !batch.wrote && !served_is_due {
            return Ok(());
        }
        if !bugs::on(Bug::ForgetServedTime) {
            tx.serve(self.clock.run(), self.clock.served()).map_err(Fatal)?;
        }
        batch.before_commit();
        let begun = Instant::now();
        tx.commit().map_err(Fatal)?;
        self.metrics.committed(begun.elapsed());
        batch.after_commit();
        self.clock.mark_written();
        Ok(())
    }

    pub(super) fn publish(&self, batch: &mut Batch) {
        if !batch.begun.is_empty() || !batch.ended.is_empty() {
            let mut live = self.published.live.write().unwrap_or_else(PoisonError::into_inner);
            live.extend(batch.begun.iter().cloned());
            for ended in &batch.ended {
                live.remove(ended);
            }
        }
        if let Some(newest) = batch.newest {
            self.published.committed.send_replace(newest.0);
        }
        self.published.watchers.tell(std::mem::take(&mut batch.written));
    }

    /// Counts and logs what is committed, before anybody is told: who has an answer finds it counted.
    pub(super) fn measure(&self, batch: &Batch) {
        self.metrics.count(&batch.facts);
        for Entry { target: name, events, .. } in &batch.written {
            events.iter().for_each(|recorded| tell::tell(name, recorded));
            if let Some(target) = self.targets.get(name) {
                self.metrics.stands(name, &target.state, self.now.wall);
            }
        }
    }

    /// Hands out what is due now and was not handed out before.
    pub(super) fn hand_out(&mut self, batch: &Batch) {
        for name in &batch.touched {
            let Some(target) = self.targets.get_mut(name) else { continue };
            for effect in target.unsent(self.now) {
                if addressee(&effect).is_none() {
                    continue;
                }
                self.sessions.send(&target.state, &effect);
                target.sent.insert(effect);
            }
        }
    }
}

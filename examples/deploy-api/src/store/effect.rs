//! The begin of the work, and its one visible moment.

use rusqlite::{Transaction, params};

use super::{Deployment, Run, State, Store, column, deployment, end, now};

impl Store {
    /// Whether the work is to be done: not if it was refused meanwhile, or belongs to an earlier go.
    pub(crate) fn begin(&mut self, run: &Run) -> rusqlite::Result<bool> {
        let begin =
            "UPDATE deployment SET state = 'running' WHERE key = ?1 AND run = ?2 AND state IN ('queued', 'running')";
        Ok(self.connection.execute(begin, params![run.key, run.number])? == 1)
    }

    /// The effect and the end of the deployment, together or not at all. Fence and revision are asked here once more: what
    /// was true when it was accepted need not be true now.
    pub(crate) fn take_effect(&mut self, run: &Run) -> rusqlite::Result<()> {
        let transaction = self.change()?;
        let Some(deployment) = deployment(&transaction, &run.key)? else { return Ok(()) };
        if deployment.run != run.number || !deployment.state.lives() {
            return Ok(());
        }
        match refusal(&transaction, &deployment)? {
            Some((state, reason)) => end(&transaction, &run.key, state, Some(reason))?,
            None => change(&transaction, &deployment)?,
        }
        transaction.commit()
    }
}

fn refusal(transaction: &Transaction<'_>, deployment: &Deployment) -> rusqlite::Result<Option<(State, &'static str)>> {
    let now = now(transaction)?;
    Ok(if deployment.fence < now.highest_fence {
        Some((State::Refused, "fenced_off"))
    } else if deployment.expected.is_some() && deployment.expected != now.revision {
        Some((State::Refused, "revision"))
    } else if deployment.fails {
        Some((State::Failed, "the work failed"))
    } else {
        None
    })
}

fn change(transaction: &Transaction<'_>, deployment: &Deployment) -> rusqlite::Result<()> {
    let add = "INSERT INTO history (what, key, fence, revision) VALUES ('deployed', ?1, ?2, ?3)";
    transaction.execute("UPDATE resource SET revision = ?1", [&deployment.revision])?;
    transaction.execute(add, params![deployment.key, column(deployment.fence), deployment.revision])?;
    end(transaction, &deployment.key, State::Succeeded, None)
}

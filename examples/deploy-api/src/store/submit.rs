//! Taking a deployment on: everything that is asked of it is asked in one transaction.
//!
//! | in this order | then |
//! | --- | --- |
//! | its fence is below the highest | refused |
//! | the key is known, with another body | refused |
//! | the key is known, it lives or has succeeded | the same answer; what lives goes on under the higher fence |
//! | the key is known, it left nothing, no higher fence | the same answer |
//! | another one lives under this very fence | refused: busy. Under a lower fence, that one is refused |
//! | the revision is not the expected one | refused |
//! | else | accepted, and the highest fence is its own |

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Deployment, Run, State, Store, column, deployment, fence_off, now};
use crate::request::Submission;

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    Accepted(Deployment),
    Known(Deployment),
    FencedOff { highest: u64 },
    OtherBody,
    Busy { with: String },
    Revision { found: Option<String> },
}

impl Store {
    /// Takes it on, or says why not. The run is to be begun.
    pub(crate) fn submit(&mut self, submission: &Submission) -> rusqlite::Result<(Submitted, Option<Run>)> {
        let transaction = self.change()?;
        let submitted = submit(&transaction, submission)?;
        transaction.commit()?;
        let run = match &submitted {
            Submitted::Accepted(deployment) => Some(deployment.run()),
            Submitted::Known(_)
            | Submitted::FencedOff { .. }
            | Submitted::OtherBody
            | Submitted::Busy { .. }
            | Submitted::Revision { .. } => None,
        };
        Ok((submitted, run))
    }
}

fn submit(transaction: &Transaction<'_>, submission: &Submission) -> rusqlite::Result<Submitted> {
    let now = now(transaction)?;
    if submission.fence < now.highest_fence {
        return Ok(Submitted::FencedOff { highest: now.highest_fence });
    }
    let known = deployment(transaction, &submission.key)?;
    if let Some(known) = &known {
        if known.body != submission.text {
            return Ok(Submitted::OtherBody);
        }
        if !known.state.left_nothing() || submission.fence <= known.fence {
            return adopt(transaction, submission).map(Submitted::Known);
        }
    }
    if let Some(with) = lives_under(transaction, submission.fence)? {
        return Ok(Submitted::Busy { with });
    }
    if submission.expected.is_some() && submission.expected != now.revision {
        return Ok(Submitted::Revision { found: now.revision });
    }
    fence_off(transaction, submission.fence)?;
    accept(transaction, submission, known.map_or(1, |known| known.run + 1))
}

/// What lives goes on under the fence of who asks now.
fn adopt(transaction: &Transaction<'_>, submission: &Submission) -> rusqlite::Result<Deployment> {
    let raise = "UPDATE deployment SET fence = max(fence, ?2) WHERE key = ?1 AND state IN ('queued', 'running')";
    transaction.execute(raise, params![submission.key, column(submission.fence)])?;
    fence_off(transaction, submission.fence)?;
    Ok(deployment(transaction, &submission.key)?.expect("it was read in this transaction"))
}

fn lives_under(transaction: &Transaction<'_>, fence: u64) -> rusqlite::Result<Option<String>> {
    let query = "SELECT key FROM deployment WHERE state IN ('queued', 'running') AND fence >= ?1";
    transaction.query_row(query, [column(fence)], |row| row.get(0)).optional()
}

fn accept(transaction: &Transaction<'_>, submission: &Submission, run: i64) -> rusqlite::Result<Submitted> {
    let put = "INSERT OR REPLACE INTO deployment
               (key, body, revision, duration_ms, fails, expected, fence, run, state, reason)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL)";
    let body = &submission.body;
    transaction.execute(
        put,
        params![
            submission.key,
            submission.text,
            body.revision,
            column(body.duration_ms),
            body.fail,
            submission.expected,
            column(submission.fence),
            run,
            State::Queued.word(),
        ],
    )?;
    let accepted = deployment(transaction, &submission.key)?.expect("it was put there in this transaction");
    Ok(Submitted::Accepted(accepted))
}

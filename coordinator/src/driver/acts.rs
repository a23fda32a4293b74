//! What operators do about no target. Each stands in the store with its act.

use holdfast_common::id::{AgentName, OperatorName};
use holdfast_common::time::Wall;

use crate::store::{self, Act, DrainRow, TokenRow, Transaction};
use crate::tokens;

pub(super) fn make_token(tx: &mut impl Transaction, row: &TokenRow, now: Wall) -> Result<bool, store::Error> {
    let taken = tx.token(&row.name)?.is_some_and(|there| there.expires_at > Some(now));
    if !taken {
        tx.put_token(row)?;
        tx.keep_act(&tokens::made(row, now))?;
    }
    Ok(!taken)
}

pub(super) fn revoke_token(
    tx: &mut impl Transaction,
    row: TokenRow,
    by: &OperatorName,
    now: Wall,
) -> Result<bool, store::Error> {
    let there = tx.token(&row.name)?.is_some_and(|there| there.hash == row.hash);
    if there {
        tx.keep_act(&tokens::taken_back(&row, Some(by), now))?;
        tx.put_token(&tokens::revoked(row))?;
    }
    Ok(there)
}

pub(super) fn drain(tx: &mut impl Transaction, row: &DrainRow) -> Result<Wall, store::Error> {
    let DrainRow { agent, by, reason, since: at } = row;
    let since = tx.put_drain(row)?;
    let (by, about) = (by.to_string(), agent.to_string());
    tx.keep_act(&Act { at: *at, by, kind: "agent_drained", about, detail: reason.clone() })?;
    Ok(since)
}

pub(super) fn resume(
    tx: &mut impl Transaction,
    agent: &AgentName,
    by: &OperatorName,
    at: Wall,
) -> Result<bool, store::Error> {
    let was_drained = tx.remove_drain(agent)?;
    if was_drained {
        let (by, about) = (by.to_string(), agent.to_string());
        tx.keep_act(&Act { at, by, kind: "agent_resumed", about, detail: String::new() })?;
    }
    Ok(was_drained)
}

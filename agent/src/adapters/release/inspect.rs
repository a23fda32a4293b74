//! Reading what became of an operation. Creates and changes nothing.

use std::path::Path;

use holdfast_common::id::{OperationId, Revision};
use holdfast_common::outcome::{OperationState, Reading};

use super::error::Error;
use super::ledger::{self, Seen, State};
use super::names::ReleaseName;
use super::root::{Current, Root};
use super::{identity, restore, slots, take};
use crate::durable;

/// How often a look is repeated when the resource changes under it.
const LOOKS: usize = 32;

/// Reads the operation at the resource. What can't be read is `Unknown`, with the reason.
///
/// `NotApplied` is final once the fences of all its attempts are raised above; before that another attempt, or the same
/// one if it has not come to its record yet, may still follow.
#[must_use]
pub fn inspect(root: &Path, operation: &OperationId) -> Reading {
    read(&Root::at(root), operation)
        .unwrap_or_else(|error| unknown(String::new(), crate::internal::with_causes(&error)))
}

/// The revision that the resource has now. `None` where it has none, one that Holdfast did not put there, or one whose folder
/// is gone.
pub fn revision(root: &Path) -> Result<Option<Revision>, Error> {
    let root = Root::at(root);
    let current = root.read_current()?;
    match &current {
        Current::Release(name) if !root.releases().join(name.to_string()).is_dir() => Ok(None),
        Current::Release(_) | Current::Absent | Current::Foreign(_) => ledger::revision_of(&root, &current),
    }
}

/// Everything that one look sees.
#[derive(PartialEq, Eq)]
struct Snapshot {
    own: Vec<Attempt>,
    active: Option<OperationId>,
}

#[derive(PartialEq, Eq)]
struct Attempt {
    seen: Seen,
    /// Whether its flip could still succeed.
    open: bool,
}

fn read(root: &Root, operation: &OperationId) -> Result<Reading, Error> {
    let Some(identity) = identity::read(root)? else {
        return Ok(unknown(
            String::new(),
            "the folder has no identity: nothing was ever applied or fenced off here".to_owned(),
        ));
    };
    // A record may change, and `current` with it, between two calls. If the records are the same before and after,
    // `current` belongs to them.
    let mut before = snapshot(root, operation)?;
    for _ in 0..LOOKS {
        let current = root.read_current()?;
        let after = snapshot(root, operation)?;
        if before == after {
            return reading(root, identity, operation, &after, &current);
        }
        before = after;
    }
    Ok(unknown(identity, "the resource kept changing while it was read".to_owned()))
}

fn reading(
    root: &Root,
    identity: String,
    operation: &OperationId,
    seen: &Snapshot,
    current: &Current,
) -> Result<Reading, Error> {
    // What is told must stay, and a flip a moment ago may not have been made to stay by its own process.
    durable::sync_dir(root.path()).map_err(super::error::io_at("sync", root.path()))?;
    let is_current = matches!(current, Current::Release(name) if &name.operation == operation);
    let was_applied = seen.own.iter().any(|attempt| attempt.seen.record.state == State::Applied);
    let at_work = seen.own.iter().any(|attempt| attempt.seen.alive && attempt.open);
    let is_there = match current {
        Current::Release(name) => root.releases().join(name.to_string()).is_dir(),
        Current::Absent | Current::Foreign(_) => true,
    };
    let (state, detail) = match (is_current, was_applied, at_work) {
        (true, _, _) if !is_there => {
            (OperationState::Partial, format!("{}, and the folder of it is gone", current.describe()))
        }
        (true, _, _) => (OperationState::Applied, current.describe()),
        (false, true, _) => (OperationState::Applied, format!("applied and since replaced: {}", current.describe())),
        (false, false, true) => (OperationState::Applying, format!("its process lives; {}", current.describe())),
        (false, false, false) => (OperationState::NotApplied, current.describe()),
    };
    Ok(Reading {
        resource_identity: identity,
        state,
        revision: if is_there { ledger::revision_of(root, current)? } else { None },
        active: seen.active.clone(),
        highest_fence: slots::highest(root)?,
        retained: restore::retained(root.path())?,
        detail,
    })
}

fn snapshot(root: &Root, operation: &OperationId) -> Result<Snapshot, Error> {
    let floor = slots::read_floor(root)?;
    let any_pending = !take::pending(root)?.is_empty();
    let mut own = Vec::new();
    let mut active = None;
    for name in ledger::names(root)? {
        let is_own = &name.operation == operation;
        let may_be_open = floor.is_none_or(|floor| name.fence > floor) || any_pending;
        if !is_own && !may_be_open {
            continue;
        }
        let Some(seen) = ledger::read(root, &name)? else { continue };
        let open = is_open(root, &name)?;
        if seen.alive && open && seen.record.state == State::Preparing {
            active = Some(name.operation.clone());
        }
        if is_own {
            own.push(Attempt { seen, open });
        }
    }
    Ok(Snapshot { own, active })
}

/// Whether a flip under that fence could still succeed.
fn is_open(root: &Root, name: &ReleaseName) -> Result<bool, Error> {
    if !slots::is_fenced_off(root, name.fence)? {
        return Ok(true);
    }
    // Only in this order: where a tombstone stands, the slot is in `taken/` or was taken already.
    Ok(take::pending(root)?.iter().any(|label| {
        label.epoch == name.fence.epoch() && label.counter.is_none_or(|counter| counter == name.fence.counter())
    }))
}

fn unknown(resource_identity: String, detail: String) -> Reading {
    Reading {
        resource_identity,
        state: OperationState::Unknown,
        revision: None,
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail,
    }
}

//! Fencing off: from now on every older attempt is refused here.

use std::path::{Path, PathBuf};

use holdfast_common::fence::Fence;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::ledger;
use super::root::Root;
use super::slots::{self, Upto};

/// What to raise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaiseSpec {
    /// The resource's folder.
    pub root: PathBuf,
    /// The fence that was allocated for this. Nobody acts under it.
    pub fence: Fence,
}

/// The resource's confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Raised {
    /// The identity that is stored with the resource.
    pub resource_identity: String,
    /// The highest fence that it has seen now: at least the one asked for.
    pub highest: Fence,
    /// The slots that stood open, in fence order.
    pub slots: Vec<SlotFate>,
}

/// What became of an attempt whose slot stood open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotFate {
    /// The attempt's fence.
    pub fence: Fence,
    /// What became of it.
    pub fate: Fate,
}

/// Exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It had flipped before.
    Flipped,
    /// It was ready to flip, and now never can.
    Taken,
    /// It was not ready, and now never can be; or another raise took it.
    Empty,
}

/// Raises the fence: durable, idempotent, safe to repeat after a crash anywhere.
pub fn raise(root: &Path, fence: Fence) -> Result<Raised, Error> {
    let root = Root::at(root);
    let resource_identity = root.prepare()?;
    let taken = slots::fence_off(&root, Upto::Including(fence))?;
    let mut fates = Vec::with_capacity(taken.len());
    for slot in taken {
        let fate = match (slot.took_next, ledger::has_flipped(&root, slot.fence)?) {
            (true, _) => Fate::Taken,
            (false, true) => Fate::Flipped,
            (false, false) => Fate::Empty,
        };
        fates.push(SlotFate { fence: slot.fence, fate });
    }
    let highest = slots::highest(&root)?.map_or(fence, |highest| highest.max(fence));
    Ok(Raised { resource_identity, highest, slots: fates })
}

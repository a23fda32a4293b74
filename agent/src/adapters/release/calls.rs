//! The one seam through which every call passes that others can see.

use crate::adapters::halt::{self, calls};

calls! {
    /// Makes a folder of the layout.
    MakeFolder = "make-folder";
    /// Gives the folder its identity.
    PublishIdentity = "publish-identity";
    /// Makes the folder of an epoch's slots.
    MakeEpoch = "make-epoch";
    /// Creates a tombstone where nothing stands.
    Bury = "bury";
    /// Creates a tombstone beside, to exchange it.
    Stage = "stage";
    /// Exchanges a slot for a tombstone.
    Exchange = "exchange";
    /// Makes the tombstones stay.
    SyncSlots = "sync-slots";
    /// Takes `next` out of an exchanged slot.
    TakeNext = "take-next";
    /// Removes an exchanged slot.
    RemoveTaken = "remove-taken";
    /// Records how far the tombstones reach.
    WriteFloor = "write-floor";
    /// Makes what `current` names stay.
    SyncRoot = "sync-root";
    /// Records the operation that `current` names as applied.
    Settle = "settle";
    /// Records that an attempt is at work.
    RecordPreparing = "record-preparing";
    /// Unpacks the archive into its own folder.
    Unpack = "unpack";
    /// Makes the attempt's slot.
    MakeSlot = "make-slot";
    /// Makes `next` in it.
    MakeNext = "make-next";
    /// Renames `next` to `current`.
    Flip = "flip";
    /// Records the operation as applied.
    RecordApplied = "record-applied";
    /// Moves an old release out of the way.
    Retire = "retire";
    /// Removes it.
    Remove = "remove";
}

/// Makes a call.
pub(super) fn call<T>(call: Call, act: impl FnOnce() -> T) -> T {
    halt::before(call.name());
    act()
}

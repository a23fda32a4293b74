//! Release folders with a `current` link.
//!
//! ```text
//! root/
//!   current -> releases/<operation>.<fence>   what is served; its name tells which operation put it there
//!   releases/<operation>.<fence>/             unpacked, never changed afterwards
//!   slots/<epoch>/<counter>/next              one attempt's way to `current`; a plain file in its place is a tombstone
//!   slots/<epoch>                             a plain file here is a tombstone for a whole epoch
//!   ledger/identity                           random, made once: readings of another folder prove nothing
//!   ledger/floor                              every fence up to it has its tombstone
//!   ledger/operations/<operation>.<fence>     one record per attempt that came to unpacking
//!   taken/                                    slots on their way out
//!   trash/                                    old releases on their way out
//! ```
//!
//! The flip is `rename(slots/E/C/next, current)`. Raising the fence puts tombstones in the place of every slot up to it
//! and takes `next` out of the slots that it exchanged: of flip and take exactly one succeeds, because both need the
//! same name in the same directory. A process that was paused anywhere finds a plain file on its path and is refused by
//! the kernel. So nothing in a slot may ever be named through a kept directory handle, slots are made by one `mkdir`,
//! and `next` is made whole by one call.
//!
//! Assumes one local file system below the root and no one else who writes there. Takes no lock that a paused process
//! could hold up others with; the lock on a record only tells that its process lives.

pub mod calls;

mod apply;
mod error;
mod guard;
mod identity;
mod inspect;
mod ledger;
mod names;
mod raise;
mod restore;
mod retain;
mod root;
mod slots;
mod take;

pub use apply::{Applied, ApplySpec, Content, apply, default_revision};
pub use error::Error;
pub use inspect::{inspect, revision};
pub use raise::{Fate, RaiseSpec, Raised, SlotFate, raise};
pub use restore::retained;

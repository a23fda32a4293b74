//! The one seam through which every call passes that others can see.
//!
//! With the feature `bugs` a test can stop or abort a process right before any of them:
//! `HOLDFAST_HALT=apply.flip=stop` or `raise.take-next:2=abort`, several joined by commas. The number is the pass.

/// Who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A step that applies a release.
    Apply,
    /// A fence-off.
    Raise,
}

impl Who {
    /// As `HOLDFAST_HALT` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Who::Apply => "apply",
            Who::Raise => "raise",
        }
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A call that changes what others can see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Call { $($(#[$doc])* $name,)* }

        impl Call {
            /// Every call.
            pub const ALL: &'static [Call] = &[$(Call::$name,)*];

            /// As `HOLDFAST_HALT` names it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Call::$name => $text,)* }
            }
        }
    };
}

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
    halt::before(call);
    act()
}

/// Says who is calling in this process, for tests that halt one of the two.
pub fn set_who(who: Who) {
    halt::set_who(who);
}

#[cfg(not(feature = "bugs"))]
mod halt {
    use super::{Call, Who};

    pub(super) fn before(_: Call) {}
    pub(super) fn set_who(_: Who) {}
}

#[cfg(feature = "bugs")]
mod halt {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::process::{Signal, getpid, kill_process};

    use super::{Call, Who};

    struct Halt {
        call: String,
        pass: u64,
        abort: bool,
        passes: AtomicU64,
    }

    static WHO: Mutex<Option<Who>> = Mutex::new(None);
    static HALTS: OnceLock<Vec<Halt>> = OnceLock::new();

    pub(super) fn set_who(who: Who) {
        *WHO.lock().unwrap_or_else(PoisonError::into_inner) = Some(who);
    }

    pub(super) fn before(call: Call) {
        let Some(who) = *WHO.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        let name = format!("{}.{}", who.name(), call.name());
        for halt in HALTS.get_or_init(read).iter().filter(|halt| halt.call == name) {
            if halt.passes.fetch_add(1, Ordering::SeqCst) + 1 != halt.pass {
                continue;
            }
            if halt.abort {
                std::process::abort();
            }
            kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
        }
    }

    fn read() -> Vec<Halt> {
        let text = std::env::var("HOLDFAST_HALT").unwrap_or_default();
        text.split(',').filter(|part| !part.is_empty()).map(one).collect()
    }

    fn one(text: &str) -> Halt {
        let (place, act) = text.split_once('=').expect("HOLDFAST_HALT is who.call=stop or who.call=abort");
        let (call, pass) = place.split_once(':').unwrap_or((place, "1"));
        Halt {
            call: call.to_owned(),
            pass: pass.parse().expect("a pass is a number"),
            abort: act == "abort",
            passes: AtomicU64::new(0),
        }
    }
}

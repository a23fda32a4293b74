//! Where a test can stop or abort a process of an adapter, right before a call that others can see.
//!
//! With the feature `bugs`: `HOLDFAST_HALT=apply.flip=stop` or `raise.take-next:2=abort`, several joined by commas. The number is
//! the pass. Without it this is nothing at all.

/// Names the calls of an adapter, each as `HOLDFAST_HALT` names it.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A call that others can see.
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

pub(super) use calls;

/// Who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A step that applies a change.
    Apply,
    /// A fence-off.
    Raise,
    /// A look.
    Inspect,
}

impl Who {
    /// As `HOLDFAST_HALT` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Who::Apply => "apply",
            Who::Raise => "raise",
            Who::Inspect => "inspect",
        }
    }
}

/// Says who is calling in this process.
#[cfg(not(feature = "bugs"))]
pub fn set_who(_: Who) {}

#[cfg(not(feature = "bugs"))]
pub(super) fn before(_: &'static str) {}

#[cfg(feature = "bugs")]
pub(super) use armed::before;
#[cfg(feature = "bugs")]
pub use armed::set_who;

#[cfg(feature = "bugs")]
mod armed {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use rustix::process::{Signal, getpid, kill_process};

    use super::Who;

    struct Halt {
        call: String,
        pass: u64,
        abort: bool,
        passes: AtomicU64,
    }

    static WHO: Mutex<Option<Who>> = Mutex::new(None);
    static HALTS: OnceLock<Vec<Halt>> = OnceLock::new();

    /// Says who is calling in this process.
    pub fn set_who(who: Who) {
        *WHO.lock().unwrap_or_else(PoisonError::into_inner) = Some(who);
    }

    pub(in crate::adapters) fn before(call: &'static str) {
        let Some(who) = *WHO.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        let name = format!("{}.{call}", who.name());
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

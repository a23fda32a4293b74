//! What the tests of this binary share: a fault is on for the whole process, so tests that need none of them wait while
//! one is.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

static FAULT: RwLock<()> = RwLock::new(());

thread_local! {
    static MINE: Cell<bool> = const { Cell::new(false) };
}

/// Holds off the tests that switch a fault on; nothing to hold off on the thread that did.
pub fn without_faults() -> Option<RwLockReadGuard<'static, ()>> {
    (!MINE.get()).then(|| FAULT.read().unwrap_or_else(PoisonError::into_inner))
}

/// Runs with one fault on, alone.
#[cfg(feature = "bugs")]
pub fn with_fault<T>(bug: holdfast_coordinator_core::bugs::Bug, run: impl FnOnce() -> T) -> T {
    let _alone = FAULT.write().unwrap_or_else(PoisonError::into_inner);
    MINE.set(true);
    holdfast_coordinator_core::bugs::set(Some(bug));
    let result = run();
    holdfast_coordinator_core::bugs::set(None);
    MINE.set(false);
    result
}

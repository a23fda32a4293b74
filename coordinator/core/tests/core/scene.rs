//! What the tests of this binary share: one fault is on for the whole process, so tests that need none of them wait.

use std::sync::{Mutex, MutexGuard, PoisonError};

static FAULT: Mutex<()> = Mutex::new(());

/// Holds off the tests that switch a fault on.
pub fn without_faults() -> MutexGuard<'static, ()> {
    FAULT.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Where the conformance suite stops and aborts this program. Not for a copy: without the feature it is nothing at all.

#[cfg(not(feature = "halts"))]
pub(crate) fn before(_: &str) {}

#[cfg(feature = "halts")]
pub(crate) fn before(call: &str) {
    use std::sync::atomic::{AtomicBool, Ordering};

    static DONE: AtomicBool = AtomicBool::new(false);
    let asked = std::env::var("HOLDFAST_HALT").unwrap_or_default();
    if asked == format!("apply.{call}=abort") {
        std::process::abort();
    }
    // Once: a change that looks again passes here again.
    if asked == format!("apply.{call}=stop") && !DONE.swap(true, Ordering::Relaxed) {
        use rustix::process::{Signal, getpid, kill_process};
        kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
    }
}

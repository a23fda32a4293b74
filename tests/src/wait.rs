//! Waiting for conditions, each with a bound and a name.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// How often a condition is looked at.
pub const PACE: Duration = Duration::from_millis(20);
/// The bound of what should happen at once, on a machine that is busy with other tests.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks until there is an answer, and panics with what was seen last when `bound` has passed.
pub async fn until<T>(what: &str, bound: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        let last = match look().await {
            Ok(found) => return found,
            Err(last) => last,
        };
        assert!(begun.elapsed() < bound, "waited {bound:?} for {what}; last seen: {last}");
        tokio::time::sleep(PACE).await;
    }
}

/// The same for a condition that is plainly true or not.
pub async fn until_true(what: &str, bound: Duration, mut is_so: impl FnMut() -> bool) {
    until(what, bound, async || if is_so() { Ok(()) } else { Err("not so".to_owned()) }).await;
}

/// What the future gives; panics when `bound` has passed.
pub async fn within<T>(what: &str, bound: Duration, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(bound, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {bound:?} for {what}"),
    }
}

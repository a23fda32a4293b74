//! The thread that drives in production.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_common::text::chain;
use holdfast_common::time::Wall;
use holdfast_net::ops::Pulse;

use super::{Clock, Driver, Fatal, Inbox, Moment};
use crate::store::Store;

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    since: Instant,
}

impl SystemClock {
    /// Counts from now.
    #[must_use]
    pub fn new() -> Self {
        Self { since: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Wall {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Wall(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Runs the driver on a thread of its own until a handle stops it.
///
/// A store that fails, and a panic, abort the process: what was not answered may or may not be on disk, the next start
/// reads it, and nothing is answered from a state that nobody can vouch for. `pulse` tells that the thread turns.
pub fn spawn<S: Store + 'static>(
    mut driver: Driver<S>,
    inbox: Inbox,
    clock: impl Clock + 'static,
    pulse: Pulse,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("driver".to_owned()).spawn(move || {
        let stop = catch_unwind(AssertUnwindSafe(|| serve(&mut driver, &inbox, &clock, &pulse)));
        match stop {
            Ok(Ok(stop)) => {
                drop(driver);
                drop(inbox);
                let _whoever_asked = stop.send(());
            }
            Ok(Err(fatal)) => abort(&chain(&fatal)),
            Err(_panic) => abort("the driver panicked"),
        }
    })
}

fn serve<S: Store>(
    driver: &mut Driver<S>,
    inbox: &Inbox,
    clock: &impl Clock,
    pulse: &Pulse,
) -> Result<tokio::sync::oneshot::Sender<()>, Fatal> {
    loop {
        pulse.rests();
        let taken = inbox.wait(driver.wait());
        pulse.works();
        driver.step(taken.messages, Moment::of(clock))?;
        if let Some(stop) = taken.stop {
            driver.close(Moment::of(clock))?;
            return Ok(stop);
        }
    }
}

/// Says why in the log and on standard error, where it arrives even if the log does not.
fn abort(why: &str) -> ! {
    tracing::error!(why, "stopping at once");
    let _nowhere_else_to_say_it = writeln!(std::io::stderr(), "holdfast-coordinator stops at once: {why}");
    std::process::abort()
}

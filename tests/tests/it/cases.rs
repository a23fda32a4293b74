//! Many cases of one test, some at a time, each on a runtime of its own. Every case that failed is named.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Cases that run at a time: they wait more than they work.
const AT_ONCE: usize = 4;
/// Runs only the cases whose name contains this.
const ONLY: &str = "HOLDFAST_CASE";

type Work = Box<dyn FnOnce() + Send>;

/// Collected, then run.
#[derive(Default)]
pub(crate) struct Cases {
    waiting: Mutex<VecDeque<(String, Work)>>,
    failed: Mutex<Vec<String>>,
}

impl Cases {
    /// One more.
    pub(crate) fn add(&mut self, name: &str, case: impl AsyncFnOnce() + Send + 'static) {
        if std::env::var(ONLY).is_ok_and(|wanted| !name.contains(&wanted)) {
            return;
        }
        let work = move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.expect("a runtime").block_on(case());
        };
        self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner).push_back((name.to_owned(), Box::new(work)));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Runs all of them, and panics where one did.
    pub(crate) fn run(self) {
        let all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len();
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| while self.run_next() {});
            }
        });
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert!(failed.is_empty(), "{} of {all} cases failed: {failed:#?}", failed.len());
    }

    #[expect(clippy::print_stderr, reason = "says which case the lines before were about")]
    fn run_next(&self) -> bool {
        let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some((name, work)) = next else { return false };
        let begun = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(work));
        eprintln!("case {name}: {} after {:?}", if result.is_ok() { "ok" } else { "FAILED" }, begun.elapsed());
        if result.is_err() {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        }
        true
    }
}

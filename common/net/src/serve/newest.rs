use std::collections::VecDeque;
use std::future::Future;

use tokio::task::AbortHandle;

/// Tasks of which a limited number is under way: the newest takes the place of the oldest. All end with it.
pub(crate) struct Newest {
    limit: usize,
    running: VecDeque<AbortHandle>,
}

impl Newest {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, running: VecDeque::new() }
    }

    pub(crate) fn start(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        if self.running.len() >= self.limit {
            self.running.retain(|running| !running.is_finished());
        }
        if self.running.len() >= self.limit
            && let Some(oldest) = self.running.pop_front()
        {
            oldest.abort();
        }
        self.running.push_back(tokio::spawn(task).abort_handle());
    }
}

impl Drop for Newest {
    fn drop(&mut self) {
        self.running.iter().for_each(AbortHandle::abort);
    }
}

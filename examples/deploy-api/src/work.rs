//! The work between "accepted" and the effect. All that is visible of it is its last transaction.

use std::sync::Arc;
use std::time::Duration;

use crate::store::{Run, Shared};

/// Begins what was accepted. After a restart, what was under way begins anew.
pub(crate) fn begin(store: &Arc<Shared>, run: Run) {
    let store = Arc::clone(store);
    tokio::spawn(async move {
        let begun = store.with(|store| store.begin(&run));
        if begun.is_ok_and(|begun| begun) {
            tokio::time::sleep(Duration::from_millis(run.duration_ms)).await;
            // An error leaves it as running: it is taken up again at the next start.
            let _ = store.with(|store| store.take_effect(&run));
        }
    });
}

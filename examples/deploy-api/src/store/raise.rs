//! Raising the fence: after it has answered, nothing below takes effect any more.

use rusqlite::params;

use super::{Store, column, fence_off, now};

impl Store {
    /// The highest fence afterwards. Never lowered.
    pub(crate) fn raise(&mut self, fence: u64) -> rusqlite::Result<u64> {
        let transaction = self.change()?;
        let before = now(&transaction)?.highest_fence;
        if fence > before {
            fence_off(&transaction, fence)?;
            let add = "INSERT INTO history (what, fence) VALUES ('raised', ?1)";
            transaction.execute(add, params![column(fence)])?;
        }
        transaction.commit()?;
        Ok(before.max(fence))
    }
}

//! What the auditor found so far, for whoever grants and for whoever asks how the coordinator is.

use std::sync::{Arc, Mutex, PoisonError};

use super::Finding;

/// Cheap to clone: all clones are one. Sound until something is found, and again once a whole walk has found nothing.
#[derive(Clone, Debug, Default)]
pub struct Verdict(Arc<Mutex<Vec<Finding>>>);

/// Findings that are kept: more are in the log.
const KEPT: usize = 20;

impl Verdict {
    /// Something was found.
    pub fn add(&self, findings: impl IntoIterator<Item = Finding>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for found in findings {
            if all.len() < KEPT && !all.contains(&found) {
                all.push(found);
            }
        }
    }

    /// What a whole walk found takes the place of all before.
    pub fn replace(&self, findings: Vec<Finding>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = findings.into_iter().take(KEPT).collect();
    }

    /// What stands against granting anything.
    #[must_use]
    pub fn against(&self) -> Option<Finding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    /// Whether nothing stands against it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

//! Which calls were really reached: a run that never came to one of them is not a pass.

use std::collections::BTreeSet;

use super::Make;

pub(crate) struct Reached {
    calls: Vec<&'static str>,
    seen: BTreeSet<&'static str>,
}

impl Reached {
    pub(crate) fn of(make: Make<'_>) -> Self {
        let calls = make().calls();
        assert!(!calls.is_empty(), "an adapter without calls can't be stopped anywhere");
        Self { calls, seen: BTreeSet::new() }
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.calls.clone()
    }

    pub(crate) fn note(&mut self, call: &'static str, reached: bool) {
        if reached {
            self.seen.insert(call);
        }
    }

    /// Each was reached.
    pub(crate) fn all(&self) {
        let missed: Vec<_> = self.calls.iter().filter(|call| !self.seen.contains(*call)).collect();
        assert!(missed.is_empty(), "never reached: {missed:?}");
    }
}

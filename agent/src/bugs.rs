//! Seeded faults in the agent's shell, each of which a named test must catch. `HOLDFAST_BUG=name` switches one on; without
//! the feature `bugs` none exists.

/// A fault that can be put into the agent on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The journal does not wait for the disk.
    SynchronousOff,
    /// A report is sent before it is in the journal.
    OutboxAfterSend,
    /// A tombstone is claimed but not made.
    TombstoneNotDurable,
    /// After a restart, attempts that the journal holds are forgotten.
    JournalForgotten,
}

impl Bug {
    /// Every fault.
    pub const ALL: &'static [Bug] =
        &[Bug::SynchronousOff, Bug::OutboxAfterSend, Bug::TombstoneNotDurable, Bug::JournalForgotten];

    /// As `HOLDFAST_BUG` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bug::SynchronousOff => "agent_synchronous_off",
            Bug::OutboxAfterSend => "outbox_after_send",
            Bug::TombstoneNotDurable => "tombstone_not_durable",
            Bug::JournalForgotten => "journal_forgotten",
        }
    }
}

#[cfg(feature = "bugs")]
mod switch {
    use std::sync::OnceLock;

    use holdfast_agent_core::bugs as core;

    use super::Bug;

    static NAME: OnceLock<String> = OnceLock::new();

    fn name() -> &'static str {
        NAME.get_or_init(|| std::env::var("HOLDFAST_BUG").unwrap_or_default())
    }

    /// Reads the environment once and hands the name on to the core.
    pub fn arm() {
        core::set(core::Bug::ALL.iter().copied().find(|bug| bug.name() == name()));
    }

    /// Whether this fault is on.
    #[must_use]
    pub fn on(bug: Bug) -> bool {
        name() == bug.name()
    }
}

#[cfg(feature = "bugs")]
pub use switch::{arm, on};

/// There is nothing to arm in this build.
#[cfg(not(feature = "bugs"))]
pub fn arm() {}

/// Whether this fault is on: never, in this build.
#[cfg(not(feature = "bugs"))]
#[must_use]
pub(crate) const fn on(_bug: Bug) -> bool {
    false
}

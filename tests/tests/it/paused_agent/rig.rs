//! What the experiment needs of an adapter with a resource of its own.

use std::time::Duration;

/// The one target of every rig.
pub(super) const THING: &str = "thing@test";

/// A resource that two agents reach.
pub(super) trait Rig {
    /// Declares [`THING`] with policy `manual`, for agents with `role = shop`.
    fn target_file(&self) -> String;

    /// Brings it to that revision.
    fn deployment(&self, revision: &str, ttl: Duration) -> String;

    /// What each agent is told beside: its credentials.
    fn agent_environment(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The call of an apply that takes effect.
    fn effect(&self) -> &'static str;

    /// Whether the resource answers a repeated operation with what had come of it, whatever its fence.
    fn answers_again(&self) -> bool {
        false
    }

    /// The revisions that took effect, in order, told by the resource itself.
    fn underwent(&self) -> Vec<String>;
}

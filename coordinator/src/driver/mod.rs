//! The only caller of the core: decides, commits, then speaks.
//!
//! ```text
//!   Handle --messages--> Inbox --batch--> Driver::step
//!                                           | one transaction:  decide each, apply, write
//!                                           | commit
//!                                           | answers           persist, then speak
//!                                           v
//!                                         Sessions::send        what `due` says and was not handed out yet
//! ```
//!
//! One thread owns the store. It takes up to [`BATCH`] messages, decides each against the state that the ones before
//! it left, commits once, and only then answers and hands out effects. [`Driver::step`] is a plain function, so that a
//! simulation can call it without a thread; [`thread`] is the thin shell of production. A store that fails stops the
//! process: nobody knows what is on disk, and the next start will read it.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_common::adapter::Adapter;
use holdfast_common::id::{AgentName, ResourceName};
use holdfast_common::spec::TargetSpec;
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::identity::Identity;
use holdfast_coordinator_core::input::Candidate;
use holdfast_coordinator_core::{Effect, TargetState};

mod acts;
mod asked;
mod batch;
mod decide;
mod error;
mod fleet;
mod full;
mod handle;
mod identities;
mod inbox;
mod input;
mod open;
mod own;
mod serving;
mod speak;
mod step;
mod take;
mod targets;
mod tell;
pub mod thread;
mod watchers;

#[cfg(test)]
mod tests;

pub use asked::{Asked, Told};
pub use error::{Error, Fatal};
pub use fleet::Enrolment;
pub use handle::Handle;
pub use identities::Judged;
pub use inbox::{Inbox, Message, Taken, channel};
pub use input::PAST;
pub use step::Driver;
pub use watchers::News;

/// Messages that one commit covers at most.
pub const BATCH: usize = 256;

/// What sessions give to the driver. Called on the driver's thread; must not block.
pub trait Sessions: Send + Sync {
    /// Every agent whose labels match the selector, by name.
    ///
    /// `needs` are the adapters of the steps that wait for an agent.
    fn candidates(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Vec<Candidate>;

    /// Connected agents that reach the resource, by name. `home` is the agent whose host holds host-bound resources.
    fn reachable(&self, target: &TargetSpec, resource: &ResourceName, home: Option<&AgentName>) -> Vec<AgentName>;

    /// Whether so many agents fell silent at once that nothing new is to be handed out.
    fn suspects_itself(&self) -> bool;

    /// What the agent's identity is from the commit on that is under way.
    fn stand(&self, agent: &AgentName, identity: &Identity);

    /// The agent's session stands. What is due is handed out to it from now on: all of it, since nothing was before.
    fn stands(&self, agent: &AgentName);

    /// Hands an effect to its agent's session, where it has one that stands. Lost otherwise: it is still due, and comes
    /// again when a session starts.
    fn send(&self, state: &TargetState, effect: &Effect);
}

/// Where time comes from.
pub trait Clock: Send {
    /// For people.
    fn wall(&self) -> Wall;

    /// Since any fixed instant. Never goes back.
    fn monotonic(&self) -> Duration;
}

/// One reading of a [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// For people.
    pub wall: Wall,
    /// Since any fixed instant.
    pub monotonic: Duration,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn of(clock: &dyn Clock) -> Self {
        Self { wall: clock.wall(), monotonic: clock.monotonic() }
    }
}

/// What the driver is told once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long after its TTL a lease lapses.
    pub lease_margin: Millis,
    /// What a lease is given for a planned absence of its agent at most.
    pub absence: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self { lease_margin: Millis::from_secs(2), absence: Millis::from_secs(120) }
    }
}

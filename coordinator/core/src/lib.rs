//! The coordinator's decisions: a pure function per target.
//!
//! ```text
//!              Input, Now
//!                  |
//!   TargetState -> decide -> Decision { events, answer }   or a typed Refusal
//!        ^                      |
//!        +------- apply <-------+       events are the truth; state is what follows from them
//!        |
//!        +-> due -> effects             what should be under way now: sent after the commit, and
//!                                       derived again by the same function after a restart
//! ```
//!
//! The target, with its queue, its current deployment and that deployment's attempts, is the unit of exclusion, so it
//! is the unit of atomicity. No clock, randomness, environment, thread or hash-map order is used here: instants and
//! identities come in as arguments, and this crate's `clippy.toml` says so to the compiler.

#![warn(clippy::wildcard_enum_match_arm)]

pub mod decision;
pub mod event;
pub mod input;
pub mod refusal;
pub mod state;

pub use decision::{Answer, Decision, Effect};
pub use event::Event;
pub use input::{Input, Now};
pub use refusal::Refusal;
pub use state::TargetState;

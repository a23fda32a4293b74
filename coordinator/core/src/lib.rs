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

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apply;
mod authority;
pub mod bugs;
pub mod by_hand;
mod decide;
pub mod decision;
mod draft;
mod due;
pub mod event;
mod explain;
mod fate;
mod handlers;
pub mod history;
pub mod identity;
pub mod input;
pub mod invariants;
mod lease;
pub mod open_decisions;
mod outcome;
pub mod plan;
pub mod policy;
pub mod refusal;
mod reservation;
pub mod rollback;
mod split;
pub mod state;
pub mod touched;
mod weigh;

pub use apply::{IllegalEvent, Written, apply, record};
pub use decide::decide;
pub use decision::{Answer, Decision, Effect};
pub use due::{due, next_wakeup};
pub use event::{Event, Recorded};
pub use handlers::inquire::resource_in_question;
pub use handlers::reread::carries;
pub use input::{Input, Now};
pub use open_decisions::{Checklist, open_decisions};
pub use refusal::Refusal;
pub use reservation::QUEUE_MAX;
pub use state::TargetState;
pub use weigh::{Contradiction, Odd, contradiction, standing};

//! The agent's decisions, without I/O: what may start or continue, how to resume after a restart, how to stop.
//!
//! ```text
//!   Work, Input -> decide -> actions, in order: a journal entry is durable before the action after it
//! ```
//!
//! | module | decides |
//! | --- | --- |
//! | [`work`] | what the agent knows of one attempt, and its table of phases |
//! | [`offer`] | whether an offered attempt is taken |
//! | [`readmit`] | how an attempt goes on with a process that an earlier one began |
//! | [`decide`] | what follows for one attempt from one input |
//! | [`leave`] | what a request to stop comes to |
//! | [`health`] | when a health check has held, and when it has not |
//! | [`outcome`] | how the end of a step is told, from its exit and a look at its resource |

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod bugs;
pub mod decide;
pub mod health;
pub mod leave;
pub mod offer;
pub mod outcome;
pub mod readmit;
pub mod work;

pub use decide::{Action, Input, decide};
pub use work::{Phase, Work};

#[cfg(test)]
mod tests;

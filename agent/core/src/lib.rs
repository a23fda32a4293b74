//! The agent's decisions, without I/O: what follows from what was seen.
//!
//! | module | decides |
//! | --- | --- |
//! | [`outcome`] | how the end of a step is told, from its exit and a look at its resource |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod outcome;

//! The operator's command line, and a whole Holdfast on one machine.
//!
//! | module | holds |
//! | --- | --- |
//! | [`ca`] | a throw-away certificate authority for `dev` and tests |
//! | [`proxy`] | a TCP proxy that breaks connections on purpose |
//! | [`output`] | how answers are written: tables, JSON, times, exit codes |
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ca;
pub mod dev;
pub mod output;
pub mod proxy;

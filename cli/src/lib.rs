//! The operator's command line, and a whole Holdfast on one machine.
//!
//! | module | holds |
//! | --- | --- |
//! | [`settings`] | which coordinator, and as whom |
//! | [`client`] | the API's calls, each with a deadline |
//! | [`follow`] | events without loss or repetition |
//! | [`outcome`] | where a deployment comes to rest, and the exit code of that |
//! | [`refusal`], [`failure`] | what went wrong, in the one shape of errors |
//! | [`view`] | answers drawn for people |
//! | [`output`] | how answers are written: tables, JSON, times, exit codes |
//! | [`ca`] | a throw-away certificate authority for `dev` and tests |
//! | [`proxy`] | a TCP proxy that breaks connections on purpose |
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ca;
pub mod client;
pub mod failure;
pub mod follow;
pub mod outcome;
pub mod output;
pub mod proxy;
pub mod refusal;
pub mod settings;
pub mod view;

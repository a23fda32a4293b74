//! The agent: a service on a deploy host that carries work out and reports what it observed.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod boottime;
pub mod bugs;
pub mod config;
pub mod crash;
pub mod driver;
pub mod journal;
pub mod session;

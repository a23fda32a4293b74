//! The agent: a service on a deploy host that carries work out and reports what it observed.

pub mod config;
pub mod session;

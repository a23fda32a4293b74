//! The central service: fenced leases, permits, decisions, and what is known.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod auth;
pub mod bugs;
pub mod crash;
pub mod driver;
pub mod grpc;
pub mod logs;
pub mod sessions;
pub mod store;

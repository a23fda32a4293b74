//! The coordinator.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod auth;
pub mod grpc;
pub mod logs;
pub mod sessions;

//! The coordinator over real sockets, with certificates made for each test.
#![allow(clippy::unwrap_used)]

mod agent;
mod audit;
mod auth;
mod enrol;
mod hello;
mod outputs;
mod reflection;
mod requests;
mod scope;
mod strangers;
mod tokens;
mod world;

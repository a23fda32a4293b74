//! TLS, peers, accepting and dialling on real sockets, with certificates made for each test.
#![allow(clippy::unwrap_used)]

mod abuse;
mod certificates;
mod connections;
mod files;
mod ops;
mod threads;

//! The central service: fenced leases, permits, decisions, and what is known.
//!
//! ```text
//!  agents ── grpc::agent ──┐                     ┌── sessions: offers, cancels, inquiries go out
//!                          ├─> driver ─ decides ─┤
//!  people ── grpc::operator┘   (core)  commits   └── store: events, what follows, evidence
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`cli`] | the command line |
//! | [`config`] | the configuration |
//! | [`serve`] | from a configuration to a coordinator that serves |
//! | [`health`], [`metrics`] | what it tells of itself |
//! | [`auth`] | who may call what |
//! | [`grpc`] | the services on the wire |
//! | [`sessions`] | agents and their live sessions |
//! | [`driver`] | the only caller of the core: decides, commits, then speaks |
//! | [`store`] | what is kept |
//! | [`logs`] | what steps wrote |
//! | [`tokens`] | operators' tokens |
//! | [`joining`], [`ca`] | hosts that join, and what their certificates are signed with |
//! | [`audit`] | the record as a file, and its check |
//! | [`verify`] | whether what is kept follows from the events |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod archives;
pub mod audit;
pub mod auth;
pub mod bugs;
pub mod ca;
pub mod cli;
pub mod config;
pub mod crash;
pub mod driver;
pub mod grpc;
pub mod health;
pub mod joining;
pub mod logs;
pub mod metrics;
mod owner;
pub mod room;
pub mod serve;
pub mod sessions;
pub mod store;
pub mod tokens;
pub mod verify;

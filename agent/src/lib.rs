//! The service on a deploy host, and what it runs.
//!
//! Every program that carries this library calls [`internal::dispatch`] first, before any runtime or thread: the
//! agent re-executes the running program for its shims.
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`] | its configuration |
//! | [`session`] | the connection to the coordinator |
//! | [`driver`] | the one thread that decides, and the order of durable, said and done |
//! | [`journal`] | what the agent knows, durably |
//! | [`adapters`] | what changes and reads resources: commands and release folders |
//! | [`archive`] | release archives, read with distrust |
//! | [`supervisor`] | starts, watches and stops the processes of steps; they outlive the agent |
//! | [`places`] | where everything lies below the state folder |
//! | [`internal`] | the hidden subcommands |
//! | [`boottime`] | the clock that leases are counted on |
//! | [`bugs`], [`crash`] | seeded faults and places where tests make the agent die |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod adapters;
pub mod archive;
pub mod boottime;
pub mod bugs;
pub mod config;
pub mod crash;
pub mod driver;
pub mod internal;
pub mod journal;
pub mod logs;
pub mod places;
pub mod session;
pub mod supervisor;

mod durable;

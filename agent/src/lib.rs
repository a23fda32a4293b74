//! The service on a deploy host, and what it runs.
//!
//! Every program that carries this library calls [`internal::dispatch`] first, before any runtime or thread: the
//! agent re-executes the running program for its shims.
//!
//! | module | holds |
//! | --- | --- |
//! | [`supervisor`] | starts, watches and stops the processes of steps; outlives the agent |
//! | [`adapters`] | what changes and reads resources: commands and release folders |
//! | [`archive`] | release archives, read with distrust |
//! | [`journal`] | what the agent knows, durably |
//! | [`places`] | where everything lies below the state folder |
//! | [`internal`] | the hidden subcommands |
//! | [`boottime`] | the clock that leases are counted on |
//! | [`crash`] | places where tests make the agent die |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod adapters;
pub mod archive;
pub mod boottime;
pub mod crash;
pub mod internal;
pub mod places;
pub mod supervisor;

mod durable;

//! The service on a deploy host, and what it runs.
//!
//! Every program that carries this library calls [`internal::dispatch`] first, before any runtime or thread: the
//! agent re-executes the running program for its shims.
//!
//! | module | holds |
//! | --- | --- |
//! | [`cli`], [`run`], [`config`] | the service and its command line |
//! | [`enrol`] | how a host becomes an agent, and stays one |
//! | [`session`] | the connection to the coordinator |
//! | [`driver`] | the one thread that decides, and the order of durable, said and done |
//! | [`journal`] | what the agent knows, durably |
//! | [`hands`] | threads that wait for shims and look at resources |
//! | [`supervisor`] | starts, watches and stops the processes of steps; outlives the agent |
//! | [`adapters`] | what changes and reads resources: commands and release folders |
//! | [`policy`], [`secrets`] | what this host allows, as whom, with which credentials |
//! | [`checks`] | health checks: looks over HTTP and TCP, and by commands |
//! | [`archive`] | release archives, read with distrust |
//! | [`logs`] | sends what steps print |
//! | [`bulk`] | a thread of its own for what moves many bytes |
//! | [`health`], [`metrics`], [`standing`] | what it tells of itself |
//! | [`machine`] | by what its machine is known again |
//! | [`trial`] | what can be shown of a resource without changing it |
//! | [`places`] | where everything lies below the state folder |
//! | [`internal`] | the hidden subcommands |
//! | [`boottime`] | the clock that leases are counted on |
//! | [`bugs`], [`crash`] | seeded faults and places where tests make the agent die |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod adapters;
pub mod archive;
pub mod boottime;
pub mod bugs;
pub mod bulk;
pub mod checks;
pub mod cli;
pub mod config;
pub mod crash;
pub mod driver;
pub mod enrol;
pub mod fetch;
pub mod hands;
pub mod health;
pub mod internal;
pub mod journal;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod places;
pub mod policy;
pub mod room;
pub mod run;
pub mod secrets;
pub mod session;
pub mod standing;
pub mod status;
pub mod supervisor;
pub mod trial;

mod child;
mod durable;
mod fault;

//! Tests of the agent with real processes.
#![allow(clippy::unwrap_used)]

mod checks;
mod host;
mod release;
mod release_links;
mod release_race;
mod restore;
mod supervisor;
mod supervisor_loss;
mod support;

//! Tests of the agent with real processes.
#![allow(clippy::unwrap_used)]

mod release;
mod release_race;
mod supervisor;
mod support;

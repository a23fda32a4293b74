//! Tests of the agent with real processes.
#![allow(clippy::unwrap_used)]

mod cgroup;
mod checks;
mod conformance;
mod external;
mod git;
mod host;
mod http;
mod places;
mod postgres;
mod prune;
mod release;
mod release_links;
mod release_race;
mod restore;
mod strangers;
mod supervisor;
mod supervisor_escape;
mod supervisor_limits;
mod supervisor_loss;
mod support;
mod trial;

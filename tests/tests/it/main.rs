//! Real processes, real sockets, real faults.

mod archives;
mod audit;
mod bad_input;
mod bugs;
mod cancel;
mod cases;
mod certificates;
mod clones;
mod connections;
mod crash_case;
mod crash_points;
mod credentials;
mod deadlines;
mod durability;
mod enrol;
mod experiments;
mod frames;
mod full;
mod guarantees;
mod harness;
mod health;
mod hold;
mod hostile_coordinator;
mod logging;
mod main_job;
mod many_agents;
mod mass_loss;
mod messages;
mod metrics;
mod mixed;
mod outputs;
mod packages;
mod policy;
mod reconnect;
mod recovery;
mod restart;
mod retries;
mod rollback;
mod service;
mod support;
mod target_hold;
mod units;
mod verification;

/// Everything under test in one program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-under-test");

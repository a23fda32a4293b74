//! Real processes, real sockets, real faults.

mod bad_input;
mod bugs;
mod cancel;
mod cases;
mod crash_case;
mod crash_points;
mod durability;
mod frames;
mod guarantees;
mod harness;
mod hold;
mod hostile_coordinator;
mod main_job;
mod many_agents;
mod messages;
mod reconnect;
mod restart;
mod support;

/// Everything under test in one program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-under-test");

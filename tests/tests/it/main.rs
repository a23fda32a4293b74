//! Real processes, real sockets, real faults.

mod bad_input;
mod cases;
mod crash_case;
mod crash_points;
mod durability;
mod frames;
mod harness;
mod hostile_coordinator;

/// Everything under test in one program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast-under-test");

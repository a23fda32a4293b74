//! Everything that is under test in one program, with the feature `bugs`: the command line, the services and shims that it
//! carries, the command that steps run, and what benchmarks and tests of many agents start.

use std::ffi::OsStr;
use std::process::ExitCode;

use holdfast_tests::{echo, fleet, ledger};

/// As `holdfast-agent`, on a host.
const HOST: &str = "on-host";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.nth(1).as_deref().and_then(OsStr::to_str) {
        Some(ledger::COMMAND) => ledger::run(arguments),
        Some(fleet::COMMAND) => fleet::run(arguments),
        Some(echo::COMMAND) => echo::run(arguments),
        Some(HOST) => holdfast_agent::cli::main(std::env::args_os().skip(1)),
        Some(_) | None => holdfast::main(std::env::args_os()),
    }
}

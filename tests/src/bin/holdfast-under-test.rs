//! Everything that is under test in one program, with the feature `bugs`: the command line, the services and shims that it
//! carries, the command that steps run, and what benchmarks and tests of many agents start. Under the name of a program that is
//! shipped it is that program.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use holdfast_tests::{deploy_api, echo, fleet, ledger};

/// As `holdfast-agent`, on a host.
const HOST: &str = "on-host";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called = std::env::args_os().next().unwrap_or_default();
    match Path::new(&called).file_name().and_then(OsStr::to_str) {
        Some("holdfast-coordinator") => return holdfast_coordinator::cli::main(arguments),
        // Its shims come by the same name.
        Some("holdfast-agent") => {
            return holdfast_agent::internal::dispatch(std::env::args_os())
                .unwrap_or_else(|| holdfast_agent::cli::main(arguments));
        }
        Some(_) | None => {}
    }
    match arguments.nth(1).as_deref().and_then(OsStr::to_str) {
        Some(ledger::COMMAND) => ledger::run(arguments),
        Some(fleet::COMMAND) => fleet::run(arguments),
        Some(echo::COMMAND) => echo::run(arguments),
        Some(deploy_api::COMMAND) => holdfast_example_deploy_api::main(std::env::args_os().skip(1)),
        Some(HOST) => holdfast_agent::cli::main(std::env::args_os().skip(1)),
        Some(_) | None => holdfast::main(std::env::args_os()),
    }
}

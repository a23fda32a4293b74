//! Everything that is under test in one program, with the feature `bugs`: the command line, the services and shims that it
//! carries, and the command that steps run.

use std::process::ExitCode;

use holdfast_tests::ledger;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|word| word == ledger::COMMAND) {
        return ledger::run(arguments);
    }
    if let Some(code) = holdfast_agent::internal::dispatch(std::env::args_os()) {
        return code;
    }
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    match arguments.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("coordinator") => holdfast_coordinator::cli::main(std::iter::once(program).chain(arguments)),
        Some("agent") => holdfast_agent::cli::main(std::iter::once(program).chain(arguments)),
        _ => ExitCode::from(2),
    }
}
